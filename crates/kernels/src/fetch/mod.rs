//! Getting kernels from the distribution, by its own package tool.
//!
//! `apt-get download` needs no root and installs nothing, and checks what it fetches against the
//! distribution's signature. Which version is the newest is asked each time: versions rotate, and
//! an old one is gone from the servers soon. The machine's own lists of packages are read if there
//! are any; if they are missing, or older than what the servers still have, lists are fetched into
//! a scratch folder, and the machine's stay as they are.
//!
//! Everything is prepared in a scratch folder of the guard inside the store, and renamed into place
//! at the end: after Ctrl-C, a full disk or `kill -9` there is either the whole kernel or none.

mod apt;
mod stanza;
mod tool;
mod unpack;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_guard::{Guard, Interrupt, ScratchDir};

use crate::error::KernelError;
use crate::files::{entries, is_deb, make_empty, remove_dir};
use crate::kernel::Kernel;
use crate::name::Wanted;
use crate::store::record::Package;
use crate::store::{Store, sha256};
use apt::Apt;
pub(crate) use tool::{Tool, path_for_root, require};

/// More than a slow line needs for the largest kernel.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// What will be fetched for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchPlan {
    /// The name that was asked for.
    pub wanted: Wanted,
    /// The package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// Whether its series is the distribution's default.
    pub is_default: bool,
    /// How large its file is.
    pub bytes: u64,
    /// SHA-256 of its file, as the distribution's signed lists have it.
    pub sha256: String,
    /// Whether it is in the store already.
    pub cached: bool,
}

impl FetchPlan {
    /// Returns the name that the kernel will have in the store.
    pub fn name(&self) -> String {
        format!("{}-{}", self.wanted.flavour.name(), self.version)
    }
}

/// How far fetching is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchProgress {
    /// The lists of packages are fetched: the machine has none, or they are too old.
    Lists,
    /// The package is fetched.
    Package {
        /// Bytes that are here.
        bytes: u64,
        /// Bytes in total.
        of: u64,
    },
    /// The package is unpacked.
    Unpacking,
}

/// Fetches kernels into a store.
#[derive(Debug)]
pub struct Fetcher<'a> {
    store: &'a Store,
    tool: Tool<'a>,
    scratch: ScratchDir,
    apt: Apt,
}

impl<'a> Fetcher<'a> {
    /// Prepares to fetch. Open the guard with [`Store::guard_options`]: its scratch folder must be
    /// in the store's file system. When `interrupt` is asked to finish, fetching ends.
    ///
    /// # Errors
    ///
    /// [`KernelError::NoTool`] if this is no Debian, [`KernelError::Guard`] or
    /// [`KernelError::Io`] if there can be no scratch folder.
    pub fn new(
        store: &'a Store,
        guard: &'a Guard,
        interrupt: &'a Interrupt,
    ) -> Result<Self, KernelError> {
        let remedy = "copy a kernel here and type `tare kernel add NAME VMLINUZ --modules DIR`";
        let why = "kernels are fetched by Debian's own package tool";
        for program in ["apt-get", "apt-cache", "dpkg-deb"] {
            require(program, why, remedy)?;
        }
        let scratch = guard.scratch("fetch")?;
        let apt = Apt::new(scratch.path())?;
        Ok(Self {
            store,
            tool: Tool::new(guard, Some(interrupt), scratch.path()),
            scratch,
            apt,
        })
    }

    /// Finds out which package is the newest for a name.
    ///
    /// # Errors
    ///
    /// [`KernelError::NotOffered`] if the sources have none, [`KernelError::Tool`] if apt fails.
    pub fn plan(
        &mut self,
        wanted: Wanted,
        progress: &mut dyn FnMut(FetchProgress),
    ) -> Result<FetchPlan, KernelError> {
        if let Some(plan) = self.look_up(wanted)? {
            return Ok(plan);
        }
        if !self.apt.has_own_lists() {
            // One source of several that fails is no matter if another has the package.
            let fetched = self.refresh(progress);
            if let Some(plan) = self.look_up(wanted)? {
                return Ok(plan);
            }
            fetched?;
        }
        Err(KernelError::NotOffered {
            name: wanted.to_string(),
            why: format!(
                "no package {}; Debian 12 has 6.1 in its main part and 6.12 in bookworm-security: \
                 see /etc/apt/sources.list, or copy a kernel here and type `tare kernel add`",
                apt::pattern(wanted)
            ),
        })
    }

    /// Fetches a kernel into the store, unless it is there.
    ///
    /// If the servers no longer have the planned version, lists are fetched anew and the newest
    /// version is taken.
    ///
    /// # Errors
    ///
    /// [`KernelError::Tool`], [`KernelError::Failed`] if it takes too long or the file is not the
    /// one that was announced, [`KernelError::Interrupted`] or [`KernelError::Io`]; the store is as
    /// before then.
    pub fn fetch(
        &mut self,
        plan: &FetchPlan,
        progress: &mut dyn FnMut(FetchProgress),
    ) -> Result<Kernel, KernelError> {
        match self.fetch_as_planned(plan, progress) {
            Err(KernelError::Tool { said, .. })
                if apt::is_outdated(&said) && !self.apt.has_own_lists() =>
            {
                self.refresh(progress)?;
                let plan = self.plan(plan.wanted, progress)?;
                self.fetch_as_planned(&plan, progress)
            }
            other => other,
        }
    }

    fn fetch_as_planned(
        &mut self,
        plan: &FetchPlan,
        progress: &mut dyn FnMut(FetchProgress),
    ) -> Result<Kernel, KernelError> {
        let name = plan.name();
        if let Some(kernel) = self.store.stored_as(&name) {
            return Ok(kernel);
        }
        if self.store.folder(&name).exists() {
            // Its record can't be read: it is damaged, or another version of tare wrote it.
            self.store.remove(&name)?;
        }
        let folder = self.scratch.path().join(&name);
        make_empty(&folder)?;
        let deb = self.download(plan, &folder.join("deb"), progress)?;
        progress(FetchProgress::Unpacking);
        let package = Package {
            flavour: plan.wanted.flavour,
            is_default: plan.is_default,
            name: plan.package.clone(),
            version: plan.version.clone(),
            sha256: plan.sha256.clone(),
            bytes: plan.bytes,
        };
        let prepared = unpack::prepare(&self.tool, &deb, &folder, package)?;
        let kernel = match self.store.publish(&prepared, &name) {
            // Another command was faster.
            Err(KernelError::Exists { .. }) => self.store.find(&name),
            other => other,
        };
        remove_dir(&folder)?;
        kernel
    }

    fn download(
        &self,
        plan: &FetchPlan,
        folder: &Path,
        progress: &mut dyn FnMut(FetchProgress),
    ) -> Result<PathBuf, KernelError> {
        make_empty(folder)?;
        let mut command = self.apt.get();
        command
            .arg("download")
            .arg(format!("{}={}", plan.package, plan.version))
            .current_dir(folder);
        let what = format!("fetching {} with apt-get", plan.package);
        let mut told = || {
            progress(FetchProgress::Package {
                bytes: bytes_in(folder),
                of: plan.bytes,
            });
        };
        self.tool
            .run_watched(&what, &mut command, DOWNLOAD_LIMIT, &mut told)?;
        let mut files = entries(folder).map(|entry| entry.path());
        let deb = files.find(|path| is_deb(path));
        let deb = deb.ok_or_else(|| unverified(&plan.package, "no file came"))?;
        // apt has compared it with its signed lists; that it is the file of which the plan speaks
        // is checked here.
        let (sum, planned) = (sha256(&deb)?, &plan.sha256);
        if sum == *planned {
            return Ok(deb);
        }
        let why = format!("its SHA-256 is {sum}, not {planned}");
        Err(unverified(&plan.package, &why))
    }

    fn look_up(&self, wanted: Wanted) -> Result<Option<FetchPlan>, KernelError> {
        let offer = self.apt.newest(&self.tool, wanted)?;
        Ok(offer.map(|offer| {
            let mut plan = FetchPlan {
                wanted,
                package: offer.package,
                version: offer.version,
                is_default: offer.is_default,
                bytes: offer.bytes,
                sha256: offer.sha256,
                cached: false,
            };
            plan.cached = self.store.stored_as(&plan.name()).is_some();
            plan
        }))
    }

    fn refresh(&mut self, progress: &mut dyn FnMut(FetchProgress)) -> Result<(), KernelError> {
        progress(FetchProgress::Lists);
        self.apt.refresh(&self.tool)
    }
}

/// Says that a package is not the one that apt announced.
fn unverified(package: &str, why: &str) -> KernelError {
    KernelError::Failed(format!(
        "{package} is not what apt announced: {why}; nothing was kept"
    ))
}

/// Adds up the sizes of the files in a folder, as far as they can be seen.
fn bytes_in(folder: &Path) -> u64 {
    let files = entries(folder).filter_map(|entry| entry.metadata().ok());
    files.map(|status| status.len()).sum()
}

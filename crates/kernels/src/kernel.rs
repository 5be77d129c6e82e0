//! One kernel: where it is, what it is, what it can do.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::bzimage;
use crate::config::{self, ConfigOption};
use crate::error::{Doing, KernelError};
use crate::modules::{self, Module};
use crate::name::{Flavour, Series};

/// A kernel that a guest can boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// The name that means exactly this kernel: `debian-rt-6.1.192-2`, a path.
    pub name: String,
    /// Flavour, if it is the distribution's.
    pub flavour: Option<Flavour>,
    /// Whether its series is the default of the distribution that it was fetched from.
    pub is_default: bool,
    /// The distribution's package that it came in.
    pub package: Option<String>,
    /// Version of that package.
    pub version: Option<String>,
    /// What `uname -r` says in it.
    pub release: String,
    /// Its compressed image, for QEMU's `-kernel`.
    pub vmlinuz: PathBuf,
    /// The folder of its modules, `lib/modules/RELEASE`.
    pub modules: Option<PathBuf>,
    /// Its configuration.
    pub config: Option<PathBuf>,
    /// SHA-256 of `vmlinuz`, in hexadecimal.
    pub sha256: String,
    /// How it came here.
    pub source: Source,
}

/// How a kernel came here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `tare kernel fetch` fetched it from the distribution.
    Fetched,
    /// `tare kernel add` put it into the store.
    Added,
    /// It is one of the host's, in /boot.
    Host,
    /// It was named by its path.
    Path,
}

impl Kernel {
    /// Looks at a vmlinuz, and for its modules and configuration where they usually are.
    pub(crate) fn at(name: String, vmlinuz: &Path, source: Source) -> Result<Self, KernelError> {
        let vmlinuz = fs::canonicalize(vmlinuz).doing("read the kernel", vmlinuz)?;
        let release = bzimage::release(&vmlinuz)?;
        let sha256 = crate::store::sha256(&vmlinuz)?;
        let modules = usual_modules(&vmlinuz, &release);
        let config = usual_config(&vmlinuz, &release, modules.as_deref());
        Ok(Self {
            name,
            flavour: None,
            is_default: false,
            package: None,
            version: None,
            release,
            vmlinuz,
            modules,
            config,
            sha256,
            source,
        })
    }

    /// Returns the series, such as 6.12, if the release tells one.
    pub fn series(&self) -> Option<Series> {
        Series::of(&self.release)
    }

    /// Looks up an option of the kernel's configuration by its name without `CONFIG_`.
    ///
    /// None if the configuration is not known.
    pub fn option(&self, name: &str) -> Option<ConfigOption> {
        Some(ConfigOption::find(&self.configuration()?, name))
    }

    /// Names how the kernel preempts itself, by its configuration: `PREEMPT_RT`; `dynamic,
    /// voluntary` if it begins as voluntary and `preempt=` at boot can choose another. None if the
    /// configuration is not known.
    pub fn preemption(&self) -> Option<String> {
        Some(config::preemption(&self.configuration()?))
    }

    /// Returns modules, and those that they depend on, in the order in which they must be loaded.
    ///
    /// Their content is as the kernel takes it, decompressed. Built-in drivers are left out, so the
    /// answer may be empty. Names are written with `_` or `-`.
    ///
    /// # Errors
    ///
    /// [`KernelError::MissingModule`] if the kernel has no such module, built in or not;
    /// [`KernelError::NoModules`] if nothing is known of its modules; [`KernelError::Failed`] if
    /// one is damaged or belongs to another kernel.
    pub fn modules_for(&self, wanted: &[&str]) -> Result<Vec<Module>, KernelError> {
        modules::resolve(self, wanted)
    }

    /// Returns the bytes that the kernel, its configuration and its modules take on the disk.
    pub fn bytes(&self) -> u64 {
        let single = [Some(&self.vmlinuz), self.config.as_ref()];
        let files = single
            .into_iter()
            .flatten()
            .filter_map(|path| fs::metadata(path).ok());
        let files: u64 = files.map(|status| status.len()).sum();
        files + self.modules.as_deref().map_or(0, modules::bytes)
    }

    fn configuration(&self) -> Option<String> {
        fs::read_to_string(self.config.as_ref()?).ok()
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Finds the modules of a kernel: in the tree that holds the kernel (an unpacked package, a guest's
/// root), else the host's.
fn usual_modules(vmlinuz: &Path, release: &str) -> Option<PathBuf> {
    let folder = vmlinuz.parent();
    let above = folder.and_then(Path::parent);
    let roots = [folder, above, Some(Path::new("/"))];
    let folders = roots.into_iter().flatten().flat_map(|root| {
        ["lib/modules", "usr/lib/modules"].map(|below| root.join(below).join(release))
    });
    folders.into_iter().find(|folder| folder.is_dir())
}

fn usual_config(vmlinuz: &Path, release: &str, modules: Option<&Path>) -> Option<PathBuf> {
    let name = format!("config-{release}");
    let places = [
        vmlinuz.parent().map(|folder| folder.join(&name)),
        modules.map(|modules| modules.join("config")),
        Some(Path::new("/boot").join(&name)),
    ];
    places.into_iter().flatten().find(|path| path.is_file())
}

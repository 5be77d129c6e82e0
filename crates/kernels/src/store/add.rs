//! Putting a kernel into the store by hand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_guard::Guard;

use super::record::{CONFIG, Record, VMLINUZ, refusal};
use super::{Store, record, sha256};
use crate::error::{Doing, KernelError};
use crate::files::{copy, make_dir, sync};
use crate::kernel::{Kernel, Source};
use crate::modules;

impl Store {
    /// Copies a kernel, its configuration if that is next to it, and its modules into the store.
    ///
    /// `modules` is `lib/modules/RELEASE`, or a folder in which that is found, as `make
    /// modules_install INSTALL_MOD_PATH=DIR` makes it; without it, the usual places are looked at.
    /// Open the guard with [`guard_options`](Self::guard_options).
    ///
    /// # Errors
    ///
    /// [`KernelError::BadName`], [`KernelError::Exists`], [`KernelError::Failed`] if the file is no
    /// kernel, or [`KernelError::Io`]. Nothing is left in the store then.
    pub fn add(
        &self,
        name: &str,
        vmlinuz: &Path,
        modules: Option<&Path>,
        guard: &Guard,
    ) -> Result<Kernel, KernelError> {
        if let Some(why) = refusal(name) {
            let name = name.to_owned();
            return Err(KernelError::BadName { name, why });
        }
        let kernel = Kernel::at(name.to_owned(), vmlinuz, Source::Added)?;
        let modules = match modules {
            Some(folder) => Some(modules_in(folder, &kernel.release)?),
            None => kernel.modules.clone(),
        };
        let scratch = guard.scratch("add")?;
        let prepared = scratch.path().join("kernel");
        prepare(&prepared, &kernel, modules.as_deref())?;
        self.publish(&prepared, name)
    }

    /// Renames a prepared folder to the name of its kernel.
    pub(crate) fn publish(&self, prepared: &Path, name: &str) -> Result<Kernel, KernelError> {
        let folder = self.folder(name);
        let named = name.to_owned();
        match fs::rename(prepared, &folder) {
            // A folder is replaced only if it is empty, and these never are.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                ) =>
            {
                return Err(KernelError::Exists { name: named });
            }
            renamed => renamed.doing("make", &folder)?,
        }
        record::read(&folder, name).ok_or(KernelError::Changed {
            name: named,
            path: folder,
        })
    }
}

fn prepare(folder: &Path, kernel: &Kernel, modules: Option<&Path>) -> Result<(), KernelError> {
    let copied = folder.join(VMLINUZ);
    copy(&kernel.vmlinuz, &copied)?;
    if let Some(config) = &kernel.config {
        copy(config, &folder.join(CONFIG))?;
    }
    if let Some(from) = modules {
        let to = folder.join("lib/modules").join(&kernel.release);
        make_dir(&to)?;
        for file in modules::files_to_keep(from)? {
            copy(&from.join(&file), &to.join(&file))?;
        }
    }
    // Of the copy: the original may change.
    Record::new(kernel.release.clone(), sha256(&copied)?, None).write(folder)?;
    sync(folder)
}

fn modules_in(folder: &Path, release: &str) -> Result<PathBuf, KernelError> {
    let candidates = [
        folder.join("lib/modules").join(release),
        folder.join("usr/lib/modules").join(release),
        folder.join(release),
        folder.to_owned(),
    ];
    let mut candidates = candidates.into_iter();
    let found = candidates.find(|candidate| candidate.join("kernel").is_dir());
    let missing = || {
        let why = format!("it holds no modules of {release}: want lib/modules/{release}");
        io::Error::new(io::ErrorKind::NotFound, why)
    };
    found.ok_or_else(missing).doing("use", folder)
}

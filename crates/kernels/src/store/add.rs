//! Putting a kernel into the store by hand.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_guard::Guard;

use super::record::{CONFIG, Record, VMLINUZ, refusal};
use super::{Store, record, sha256};
use crate::error::KernelError;
use crate::fetch::sync;
use crate::kernel::{Kernel, Source};
use crate::modules;

impl Store {
    /// Copies a kernel, its configuration if that is beside it, and its modules into the store.
    ///
    /// `modules` is `lib/modules/RELEASE`, or a folder in which that is found, as `make
    /// modules_install INSTALL_MOD_PATH=DIR` makes it; without it, the usual places are looked at.
    /// Open the guard with [`guard_options`](Self::guard_options).
    ///
    /// # Errors
    ///
    /// [`KernelError::BadName`], [`KernelError::Exists`], [`KernelError::NotAKernel`], or
    /// [`KernelError::Io`]. Nothing is left in the store then.
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
        if let Err(error) = fs::rename(prepared, &folder) {
            return Err(match error.kind() {
                // A folder is replaced only if it is empty, and these never are.
                io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                    KernelError::Exists {
                        name: name.to_owned(),
                    }
                }
                _ => KernelError::io("make", &folder, error),
            });
        }
        record::read(&folder, name).ok_or_else(|| KernelError::Changed {
            name: name.to_owned(),
            path: folder,
        })
    }
}

fn prepare(folder: &Path, kernel: &Kernel, modules: Option<&Path>) -> Result<(), KernelError> {
    let made = |path: &Path| {
        fs::create_dir_all(path).map_err(|source| KernelError::io("make the folder", path, source))
    };
    made(folder)?;
    let copied = folder.join(VMLINUZ);
    copy(&kernel.vmlinuz, &copied)?;
    if let Some(config) = &kernel.config {
        copy(config, &folder.join(CONFIG))?;
    }
    if let Some(from) = modules {
        let to = folder.join("lib/modules").join(&kernel.release);
        made(&to)?;
        for file in modules::files_to_keep(from)? {
            let target = to.join(&file);
            if let Some(parent) = target.parent() {
                made(parent)?;
            }
            copy(&from.join(&file), &target)?;
        }
    }
    // Of the copy: the original may change meanwhile.
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
    candidates
        .into_iter()
        .find(|candidate| candidate.join("kernel").is_dir())
        .ok_or_else(|| {
            let why = format!("it holds no modules of {release}: want lib/modules/{release}");
            KernelError::io("use", folder, io::Error::new(io::ErrorKind::NotFound, why))
        })
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), KernelError> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|source| KernelError::io("copy", from, source))
}

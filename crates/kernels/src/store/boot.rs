//! The host's own kernels.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::KernelError;
use crate::kernel::{Kernel, Source};
use crate::version;

const BOOT: &str = "/boot";

/// Returns the kernels of /boot, the oldest first, and the errors of those that can't be read.
pub(super) fn kernels() -> (Vec<Kernel>, Vec<KernelError>) {
    kernels_in(Path::new(BOOT))
}

/// Returns the newest kernel of /boot.
pub(super) fn newest() -> Result<Kernel, KernelError> {
    let (mut kernels, mut errors) = kernels();
    kernels.pop().ok_or_else(|| KernelError::NoHostKernel {
        why: match errors.pop() {
            Some(error) => error.to_string(),
            None => "there is no file vmlinuz-*".to_owned(),
        },
    })
}

fn kernels_in(boot: &Path) -> (Vec<Kernel>, Vec<KernelError>) {
    let (mut kernels, mut errors) = (Vec::new(), Vec::new());
    let entries = match fs::read_dir(boot) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (kernels, errors),
        Err(error) => {
            errors.push(KernelError::io("list", boot, error));
            return (kernels, errors);
        }
    };
    for entry in entries.flatten() {
        let Ok(file) = entry.file_name().into_string() else {
            continue;
        };
        let Some(release) = file.strip_prefix("vmlinuz-") else {
            continue;
        };
        match Kernel::at(format!("host-{release}"), &entry.path(), Source::Host) {
            Ok(kernel) => kernels.push(kernel),
            Err(error) => errors.push(error),
        }
    }
    kernels.sort_by(|a, b| version::compare(&a.release, &b.release));
    (kernels, errors)
}

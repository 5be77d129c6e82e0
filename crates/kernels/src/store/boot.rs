//! The host's own kernels.

use std::fs;
use std::path::Path;

use crate::error::{Doing, KernelError};
use crate::files::if_there;
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
    let listed = if_there(fs::read_dir(boot)).doing("list", boot);
    let entries = listed.unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    for entry in entries.into_iter().flatten().flatten() {
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

//! A package's file to a kernel's folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::make_empty;
use super::tool::Tool;
use crate::bzimage;
use crate::error::KernelError;
use crate::modules::files_to_keep;
use crate::store::record::{CONFIG, Package, Record, VMLINUZ};
use crate::store::sha256;

const UNPACK_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Unpacks a package inside `scratch` and returns the folder that can be published.
pub(super) fn prepare(
    tool: &Tool<'_>,
    deb: &Path,
    scratch: &Path,
    package: Package,
) -> Result<PathBuf, KernelError> {
    let (tree, prepared) = (scratch.join("tree"), scratch.join("kernel"));
    make_empty(&prepared)?;
    let what = format!("unpacking {} with dpkg-deb", package.name);
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").arg(deb).arg(&tree);
    tool.run(&what, &mut command, scratch, UNPACK_LIMIT)?;

    let boot = tree.join("boot");
    let expected = package.name.trim_start_matches("linux-image-");
    let vmlinuz = boot.join(format!("vmlinuz-{expected}"));
    let release = bzimage::release(&vmlinuz)?;
    if release != expected {
        return Err(KernelError::Unverified {
            what: package.name,
            why: format!("its kernel says that it is {release}"),
        });
    }
    rename(&vmlinuz, &prepared.join(VMLINUZ))?;
    rename(
        &boot.join(format!("config-{release}")),
        &prepared.join(CONFIG),
    )?;
    let below = Path::new("lib/modules").join(&release);
    let unpacked = [tree.join(&below), tree.join("usr").join(&below)];
    let modules = unpacked.iter().find(|folder| folder.is_dir());
    if let Some(modules) = modules {
        for file in files_to_keep(modules)? {
            let target = prepared.join(&below).join(&file);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)
                    .map_err(|source| KernelError::io("make the folder", parent, source))?;
            }
            rename(&modules.join(&file), &target)?;
        }
    }
    let sum = sha256(&prepared.join(VMLINUZ))?;
    Record::new(release, sum, Some(package)).write(&prepared)?;
    sync(&prepared)?;
    Ok(prepared)
}

fn rename(from: &Path, to: &Path) -> Result<(), KernelError> {
    fs::rename(from, to).map_err(|source| KernelError::io("move", from, source))
}

/// Waits until a folder is on the disk: after a power cut, a published kernel must be whole.
pub(crate) fn sync(folder: &Path) -> Result<(), KernelError> {
    let failed = |source| KernelError::io("write to the disk", folder, source);
    let opened = File::open(folder).map_err(failed)?;
    rustix::fs::syncfs(&opened).map_err(|errno| failed(errno.into()))
}

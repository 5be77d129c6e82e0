//! A package's file to a kernel's folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::tool::Tool;
use super::unverified;
use crate::bzimage;
use crate::error::KernelError;
use crate::files::{make_empty, rename, sync};
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
    tool.run(&what, &mut command, UNPACK_LIMIT)?;

    let boot = tree.join("boot");
    let expected = package.name.trim_start_matches("linux-image-");
    let vmlinuz = boot.join(format!("vmlinuz-{expected}"));
    let release = bzimage::release(&vmlinuz)?;
    if release != expected {
        let why = format!("its kernel says that it is {release}");
        return Err(unverified(&package.name, &why));
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
            rename(&modules.join(&file), &prepared.join(&below).join(&file))?;
        }
    }
    let sum = sha256(&prepared.join(VMLINUZ))?;
    Record::new(release, sum, Some(package)).write(&prepared)?;
    sync(&prepared)?;
    Ok(prepared)
}

//! The scratch disk of a guest: ext4 with a tree of files, made without root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tare_guard::Guard;
use tare_load_driver::tree;
use tare_wire::guest::TREE;

use crate::error::TargetError;
use crate::instance::describe_exit;
use crate::options::Size;
use crate::programs;

const PROGRAM: &str = "mke2fs";

/// How long making a file system may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes a disk image at `path`, with the tree of files that loads read.
///
/// # Errors
///
/// Returns [`TargetError::Failed`] if that does not work, as when the files do not fit.
pub(super) fn make(path: &Path, size: Size, guard: &Guard) -> Result<(), TargetError> {
    let failed = |why: String| {
        TargetError::Failed(format!(
            "the guest's scratch disk can't be made: {why}. It takes mke2fs (apt-get install \
             e2fsprogs), room in the temporary folder, and a size into which its files fit \
             (disk=scratch:SIZE)"
        ))
    };
    let program = programs::find(PROGRAM)
        .ok_or_else(|| failed(format!("{PROGRAM} is in no folder of PATH")))?;
    let content = guard.scratch("tree")?;
    // The disk's own folder in the guest is the path's first part.
    let name = TREE.rsplit('/').next().unwrap_or(TREE);
    let folder = content.path().join(name);
    fs::create_dir(&folder)
        .and_then(|()| tree::make(&folder, tree::SEED))
        .map_err(|error| failed(format!("its files can't be written: {error}")))?;
    let mut command = Command::new(program);
    command
        .args(["-q", "-F", "-t", "ext4", "-m", "0", "-d"])
        .arg(content.path())
        .arg(path)
        .arg(format!("{}M", size.mib))
        .stdin(Stdio::null());
    let output = programs::run(&mut command, LIMIT, guard)?;
    match output.status {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let how = describe_exit(status, &output.stderr);
            Err(failed(format!("{PROGRAM} {how}")))
        }
        None => {
            let limit = LIMIT.as_secs();
            Err(failed(format!("{PROGRAM} was not done after {limit} s")))
        }
    }
}

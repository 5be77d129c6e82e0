//! The scratch disk of a guest: ext4 with a tree of files, made without root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tare_guard::Guard;
use tare_load_driver::tree;
use tare_wire::guest::TREE;

use super::tools;
use crate::error::TargetError;
use crate::instance::describe_exit;
use crate::options::Size;

const PROGRAM: &str = "mke2fs";

/// Is how long making a file system may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes a disk image at `path`, with the tree of files that loads read.
///
/// # Errors
///
/// Returns [`TargetError::Disk`] if that does not work, as when the files do not fit.
pub(super) fn make(path: &Path, size: Size, guard: &Guard) -> Result<(), TargetError> {
    let failed = |why: String| TargetError::Disk { why };
    let program =
        tools::find(PROGRAM).ok_or_else(|| failed(format!("{PROGRAM} is in no folder of PATH")))?;
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
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = guard.spawn(&mut command)?;
    match child.wait_with_deadline(Instant::now() + LIMIT)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => {
            let said = crate::qemu::read_to_end(child.take_stderr());
            Err(failed(format!(
                "{PROGRAM} {}",
                describe_exit(status, said.trim())
            )))
        }
        None => {
            child.kill_group()?;
            Err(failed(format!(
                "{PROGRAM} was not done after {} s",
                LIMIT.as_secs()
            )))
        }
    }
}

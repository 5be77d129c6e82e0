//! The file systems that programs on Linux expect.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use super::error::InitError;

/// Mounts /proc and the others that the agent needs.
pub fn first() -> Result<(), InitError> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount_on(kind, place).map_err(|source| InitError::Mount { place, source })?;
    }
    Ok(())
}

/// Mounts /proc, for the kernel command line.
pub fn processes() -> io::Result<()> {
    mount_on("proc", "/proc")
}

/// Mounts those that only some kernels have, or only some programs need; failures are ignored.
pub fn rest() {
    for (kind, place) in [
        ("debugfs", "/sys/kernel/debug"),
        ("tmpfs", "/tmp"),
        ("tmpfs", "/run"),
        ("tmpfs", "/dev/shm"),
    ] {
        let _ = mount_on(kind, place);
    }
}

fn mount_on(kind: &str, place: &str) -> io::Result<()> {
    // Fails in sysfs, where the folder is there already.
    let _ = fs::create_dir(place);
    let flags = match kind {
        "devtmpfs" => MountFlags::NOSUID,
        _ => MountFlags::NOSUID | MountFlags::NODEV,
    };
    match mount(kind, place, kind, flags, None) {
        // The kernel may have done it (CONFIG_DEVTMPFS_MOUNT).
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

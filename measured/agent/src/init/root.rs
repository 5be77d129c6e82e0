//! Switches to a root file system on a disk: a whole distribution, whose init then starts the agent
//! again.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::mount::{UnmountFlags, mount_move, unmount};
use rustix::process::{chdir, chroot};
use tare_wire::guest::ROOT_SERIAL;

use super::disk;
use super::error::InitError;

/// The first mount point of the disk.
const PLACE: &str = "/root";

/// The distribution's init.
const INIT: &str = "/sbin/init";

/// Becomes the distribution's init. Returns only on failure.
pub fn go_on() -> InitError {
    let _ = fs::create_dir(PLACE);
    if let Err(error) = disk::mount_by(ROOT_SERIAL, PLACE) {
        return error;
    }
    // The distribution mounts its own, and reuses the memory of the initramfs.
    for place in ["/proc", "/sys", "/dev"] {
        let _ = unmount(place, UnmountFlags::DETACH);
    }
    let _ = fs::remove_dir_all("/modules");
    let _ = fs::remove_file(super::PROGRAM);
    let moved = chdir(PLACE)
        .and_then(|()| mount_move(".", "/"))
        .and_then(|()| chroot("."))
        .and_then(|()| chdir("/"));
    if let Err(errno) = moved {
        return InitError::Mount {
            place: PLACE,
            source: io::Error::from(errno),
        };
    }
    InitError::NotStarted {
        what: "the init of the root file system",
        source: Command::new(INIT).env_clear().exec(),
    }
}

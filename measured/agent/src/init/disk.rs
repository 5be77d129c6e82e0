//! The disks of a guest: one to write on, for loads that want a real file system, and one that holds
//! a whole distribution.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use tare_wire::guest::{SCRATCH, SCRATCH_SERIAL};

use super::appears;
use super::trouble::Trouble;

/// Is how long a disk may take to appear.
const LIMIT: Duration = Duration::from_secs(5);

/// Mounts the scratch disk, if the laboratory has made a folder for it.
pub fn mount_scratch() -> Result<(), Trouble> {
    if !fs::exists(SCRATCH).unwrap_or(false) {
        return Ok(());
    }
    mount_by(SCRATCH_SERIAL, SCRATCH)
}

/// Makes the scratch folder on a RAM disk, if it is not there on a disk.
///
/// It takes a quarter of the memory at most: the rest is for what a load executes.
pub fn make_scratch() -> Result<(), Trouble> {
    if fs::exists(SCRATCH).unwrap_or(false) {
        return Ok(());
    }
    let made = fs::create_dir(SCRATCH).and_then(|()| {
        let size = Some(c"size=25%");
        Ok(mount("tmpfs", SCRATCH, "tmpfs", MountFlags::empty(), size)?)
    });
    made.map_err(|source| Trouble::Mount {
        place: SCRATCH,
        source,
    })
}

/// Mounts the scratch disk in a system that has booted by itself, if there is one.
pub fn mount_scratch_if_any() -> Result<(), Trouble> {
    if device(SCRATCH_SERIAL).is_none() {
        return Ok(());
    }
    // Where it is there already, so much the better.
    let _ = fs::create_dir(SCRATCH);
    mount_by(SCRATCH_SERIAL, SCRATCH)
}

/// Mounts the disk with the serial number.
pub fn mount_by(serial: &str, place: &'static str) -> Result<(), Trouble> {
    let mounted = match appears(LIMIT, || device(serial)) {
        Some(device) => mount(&*device, place, "ext4", MountFlags::empty(), None),
        None => Err(rustix::io::Errno::NODEV),
    };
    mounted.map_err(|errno| Trouble::Mount {
        place,
        source: io::Error::from(errno),
    })
}

fn device(serial: &str) -> Option<String> {
    fs::read_dir("/sys/block")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let found = fs::read_to_string(entry.path().join("serial")).ok()?;
            let device = format!("/dev/{}", entry.file_name().to_str()?);
            (found.trim_end() == serial && fs::exists(&device).ok()?).then_some(device)
        })
}

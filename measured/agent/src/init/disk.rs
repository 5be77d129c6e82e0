//! The disks of a guest: the scratch disk, for loads that need a real file system, or a RAM disk
//! instead; and one with a whole distribution.

use std::ffi::CString;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::mount::{MountFlags, mount};
use tare_wire::guest::{SCRATCH, SCRATCH_SERIAL};

use super::appears;
use super::error::InitError;

/// The time limit for a disk to appear.
const LIMIT: Duration = Duration::from_secs(5);

/// Mounts the scratch disk, if the laboratory has created a folder for it: a RAM disk if a size is
/// given.
pub fn mount_scratch(ram: Option<&str>) -> Result<(), InitError> {
    if !fs::exists(SCRATCH).unwrap_or(false) {
        return Ok(());
    }
    let Some(size) = ram else {
        return mount_by(SCRATCH_SERIAL, SCRATCH);
    };
    let failed = |source| InitError::Mount {
        place: SCRATCH,
        source,
    };
    let size = CString::new(format!("size={size}")).map_err(|error| failed(error.into()))?;
    mount("tmpfs", SCRATCH, "tmpfs", MountFlags::empty(), &*size)
        .map_err(|errno| failed(errno.into()))
}

/// Mounts the scratch disk, if any, in a distribution that has booted.
pub fn mount_scratch_if_any() -> Result<(), InitError> {
    if device(SCRATCH_SERIAL).is_none() {
        return Ok(());
    }
    // It may exist already.
    let _ = fs::create_dir(SCRATCH);
    mount_by(SCRATCH_SERIAL, SCRATCH)
}

/// Mounts the disk with the serial number.
pub fn mount_by(serial: &str, place: &'static str) -> Result<(), InitError> {
    let mounted = match appears(LIMIT, || device(serial)) {
        Some(device) => mount(&*device, place, "ext4", MountFlags::empty(), None),
        None => Err(rustix::io::Errno::NODEV),
    };
    mounted.map_err(|errno| InitError::Mount {
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

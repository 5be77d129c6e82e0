//! Tells a load in the same guest, if init runs one, when the first sample is due: its phases begin
//! then.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, RawFd};

use tare_load_driver::driver::origin_line;
use tare_wire::guest::BEGIN_FD;

/// Sends the origin, if there is a load. Called once: the descriptor is closed afterwards.
///
/// # Errors
///
/// Returns the kernel's error if the load's driver has exited.
pub fn tell(origin_ns: u64) -> io::Result<()> {
    let Some(fd) = env::var_os(BEGIN_FD) else {
        return Ok(());
    };
    let fd: Option<RawFd> = fd.to_str().and_then(|fd| fd.parse().ok());
    let fd = fd.filter(|fd| *fd > 2).ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: init has opened the descriptor for this process and passed its number; nothing else
    // here uses it, and this is called once, since a process measures once.
    let mut pipe = unsafe { File::from_raw_fd(fd) };
    pipe.write_all(origin_line(origin_ns).as_bytes())
}

//! Tells a load in the same guest, if init runs one, when the first sample is due: its phases begin
//! then.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, RawFd};

use tare_load_driver::driver::origin_line;
use tare_wire::guest::{BEGIN_FD, FIXED_PHASE};

/// Returns whether this is a guest whose activations are to begin at a fixed phase of its clock.
pub fn has_fixed_phase() -> bool {
    let line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|word| word == FIXED_PHASE)
}

/// Returns the first moment from a time on that is half an interval after a full second: there it
/// does not coincide with a tick that begins at a multiple of the interval.
pub fn at_fixed_phase(from_ns: u64, interval_ns: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let phase_ns = interval_ns / 2 % SECOND_NS;
    from_ns.saturating_sub(phase_ns).next_multiple_of(SECOND_NS) + phase_ns
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_phase_is_half_an_interval_after_a_full_second() {
        assert_eq!(at_fixed_phase(7, 100_000), 50_000);
        assert_eq!(at_fixed_phase(50_000, 100_000), 50_000);
        assert_eq!(at_fixed_phase(50_001, 100_000), 1_000_050_000);
        assert_eq!(at_fixed_phase(3_900_000_000, 4_000_000_000), 4_000_000_000);
    }
}

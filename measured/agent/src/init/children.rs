//! Waits for children, including orphans, which init inherits.

use std::io;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Returns the id of a child that the standard library has started.
pub fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Sleeps until a child has ended. Others that end first are reaped and ignored.
pub fn wait_for(child: Pid) -> io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == child => return Ok(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits until no child is left, or `limit` has passed.
pub fn wait_for_all(limit: Duration) {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(Duration::from_millis(1)),
            Err(_) => break,
        }
    }
}

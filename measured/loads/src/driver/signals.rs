//! The driver's signals, as a descriptor.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};

use rustix::process::{Signal, getpid, set_child_subreaper, set_parent_process_death_signal};

use crate::error::DriverError;

/// The signals that end the load.
const STOPPING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Returns whether a signal ends the load.
pub(super) fn asks_for_end(number: i32) -> bool {
    STOPPING.contains(&number)
}

/// A receiver of signals, which stay blocked for the rest of the process's life.
#[derive(Debug)]
pub(super) struct Signals {
    file: File,
    stop: bool,
}

impl Signals {
    /// Takes over the signals that end the load, and SIGCHLD. The death of the parent becomes
    /// SIGTERM; orphaned descendants become children.
    pub(super) fn take() -> Result<Self, DriverError> {
        let failed = |source: io::Error| DriverError::system("receive signals", source);
        let set = set(&[&STOPPING[..], &[libc::SIGCHLD]].concat());
        // SAFETY: a live set; the old one is not requested.
        if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } != 0
        {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: a live set; -1 requests a new descriptor.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: a new descriptor.
        let file = unsafe { File::from_raw_fd(fd) };
        set_parent_process_death_signal(Some(Signal::TERM))
            .map_err(|errno| failed(errno.into()))?;
        set_child_subreaper(Some(getpid())).map_err(|errno| failed(errno.into()))?;
        Ok(Self { file, stop: false })
    }

    /// Records the signals that have come.
    pub(super) fn note(&mut self) {
        const SIZE: usize = size_of::<libc::signalfd_siginfo>();
        let mut info = [0; SIZE];
        while let Ok(SIZE) = self.file.read(&mut info) {
            // The structure begins with the signal's number.
            let number = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
            self.stop |= STOPPING.iter().any(|signal| *signal as u32 == number);
        }
    }

    /// Returns whether a signal has ended the load.
    pub(super) fn stop_asked(&self) -> bool {
        self.stop
    }
}

/// Readable if a signal has come.
impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Unblocks all signals, for a child before it executes its program, since the mask is inherited.
pub(super) fn unblock() -> io::Result<()> {
    let none = set(&[]);
    // SAFETY: a live set; the old one is not requested.
    if unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn set(signals: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: zeroed is a valid `sigset_t`, which is then made empty and filled; the calls fail
    // only for an invalid signal number.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}

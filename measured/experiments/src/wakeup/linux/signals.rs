//! SIGINT and SIGTERM, which end the measurement early with a report; and a signal that ends a
//! sleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;

/// The two signals as a descriptor that becomes readable.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    asked_for: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals in this thread, and in all that it starts from now on.
    ///
    /// # Errors
    ///
    /// Returns the kernel's error if there is no descriptor.
    pub fn take_over() -> io::Result<Self> {
        ignore_nudge();
        // SAFETY: a plain set of bits, for which zeros are valid; initialised by the next call.
        let mut set = unsafe { core::mem::zeroed() };
        // SAFETY: a live set, valid signals, and no set to return.
        let fd = unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: a new descriptor.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            asked_for: set,
        })
    }

    /// Returns whether one of them has come. From then on the next one ends the process as usual.
    pub fn came(&self) -> bool {
        let mut information = [0; size_of::<libc::signalfd_siginfo>()];
        let came = rustix::io::read(&self.fd, &mut information) != Err(Errno::AGAIN);
        if came {
            // SAFETY: the live set that was blocked; no set to return.
            unsafe {
                libc::pthread_sigmask(
                    libc::SIG_UNBLOCK,
                    &raw const self.asked_for,
                    ptr::null_mut(),
                )
            };
        }
        came
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The signal that ends a sleep. No other code sends it.
const NUDGE: libc::c_int = libc::SIGUSR1;

/// Installs an empty handler: an ignored signal would not end a sleep.
fn ignore_nudge() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: zeros are valid: no flags, no signals blocked in the handler.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = nothing as *const () as usize;
    // SAFETY: a live action whose handler does nothing, so that it may run at any time.
    unsafe { libc::sigaction(NUDGE, &raw const action, ptr::null_mut()) };
}

/// Ends the sleep of a thread of this process, if it sleeps.
pub fn nudge(tid: u32) {
    // SAFETY: no pointers are passed; the id of a thread that has ended is rejected.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, NUDGE) };
}

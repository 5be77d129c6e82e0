//! A separate network for some threads and commands.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use crate::NetworkError;

/// A network namespace. It ends with the last one who is in it or holds it.
#[derive(Debug)]
pub struct NetworkNamespace {
    namespace: OwnedFd,
}

impl NetworkNamespace {
    /// Makes one that has nothing but its own loopback device, which is down.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Namespace`] if the kernel refuses: it requires root.
    pub fn new() -> Result<Self, NetworkError> {
        let make = || {
            // SAFETY: the flag changes the network of this thread alone, which does nothing else.
            done(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            File::open("/proc/thread-self/ns/net")
        };
        let made = thread::spawn(make).join();
        let lost = |_| Err(io::Error::other("the thread that makes it has ended"));
        let file = made.unwrap_or_else(lost);
        Ok(Self {
            namespace: file.map_err(NetworkError::Namespace)?.into(),
        })
    }

    /// Returns that of a process.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Namespace`] if the process has ended, or this one may not look at it.
    pub fn of(process: u32) -> Result<Self, NetworkError> {
        let file = File::open(format!("/proc/{process}/ns/net"));
        Ok(Self {
            namespace: file.map_err(NetworkError::Namespace)?.into(),
        })
    }

    /// Moves the calling thread into it, for the rest of its life. Sockets that it has already stay
    /// where they are.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn enter(&self) -> io::Result<()> {
        enter(&self.namespace)
    }

    /// Does something on a thread that is in it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    ///
    /// # Panics
    ///
    /// If what is done panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let inside = || self.enter().map(|()| work());
            let joined = scope.spawn(inside).join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Makes a command start in it. A refusal is reported when the command is spawned.
    ///
    /// # Errors
    ///
    /// If there are too many open files.
    pub fn contain(&self, command: &mut Command) -> io::Result<()> {
        let namespace = self.namespace.try_clone()?;
        // SAFETY: between fork and exec the closure makes one system call with a file that it owns.
        unsafe { command.pre_exec(move || enter(&namespace)) };
        Ok(())
    }

    /// Returns what `/proc/PID/ns/net` of a process in it points to.
    ///
    /// # Errors
    ///
    /// [`NetworkError::Namespace`] if /proc can't be read.
    pub fn name(&self) -> Result<String, NetworkError> {
        let name = fs::read_link(self.path()).map_err(NetworkError::Namespace)?;
        Ok(name.display().to_string())
    }

    /// Returns the path by which other programs (`ip link … netns`, nsenter, runc) reach it, while
    /// this process holds it.
    #[must_use]
    pub fn path(&self) -> String {
        let (process, file) = (std::process::id(), self.namespace.as_raw_fd());
        format!("/proc/{process}/fd/{file}")
    }
}

fn enter(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: the file is open; it changes the network of this thread alone.
    done(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Reads what a system call has returned.
fn done(returned: libc::c_int) -> io::Result<()> {
    match returned {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

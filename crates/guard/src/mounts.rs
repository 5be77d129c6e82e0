//! Gives a command its own mounts.
//!
//! A program that mounts, or that writes into shared places like `/run`, leaves that behind when
//! it is killed. In its own mount namespace it can't: everything that it mounted, or wrote into
//! a file system that only its namespace has, ends with the last process in it. That needs no
//! journal, since the kernel does it.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

/// A change that only the command sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateMount {
    /// The command does not see the file system that is mounted there.
    Without(String),
    /// An empty file system in memory stands there.
    Empty(String),
}

/// Makes a command start in its own mount namespace, with these changes.
///
/// It requires root; a refusal is reported when the command is spawned.
///
/// # Panics
///
/// If a path has a NUL.
pub fn private_mounts(command: &mut Command, changes: &[PrivateMount]) {
    // Nothing may be allocated after the fork.
    let changes = prepared(changes);
    let enter = move || {
        // SAFETY: what the flag changes, the mounts that this process sees, is no other thread's:
        // after a fork there is only this one.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        change(&changes)
    };
    // SAFETY: between fork and exec the closure makes system calls with texts that it owns and
    // neither allocates nor locks.
    unsafe { command.pre_exec(enter) };
}

/// Mounts that only some threads of this process see, and what these start.
#[derive(Debug)]
pub struct MountNamespace {
    namespace: OwnedFd,
}

impl MountNamespace {
    /// Makes a namespace with changes. It ends with the last one who is in it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses: it requires root.
    ///
    /// # Panics
    ///
    /// If a path has a NUL.
    pub fn new(changes: &[PrivateMount]) -> io::Result<Self> {
        let changes = prepared(changes);
        let make = || {
            // SAFETY: what the flags change, the mounts and the working folder, is only this
            // thread's, which does nothing else.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
            change(&changes)?;
            File::open("/proc/thread-self/ns/mnt")
        };
        let made = thread::scope(|scope| scope.spawn(make).join());
        let file = made.map_err(|_| io::Error::other("the thread that makes it has ended"))??;
        Ok(Self {
            namespace: file.into(),
        })
    }

    /// Moves the calling thread into it, for the rest of its life.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: from now on the working folder of this thread is its own: nobody here relies on
        // it.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }?;
        let kind = Some(LinkNameSpaceType::Mount);
        Ok(move_into_link_name_space(self.namespace.as_fd(), kind)?)
    }
}

fn prepared(changes: &[PrivateMount]) -> Vec<(bool, CString)> {
    let changes = changes.iter().map(|change| {
        let (empty, path) = match change {
            PrivateMount::Without(path) => (false, path),
            PrivateMount::Empty(path) => (true, path),
        };
        let path = CString::new(path.as_str()).expect("a path has no NUL");
        (empty, path)
    });
    changes.collect()
}

/// Changes the mounts of a namespace that was just made, by system calls alone.
fn change(changes: &[(bool, CString)]) -> io::Result<()> {
    // Else what is mounted here would appear, and what is unmounted disappear, everywhere.
    let everywhere = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", everywhere)?;
    for (empty, path) in changes {
        let path = path.as_c_str();
        if *empty {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            rustix::mount::mount(c"tmpfs", path, c"tmpfs", flags, c"mode=755")?;
        } else {
            match rustix::mount::unmount(path, UnmountFlags::DETACH) {
                // Not a mount point, or not there: then it is as it should be.
                Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(io::Error::from(errno)),
            }
        }
    }
    Ok(())
}

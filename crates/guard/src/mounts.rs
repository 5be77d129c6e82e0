//! Gives a command mounts of its own.
//!
//! A program that mounts, or that writes into shared places like `/run`, leaves that behind when
//! it is killed. In a mount namespace of its own it can't: what it mounted, and what it wrote into
//! a file system that only its namespace has, ends with the last process in it. That needs no
//! journal, since the kernel does it.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::UnshareFlags;

/// A change that only the command sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateMount {
    /// What is mounted there is not, for the command.
    Without(String),
    /// An empty file system in memory stands there.
    Empty(String),
}

/// Makes a command start in a mount namespace of its own, with these changes.
///
/// It takes root; a refusal is told when the command is spawned.
///
/// # Panics
///
/// If a path has a NUL.
pub fn private_mounts(command: &mut Command, changes: &[PrivateMount]) {
    // Nothing may be allocated after the fork.
    let changes: Vec<(bool, CString)> = changes
        .iter()
        .map(|change| {
            let (empty, path) = match change {
                PrivateMount::Without(path) => (false, path),
                PrivateMount::Empty(path) => (true, path),
            };
            (
                empty,
                CString::new(path.as_str()).expect("a path has no NUL"),
            )
        })
        .collect();
    let enter = move || {
        // SAFETY: what the flag changes, the mounts that this process sees, is no other thread's:
        // after a fork there is only this one.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
        // Else what is mounted here would appear, and what is unmounted disappear, everywhere.
        let everywhere = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", everywhere)?;
        for (empty, path) in &changes {
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
    };
    // SAFETY: between fork and exec the closure makes system calls with texts that it owns and
    // neither allocates nor locks.
    unsafe { command.pre_exec(enter) };
}

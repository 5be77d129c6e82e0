//! One writer for a run folder.
//!
//! The lock is a flock on the file `lock`, so the kernel releases it however the writer ends. The
//! file stays: removing it would let two writers lock two different files of the same name. It
//! holds the number of the process that locked it last, for the message only.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;

use rustix::fs::OFlags;

use crate::disk::{self, Folder};
use crate::error::ResultsError;

/// The name of the file in the run folder.
pub(crate) const NAME: &str = "lock";

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a run folder, or reports its owner.
    ///
    /// On a file system without locks there is none, and the run goes on: cells are renamed into
    /// place, so two writers would waste time, but could not mix their results.
    pub(crate) fn take(run: &Folder, remedy: &str) -> Result<Self, ResultsError> {
        let path = run.path_of(NAME);
        let failed = |source| ResultsError::io("locked", &path, source, remedy);
        let mut file = open(run).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ResultsError::Locked {
                    path: run.path().to_owned(),
                    holder: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) if disk::is_unsupported(&error) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        sign(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

/// Opens the file, which is made by the first writer. It is written over, so it must not be a hard
/// link to another one.
fn open(run: &Folder) -> io::Result<File> {
    let file = match run.create_file(NAME) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            run.open_file(NAME, OFlags::RDWR | OFlags::NONBLOCK)?
        }
        created => created?,
    };
    match file.metadata()?.nlink() {
        0 | 1 => Ok(file),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "is a hard link to another file",
        )),
    }
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

//! One writer for a run folder.
//!
//! The lock is a flock on the file `lock`, so the kernel releases it however the writer ends. The
//! file stays: removing it would let two writers lock two different files of the same name. It
//! holds the number of the process that locked it last, for the message only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::disk;
use crate::error::ResultsError;

/// The name of the file in the run folder.
pub(crate) const NAME: &str = "lock";

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a run folder, or says who has it.
    ///
    /// On a file system without locks there is none, and the run goes on: cells are renamed into
    /// place, so two writers would waste time, but could not mix their results.
    pub(crate) fn take(run: &Path, remedy: &str) -> Result<Self, ResultsError> {
        let path = run.join(NAME);
        let failed = |source| ResultsError::io("locked", &path, source, remedy);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ResultsError::Locked {
                    path: run.to_owned(),
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

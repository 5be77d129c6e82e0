//! What can be wrong with a load, and what to do about it.

use std::fmt;
use std::io;
use std::path::Path;

/// Why a text names no load, and what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

/// Why a load can't run, or could not go on, and what to do.
#[derive(Debug)]
pub struct DriverError(pub(crate) String);

impl DriverError {
    /// Says what the system refuses, as in "can't …".
    pub(crate) fn system(what: impl fmt::Display, source: impl Into<io::Error>) -> Self {
        Self(format!("the load can't {what}: {}", source.into()))
    }

    /// Says what it refuses at a file or folder.
    pub(crate) fn at(what: &str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::system(format_args!("{what} {}", path.display()), source)
    }

    /// Says that a scratch folder, which may hold so many bytes, is too small.
    pub(crate) fn no_room(dir: &Path, room: u64, need: u64) -> Self {
        Self(format!(
            "the load's scratch folder {} may hold {} MiB and the load needs {} MiB: make room \
             there, raise the limit, or choose another place by TMPDIR",
            dir.display(),
            room >> 20,
            need.div_ceil(1 << 20)
        ))
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}
impl std::error::Error for DriverError {}

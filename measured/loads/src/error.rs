//! Errors of loads, and their remedies.

use std::fmt;
use std::io;
use std::path::Path;

/// The error for a text that is no load, with a hint at valid ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError(pub(crate) String);

/// The reason why a load can't run or continue, and the remedy.
#[derive(Debug)]
pub struct DriverError(pub(crate) String);

impl DriverError {
    /// Describes an operation that failed, as in "can't …".
    pub(crate) fn system(what: impl fmt::Display, source: impl Into<io::Error>) -> Self {
        Self(format!("the load can't {what}: {}", source.into()))
    }

    /// Describes an operation that failed on a file or folder.
    pub(crate) fn at(what: &str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::system(format_args!("{what} {}", path.display()), source)
    }

    /// Describes a scratch folder that is too small.
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

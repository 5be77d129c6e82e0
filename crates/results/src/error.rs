//! What can go wrong with a run folder, in one place.
//!
//! Each text says what happened, where, and what to do; nobody should have to know how a run
//! folder is built to get on.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::model::{OLDEST_SCHEMA, SCHEMA};

/// Names everything that the functions of this crate refuse or cannot do.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// A run was to be created in a folder that holds something.
    #[error(
        "{} is not empty, and a run never writes over anything: choose another folder with \
         --output; if a run in it was interrupted, continue that one with --resume",
        .path.display()
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },

    /// The plan that a run was to be created with contradicts itself.
    #[error("the run cannot be created from this plan: {problem}; report it as a defect of tare")]
    Plan {
        /// The problem with it.
        problem: String,
    },

    /// The path is no run folder.
    #[error(
        "{} is not a run folder: {problem}; give the folder that the measuring command printed \
         as its result, the one that holds plan.json",
        .path.display()
    )]
    NotARunFolder {
        /// The path.
        path: PathBuf,
        /// What speaks against it.
        problem: String,
    },

    /// The folder has another schema, which this version does not read, or does not write.
    #[error(
        "{} has version {found} of the run folder's schema, this tare {}",
        .path.display(),
        other_schema(*found, .written_by.as_deref())
    )]
    OtherSchema {
        /// The file that says so.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Version of tare that wrote it, if it says so.
        written_by: Option<String>,
    },

    /// A file does not hold what was written to it, or is missing.
    #[error("{}: {reason}; {remedy}", .path.display())]
    Damaged {
        /// The file, or the folder that lacks a file.
        path: PathBuf,
        /// The problem, as precisely as it is known.
        reason: String,
        /// What to do.
        remedy: String,
    },

    /// The run's plan has no cell of this number.
    #[error("the run in {} has no cell {id}: its plan holds {cells} cells, numbered from 1", .run.display())]
    UnknownCell {
        /// The run folder.
        run: PathBuf,
        /// The number.
        id: u32,
        /// How many cells there are.
        cells: usize,
    },

    /// Samples were asked for of a cell that has none.
    #[error("cell {id} of {} has no samples: {problem}; {remedy}", .run.display())]
    NotMeasured {
        /// The run folder.
        run: PathBuf,
        /// The cell.
        id: u32,
        /// Why it has none.
        problem: String,
        /// What to do.
        remedy: String,
    },

    /// A cell was to be written that is already there.
    #[error(
        "cell {id} is already in {} and is not written over: measure it into a new run folder",
        .run.display()
    )]
    CellExists {
        /// The run folder.
        run: PathBuf,
        /// The cell.
        id: u32,
    },

    /// The data to be written contradict themselves, so they must not become a result.
    #[error(
        "the record of cell {id} contradicts itself and was not kept: {problem}; measure it \
         again, and report it as a defect of tare if it happens again"
    )]
    Inconsistent {
        /// The cell.
        id: u32,
        /// Which figures do not fit together.
        problem: String,
    },

    /// Another process writes this run.
    #[error(
        "another tare{} is writing the run in {}: wait until it has finished, or choose another \
         folder with --output",
        .holder.map(|pid| format!(" (process {pid})")).unwrap_or_default(),
        .path.display()
    )]
    Locked {
        /// The run folder.
        path: PathBuf,
        /// The process that holds the lock, as it is numbered on its own machine.
        holder: Option<u32>,
    },

    /// The time of day is none.
    #[error(
        "this machine's clock is set to a time after the last date that can be written (in the year 9999): set the clock"
    )]
    Clock,

    /// A folder that is to be written belongs to another user.
    #[error(
        "{} belongs to user {owner}, and tare writes only into folders of the user who runs it (or who called sudo): {remedy}",
        .path.display()
    )]
    NotYours {
        /// The folder.
        path: PathBuf,
        /// Number of the user whose it is.
        owner: u32,
        /// What to do.
        remedy: String,
    },

    /// Something is where a file or a folder was to be made.
    #[error("{} {what}: {remedy}", .path.display())]
    NotReplaceable {
        /// The file or folder.
        path: PathBuf,
        /// What speaks against it.
        what: String,
        /// What to do.
        remedy: String,
    },

    /// A cell was to be written through a handle that was opened for reading.
    #[error("{} was opened for reading only: open it for writing before a cell is written", .path.display())]
    OpenForReading {
        /// The run folder.
        path: PathBuf,
    },

    /// The name of a derived file is that of a raw one, or is no file name.
    #[error(
        "\"{name}\" cannot be written as a derived file: take a plain file name that does not \
         start with a dot and is none of plan.json, machine.json, SHA256SUMS, lock and cells"
    )]
    DerivedName {
        /// The name.
        name: String,
    },

    /// The kernel refused.
    #[error("{} cannot be {action}{}", .path.display(), refused(source, remedy))]
    Io {
        /// The file.
        path: PathBuf,
        /// The attempted action, as in "cannot be *written*".
        action: &'static str,
        /// How to go on afterwards.
        remedy: String,
        /// The kernel's word.
        source: io::Error,
    },
}

impl ResultsError {
    pub(crate) fn io(
        action: &'static str,
        path: &Path,
        source: io::Error,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Io {
            path: path.to_owned(),
            action,
            remedy: remedy.into(),
            source,
        }
    }
}

/// Says why the kernel refused, and what the user can do about it.
fn refused(source: &io::Error, remedy: &str) -> String {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => format!(
            ", because the file system is full or your quota is used up: free some space (`df -h` and `quota` show \
             where it went), {remedy}"
        ),
        io::ErrorKind::FileTooLarge => format!(
            ", because it would be larger than a file may be here: raise the limit (`ulimit -f`), {remedy}"
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!(" ({source}): get access to it, {remedy}")
        }
        _ => format!(" ({source}): check the path and the disk, {remedy}"),
    }
}

/// Writes a path so that it can be pasted into a shell as one word.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Says which versions of the schema there are here, and what to do with a folder of another one.
fn other_schema(found: u32, written_by: Option<&str>) -> String {
    let by = |text: &str| written_by.map_or_else(|| text.to_owned(), |v| format!("tare {v}"));
    let reads = format!("reads {OLDEST_SCHEMA} to {SCHEMA}");
    let (does, verb) = match found {
        OLDEST_SCHEMA..=SCHEMA => (format!("{reads} and writes {SCHEMA}"), "continue"),
        0..OLDEST_SCHEMA => (reads, "read"),
        _ => {
            let by = by("a newer one");
            return format!("{reads}: update tare (it was written by {by})");
        }
    };
    let by = by("an older tare");
    format!("{does}: {verb} it with the version that wrote it ({by}), or measure again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_kernel_are_sorted_by_what_can_be_done() {
        // ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, EIO.
        let text = |number| {
            let source = io::Error::from_raw_os_error(number);
            ResultsError::io("written", Path::new("/r/x"), source, "then go on").to_string()
        };
        assert!(text(28).contains("full"));
        assert!(text(122).contains("quota"));
        assert!(text(27).contains("ulimit -f"));
        for forbidden in [13, 1, 30] {
            assert!(text(forbidden).contains("get access"));
        }
        assert!(text(5).starts_with("/r/x cannot be written"));
        assert!(text(5).ends_with("then go on"));
    }

    #[test]
    fn paths_in_commands_can_be_pasted() {
        assert_eq!(shell_word(Path::new("runs/a-1.b")), "runs/a-1.b");
        assert_eq!(shell_word(Path::new("my runs")), "'my runs'");
        assert_eq!(shell_word(Path::new("it's")), r"'it'\''s'");
        assert_eq!(shell_word(Path::new("$HOME")), "'$HOME'");
    }
}

//! Everything that keeps a file from being read or written.

use std::path::PathBuf;

use tare_results::ResultsError;
use thiserror::Error;

/// A problem, its place, and the remedy.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// A line is not what the tool writes there.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The problem.
        problem: String,
    },

    /// The text is no output of the tool.
    #[error("{0}")]
    NotOutput(String),

    /// The interval stands nowhere in the file.
    #[error(
        "the file does not give the interval of the threads, and without it the missed activations are unknown: add \
         --interval with what -i was (rtla: -p) in µs, 1000 if it was not given"
    )]
    NoInterval,

    /// A file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },

    /// The run folder can't be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl ExchangeError {
    /// Says that the end of the output is missing.
    pub(crate) fn broken_off(due: &str) -> Self {
        Self::NotOutput(format!("the line '{due}' is missing: the output broke off"))
    }

    /// Says that a second output begins.
    pub(crate) fn second(line: usize) -> Self {
        Self::line(
            line,
            "another output begins, of which it is unknown how it goes with the one above: import each by itself",
        )
    }

    /// Says what is wrong with a line.
    pub(crate) fn line(line: usize, problem: impl Into<String>) -> Self {
        Self::Line {
            line,
            problem: problem.into(),
        }
    }
}

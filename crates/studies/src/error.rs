//! What can be wrong with a study.

use std::fmt;
use std::io;
use std::path::PathBuf;

use tare_lab::ExperimentError;
use thiserror::Error;

use crate::problem::Problem;

/// How many problems of one file are shown: the later ones often follow from the first.
const SHOWN: usize = 20;

/// How many are looked for: each is counted from the start of the file.
pub(crate) const MOST_NOTED: usize = 100;

/// Says why a study can't be used.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file can't be read.
    #[error("the study {} can't be read: {source}", path.display())]
    Unreadable {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is too large to have been written by hand.
    #[error(
        "the study {} is larger than {most} bytes, the limit for study files; is this the right file?",
        path.display()
    )]
    TooLarge {
        /// Where it is.
        path: PathBuf,
        /// Greatest size in bytes.
        most: u64,
    },
    /// The file is no text.
    #[error(
        "the study {} is not UTF-8 text, from byte {at} on: is it another file?",
        path.display()
    )]
    NotText {
        /// Where it is.
        path: PathBuf,
        /// Place of the first byte that is wrong, from 0.
        at: usize,
    },
    /// The contents of the file are wrong.
    #[error("{0}")]
    Wrong(Problems),
    /// The study has no shorter variant.
    #[error("the study {name} has no shorter variant: there is no [quick] table in it")]
    NoQuick {
        /// Its name.
        name: String,
    },
    /// It can't be planned here.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// Lists what is wrong with a file, in the order of its lines. It is never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().take(SHOWN).enumerate() {
            let before = if number == 0 { "" } else { "\n  " };
            write!(f, "{before}{problem}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            _ if self.0.len() >= MOST_NOTED => write!(f, "\n  and many more"),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

//! What ends a command, and with which exit code.

use std::io;
use std::path::PathBuf;

use tare_experiments::ExperimentError;
use tare_guard::GuardError;
use tare_host::HostError;
use tare_report::ReportError;
use tare_results::ResultsError;
use tare_targets::TargetError;
use thiserror::Error;

use crate::exit;

/// Says what ended a command.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// A target can't be used here.
    #[error("the target '{target}' can't be used here: {why}\n  to make it usable: {remedy}")]
    Unavailable {
        /// The target.
        target: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// There is no run to report on.
    #[error("there is no run folder in {}; `tare noise` makes one", folder.display())]
    NoRun {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A run can't be continued with what is here now.
    #[error("this run can't be resumed: {why}. Start a new one")]
    NotResumable {
        /// Why not.
        why: String,
    },
    /// The reader of standard output has gone.
    #[error("nobody reads the output")]
    NobodyReads,
    /// Standard output can't be written.
    #[error("standard output can't be written: {0}")]
    Output(io::Error),
    /// The machine can't do what was asked.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A target is not what its name says.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The experiment could not go on.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The run folder can't be used.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The report can't be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// What the run changes can't be owned.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl CommandError {
    /// Returns the exit code that the error means.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Host(_) => exit::USAGE,
            Self::Unavailable { .. } => exit::UNAVAILABLE,
            Self::Target(error) | Self::Experiment(ExperimentError::Target(error)) => match error {
                TargetError::Unknown { .. }
                | TargetError::UnknownOption { .. }
                | TargetError::BadOption { .. }
                | TargetError::RepeatedOption { .. }
                | TargetError::Contradiction { .. } => exit::USAGE,
                TargetError::NotBuilt { .. }
                | TargetError::Unreadable { .. }
                | TargetError::NoQemu { .. }
                | TargetError::NoKvm { .. } => exit::UNAVAILABLE,
                TargetError::Plan { .. }
                | TargetError::Qemu { .. }
                | TargetError::Guard(_)
                | TargetError::Output { .. } => exit::FAILED,
            },
            Self::Experiment(
                ExperimentError::OutOfBounds { .. }
                | ExperimentError::Nothing { .. }
                | ExperimentError::TooMany { .. },
            ) => exit::USAGE,
            // A reader that has seen enough (`| head`) is no failure.
            Self::NobodyReads => exit::DONE,
            Self::NoRun { .. }
            | Self::NotResumable { .. }
            | Self::Output(_)
            | Self::Experiment(_)
            | Self::Results(_)
            | Self::Report(_)
            | Self::Guard(_) => exit::FAILED,
        }
    }
}

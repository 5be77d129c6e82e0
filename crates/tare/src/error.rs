//! What ends a command, and with which exit code.

use std::io;
use std::path::PathBuf;

use tare_exchange::ExchangeError;
use tare_figures::ReportError;
use tare_figures::compare::CompareError;
use tare_figures::gates::GateError;
use tare_guard::GuardError;
use tare_host::HostError;
use tare_kernels::KernelError;
use tare_lab::ExperimentError;
use tare_lab::check::Finding;
use tare_results::ResultsError;
use tare_stats::StatsError;
use tare_studies::StudyError;
use tare_targets::TargetError;
use thiserror::Error;

use crate::exit;

/// What ended a command.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The arguments contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A target, a load or a scheduling policy can't be used here.
    #[error("{what} can't be used here: {why}\n  to make it usable: {remedy}")]
    Unavailable {
        /// What can't.
        what: String,
        /// Why not.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// Cells of a study can't be measured here, which is no reason to leave out the others.
    #[error("{cells} cells are left out: {why}\n  to measure them, too: {remedy}")]
    LeftOut {
        /// How many.
        cells: usize,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// An image did not come to its end.
    #[error("the image '{image}' failed: {why}")]
    Image {
        /// The image as it was named.
        image: String,
        /// What happened.
        why: String,
    },
    /// A measurement without a run folder came to nothing.
    #[error("nothing was measured: {0}")]
    Measurement(String),
    /// A file of another tool can't be imported.
    #[error("{}: {source}", file.display())]
    Import {
        /// The file.
        file: PathBuf,
        /// The error, and what to do.
        source: ExchangeError,
    },
    /// A file can't be written.
    #[error("{} can't be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A format of another tool can't be read or written.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The counts of a cell contradict each other.
    #[error(transparent)]
    Stats(#[from] StatsError),
    /// There is no run to report on.
    #[error("there is no run folder in {}; `tare noise` makes one", folder.display())]
    NoRun {
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// Two runs can't be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A gate names no figure, or one without a value.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// A run can't be continued with what is here now.
    #[error("this run can't be resumed: {why}. Start a new one")]
    NotResumable {
        /// Why not.
        why: String,
    },
    /// The reader of standard output has gone.
    #[error("the reader of the output has gone")]
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
    /// A kernel can't be used, fetched or added.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The experiment could not go on.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The run folder can't be used.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The report can't be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// The study can't be used.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The changes of the run cannot be recorded.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl From<Finding> for CommandError {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::NoSuchCpus(text) => Self::Usage(text),
            Finding::Unavailable { what, why, remedy } => Self::Unavailable { what, why, remedy },
            Finding::LeftOut { cells, why, remedy } => Self::LeftOut { cells, why, remedy },
        }
    }
}

impl CommandError {
    /// Returns the exit code that the error means.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Import {
                source: ExchangeError::NoInterval,
                ..
            }
            | Self::Host(_)
            | Self::Gate(_)
            | Self::Compare(
                CompareError::Experiments { .. }
                | CompareError::NothingInCommon { .. }
                | CompareError::OnlyOne { .. }
                | CompareError::Tools { .. },
            )
            | Self::Study(
                StudyError::Wrong(_)
                | StudyError::NotText { .. }
                | StudyError::TooLarge { .. }
                | StudyError::NoQuick { .. },
            ) => exit::USAGE,
            Self::Unavailable { .. } => exit::UNAVAILABLE,
            Self::Target(error)
            | Self::Experiment(ExperimentError::Target(error))
            | Self::Study(StudyError::Experiment(ExperimentError::Target(error))) => match error {
                TargetError::Unknown { .. }
                | TargetError::Usage(_)
                | TargetError::RunsNoPlans { .. } => exit::USAGE,
                TargetError::Unusable { .. } | TargetError::Ssh { .. } => exit::UNAVAILABLE,
                TargetError::Kernel(error) => of_kernel(error),
                _ => exit::FAILED,
            },
            Self::Experiment(
                ExperimentError::OutOfBounds { .. }
                | ExperimentError::TimeOutOfBounds { .. }
                | ExperimentError::Contradiction { .. }
                | ExperimentError::NoEffect { .. }
                | ExperimentError::Nothing { .. }
                | ExperimentError::Load(_)
                | ExperimentError::SettingTwice { .. }
                | ExperimentError::TooMany { .. },
            ) => exit::USAGE,
            Self::Kernel(error) => of_kernel(error),
            // A reader that has seen enough (`| head`) is no failure.
            Self::NobodyReads => exit::DONE,
            _ => exit::FAILED,
        }
    }
}

/// Returns the exit code of what is wrong with a kernel.
fn of_kernel(error: &KernelError) -> u8 {
    match error {
        KernelError::Unknown { .. } | KernelError::BadName { .. } | KernelError::Exists { .. } => {
            exit::USAGE
        }
        KernelError::Missing { .. }
        | KernelError::NoHostKernel { .. }
        | KernelError::NoModules { .. }
        | KernelError::MissingModule { .. }
        | KernelError::NoTool { .. }
        | KernelError::NotRoot { .. }
        | KernelError::NotOffered { .. } => exit::UNAVAILABLE,
        KernelError::Interrupted => exit::INTERRUPTED,
        _ => exit::FAILED,
    }
}

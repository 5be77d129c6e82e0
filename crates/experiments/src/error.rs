//! What can stop an experiment.

use tare_guard::GuardError;
use tare_results::ResultsError;
use tare_targets::TargetError;
use tare_wire::bounds::Refusal;
use thiserror::Error;

/// Says what stopped an experiment. A cell that fails does not: it is recorded, and the next one
/// runs.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// A parameter is out of bounds.
    #[error("{workload}: {refusal}")]
    OutOfBounds {
        /// Workload whose parameter it is.
        workload: &'static str,
        /// The parameter and its bounds.
        refusal: Refusal,
    },
    /// There would be nothing to run.
    #[error("nothing to run: {what} is empty")]
    Nothing {
        /// What is empty.
        what: &'static str,
    },
    /// The plan would have more cells than can be numbered.
    #[error("{cells} cells are too many; at most {most} go into one run: split it")]
    TooMany {
        /// Cells asked for.
        cells: u64,
        /// Cells allowed.
        most: u64,
    },
    /// A target is not what its name says, or does not exist.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A setting could not be changed.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The run folder could not be read or written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

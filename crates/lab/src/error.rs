//! What can stop an experiment.

use tare_guard::GuardError;
use tare_loads::SpecError;
use tare_results::ResultsError;
use tare_targets::TargetError;
use tare_wire::bounds::Refusal;
use thiserror::Error;

use crate::units::exact;

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
    /// A time is out of bounds.
    #[error(
        "{experiment}: {what} must be from {} to {}, not {}",
        exact(*.least_ns), exact(*.most_ns), exact(*.given_ns)
    )]
    TimeOutOfBounds {
        /// Experiment whose parameter it is.
        experiment: &'static str,
        /// Name of the parameter.
        what: &'static str,
        /// The given value.
        given_ns: u64,
        /// Least value allowed.
        least_ns: u64,
        /// Greatest value allowed.
        most_ns: u64,
    },
    /// Parameters contradict each other, or the target.
    #[error("{experiment}: {why}")]
    Contradiction {
        /// Experiment whose parameters they are.
        experiment: &'static str,
        /// Which ones, why, and what to do.
        why: String,
    },
    /// A parameter is given that the other values leave without an effect.
    #[error("'{parameter}' has no effect with the other values: {meaning}")]
    NoEffect {
        /// Name of the parameter.
        parameter: &'static str,
        /// Its meaning, which says with which of them it has one.
        meaning: &'static str,
    },
    /// There would be nothing to run.
    #[error("nothing to run: {what}")]
    Nothing {
        /// The list or number that is empty or 0.
        what: &'static str,
    },
    /// A kernel setting is given two values.
    #[error("the setting {path} is given twice: give it one value")]
    SettingTwice {
        /// Its file.
        path: String,
    },
    /// The plan would have more cells than can be numbered.
    #[error("{cells} cells are too many; at most {most} go into one run: split it")]
    TooMany {
        /// Cells asked for.
        cells: u64,
        /// Cells allowed.
        most: u64,
    },
    /// A load is not what its name says, or does not exist.
    #[error(transparent)]
    Load(#[from] SpecError),
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

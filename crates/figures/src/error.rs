//! Everything that keeps a report from being made.

use tare_results::ResultsError;
use thiserror::Error;

/// The reason why there is no report.
///
/// A cell that cannot be used is no error: the report is made from the others, and says so.
#[derive(Debug, Error)]
pub enum ReportError {
    /// The run folder cannot be read or written; the text of the cause says what to do.
    #[error(transparent)]
    Results(#[from] ResultsError),

    /// The summary holds a figure that JSON cannot.
    #[error(
        "the summary cannot be written as JSON ({0}); this is a defect of tare: please report it \
         with the run folder"
    )]
    Json(#[from] serde_json::Error),

    /// The plan has an experiment that this tare does not know.
    #[error(
        "the run has cells of the experiment '{0}', which this tare does not know: use the tare that made it"
    )]
    Experiment(String),

    /// The rows cannot be written as a table.
    #[error(
        "the figures cannot be written as a table ({0}); this is a defect of tare: please report it with the run folder"
    )]
    Table(String),
}

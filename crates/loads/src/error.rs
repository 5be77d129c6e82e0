//! What can go wrong with a load, and what to do about it.

use std::io;
use std::time::Duration;

use tare_guard::GuardError;
use tare_results::receive::Incomplete;
use thiserror::Error;

/// What went wrong with a load.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Its driver gave up.
    #[error("{text}")]
    Failed {
        /// What, why, and what to do.
        text: String,
    },
    /// Its records are not whole.
    #[error("the load's driver failed or was killed: {0}")]
    Incomplete(#[from] Incomplete),
    /// It ended before it did its full work.
    #[error("the load exited before it reached full load")]
    NeverGoing,
    /// It does not get going.
    #[error(
        "the load had not reached full load after {} s: is the disk of the scratch folder too slow, or the \
         CPU taken by a SCHED_FIFO task?",
        limit.as_secs()
    )]
    TooSlow {
        /// How long it had.
        limit: Duration,
    },
    /// It was going until it was to end, and could not be ended in the time that there was.
    #[error("the load could not be ended in time, so its work is unknown: {why}")]
    NotEnded {
        /// The result.
        why: Box<LoadError>,
    },
    /// The user asked to stop before it was going.
    #[error("stopped by the user")]
    Stopped,
    /// Its output can't be read.
    #[error("the load's output can't be read: {source}")]
    Output {
        /// Why not.
        #[from]
        source: io::Error,
    },
    /// It can't be started or ended.
    #[error(transparent)]
    Guard(#[from] GuardError),
}

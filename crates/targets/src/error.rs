//! What can go wrong with a target, and what to do about it.

use std::io;
use std::path::PathBuf;

use tare_guard::GuardError;
use thiserror::Error;

/// Says what went wrong with a target.
#[derive(Debug, Error)]
pub enum TargetError {
    /// No target has this name.
    #[error("there is no target '{name}'; known: {known}. `tare targets` tells which are usable")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The target has no such option.
    #[error("the target '{target}' has no option '{option}'{known}")]
    UnknownOption {
        /// Name of the target.
        target: &'static str,
        /// What was asked for.
        option: String,
        /// The options that it has, as the end of a sentence.
        known: String,
    },
    /// The agent's program is nowhere.
    #[error(
        "the agent is not found; looked for {looked}. Build it with `make build`, or name it in \
         TARE_AGENT"
    )]
    NoAgent {
        /// The places, joined by commas.
        looked: String,
    },
    /// The agent's program can't be read.
    #[error("the agent {} can't be read: {source}; build it anew with `make build`", path.display())]
    UnreadableAgent {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The instance could not be started.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The instance's output could not be read.
    #[error("the output of the instance can't be read: {source}")]
    Output {
        /// Why not.
        source: io::Error,
    },
}

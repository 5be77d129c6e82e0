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
    #[error("the target '{target}' has no option '{option}'; it takes: {known}")]
    UnknownOption {
        /// Name of the target.
        target: &'static str,
        /// What was asked for.
        option: String,
        /// The options that it has, or `none`.
        known: String,
    },
    /// The option does not take this value.
    #[error("the target '{target}' can't have '{option}={value}': want {wanted}")]
    BadOption {
        /// Name of the target.
        target: &'static str,
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// The option stands twice.
    #[error("the option '{option}' of the target '{target}' stands twice")]
    RepeatedOption {
        /// Name of the target.
        target: &'static str,
        /// The option.
        option: String,
    },
    /// Two options contradict each other.
    #[error("the target '{target}' can't have {what}: {why}")]
    Contradiction {
        /// Name of the target.
        target: &'static str,
        /// The options.
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// A program or image is nowhere.
    #[error(
        "{what} is not found; looked for {looked}. Build it with `make build`, or say where it is \
         in {variable}"
    )]
    NotBuilt {
        /// What is missing.
        what: String,
        /// The places, joined by commas.
        looked: String,
        /// The environment variable that names the place.
        variable: &'static str,
    },
    /// A program or image can't be read.
    #[error("{what} {} can't be read: {source}; build it anew with `make build`", path.display())]
    Unreadable {
        /// What it is.
        what: String,
        /// Where it is.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The words of a plan are none.
    #[error("{problem}")]
    Plan {
        /// What is wrong with them.
        problem: String,
    },
    /// There is no QEMU.
    #[error("{program} is in no folder of PATH")]
    NoQemu {
        /// The program's name.
        program: &'static str,
    },
    /// KVM is asked for and does not work.
    #[error("KVM does not work here: {why}")]
    NoKvm {
        /// Why not.
        why: String,
    },
    /// QEMU does not do what it should.
    #[error("QEMU {why}")]
    Qemu {
        /// What happened, as the rest of a sentence.
        why: String,
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

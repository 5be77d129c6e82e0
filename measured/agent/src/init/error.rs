//! What can go wrong before a plan runs in a guest, and what to do about it.

use std::io;

use thiserror::Error;

/// Says why the plan was not executed to its end.
#[derive(Debug, Error)]
pub enum InitError {
    /// A file system that is needed can't be mounted.
    #[error("{place} can't be mounted in the guest: {source}; has its kernel the file system?")]
    Mount {
        /// Where.
        place: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A module is not taken by the kernel.
    #[error(
        "the guest's kernel does not take the module {name}: {source}; modules must be of exactly this kernel"
    )]
    Module {
        /// Its file.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// The kernel command line can't be read.
    #[error("/proc/cmdline can't be read: {0}")]
    Order(io::Error),
    /// The kernel command line has no plan.
    #[error("the kernel command line has no plan behind '--'")]
    NoPlan,
    /// The way out can't be given to a child.
    #[error("the guest's port can't be shared: {0}")]
    Output(io::Error),
    /// A process can't be started.
    #[error("{what} can't be started in the guest: {source}")]
    NotStarted {
        /// Which one.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The children can't be waited for.
    #[error("processes can't be waited for: {0}")]
    Wait(io::Error),
    /// SIGKILL ended the measured process.
    #[error(
        "the measured process was killed, as a rule because the guest has too little memory; give it more with mem="
    )]
    Killed,
    /// Another signal ended it.
    #[error("the measured process was ended by signal {0}")]
    Ended(i32),
    /// The load does not disturb: what happened, as the rest of a sentence.
    #[error("the load {0}")]
    Load(String),
}

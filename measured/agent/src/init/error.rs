//! Failures before a plan runs in a guest, and their remedies.

use std::io;

use thiserror::Error;

/// The reason why the plan was not completed.
#[derive(Debug, Error)]
pub enum InitError {
    /// A required file system can't be mounted.
    #[error("{place} can't be mounted in the guest: {source}; has its kernel the file system?")]
    Mount {
        /// The mount point.
        place: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel rejects a module.
    #[error(
        "the guest's kernel does not take the module {name}: {source}; modules must be of exactly this kernel"
    )]
    Module {
        /// Its file.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel command line can't be read.
    #[error("/proc/cmdline can't be read: {0}")]
    Order(io::Error),
    /// The kernel command line has no plan.
    #[error("the kernel command line has no plan behind '--'")]
    NoPlan,
    /// The port can't be passed to a child.
    #[error("the guest's port can't be shared: {0}")]
    Output(io::Error),
    /// A process can't be started.
    #[error("{what} can't be started in the guest: {source}")]
    NotStarted {
        /// The process.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The children can't be waited for.
    #[error("processes can't be waited for: {0}")]
    Wait(io::Error),
    /// SIGKILL ended the measured process.
    #[error(
        "the measured process was killed, usually because the guest ran out of memory; give it more with mem="
    )]
    Killed,
    /// Another signal ended it.
    #[error("the measured process was ended by signal {0}")]
    Ended(i32),
    /// The kernel went on with its boot.
    #[error(
        "the guest was not idle within {seconds} s: {tasks} used its CPUs, and would be measured as noise; give it \
         fewer devices or modules, another kernel, or more time (cmdline=tare.idle=SECONDS)"
    )]
    Busy {
        /// The limit in seconds.
        seconds: u64,
        /// The names of the tasks.
        tasks: String,
    },
    /// The network card can't be used.
    #[error(
        "the guest's network card can't be given its address: {0}; has its kernel the driver virtio_net?"
    )]
    Card(io::Error),
    /// The load failed; the text is the rest of a sentence.
    #[error("the load {0}")]
    Load(String),
}

//! What can go wrong before a plan runs in a guest, and what to do about it.

use std::fmt;
use std::io;

/// Says why the plan was not executed to its end.
#[derive(Debug)]
pub enum Trouble {
    /// A file system that is needed can't be mounted.
    Mount {
        /// Where.
        place: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A module is not taken by the kernel.
    Module {
        /// Its file.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// The kernel command line can't be read.
    Order(io::Error),
    /// The kernel command line has no plan.
    NoPlan,
    /// The way out can't be given to a child.
    Output(io::Error),
    /// A process can't be started.
    NotStarted {
        /// Which one.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The children can't be waited for.
    Wait(io::Error),
    /// A signal ended the measured process.
    Killed {
        /// Which one.
        signal: i32,
    },
    /// The load does not disturb.
    Load {
        /// What happened, as the rest of a sentence.
        why: String,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount { place, source } => write!(
                f,
                "{place} can't be mounted in the guest: {source}; has its kernel the file system?"
            ),
            Self::Module { name, source } => write!(
                f,
                "the guest's kernel does not take the module {name}: {source}; modules must be of \
                 exactly this kernel"
            ),
            Self::Order(source) => write!(f, "/proc/cmdline can't be read: {source}"),
            Self::NoPlan => f.write_str("the kernel command line has no plan behind '--'"),
            Self::Output(source) => write!(f, "the guest's port can't be shared: {source}"),
            Self::NotStarted { what, source } => {
                write!(f, "{what} can't be started in the guest: {source}")
            }
            Self::Wait(source) => write!(f, "processes can't be waited for: {source}"),
            Self::Killed {
                signal: libc::SIGKILL,
            } => f.write_str(
                "the measured process was killed, as a rule because the guest has too little \
                 memory; give it more with mem=",
            ),
            Self::Killed { signal } => {
                write!(f, "the measured process was ended by signal {signal}")
            }
            Self::Load { why } => write!(f, "the load {why}"),
        }
    }
}

//! What can go wrong: only what the caller asked for and cannot have.
//!
//! A file that is missing or invalid is a [`Fact`](crate::Fact), not an error.

use thiserror::Error;

use tare_wire::cpus::Cpus;

/// Everything that the functions of this crate can refuse.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HostError {
    /// The requested CPU is not online.
    #[error("CPU {cpu} is not online; online are {online}: {remedy}")]
    CpuNotOnline {
        /// The CPU that was asked for.
        cpu: u32,
        /// The CPUs that are online.
        online: Box<Cpus>,
        /// What to do.
        remedy: String,
    },

    /// The requested CPU is online, but this process may not or should not run there.
    #[error("this process may not run on CPU {cpu} ({why}); it may use {allowed}: {remedy}")]
    CpuNotAllowed {
        /// The CPU that was asked for.
        cpu: u32,
        /// The CPUs that may be asked for.
        allowed: Box<Cpus>,
        /// Which limit forbids it: the affinity mask or the cpuset.
        why: String,
        /// What to do.
        remedy: String,
    },

    /// Neither the online CPUs nor the affinity mask of this process can be read.
    #[error(
        "which CPUs this process may use cannot be read ({why}); mount /proc and /sys, which \
         every tare command needs"
    )]
    NoCpuKnown {
        /// Which file could not be read, and why.
        why: String,
    },
}

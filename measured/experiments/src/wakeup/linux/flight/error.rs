//! Why the kernel's events can't be recorded, and what to do about it.

use std::io;

use thiserror::Error;

/// Says why nothing is recorded.
#[derive(Debug, Error)]
pub enum FlightError {
    /// The list of events can't be seen.
    #[error(
        "the kernel's events can't be seen ({0}); run as root, on a kernel with CONFIG_TRACING"
    )]
    Tracefs(io::Error),
    /// An event that is needed does not exist.
    #[error("this kernel does not show the event {name} ({source}); use one with CONFIG_TRACING")]
    NoEvent {
        /// Which one.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What an event's bytes mean can't be read.
    #[error(
        "the event {name} of this kernel is described in a way that is not understood; please report it with the \
         kernel's version"
    )]
    Format {
        /// Which one.
        name: String,
    },
    /// The kernel does not let us record an event.
    #[error(
        "the kernel does not record {name} on CPU {cpu} for us ({source}); run as root or with CAP_PERFMON; if that \
         is so already, kernel lockdown or a security policy forbids it (/sys/kernel/security/lockdown)"
    )]
    Refused {
        /// Which one.
        name: String,
        /// On which CPU.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not give its buffer.
    #[error(
        "the buffer for CPU {cpu} can't be had ({source}); raise kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK, or \
         run as root"
    )]
    Buffer {
        /// On which CPU.
        cpu: u32,
        /// What it said.
        source: io::Error,
    },
    /// The kernel's events name threads by other numbers than those we see.
    #[error(
        "in a PID namespace of its own the threads have other numbers than in the kernel's events; measure as a \
         process, or in a guest"
    )]
    Namespace,
    /// A thread may run on any CPU.
    #[error("the threads are not pinned, so it is not known on which CPUs to record; pin them")]
    Unpinned,
    /// The copies would take too much memory.
    #[error("that many threads and samples would take {} MiB; trace fewer", bytes >> 20)]
    TooMuch {
        /// How much.
        bytes: usize,
    },
}

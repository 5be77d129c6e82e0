//! Reasons why the kernel's events can't be recorded, and the remedies.

use std::io;

use thiserror::Error;

/// The reason why nothing is recorded.
#[derive(Debug, Error)]
pub enum FlightError {
    /// The list of events is not accessible.
    #[error(
        "the kernel's events can't be seen ({0}); run as root, on a kernel with CONFIG_TRACING"
    )]
    Tracefs(io::Error),
    /// A required event does not exist.
    #[error("this kernel does not show the event {name} ({source}); use one with CONFIG_TRACING")]
    NoEvent {
        /// The name of the event.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The layout of an event is unreadable.
    #[error(
        "the event {name} of this kernel is described in a way that is not understood; please report it with the \
         kernel's version"
    )]
    Format {
        /// The name of the event.
        name: String,
    },
    /// The kernel does not permit recording an event.
    #[error(
        "the kernel does not record {name} on CPU {cpu} for us ({source}); run as root or with CAP_PERFMON; if that \
         is so already, kernel lockdown or a security policy forbids it (/sys/kernel/security/lockdown)"
    )]
    Refused {
        /// The name of the event.
        name: String,
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel does not provide a buffer.
    #[error(
        "the buffer for CPU {cpu} can't be had ({source}); raise kernel.perf_event_mlock_kb or RLIMIT_MEMLOCK, or \
         run as root"
    )]
    Buffer {
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel's events identify threads by other numbers, because of a PID namespace.
    #[error(
        "in another PID namespace the threads have other numbers than in the kernel's events; measure as a \
         process, or in a guest"
    )]
    Namespace,
    /// A thread is not pinned.
    #[error("the threads are not pinned, so the CPUs to record on are unknown; pin them")]
    Unpinned,
    /// The copies would need too much memory.
    #[error("that many threads and samples would take {} MiB; trace fewer", bytes >> 20)]
    TooMuch {
        /// The memory needed.
        bytes: usize,
    },
}

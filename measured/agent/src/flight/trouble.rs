//! Why the kernel's events can't be recorded, and what to do about it.

use std::fmt;
use std::io;

/// Says why nothing is recorded.
#[derive(Debug)]
pub enum Trouble {
    /// The list of events can't be seen.
    Tracefs(io::Error),
    /// An event that is needed does not exist.
    NoEvent {
        /// Which one.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What an event's bytes mean can't be read.
    Format {
        /// Which one.
        name: String,
    },
    /// The kernel does not let us record an event.
    Refused {
        /// Which one.
        name: String,
        /// On which CPU.
        cpu: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel does not give its buffer.
    Buffer {
        /// On which CPU.
        cpu: u32,
        /// What it said.
        source: io::Error,
    },
    /// The kernel's events name threads by other numbers than those we see.
    Namespace,
    /// A thread may run on any CPU.
    Unpinned,
    /// The copies would take too much memory.
    TooMuch {
        /// How much.
        bytes: usize,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the kernel's events around the worst samples are not recorded: ")?;
        match self {
            Self::Tracefs(source) => write!(
                f,
                "the kernel's events can't be seen ({source}); run as root, on a kernel with CONFIG_TRACING"
            ),
            Self::NoEvent { name, source } => write!(
                f,
                "this kernel does not show the event {name} ({source}); use one with CONFIG_TRACING"
            ),
            Self::Format { name } => write!(
                f,
                "the event {name} of this kernel is described in a way that is not understood; please \
                 report it with the kernel's version"
            ),
            Self::Refused { name, cpu, source } => write!(
                f,
                "the kernel does not record {name} on CPU {cpu} for us ({source}); run as root or with \
                 CAP_PERFMON; if that is so already, kernel lockdown or a security policy forbids it \
                 (/sys/kernel/security/lockdown)"
            ),
            Self::Buffer { cpu, source } => write!(
                f,
                "the buffer for CPU {cpu} can't be had ({source}); raise kernel.perf_event_mlock_kb or \
                 RLIMIT_MEMLOCK, or run as root"
            ),
            Self::Namespace => f.write_str(
                "in a PID namespace of its own the threads have other numbers than in the kernel's \
                 events; measure as a process, or in a guest",
            ),
            Self::Unpinned => f.write_str(
                "the threads are not pinned, so it is not known on which CPUs to record; pin them",
            ),
            Self::TooMuch { bytes } => write!(
                f,
                "that many threads and samples would take {} MiB; trace fewer",
                bytes >> 20
            ),
        }
    }
}

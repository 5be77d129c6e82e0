//! What is said of a thread that left the CPU that it was pinned to.

use thiserror::Error;

/// Says that a thread left the CPU that it was pinned to: its figures would be told as those of a CPU on which it did
/// not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Moved {
    /// It runs on another one.
    #[error(
        "the measured thread was moved from CPU {from} to CPU {to} while it measured{}",
        WHY
    )]
    Away {
        /// CPU that it was pinned to.
        from: u32,
        /// CPU that it was found on.
        to: u32,
    },
    /// It is back.
    #[error(
        "the measured thread was moved from CPU {from} to another one and back while it measured (the kernel counted \
         {migrations} migrations){}",
        WHY
    )]
    AndBack {
        /// CPU that it was pinned to.
        from: u32,
        /// How often the kernel moved it.
        migrations: u64,
    },
    /// It is no longer pinned, and nothing tells whether it moved.
    #[error(
        "the measured thread lost its pinning to CPU {from} while it measured, and this kernel does not count its \
         migrations{}",
        WHY
    )]
    Unpinned {
        /// CPU that it was pinned to.
        from: u32,
    },
}

/// What moves a pinned thread, and what to do.
const WHY: &str = ": its affinity or its cpuset was changed (taskset, cpuset), or the CPU was taken offline. Leave both as \
                   they are until the run has ended, and measure again";

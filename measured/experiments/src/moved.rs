//! The error of a thread that left its CPU.

use thiserror::Error;

/// A thread left the CPU that it was pinned to, so its figures would describe another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Moved {
    /// It runs on another CPU.
    #[error(
        "the measured thread was moved from CPU {from} to CPU {to} while it measured{}",
        WHY
    )]
    Away {
        /// CPU to which it was pinned.
        from: u32,
        /// CPU on which it was found.
        to: u32,
    },
    /// It was moved and came back.
    #[error(
        "the measured thread was moved from CPU {from} to another one and back while it measured (the kernel counted \
         {migrations} migrations){}",
        WHY
    )]
    AndBack {
        /// CPU to which it was pinned.
        from: u32,
        /// Number of migrations.
        migrations: u64,
    },
    /// It is no longer pinned, and the kernel does not show whether it moved.
    #[error(
        "the measured thread lost its pinning to CPU {from} while it measured, and this kernel does not count its \
         migrations{}",
        WHY
    )]
    Unpinned {
        /// CPU to which it was pinned.
        from: u32,
    },
}

/// Possible causes, and the remedy.
const WHY: &str = ": its affinity or its cpuset was changed (taskset, cpuset), or the CPU was taken offline. Leave both as \
                   they are until the run has ended, and measure again";

//! The interface between measured code and its environment: the Linux agent and the unikernel each
//! implement it.

use core::fmt;

use tare_wire::record::Frequency;
use thiserror::Error;

use crate::moved::Moved;
use crate::session::Stop;

/// The environment of measured code: memory, clocks and a way out for records.
pub trait Platform {
    /// The reason why a measurement failed.
    type Error: From<Stop> + fmt::Display;

    /// Returns the version of the agent or image.
    fn version(&self) -> &'static str;

    /// Returns the kind of environment: `linux`, `initramfs`, `debian` or `unikernel`.
    fn environment(&self) -> &'static str;

    /// Pins the code to `cpu`, if any, and disables deep C-states if permitted.
    ///
    /// # Errors
    ///
    /// Returns a message for the user if the code can't run there.
    fn prepare(&mut self, cpu: Option<u32>) -> Result<Prepared, &'static str>;

    /// Allocates memory: zeroed, page-aligned, and locked if permitted. Called once.
    ///
    /// # Errors
    ///
    /// Returns why there is not enough.
    fn memory(&mut self, bytes: usize) -> Result<Memory, MemoryError>;

    /// Allocates memory for work that is not timed, not necessarily zeroed. Called once, and not in
    /// addition to [`Platform::memory`].
    ///
    /// # Errors
    ///
    /// Returns why there is not enough.
    fn room(&mut self, bytes: usize) -> Result<&'static mut [u8], MemoryError> {
        self.memory(bytes).map(|memory| memory.bytes)
    }

    /// Returns when the code began to run.
    fn began(&self) -> StartTimes {
        StartTimes::default()
    }

    /// Returns the resources that the code has used so far.
    fn spent(&self) -> ResourceUsage {
        ResourceUsage::default()
    }

    /// Reads the kernel's CLOCK_MONOTONIC in ns, where there is a kernel.
    fn monotonic_ns(&self) -> Option<u64> {
        None
    }

    /// Reads a clock whose rate is not adjusted, in ns: CLOCK_MONOTONIC_RAW. None if the TSC is the
    /// only clock.
    fn reference_ns(&self) -> Option<u64> {
        None
    }

    /// Returns the source of [`Platform::reference_ns`], for example `clocksource=tsc`.
    fn reference_detail(&self) -> &str {
        ""
    }

    /// Returns the rate of the synchronised system clock relative to [`Platform::reference_ns`], in
    /// parts per million; None where nothing adjusts it.
    fn steering_ppm(&self) -> Option<f64> {
        None
    }

    /// Returns the TSC's frequency as the platform knows or measures it. May take 2 ms the first
    /// time; only called outside of timed regions.
    fn frequency(&self) -> Option<Frequency<'static>> {
        None
    }

    /// Returns the platform's counters for this CPU, by name: interrupts, exits and the like. Only
    /// the differences over a batch are reported; the names must be the same each time.
    fn counters(&self) -> [Option<(&'static str, u64)>; 4] {
        [None; 4]
    }

    /// Checks that the calling thread, which [`Platform::prepare`] has pinned, has been on its CPU
    /// ever since. Always succeeds where no scheduler can move it, as on the unikernel.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if it has not.
    fn stayed(&self) -> Result<(), Moved> {
        Ok(())
    }

    /// Returns a fact about the environment as seen from inside: its name and value. Facts are
    /// numbered from 0; None if there is no such number. Only called after the batch.
    fn fact(&mut self, _number: usize) -> Option<(&'static str, &str)> {
        None
    }

    /// Waits for about `ns`, between two readings of [`Platform::reference_ns`].
    fn pause(&self, _ns: u64) {}

    /// Writes bytes towards the host; may buffer them.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if they can't be written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError>;

    /// Sends buffered bytes.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if they can't be sent.
    fn flush(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

/// The times at which code began to run, as far as its platform knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartTimes {
    /// TSC at the hand-over of the machine; None under a kernel.
    pub entry_tsc: Option<u64>,
    /// TSC at the start of `main`.
    pub main_tsc: Option<u64>,
    /// The kernel's CLOCK_MONOTONIC at the start of `main`, in ns.
    pub main_ns: Option<u64>,
}

/// The resources that code has used, as far as its platform knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceUsage {
    /// CPU time in ns.
    pub cpu_ns: Option<u64>,
    /// Peak resident memory in bytes.
    pub peak_bytes: Option<u64>,
}

/// The result of preparing the environment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepared {
    /// Whether deep C-states are disabled.
    pub latency_held: bool,
    /// A message to the user about a preparation that failed: what, why, and the remedy.
    pub notice: Option<&'static str>,
}

/// The memory for all buffers of a batch, for the rest of the program's life.
#[derive(Debug)]
pub struct Memory {
    /// The bytes, page-aligned and zeroed.
    pub bytes: &'static mut [u8],
    /// Whether they are locked in memory.
    pub locked: bool,
}

/// There is not enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the buffers take {} MiB, but {reason}; give the target more (mem=), or measure less in a run",
    .wanted_bytes.div_ceil(1 << 20)
)]
pub struct MemoryError {
    /// Number of bytes needed.
    pub wanted_bytes: usize,
    /// Why they are unavailable.
    pub reason: &'static str,
}

/// The records cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("cannot write records: the reader has gone")]
pub struct WriteError;

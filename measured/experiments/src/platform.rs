//! What the surroundings of the measured code must provide: the Linux agent and the unikernel each
//! bring their own.

use core::fmt;

use tare_wire::record::Frequency;
use thiserror::Error;

use crate::moved::Moved;
use crate::session::Stop;

/// The surroundings of measured code: memory, clocks and a way out for records.
pub trait Platform {
    /// The reason why something could not be measured.
    type Error: From<Stop> + fmt::Display;

    /// Returns the version of the agent or image.
    fn version(&self) -> &'static str;

    /// Returns what the code runs on: `linux`, `initramfs`, `debian` or `unikernel`.
    fn environment(&self) -> &'static str;

    /// Pins the code to `cpu`, or leaves it where it is, and keeps deep C-states off if it may.
    ///
    /// # Errors
    ///
    /// Returns what to tell the user if the code can't run there.
    fn prepare(&mut self, cpu: Option<u32>) -> Result<Prepared, &'static str>;

    /// Gives memory, zeroed, page-aligned, and locked if that is allowed. Called once.
    ///
    /// # Errors
    ///
    /// Returns why there is not so much.
    fn memory(&mut self, bytes: usize) -> Result<Memory, MemoryError>;

    /// Gives memory for work that is not timed, zeroed or not. Called once, and not beside [`Platform::memory`].
    ///
    /// # Errors
    ///
    /// Returns why there is not so much.
    fn room(&mut self, bytes: usize) -> Result<&'static mut [u8], MemoryError> {
        self.memory(bytes).map(|memory| memory.bytes)
    }

    /// Tells when the code began to run.
    fn began(&self) -> Began {
        Began::default()
    }

    /// Tells what the code has taken so far.
    fn spent(&self) -> Spent {
        Spent::default()
    }

    /// Reads the kernel's CLOCK_MONOTONIC in ns, where there is a kernel.
    fn monotonic_ns(&self) -> Option<u64> {
        None
    }

    /// Reads a clock whose rate is not adjusted, in ns: CLOCK_MONOTONIC_RAW. None where there is
    /// no clock but the TSC.
    fn reference_ns(&self) -> Option<u64> {
        None
    }

    /// Names the source of [`Platform::reference_ns`], for example `clocksource=tsc`.
    fn reference_detail(&self) -> &str {
        ""
    }

    /// Returns how much faster the synchronised system clock is made to run than
    /// [`Platform::reference_ns`], in parts per million; None where nothing steers it.
    fn steering_ppm(&self) -> Option<f64> {
        None
    }

    /// Returns what the platform has found out of the TSC's frequency by means of its own. May
    /// take 2 ms the first time; only asked outside of timed regions.
    fn frequency(&self) -> Option<Frequency<'static>> {
        None
    }

    /// Returns what is counted beneath the measured code on this CPU, by name, up to now. Only
    /// the differences over a batch are reported; the names must be the same each time.
    fn counters(&self) -> [Option<(&'static str, u64)>; 4] {
        [None; 4]
    }

    /// Checks that the calling thread, which [`Platform::prepare`] has pinned, has been on its CPU
    /// ever since. Where no scheduler can move it, as on the unikernel, it has.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if it has not.
    fn stayed(&self) -> Result<(), Moved> {
        Ok(())
    }

    /// Tells one thing about the place as it looks from inside: its name and what was found. Facts
    /// are numbered from 0; None if there is no such number. Only asked after the batch.
    fn fact(&mut self, _number: usize) -> Option<(&'static str, &str)> {
        None
    }

    /// Waits about `ns`, between two readings of [`Platform::reference_ns`].
    fn pause(&self, _ns: u64) {}

    /// Writes bytes towards the host; may buffer them.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if they can't be written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError>;

    /// Sends what was buffered.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if it can't be sent.
    fn flush(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

/// Says when code began to run, as far as its platform knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Began {
    /// TSC when the machine was handed over; None under a kernel.
    pub entry_tsc: Option<u64>,
    /// TSC at the beginning of `main`.
    pub main_tsc: Option<u64>,
    /// CLOCK_MONOTONIC of the kernel there, in ns.
    pub main_ns: Option<u64>,
}

/// Says what code has taken, as far as its platform knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time in ns.
    pub cpu_ns: Option<u64>,
    /// Greatest resident memory in bytes.
    pub peak_bytes: Option<u64>,
}

/// Says how the surroundings were prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepared {
    /// Whether deep C-states are kept off.
    pub latency_held: bool,
    /// What the reader should know: what could not be done, why, and what to do.
    pub notice: Option<&'static str>,
}

/// The memory for all buffers of a batch, for the rest of the program's life.
#[derive(Debug)]
pub struct Memory {
    /// The bytes, page-aligned and zeroed.
    pub bytes: &'static mut [u8],
    /// Whether they can't be paged out.
    pub locked: bool,
}

/// Says that there is not enough memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the buffers take {} MiB, but {reason}; ask for less to be kept: fewer repetitions in more \
     runs, or a smaller raw= or capacity=",
    .wanted_bytes.div_ceil(1 << 20)
)]
pub struct MemoryError {
    /// How much is needed.
    pub wanted_bytes: usize,
    /// Why it can't be had.
    pub reason: &'static str,
}

/// Says that the records can't be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the records could not be written: nobody reads them")]
pub struct WriteError;

//! Runs one batch of a workload and reports it.
//!
//! The order is fixed, because measuring must never wait for recording: memory is taken and
//! touched, the timer is calibrated, the workload is warmed up, the batch runs; only then are the
//! samples folded and written out. Between the first and the last stamp nothing but the workload
//! and the store of its two stamps executes.
//!
//! * `threshold`: what the plan's threshold means in ticks, and the rules of the defaults;
//! * `batch`: runs the workloads;
//! * `calibrate`: cost of the stamps, step of the timer, TSC frequency;
//! * `cpuid`: what CPUID claims of it;
//! * `counted`: what happened beneath the batch, by the platform's counters;
//! * `fold`: from raw stamps to exact counts, delays and an envelope.

mod batch;
mod calibrate;
mod counted;
pub mod cpuid;
pub(crate) mod fold;
mod threshold;

use core::fmt;

use tare_wire::bounds::{self, Refusal};
use tare_wire::plan::Plan;
use tare_wire::record::{Failure, Hello, Ready, Record};
use tare_workloads::timing::bare_rdtsc;

use self::threshold::Refused;
use crate::arena::Arena;
use crate::output::{self, Output};
use crate::platform::{MemoryError, Platform, Prepared, WriteError};

/// Says why a batch ended without result.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The plan asks for something that can't be done.
    Plan(Refusal),
    /// There is not enough memory.
    Memory(MemoryError),
    /// The platform can't run the code where the plan wants it.
    Place(&'static str),
    /// The records could not be written.
    Write(WriteError),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(refusal) => write!(f, "{refusal}"),
            Self::Memory(error) => write!(
                f,
                "the buffers take {} MiB, but {}; ask for fewer repetitions and more runs",
                error.wanted_bytes.div_ceil(1 << 20),
                error.reason
            ),
            Self::Place(reason) => f.write_str(reason),
            Self::Write(_) => f.write_str("the records could not be written: nobody reads them"),
        }
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::OutOfBounds(refusal) => Self::Plan(refusal),
            Refused::NoFrequency => {
                Self::Place("nothing tells the TSC's frequency here: give the threshold in cycles")
            }
        }
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Plan(refusal)
    }
}

impl From<MemoryError> for Stop {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Runs the plan and writes the records of everything that happened.
///
/// # Errors
///
/// Returns why there is no result; a [`Failure`] record that says the same has been written,
/// unless writing is what failed.
pub fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let mut output = Output::default();
    let ran = reported(plan, platform, &mut output);
    if let Err(stop) = &ran
        && !matches!(stop, Stop::Write(_))
    {
        let text = output::text(stop);
        output.put(platform, &Record::Failure(Failure { text: &text }))?;
        platform.flush()?;
    }
    ran
}

fn reported(plan: &Plan, platform: &mut impl Platform, output: &mut Output) -> Result<(), Stop> {
    let hello = Hello {
        protocol: tare_wire::PROTOCOL,
        version: platform.version(),
        environment: platform.environment(),
        plan: &output::text(plan),
    };
    output.put(platform, &Record::Hello(hello))?;
    // Whoever waits for it need not wait for the calibration as well.
    platform.flush()?;
    bounds::check(plan)?;

    let prepared = platform.prepare(plan.cpu).map_err(Stop::Place)?;
    let memory = platform.memory(batch::arena_bytes(plan) + calibrate::arena_bytes())?;
    let locked = memory.locked;
    let mut arena = Arena::new(memory.bytes);
    let buffer_bytes = arena.bytes_left() as u64;
    let clock = calibrate::Clock::start(platform);
    let costs = calibrate::costs(&mut arena);
    let hz = clock.estimate_hz(platform);

    announce(plan, platform, output, &prepared, buffer_bytes, locked)?;
    output.put(platform, &Record::Calibration(costs))?;
    platform.flush()?;

    let threshold = threshold::threshold_cycles(plan, hz, costs.step_cycles)?;
    batch::run(plan, platform, output, &mut arena, threshold)?;

    clock.finish(platform, output)?;
    output.facts(platform)?;
    output.end(platform)?;
    platform.flush()?;
    Ok(())
}

fn announce(
    plan: &Plan,
    platform: &mut impl Platform,
    output: &mut Output,
    prepared: &Prepared,
    buffer_bytes: u64,
    locked: bool,
) -> Result<(), WriteError> {
    let ready = Ready {
        tsc: bare_rdtsc(),
        monotonic_ns: platform.monotonic_ns(),
        cpu: plan.cpu,
        buffer_bytes,
        locked,
        latency_held: prepared.latency_held,
    };
    output.put(platform, &Record::Ready(ready))?;
    for notice in prepared.notices.iter().flatten() {
        output.notice(platform, notice)?;
    }
    if !locked {
        output.notice(
            platform,
            "the buffers are touched but not locked in memory: raise RLIMIT_MEMLOCK (ulimit -l) \
             or run with CAP_IPC_LOCK",
        )?;
    }
    Ok(())
}

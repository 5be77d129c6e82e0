//! The steps before and after every measurement, and their records.
//!
//! The order is fixed, because measuring must never wait for recording: memory is allocated and
//! touched, and the timer is calibrated; then the experiment measures; the frequency and the facts
//! come last.

use core::fmt;

use tare_wire::bounds::Refusal;
use tare_wire::record::{Calibration, Failure, Hello, Ready, Record};
use tare_workloads::timing::bare_rdtsc;
use thiserror::Error;

use crate::arena::Arena;
use crate::calibrate::{self, Clock};
use crate::moved::Moved;
use crate::output::{self, Output};
use crate::platform::{MemoryError, Platform, WriteError};

/// The reason why an experiment ended without a result.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Stop {
    /// The plan is invalid or out of bounds.
    #[error(transparent)]
    Plan(#[from] Refusal),
    /// There is not enough memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The platform can't run the code as the plan requires.
    #[error("{0}")]
    Place(&'static str),
    /// The thread left the CPU of the plan.
    #[error(transparent)]
    Moved(#[from] Moved),
    /// The records could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The requirements of an experiment.
pub struct Wanted<'a> {
    /// The plan, in words.
    pub plan: &'a dyn fmt::Display,
    /// Whether the plan is within its bounds.
    pub allowed: Result<(), Refusal>,
    /// CPU to which the code is pinned.
    pub cpu: Option<u32>,
    /// Size of the buffers in bytes.
    pub bytes: usize,
}

/// The resources of an experiment.
pub struct Resources {
    /// The buffers.
    pub arena: Arena,
    /// The cost of the stamps.
    pub costs: Calibration,
    /// Estimated frequency of the TSC in Hz, to some 0.1 %.
    pub hz: Option<f64>,
}

/// Prepares, lets the experiment prepare itself before it is ready, measures, and writes the
/// records of everything that happened.
///
/// # Errors
///
/// Returns why there is no result; a [`Failure`] record with the same reason has been written,
/// unless writing is what failed.
pub fn run<P: Platform, T, E: From<Stop> + From<WriteError> + fmt::Display>(
    wanted: Wanted<'_>,
    platform: &mut P,
    prepare: impl FnOnce(Resources) -> Result<T, E>,
    measure: impl FnOnce(&mut Output<'_, P>, T) -> Result<(), E>,
) -> Result<(), E> {
    let mut output = Output::new(platform);
    let ran = reported(wanted, &mut output, prepare, measure);
    if let Err(why) = &ran {
        let text = output::text(why);
        let told = output.put(&Record::Failure(Failure { text: &text }));
        // If writing is what failed, it fails again.
        let _ = told.and_then(|()| output.flush());
    }
    ran
}

fn reported<P: Platform, T, E: From<Stop> + From<WriteError>>(
    wanted: Wanted<'_>,
    output: &mut Output<'_, P>,
    prepare: impl FnOnce(Resources) -> Result<T, E>,
    measure: impl FnOnce(&mut Output<'_, P>, T) -> Result<(), E>,
) -> Result<(), E> {
    let (ready, notice, clock, given) = get_ready(wanted, output)?;
    let costs = given.costs;
    let own = prepare(given)?;
    output.put(&Record::Ready(Ready {
        tsc: bare_rdtsc(),
        monotonic_ns: output.platform.monotonic_ns(),
        ..ready
    }))?;
    if let Some(notice) = notice {
        output.notice(notice)?;
    }
    if !ready.locked {
        output.notice(
            "the buffers are touched but not locked in memory: raise RLIMIT_MEMLOCK (ulimit -l) \
             or run with CAP_IPC_LOCK",
        )?;
    }
    output.put(&Record::Calibration(costs))?;
    output.flush()?;
    measure(output, own)?;
    clock.finish(output)?;
    output.facts()?;
    output.end()?;
    Ok(output.flush()?)
}

/// Writes the first records, allocates the memory and calibrates.
fn get_ready(
    wanted: Wanted<'_>,
    output: &mut Output<'_, impl Platform>,
) -> Result<(Ready, Option<&'static str>, Clock, Resources), Stop> {
    output.put(&Record::Hello(Hello {
        protocol: tare_wire::PROTOCOL,
        version: output.platform.version(),
        environment: output.platform.environment(),
        plan: &output::text(&wanted.plan),
    }))?;
    // A reader that waits for this record need not wait for the calibration.
    output.flush()?;
    wanted.allowed?;

    let platform = &mut *output.platform;
    let prepared = platform.prepare(wanted.cpu).map_err(Stop::Place)?;
    let memory = platform.memory(wanted.bytes + calibrate::arena_bytes())?;
    let mut arena = Arena::new(memory.bytes);
    let ready = Ready {
        tsc: 0,
        monotonic_ns: None,
        cpu: wanted.cpu,
        buffer_bytes: arena.bytes_left() as u64,
        locked: memory.locked,
        latency_held: prepared.latency_held,
    };
    let clock = Clock::start(platform);
    let costs = calibrate::costs(&mut arena);
    let hz = clock.estimate_hz(platform);
    let given = Resources { arena, costs, hz };
    Ok((ready, prepared.notice, clock, given))
}

//! What every service does before and after it measures, and the records of that.
//!
//! The order is fixed, because measuring must never wait for recording: memory is taken and
//! touched, the timer is calibrated; then the service measures; what tells the frequency and the place
//! comes last.

use core::fmt;

use tare_wire::bounds::Refusal;
use tare_wire::record::{Calibration, Failure, Hello, Ready, Record};
use tare_workloads::timing::bare_rdtsc;

use crate::arena::Arena;
use crate::calibrate::{self, Clock};
use crate::output::{self, Output};
use crate::platform::{MemoryError, Platform, Prepared, WriteError};

/// Says why a service ended without result.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The plan asks for something that can't be done.
    Plan(Refusal),
    /// There is not enough memory.
    Memory(MemoryError),
    /// The platform can't run the code where or as the plan wants it.
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
                "the buffers take {} MiB, but {}; ask for less to be kept: fewer repetitions in more \
                 runs, or a smaller raw= or capacity=",
                error.wanted_bytes.div_ceil(1 << 20),
                error.reason
            ),
            Self::Place(reason) => f.write_str(reason),
            Self::Write(_) => f.write_str("the records could not be written: nobody reads them"),
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

/// Is what a service wants before it measures.
pub struct Wanted<'a> {
    /// The plan, in words.
    pub plan: &'a dyn fmt::Display,
    /// Whether the plan is within its bounds.
    pub allowed: Result<(), Refusal>,
    /// CPU to which the code is pinned.
    pub cpu: Option<u32>,
    /// Size of its buffers in bytes.
    pub bytes: usize,
}

/// Is what it gets.
pub struct Given {
    /// The buffers.
    pub arena: Arena,
    /// What the stamps cost.
    pub costs: Calibration,
    /// Frequency of the TSC in Hz as far as it is known by now, to some 0.1 %.
    pub hz: Option<f64>,
}

/// Prepares, lets the service measure, and writes the records of everything that happened.
///
/// # Errors
///
/// Returns why there is no result; a [`Failure`] record that says the same has been written,
/// unless writing is what failed.
pub fn run<P: Platform>(
    wanted: Wanted<'_>,
    platform: &mut P,
    measure: impl FnOnce(&mut P, &mut Output, Given) -> Result<(), Stop>,
) -> Result<(), Stop> {
    run_prepared(wanted, platform, |_, given| Ok(given), measure)
}

/// Does the same for a service that has more to prepare before it is ready, and more reasons to fail.
///
/// # Errors
///
/// Returns why there is no result, as [`run`] does.
pub fn run_prepared<P: Platform, T, E: From<Stop> + fmt::Display>(
    wanted: Wanted<'_>,
    platform: &mut P,
    prepare: impl FnOnce(&mut P, Given) -> Result<T, E>,
    measure: impl FnOnce(&mut P, &mut Output, T) -> Result<(), E>,
) -> Result<(), E> {
    let mut output = Output::default();
    let ran = reported(wanted, platform, &mut output, prepare, measure);
    if let Err(why) = &ran {
        let text = output::text(why);
        let told = output.put(platform, &Record::Failure(Failure { text: &text }));
        // If writing is what failed, it fails again.
        let _ = told.and_then(|()| platform.flush());
    }
    ran
}

fn reported<P: Platform, T, E: From<Stop>>(
    wanted: Wanted<'_>,
    platform: &mut P,
    output: &mut Output,
    prepare: impl FnOnce(&mut P, Given) -> Result<T, E>,
    measure: impl FnOnce(&mut P, &mut Output, T) -> Result<(), E>,
) -> Result<(), E> {
    let (ready, prepared, clock, given) = get_ready(&wanted, platform, output)?;
    let costs = given.costs;
    let own = prepare(platform, given)?;
    announce(ready, &prepared, costs, platform, output).map_err(Stop::from)?;
    measure(platform, output, own)?;
    Ok(finish(clock, platform, output).map_err(Stop::from)?)
}

/// Says who speaks, takes the memory and calibrates.
fn get_ready(
    wanted: &Wanted<'_>,
    platform: &mut impl Platform,
    output: &mut Output,
) -> Result<(Ready, Prepared, Clock, Given), Stop> {
    let hello = Hello {
        protocol: tare_wire::PROTOCOL,
        version: platform.version(),
        environment: platform.environment(),
        plan: &output::text(&wanted.plan),
    };
    output.put(platform, &Record::Hello(hello))?;
    // Whoever waits for it need not wait for the calibration as well.
    platform.flush()?;
    wanted.allowed?;

    let prepared = platform.prepare(wanted.cpu).map_err(Stop::Place)?;
    let memory = platform.memory(wanted.bytes + calibrate::arena_bytes())?;
    let locked = memory.locked;
    let mut arena = Arena::new(memory.bytes);
    let ready = Ready {
        tsc: 0,
        monotonic_ns: None,
        cpu: wanted.cpu,
        buffer_bytes: arena.bytes_left() as u64,
        locked,
        latency_held: prepared.latency_held,
    };
    let clock = Clock::start(platform);
    let costs = calibrate::costs(&mut arena);
    let hz = clock.estimate_hz(platform);
    Ok((ready, prepared, clock, Given { arena, costs, hz }))
}

/// Says what the TSC's frequency and the place are, and ends the records.
fn finish(
    clock: Clock,
    platform: &mut impl Platform,
    output: &mut Output,
) -> Result<(), WriteError> {
    clock.finish(platform, output)?;
    output.facts(platform)?;
    output.end(platform)?;
    platform.flush()
}

fn announce(
    ready: Ready,
    prepared: &Prepared,
    costs: Calibration,
    platform: &mut impl Platform,
    output: &mut Output,
) -> Result<(), WriteError> {
    let ready = Ready {
        tsc: bare_rdtsc(),
        monotonic_ns: platform.monotonic_ns(),
        ..ready
    };
    output.put(platform, &Record::Ready(ready))?;
    for notice in prepared.notices.iter().flatten() {
        output.notice(platform, notice)?;
    }
    if !ready.locked {
        output.notice(
            platform,
            "the buffers are touched but not locked in memory: raise RLIMIT_MEMLOCK (ulimit -l) \
             or run with CAP_IPC_LOCK",
        )?;
    }
    output.put(platform, &Record::Calibration(costs))?;
    platform.flush()
}

//! `start`: reports that it runs, does a little work, and ends.
//!
//! The time is measured from outside. So the first record must come as early as possible: nothing
//! is pinned, locked, calibrated or looked up before it. Figures about the instance itself follow
//! the work.
//!
//! With `report=yes` it also reports the program and its environment, as all other experiments do:
//! once, for many instances that do not.

mod plan;
mod thumbnail;

use tare_wire::record::{Hello, Ready, Record};
use tare_workloads::prime::tare_prime_fenced;
use tare_workloads::timing::{Stamp, bare_rdtsc};

use crate::output::Output;
use crate::platform::{Platform, WriteError};
use crate::session::{self, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};

pub use plan::{Job, Plan, USAGE};
pub use tare_workloads::prime::{MAX_LIMIT, MIN_LIMIT};

/// The id by which plans select it.
pub const NAME: &str = "start";

/// Returns the experiment on a platform.
pub fn on<P: Platform>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Runs a plan and writes its records.
///
/// # Errors
///
/// Returns why it failed; a record with the same reason has been written where possible.
pub fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    match plan.report {
        true => report(plan, platform),
        false => start(plan, platform),
    }
}

fn start(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    // The first line shows that the instance is ready.
    let (tsc, monotonic_ns) = (bare_rdtsc(), platform.monotonic_ns());
    let mut output = Output::new(platform);
    output.put(&Record::Hello(Hello {
        protocol: tare_wire::PROTOCOL,
        version: output.platform.version(),
        environment: output.platform.environment(),
        // The reporting instance has the plan: printing it takes a unikernel as long as all steps
        // before.
        plan: "",
    }))?;
    output.put(&Record::Ready(Ready {
        tsc,
        monotonic_ns,
        cpu: plan.cpu,
        buffer_bytes: 0,
        locked: false,
        latency_held: false,
    }))?;
    output.flush()?;
    let result = work(plan.work, output.platform)?;
    told(&mut output, result)?;
    output.end()?;
    Ok(output.flush()?)
}

fn report(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let wanted = Wanted {
        plan,
        allowed: Ok(()),
        cpu: plan.cpu,
        bytes: 0,
    };
    session::run(wanted, platform, Ok, |output, _| {
        let result = work(plan.work, output.platform)?;
        Ok::<(), Stop>(told(output, result)?)
    })
}

/// Does the work, and returns its result.
fn work(job: Job, platform: &mut impl Platform) -> Result<u32, Stop> {
    Ok(match job {
        Job::Hello => 0,
        Job::Prime { limit } => {
            let mut stamp = Stamp::default();
            // SAFETY: there is room for one stamp.
            unsafe { tare_prime_fenced(limit, 1, &raw mut stamp) }
        }
        Job::Thumbnail => match thumbnail::checksum(platform.room(thumbnail::ROOM)?) {
            thumbnail::KNOWN => thumbnail::KNOWN,
            _ => return Err(Stop::Place("the thumbnail came out wrong")),
        },
    })
}

/// Writes the instance's own figures: start times, resource usage, and the result.
fn told(output: &mut Output<'_, impl Platform>, result: u32) -> Result<(), WriteError> {
    let (began, spent) = (output.platform.began(), output.platform.spent());
    // Without a kernel, all the time since the entry is the program's.
    let done = began.entry_tsc.map(|_| bare_rdtsc());
    let known = [
        ("entry", "cycles", began.entry_tsc),
        ("done", "cycles", done),
        ("main", "cycles", began.main_tsc),
        ("main", "ns", began.main_ns),
        ("cpu", "ns", spent.cpu_ns),
        ("peak", "bytes", spent.peak_bytes),
        ("result", "", Some(result.into())),
    ];
    for (measure, unit, value) in known {
        if let Some(value) = value {
            output.values("", &[(measure, unit, value)])?;
        }
    }
    Ok(())
}

//! Runs one batch of a workload and reports it.
//!
//! The workload is warmed up, and the batch runs; only then are the samples folded and written.
//! Between the first and the last stamp nothing but the workload and the store of its two stamps
//! executes.
//!
//! * [`Plan`], [`bounds`]: the plan as words, and its limits;
//! * `threshold`: the plan's threshold in ticks, and the defaults;
//! * `batch`: runs the workload; `long`: spins for a given time;
//! * `fold`: folds raw stamps into exact counts, delays and an envelope;
//! * [`witness`]: sees the system during a batch; on Linux (`linux`), by the kernel's events.

mod batch;
pub mod bounds;
pub(crate) mod fold;
#[cfg(feature = "linux")]
pub mod linux;
mod long;
mod plan;
mod threshold;
pub mod witness;

pub use self::batch::arena_bytes as buffer_bytes;

pub use self::plan::{OwnWords, Plan, Threshold, Timing, usage};
use self::witness::Witness;
use crate::platform::Platform;
use crate::session::{self, Resources, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};
pub use tare_workloads::noise::{Code, Workload, add, find, workloads};

/// Returns the experiment on a platform.
pub fn on<P: Platform>() -> Measurement<P> {
    Measurement {
        has: |id| find(id).is_some(),
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform, ()).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Runs the plan and writes the records of everything that happened, with what a witness saw.
///
/// # Errors
///
/// Returns [`Stop`] as [`session::run`] does.
pub fn run(plan: &Plan, platform: &mut impl Platform, witness: impl Witness) -> Result<(), Stop> {
    let allowed = bounds::check(plan);
    let wanted = Wanted {
        plan,
        cpu: plan.cpu,
        bytes: allowed.map_or(0, |()| buffer_bytes(plan)),
        allowed,
    };
    session::run(wanted, platform, Ok, |output, mut given: Resources| {
        let step = given.costs.step_cycles;
        let threshold = threshold::threshold_cycles(plan, given.hz, step)?;
        let ticks = (threshold, given.hz);
        batch::run(plan, output, &mut given.arena, ticks, witness)
    })
}

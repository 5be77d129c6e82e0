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
//! * `together`: spins on several CPUs at the same time, on Linux;
//! * [`witness`]: sees the system during a batch; on Linux (`linux`), by the kernel's events.

mod batch;
pub mod bounds;
pub(crate) mod fold;
#[cfg(feature = "linux")]
pub mod linux;
mod long;
mod plan;
mod threshold;
#[cfg(feature = "linux")]
mod together;
pub mod witness;

pub use self::batch::arena_bytes as buffer_bytes;

pub use self::plan::{OwnWords, Plan, Threshold, Timing, usage};
use self::witness::Witness;
use crate::platform::Platform;
use crate::session::{self, Resources, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};
use tare_wire::bounds::{Refusal, within};
pub use tare_workloads::noise::{Code, Workload, add, find, workloads};

/// Returns the experiment on a platform.
pub fn on<P: Platform>() -> Measurement<P> {
    Measurement {
        has: |id| find(id).is_some(),
        threads: |words| Ok(Threads::of(&Plan::parse(words)?)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform, ()).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

impl Threads {
    /// Returns the threads of a plan.
    fn of(plan: &Plan) -> Self {
        Self {
            number: plan.threads(),
            first_cpu: plan.first_cpu(),
        }
    }
}

/// Returns what a plan requires, or why it is refused.
fn wanted(plan: &Plan, allowed: Result<(), Refusal>) -> Wanted<'_> {
    let allowed = allowed.and_then(|()| bounds::check(plan));
    Wanted {
        plan,
        cpu: plan.first_cpu(),
        bytes: allowed.map_or(0, |()| buffer_bytes(plan)),
        allowed,
    }
}

/// Runs the plan and writes the records of everything that happened, with what a witness saw.
///
/// # Errors
///
/// Returns [`Stop`] as [`session::run`] does.
pub fn run(plan: &Plan, platform: &mut impl Platform, witness: impl Witness) -> Result<(), Stop> {
    let wanted = wanted(plan, within("CPUs", plan.threads().into(), 1, 1));
    session::run(wanted, platform, Ok, |output, mut given: Resources| {
        let step = given.costs.step_cycles;
        let threshold = threshold::threshold_cycles(plan, given.hz, step)?;
        let ticks = (threshold, given.hz);
        batch::run(plan, output, &mut given.arena, ticks, witness)
    })
}

//! Measures the primitives of Linux one after the other, each in its own process.

use super::child::{ForkRunner, room};
use super::kernel::{record_initial_cpus, sweep};
use crate::platform::Platform;
use crate::primitives::bench::why;
use crate::primitives::{Context, Ending, Need, Plan, Primitive, tell};
use crate::session::{self, Resources, Stop, Wanted};

/// Measures the primitives of a plan, and writes the records of everything that happened.
pub fn run(plan: &Plan<'_>, linux: &mut impl Platform) -> Result<(), Stop> {
    record_initial_cpus();
    let wanted = Wanted {
        plan,
        allowed: Ok(()),
        cpu: plan.cpu(),
        bytes: 0,
    };
    let prepare = |given: Resources| Ok::<_, Stop>(given);
    session::run(wanted, linux, prepare, |output, given| {
        let hz = given.hz.ok_or(Stop::Place(
            "the TSC's frequency is unknown, so time limits can't be kept",
        ))?;
        let budget = (hz * plan.budget_ns as f64 / 1e9) as u64;
        let runner = ForkRunner::new(budget, given.costs.fenced_region_cycles);
        let mut runner = runner.map_err(|_| Stop::Place("there is no memory for results"))?;
        sweep([plan.dir].into_iter().chain(plan.remote));
        let around = Context {
            plan,
            hz,
            room: &room,
        };
        let mut number = 0;
        for primitive in super::all().filter(|primitive| plan.has(primitive)) {
            let ending = match lacking(primitive, plan) {
                Some(need) => {
                    runner.results().clear();
                    Ending::Absent(why(format_args!("it needs {need}")))
                }
                None => runner.measure(primitive, &around),
            };
            tell(output, &mut number, primitive, &ending, runner.results())?;
            output.flush()?;
        }
        Ok(())
    })
}

/// Returns a requirement of a primitive that the plan does not meet.
fn lacking(primitive: &Primitive, plan: &Plan<'_>) -> Option<Need> {
    let lacks = |need: &Need| match need {
        Need::Kernel | Need::Folder => false,
        Need::RemoteFolder => plan.remote.is_none(),
    };
    primitive.needs.iter().copied().find(lacks)
}

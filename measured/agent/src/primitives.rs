//! The primitives of Linux, one after the other, each in a process of its own.

use tare_primitives::child::{Nursery, room};
use tare_primitives::{keep_given_cpus, sweep};
use tare_services::primitives::bench::why;
use tare_services::primitives::{Ending, Need, Plan, Primitive, Surroundings, tell};
use tare_services::session::{self, Resources, Stop, Wanted};

use crate::Linux;
use crate::threads::ThreadsError;

/// Measures the primitives of a plan, and writes the records of everything that happened.
pub fn run(plan: &Plan<'_>, linux: &mut Linux) -> Result<(), ThreadsError> {
    keep_given_cpus();
    let wanted = Wanted {
        plan,
        allowed: Ok(()),
        cpu: plan.cpu(),
        bytes: 0,
    };
    let prepare = |given: Resources| Ok::<_, Stop>(given);
    let measured = session::run(wanted, linux, prepare, |output, given| {
        let hz = given.hz.ok_or(Stop::Place(
            "nothing tells the frequency of the TSC, so no time can be kept to",
        ))?;
        let budget = (hz * plan.budget_ns as f64 / 1e9) as u64;
        let nursery = Nursery::new(budget, given.costs.fenced_region_cycles);
        let mut nursery = nursery.map_err(|_| Stop::Place("there is no memory for results"))?;
        sweep([plan.dir].into_iter().chain(plan.remote));
        let around = Surroundings {
            plan,
            hz,
            room: &room,
        };
        let mut number = 0;
        for primitive in tare_primitives::all().filter(|primitive| plan.has(primitive)) {
            let ending = match lacking(primitive, plan) {
                Some(need) => {
                    nursery.results().clear();
                    Ending::Absent(why(format_args!("it needs {need}")))
                }
                None => nursery.measure(primitive, &around),
            };
            tell(output, &mut number, primitive, &ending, nursery.results())?;
            output.flush()?;
        }
        Ok(())
    });
    Ok(measured?)
}

/// Returns what a primitive needs that the plan does not give.
fn lacking(primitive: &Primitive, plan: &Plan<'_>) -> Option<Need> {
    let lacks = |need: &Need| match need {
        Need::Kernel | Need::Folder => false,
        Need::RemoteFolder => plan.remote.is_none(),
    };
    primitive.needs.iter().copied().find(lacks)
}

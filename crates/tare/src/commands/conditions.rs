//! Where it is measured and under what: targets and loads as the measuring commands take them.

use tare_loads::{Cpus, Load};
use tare_results::model::Schedule;
use tare_results::target::TargetSpec;
use tare_targets::{TargetError, process, spec};

use crate::error::CommandError;

/// Returns the targets asked for; `process` if none is. Those that run no plans only if no agent is
/// needed.
///
/// # Errors
///
/// Returns [`CommandError`] for what is no target or runs no plans, or for one that is given twice.
pub fn targets(asked: &[String], without_agent: bool) -> Result<Vec<TargetSpec>, CommandError> {
    let asked = match asked {
        [] => &[process::spec().text],
        asked => asked,
    };
    let targets: Result<Vec<TargetSpec>, TargetError> = asked
        .iter()
        .map(|target| {
            let target = spec::parse(target)?.spec();
            match without_agent || target.capabilities().runs_plans {
                true => Ok(target),
                false => Err(TargetError::RunsNoPlans {
                    target: target.text,
                }),
            }
        })
        .collect();
    let mut targets = targets?;
    targets.sort();
    targets.dedup();
    if targets.len() < asked.len() {
        return Err(twice("target"));
    }
    Ok(targets)
}

/// Returns the loads asked for, each once.
///
/// # Errors
///
/// Returns [`CommandError`] for one that is given twice.
pub fn loads(asked: &[Load], cpus: Option<&Cpus>) -> Result<Vec<Schedule>, CommandError> {
    let mut loads = phases(asked, cpus);
    let asked = loads.len();
    loads.sort_by_cached_key(Schedule::to_string);
    loads.dedup();
    if loads.len() < asked {
        return Err(twice("load"));
    }
    Ok(loads)
}

/// Returns the loads asked for in the order in which they are, on the CPUs asked for; `idle` if
/// there are none.
pub fn phases(asked: &[Load], cpus: Option<&Cpus>) -> Vec<Schedule> {
    let asked = match asked {
        [] => &[Load::idle()],
        asked => asked,
    };
    let placed = |load: &Load| match cpus {
        // What stands before a load itself is the nearer word.
        Some(cpus) if *load.cpus() == Cpus::All => load.clone().on(cpus.clone()),
        _ => load.clone(),
    };
    asked.iter().map(|load| placed(load).into()).collect()
}

fn twice(what: &str) -> CommandError {
    CommandError::Usage(format!(
        "a {what} is given twice; use --runs for repetitions"
    ))
}

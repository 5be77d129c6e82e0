//! landolfi-2018 from one command, and its deterministic lane, which must distinguish the kernels
//! and be reproducible.

use std::collections::BTreeMap;
use std::path::Path;

use tare_results::model::{CellPlan, Event, Record, Samples, Schedule};
use tare_results::{CellState, RunFolder};

use crate::verdict::Verdicts;
use crate::{Result, run as tare};

/// Runs the study's shorter variant with the machine's clock, then the deterministic lane.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let words = "reproduce landolfi-2018 --quick";
    let quick = tare(scratch.path(), "quick", words, &[])?;
    let done = quick.plan().cells.iter();
    let done = done.filter(|plan| woken(&quick, plan).is_ok()).count();
    verdicts.at_least("landolfi-2018 --quick: targets measured", done as f64, 5.0);

    let first = deterministic(scratch.path(), "first")?;
    let mut longest_us = BTreeMap::new();
    for plan in &first.plan().cells {
        let (record, _) = woken(&first, plan)?;
        longest_us.insert(
            plan.target.text.clone(),
            longest_under_load_us(plan, &record),
        );
    }
    let is_real_time = |target: &str| target.contains("kernel=debian-rt");
    let rt_us = longest_us.iter().find(|(target, _)| is_real_time(target));
    let (_, rt_us) = rt_us.ok_or("the real-time kernel was not measured")?;
    for (target, us) in &longest_us {
        println!(
            "       {target}: at most {us:.1} µs late under any load, in counted instructions"
        );
        if !is_real_time(target) {
            let what = format!("longest under PREEMPT_RT / {target}");
            verdicts.within(&what, rt_us / us, 0.0, 0.999);
        }
    }

    let second = deterministic(scratch.path(), "second")?;
    let mut differing = 0;
    for plan in &first.plan().cells {
        let mut others = second.plan().cells.iter();
        let same = others.find(|other| other.target == plan.target);
        let same = same.ok_or("the second run lacks a target")?;
        let (one, other) = (woken(&first, plan)?.1, woken(&second, same)?.1);
        differing += usize::from(differ(&one, &other));
    }
    verdicts.at_most("guests whose second run differed", differing as f64, 0.0);
    Ok(())
}

fn deterministic(scratch: &Path, name: &str) -> Result<RunFolder> {
    let words = "reproduce landolfi-2018 --deterministic --phase 1";
    tare(scratch, name, words, &[])
}

/// Returns the wake-ups of a cell.
fn woken(folder: &RunFolder, plan: &CellPlan) -> Result<(Record, Samples)> {
    if let CellState::Done(cell) = folder.state(plan.id)
        && let Some(record) = cell.outcome.record()
    {
        return Ok((record.clone(), folder.samples(plan.id)?));
    }
    Err(format!("{}: not measured", plan.target).into())
}

/// Returns whether wake-ups that should be equal differ. The time of the first one differs from run
/// to run.
fn differ(one: &Samples, other: &Samples) -> bool {
    let latency = |event: &Event| (event.index, event.value);
    let sets = one.sets.iter().zip(&other.sets);
    let mut sets = sets.map(|(a, b)| {
        a.counts == b.counts && a.raw.iter().map(latency).eq(b.raw.iter().map(latency))
    });
    one.sets.len() != other.sets.len() || !sets.all(|same| same)
}

/// Returns the greatest latency of all phases but the idle ones.
fn longest_under_load_us(plan: &CellPlan, record: &Record) -> f64 {
    let is_idle = |phase: u64| {
        let load = plan.phases.get(phase as usize);
        load.is_none_or(Schedule::is_idle)
    };
    let sets = record.sets.iter();
    let under_load = sets.filter(|head| {
        let labels = &head.labels;
        labels.get("between").is_none() && labels.number("phase").is_some_and(|p| !is_idle(p))
    });
    let longest_ns = under_load.map(|head| head.max).max().unwrap_or(0);
    longest_ns as f64 / 1e3
}

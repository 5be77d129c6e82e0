//! landolfi-2018 from one command, and its deterministic lane, which must tell the kernels apart and repeat itself.

use std::collections::BTreeMap;
use std::path::Path;

use tare_results::model::{CellPlan, LatencyCount, Outcome, WakeupSamples};
use tare_results::{CellState, RunFolder};

use crate::verdict::Verdicts;
use crate::{Result, tare};

/// Runs the study's shorter variant with the machine's clock, then the deterministic lane.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let quick = reproduce(scratch.path(), "quick", &["--quick"])?;
    let done = quick.plan().cells.iter();
    let done = done.filter(|plan| woken(&quick, plan).is_ok()).count();
    verdicts.at_least("landolfi-2018 --quick: places measured", done as f64, 5.0);

    let first = deterministic(scratch.path(), "first")?;
    let mut longest_us = BTreeMap::new();
    for plan in &first.plan().cells {
        let samples = woken(&first, plan)?;
        longest_us.insert(plan.target.clone(), longest_under_load_us(plan, &samples));
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
        let (one, other) = (woken(&first, plan)?, woken(&second, same)?);
        differing += usize::from(one.raw != other.raw || one.counts != other.counts);
    }
    verdicts.at_most("guests whose second run differed", differing as f64, 0.0);
    Ok(())
}

fn deterministic(scratch: &Path, name: &str) -> Result<RunFolder> {
    reproduce(scratch, name, &["--deterministic", "--phase", "1"])
}

fn reproduce(scratch: &Path, name: &str, options: &[&str]) -> Result<RunFolder> {
    let path = scratch.join(name);
    let output = path
        .to_str()
        .ok_or("the scratch folder's name is not UTF-8")?;
    let mut words = vec!["reproduce", "landolfi-2018", "--output", output];
    words.extend(options);
    tare(&words)?;
    Ok(RunFolder::open(&path)?)
}

/// Returns the wake-ups of a cell.
fn woken(folder: &RunFolder, plan: &CellPlan) -> Result<WakeupSamples> {
    match folder.state(plan.id) {
        CellState::Done(cell) if matches!(cell.outcome, Outcome::Woken(_)) => {
            Ok(folder.samples(plan.id)?.wakeups)
        }
        _ => Err(format!("{}: not measured", plan.target).into()),
    }
}

/// Returns the greatest latency of all phases but the idle ones.
fn longest_under_load_us(plan: &CellPlan, samples: &WakeupSamples) -> f64 {
    let is_idle = |phase: u32| {
        plan.phases
            .get(phase as usize)
            .is_none_or(|load| load == "idle")
    };
    let is_meant = |row: &&LatencyCount| !row.between && !is_idle(row.phase);
    let under_load = samples.counts.iter().filter(is_meant);
    let longest_ns = under_load.map(|row| row.latency_ns).max().unwrap_or(0);
    longest_ns as f64 / 1e3
}

//! What bears on whether wake-up latencies may be believed.

use tare_results::model::{Cell, LoadPlace, Outcome};
use tare_results::target::Clock;

use super::blame::Culprit;
use super::combine::WakeupCombination;
use super::run::phase_ns;
use super::worst::WorstFigure;
use crate::analysis::{Alarm, Instance};

/// Is the share of an interval from which on recording is said to cost much.
const COSTLY: f64 = 0.02;

/// Is the share of a phase by which its load may start late without a word.
const LATE: f64 = 0.05;

/// Finds what bears on the figures of wake-ups.
pub(crate) fn find(
    combinations: &[WakeupCombination],
    cells: &[(Cell, Option<String>)],
) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let labels = |of: &dyn Fn(&WakeupCombination) -> bool| -> Vec<String> {
        let found = combinations.iter().filter(|c| of(c));
        found.map(|c| c.label.clone()).collect()
    };
    let mut counted: Vec<String> = combinations
        .iter()
        .filter(|c| c.clock == Clock::Instructions)
        .map(|c| c.target.clone())
        .collect();
    counted.dedup();
    if !counted.is_empty() {
        alarms.push(Alarm::InstructionTime { targets: counted });
    }
    let uncounted = labels(&|c| c.uncounted > 0);
    if !uncounted.is_empty() {
        alarms.push(Alarm::Uncounted {
            labels: uncounted,
            uncounted: combinations.iter().map(|c| c.uncounted).sum(),
            woken: combinations
                .iter()
                .filter(|c| c.uncounted > 0)
                .map(|c| c.woken)
                .sum(),
        });
    }
    let costly = combinations.iter().filter(|c| c.recording_share > COSTLY);
    if let Some(worst) = costly
        .clone()
        .max_by(|a, b| a.recording_share.total_cmp(&b.recording_share))
    {
        alarms.push(Alarm::RecordingCost {
            labels: costly.map(|c| c.label.clone()).collect(),
            share: worst.recording_share,
            recording_ns: worst.recording_ns,
        });
    }
    let throttled = |c: &WakeupCombination| c.worst.iter().filter(|w| is_throttled(w)).count();
    let held_up = labels(&|c| throttled(c) > 0);
    if !held_up.is_empty() {
        alarms.push(Alarm::Throttled {
            labels: held_up,
            wakeups: combinations.iter().map(throttled).sum(),
        });
    }
    let ordinary = labels(&|c| c.policy == "other");
    if !ordinary.is_empty() {
        alarms.push(Alarm::OrdinaryTask { labels: ordinary });
    }
    let beyond: u64 = combinations.iter().map(beyond_the_end).sum();
    if beyond > 0 {
        alarms.push(Alarm::BeyondTheEnd {
            activations: beyond,
        });
    }
    let asleep = cells.iter().filter(|(cell, _)| {
        Instance::of(cell).is_some_and(|instance| {
            !instance.preparation.latency_held && instance.agent.environment != "unikernel"
        })
    });
    let asleep: Vec<u32> = asleep.map(|(cell, _)| cell.plan.id).collect();
    if !asleep.is_empty() {
        alarms.push(Alarm::IdleStates { cells: asleep });
    }
    let late: Vec<(u32, String, f64)> = cells.iter().filter_map(|(cell, _)| late(cell)).collect();
    if let Some((_, load, share)) = late.iter().max_by(|a, b| a.2.total_cmp(&b.2)) {
        alarms.push(Alarm::LateLoad {
            cells: late.iter().map(|(id, ..)| *id).collect(),
            load: load.clone(),
            share: *share,
        });
    }
    alarms
}

fn is_throttled(worst: &WorstFigure) -> bool {
    let blame = worst.blame.as_ref();
    blame.is_some_and(|blame| matches!(blame.culprit, Culprit::Throttled { .. }))
}

/// Returns how many activations the last wake-ups missed that were not planned any more.
fn beyond_the_end(combination: &WakeupCombination) -> u64 {
    let derived: u64 = combination.phases.iter().map(|phase| phase.missed).sum();
    derived.saturating_sub(combination.missed)
}

/// Finds the load of a cell that started latest in its phase, with how much of the phase had gone.
fn late(cell: &Cell) -> Option<(u32, String, f64)> {
    let Outcome::Woken(woken) = &cell.outcome else {
        return None;
    };
    let load = cell.load.as_ref()?;
    // Clocks of two kernels can't be compared.
    let same_kernel = load.place == LoadPlace::Inside || cell.plan.target.group.is_here();
    let length = phase_ns(&cell.plan).filter(|_| same_kernel)?;
    let shares = load
        .phases
        .iter()
        .filter(|phase| !phase.achieved.is_empty());
    let shares = shares.map(|phase| {
        let due = woken.origin_ns as f64 + f64::from(phase.number) * length;
        (phase, (phase.started_ns as f64 - due) / length)
    });
    let (phase, share) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (share > LATE).then(|| (cell.plan.id, phase.load.clone(), share))
}

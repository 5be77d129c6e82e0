//! What bears on whether wake-up latencies may be believed.

use tare_results::TscFrequency;
use tare_results::model::{Cell, Record};
use tare_results::target::Clock;
use tare_trace::blame::Culprit;

use super::combine::WakeupCombination;
use super::late;
use super::worst::WorstFigure;
use crate::analysis::Alarm;

/// Is the share of an interval from which on recording is said to cost much.
const COSTLY: f64 = 0.02;

/// Finds what bears on the figures of wake-ups.
pub(crate) fn find(
    combinations: &[WakeupCombination],
    cells: &[(Cell, Option<TscFrequency>)],
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
        let program = cell.outcome.record().and_then(Record::program);
        program.is_some_and(|program| {
            !program.preparation.latency_held && program.agent.environment != "unikernel"
        })
    });
    let asleep: Vec<u32> = asleep.map(|(cell, _)| cell.plan.id).collect();
    if !asleep.is_empty() {
        alarms.push(Alarm::IdleStates { cells: asleep });
    }
    alarms.extend(late::find(combinations, cells));
    alarms
}

fn is_throttled(worst: &WorstFigure) -> bool {
    let blame = worst.blame.as_ref();
    blame.is_some_and(|blame| matches!(blame.culprit, Culprit::Throttled { .. }))
}

/// Returns how many activations the last wake-ups missed that were not planned any more.
fn beyond_the_end(combination: &WakeupCombination) -> u64 {
    let phases = combination.phases.iter();
    let derived: u64 = phases
        .map(|phase| phase.missed + phase.between_missed)
        .sum();
    derived.saturating_sub(combination.missed)
}

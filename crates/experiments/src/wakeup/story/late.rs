//! Loads that began late in their phase, and tools that ran on beside later phases.

use tare_results::TscFrequency;
use tare_results::model::{Cell, CellPlan, Load, LoadPhase};

use super::combine::WakeupCombination;
use crate::analysis::{Alarm, LatePhase};

/// Finds phases whose loads began late or never, and tools that were left running.
pub(super) fn find(
    combinations: &[WakeupCombination],
    cells: &[(Cell, Option<TscFrequency>)],
) -> Vec<Alarm> {
    let (mut late, mut skipped, mut tools) = (Vec::new(), Vec::new(), Vec::new());
    for (cell, _) in cells {
        let Some(load) = &cell.load else {
            continue;
        };
        tools.extend(load.left.iter().map(|left| (cell.plan.id, left.clone())));
        let Some(phase_ns) = cell.plan.phase_ns() else {
            continue;
        };
        for phase in &load.phases {
            let told = || LatePhase {
                cell: cell.plan.id,
                number: phase.number,
                load: phase.load.clone(),
                late_ns: phase.late_ns(),
                because: because(load, phase),
            };
            if phase.is_skipped(phase_ns) {
                skipped.push(told());
            } else if phase.is_late(phase_ns) {
                late.push(told());
            }
        }
    }
    let latest_first = |phases: &mut Vec<LatePhase>| {
        phases.sort_by_key(|phase| std::cmp::Reverse(phase.late_ns));
    };
    latest_first(&mut late);
    latest_first(&mut skipped);
    let phases = combinations.iter().flat_map(|c| &c.phases);
    let woken = phases.map(|phase| phase.between_woken).sum();
    let mut alarms = Vec::new();
    if !late.is_empty() {
        alarms.push(Alarm::LateLoad {
            phases: late,
            woken,
        });
    }
    if !skipped.is_empty() {
        alarms.push(Alarm::SkippedLoad { phases: skipped });
    }
    if !tools.is_empty() {
        alarms.push(Alarm::LeftTool { tools });
    }
    alarms
}

/// Says why a phase of a cell has no wake-ups.
pub(super) fn absent(plan: &CellPlan, load: Option<&Load>, number: u32) -> String {
    let phases = load.map_or(&[][..], |load| &load.phases);
    let phase = phases.iter().find(|phase| phase.number == number);
    let skipped = phase.zip(plan.phase_ns());
    match (load, skipped) {
        (Some(load), Some((phase, length))) if phase.is_skipped(length) => {
            format!("its load was skipped, because {}", because(load, phase))
        }
        _ => "no thread was woken in it".to_owned(),
    }
}

/// Names the load that still had to end when a phase was due.
pub(super) fn ending(load: &Load, number: u32) -> String {
    let phase = load.phases.iter().find(|phase| phase.number == number);
    match phase.and_then(|phase| before(load, phase)) {
        Some(before) => format!("end of {}", before.load),
        None => "nothing yet".to_owned(),
    }
}

/// Returns the load before, if it ended after a phase was due.
fn before<'a>(load: &'a Load, phase: &LoadPhase) -> Option<&'a LoadPhase> {
    let mut before = load.phases.iter().rev();
    before
        .find(|other| other.number < phase.number && other.last_tool.is_some())
        .filter(|other| other.stopped_ns > phase.due_ns)
}

fn because(load: &Load, phase: &LoadPhase) -> String {
    match before(load, phase) {
        Some(before) => format!(
            "{} of the load before ({}) took that long to end",
            before.last_tool.as_deref().unwrap_or_default(),
            before.load
        ),
        None => "the driver of the load was told, or woken up, that late".to_owned(),
    }
}

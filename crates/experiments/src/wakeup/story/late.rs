//! Loads that began late in their phase, and tools that ran on into later phases.

use std::cmp::Reverse;

use tare_results::model::{CellPlan, LeftTool, Load, LoadPhase};

use tare_figures::Run;
use tare_figures::notices::{Notice, name_cells};

use super::words::{N, cases};
use super::{NAME, total};

/// Finds phases whose loads began late or never, and tools that were left running.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let (mut late, mut skipped, mut tools) = (Vec::new(), Vec::new(), Vec::new());
    for cell in run.cells.iter().filter(|cell| cell.plan.experiment == NAME) {
        let Some(load) = &cell.load else {
            continue;
        };
        tools.extend(
            load.left
                .iter()
                .map(|left| left_running(cell.plan.id, left)),
        );
        let length = cell.plan.phase_ns();
        for (phase, length) in load
            .phases
            .iter()
            .filter_map(|phase| Some((phase, length?)))
        {
            if phase.is_skipped(length) {
                skipped.push((cell.plan.id, load, phase));
            } else if phase.is_late(length) {
                late.push((cell.plan.id, load, phase));
            }
        }
    }
    let between: f64 = cases(run).iter().map(|case| total(case, "between")).sum();
    let late = latest(late).map(|late| {
        Notice::warning(
            "load-late",
            format!(
                "Loads began late in their phases: {late}. {} wake-ups from before that are counted apart (between phases) and \
                 are in no figure of a phase. Make the phases longer.",
                N.count(between as u64)
            ),
        )
    });
    let skipped = latest(skipped).map(|skipped| {
        Notice::warning(
            "load-skipped",
            format!(
                "Loads were skipped, since more than half of their phase had passed before they could begin: {skipped}. These \
                 phases are absent. Make the phases longer."
            ),
        )
    });
    let left = (!tools.is_empty()).then(|| {
        Notice::warning(
            "load-left-running",
            format!(
                "The kernel did not let tools of loads be killed (a device or a frozen control group holds them): {}. Figures \
                 of those phases hold what it did there.",
                tools.join("; ")
            ),
        )
    });
    late.into_iter().chain(skipped).chain(left).collect()
}

/// Names the latest of several phases, each with its cell.
fn latest(mut phases: Vec<(u32, &Load, &LoadPhase)>) -> Option<String> {
    phases.sort_by_key(|(.., phase)| Reverse(phase.late_ns()));
    let ((cell, load, phase), rest) = phases.split_first()?;
    let mut text = format!(
        "phase {} ({}) of cell {cell} by {}, because {}",
        phase.number,
        phase.load,
        N.ns(phase.late_ns() as f64, None),
        because(load, phase)
    );
    if !rest.is_empty() {
        let cells: Vec<u32> = rest.iter().map(|(cell, ..)| *cell).collect();
        text.push_str(&format!(
            ", and {} more in {}",
            rest.len(),
            name_cells(&cells)
        ));
    }
    Some(text)
}

/// Names the phases into which a tool ran on.
fn left_running(cell: u32, left: &LeftTool) -> String {
    let span = match left.until.saturating_sub(left.phase) {
        0 => "into no other phase".to_owned(),
        1 => format!("into phase {}", left.until),
        _ => format!("into phases {} to {}", left.phase + 1, left.until),
    };
    let end = match left.ended {
        true => "ended before the cell did",
        false => {
            "was still there after the cell: it ends as soon as its kernel lets it, and `tare clean` removes what is left"
        }
    };
    format!(
        "{} (process {}) of phase {} in cell {cell} ran on {span} and {end}",
        left.tool, left.pid, left.phase
    )
}

/// Says why a phase of a cell has no wake-ups.
pub(super) fn absent(plan: &CellPlan, load: Option<&Load>, number: usize) -> String {
    let phase = load.and_then(|load| of(load, number as u32));
    match load.zip(phase).zip(plan.phase_ns()) {
        Some(((load, phase), length)) if phase.is_skipped(length) => {
            format!("its load was skipped, because {}", because(load, phase))
        }
        _ => "no thread was woken in it".to_owned(),
    }
}

/// Names the load that still had to end when a phase was due.
pub(super) fn ending(load: &Load, number: u32) -> String {
    match of(load, number).and_then(|phase| before(load, phase)) {
        Some(before) => format!("end of {}", before.load),
        None => "nothing yet".to_owned(),
    }
}

fn of(load: &Load, number: u32) -> Option<&LoadPhase> {
    load.phases.iter().find(|phase| phase.number == number)
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
        None => "the driver of the load was started or woken that late".to_owned(),
    }
}

//! What is said of a plan before it runs.

use std::collections::BTreeSet;
use std::time::Duration;

use tare_experiments::find;
use tare_lab::units::human;
use tare_loads::{Cpus, Load};
use tare_results::RunFolder;
use tare_results::model::{CellPlan, Plan};
use tare_targets::spec;

use super::host::Host;
use crate::terminal::Terminal;

/// Describes a plan: one line a cell, and the duration.
pub fn describe(plan: &Plan, host: &Host) -> String {
    let mut lines = vec![format!("on {}", plan.cpu_reason)];
    for setting in &plan.settings {
        lines.push(format!("set {} to {}", setting.path, setting.value));
    }
    lines.extend(
        plan.cells
            .iter()
            .map(|cell| format!("{:>4}  block {:<3} {}", cell.id, cell.block, cell.label())),
    );
    let words = |cell: &CellPlan| format!("{}: {}", cell.name, cell.work.words);
    let words: BTreeSet<String> = plan.cells.iter().map(words).collect();
    lines.extend(words);
    lines.push(format!(
        "{}, {} in all; seed {}",
        counted(plan.cells.len(), "cell", "cells"),
        duration(plan.cells.iter(), host),
        plan.seed
    ));
    lines.join("\n")
}

/// Describes what is missing from a run, and what would be added to it.
pub fn describe_missing(folder: &RunFolder, more: Vec<CellPlan>, host: &Host) -> String {
    let missing = folder.missing().into_iter().cloned();
    let added = match more.len() {
        0 => String::new(),
        n => format!(
            "\n{} would be added to {}",
            counted(n, "cell", "cells"),
            folder.path().display()
        ),
    };
    let plan = Plan {
        cells: missing.chain(more).collect(),
        ..folder.plan().clone()
    };
    describe(&plan, host) + &added
}

/// Says how long cells are estimated to take. What else runs on their CPU comes on top.
fn duration<'a>(cells: impl Iterator<Item = &'a CellPlan>, host: &Host) -> String {
    let seconds = cells.map(|cell| cell.estimate_seconds).sum();
    let human = human(Duration::from_secs_f64(seconds));
    match host.is_busy {
        true => format!("at least {human} on a busy CPU"),
        false => format!("about {human}"),
    }
}

/// Says what is going to happen, before the first cell.
pub fn introduce(folder: &RunFolder, host: &Host, terminal: &Terminal) {
    let missing = folder.missing();
    let study = folder.plan().study.as_ref();
    terminal.note(&format!(
        "{}{}, {}, into {}",
        study.map_or_else(String::new, |study| format!("{}: ", study.name)),
        counted(missing.len(), "cell", "cells"),
        duration(missing.iter().copied(), host),
        folder.path().display()
    ));
    terminal.note(&format!("on {}", host.cpu_reason));
    for text in resources(folder.plan()) {
        terminal.note(&text);
    }
    for text in announcements(folder.plan()) {
        terminal.note(&text);
    }
    if let Some(text) = shared_cpu(folder.plan()) {
        terminal.warn(&text);
    }
    for warning in &host.cpu_warnings {
        terminal.warn(warning);
    }
}

/// Writes a number with its noun: `1 cell`, `5 cells`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Says that a workload shares its CPU with a load, where it does. A thread of real-time priority comes before the
/// load's tasks: that they run beside it is what is measured.
fn shared_cpu(plan: &Plan) -> Option<String> {
    let shares = |load: Load| {
        !load.is_idle()
            && match load.cpus() {
                Cpus::All => true,
                Cpus::Others => false,
                Cpus::These(cpus) => cpus.contains(plan.cpu),
            }
    };
    plan.cells.iter().find(|cell| {
        let mut loads = loads(cell).iter().filter_map(|load| Load::parse(load).ok());
        cell.work.rights.real_time.is_none() && loads.any(shares)
    })?;
    Some(format!(
        "the load runs on the measured CPU {}, too, and the workload is an ordinary (SCHED_OTHER) \
         task: its delays are mostly the turns that the load takes; --load-cpus others keeps the \
         load off that CPU",
        plan.cpu
    ))
}

/// Returns the loads of a cell, of which several run one after the other.
pub fn loads(cell: &CellPlan) -> &[String] {
    match &cell.phases[..] {
        [] => std::slice::from_ref(&cell.load),
        phases => phases,
    }
}

/// Says what instances of each target get, where that is less than a process gets.
fn resources(plan: &Plan) -> BTreeSet<String> {
    let cells = plan.cells.iter();
    cells
        .filter_map(|cell| {
            let target = spec::of(&cell.target).ok()?;
            let gets = target.resources(&cell.work)?;
            Some(format!("{} gets for {}: {gets}", cell.target, cell.name))
        })
        .collect()
}

/// Says what is to be known of the cells before they run.
fn announcements(plan: &Plan) -> BTreeSet<String> {
    let cells = plan.cells.iter();
    cells
        .filter_map(|cell| find(&cell.experiment)?.announces(cell))
        .collect()
}

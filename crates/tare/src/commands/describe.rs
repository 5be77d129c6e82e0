//! The description of a plan before it runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tare_experiments::{find, without_interval};
use tare_lab::estimate::in_all;
use tare_lab::units::counted;
use tare_results::RunFolder;
use tare_results::model::{CellPlan, Plan};
use tare_results::target::TargetSpec;
use tare_targets::spec;

use super::host::Host;
use crate::terminal::Terminal;

/// Describes a plan: a line for cells that are alike and follow each other, the figures for which it
/// has too few runs, and the duration.
pub fn describe(plan: &Plan, host: &Host) -> String {
    describe_cells(plan, too_few_runs(plan.cells.iter()), host)
}

fn describe_cells(plan: &Plan, remarks: BTreeSet<String>, host: &Host) -> String {
    let mut lines = Vec::new();
    if plan.cells.iter().any(CellPlan::has_its_cpus) {
        lines.push(format!("on {}", plan.cpu_reason));
    }
    for setting in &plan.settings {
        lines.push(format!("set {} to {}", setting.path, setting.value));
    }
    lines.extend(switches(plan));
    // Alike cells that follow each other share a line: a long run has hundreds.
    let alike = plan.cells.chunk_by(|one, next| one.label() == next.label());
    lines.extend(alike.filter_map(|cells| {
        let (first, last) = (cells.first()?, cells.last()?);
        let span = |first: u32, last: u32| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let ids = span(first.id, last.id);
        let blocks = span(first.block, last.block);
        Some(format!("{ids:>4}  block {blocks:<3} {}", first.label()))
    }));
    // What many instances do does not depend on how often they are started.
    let words = |cell: &CellPlan| match &cell.arrivals {
        None => format!("{}: {}", cell.name, cell.work.words),
        Some(_) => format!("each instance: {}", cell.work.words),
    };
    let words: BTreeSet<String> = plan.cells.iter().map(words).collect();
    lines.extend(words);
    lines.extend(remarks);
    lines.push(format!(
        "{}; seed {}",
        duration(plan.cells.iter(), host),
        plan.seed
    ));
    lines.join("\n")
}

/// Describes the switches that cells change: each file with its value, or how many there are.
fn switches(plan: &Plan) -> Vec<String> {
    let all = plan.cells.iter().flat_map(|cell| &cell.switches);
    let mut known = HashSet::new();
    let all = all.filter(|switch| known.insert(*switch));
    all.map(|switch| match switch.settings.as_slice() {
        [one] => format!("switch {}: set {} to {}", switch.name, one.path, one.value),
        all => {
            let first = all.first().map_or("", |one| &one.path);
            let files = counted(all.len(), "file", "files");
            format!("switch {}: set {files}, the first {first}", switch.name)
        }
    })
    .collect()
}

/// Describes what is missing from a run, and what would be added to it.
pub fn describe_missing(folder: &RunFolder, more: Vec<CellPlan>, host: &Host) -> String {
    // Earlier measurements count too.
    let remarks = too_few_runs(folder.plan().cells.iter().chain(&more));
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
    describe_cells(&plan, remarks, host) + &added
}

/// Says how many cells there are, and how long they are estimated to take.
fn duration<'a>(cells: impl ExactSizeIterator<Item = &'a CellPlan>, host: &Host) -> String {
    let number = cells.len() as u64;
    // Instances run on any CPU.
    let (seconds, has_measured_cpu) = cells.fold((0.0, false), |(seconds, any), cell| {
        let own = cell.has_its_cpus();
        (seconds + cell.estimate_seconds, any || own)
    });
    in_all(number, seconds, host.is_busy && has_measured_cpu)
}

/// Says which figures will have no interval, of which combinations if not of all.
fn too_few_runs<'a>(cells: impl Iterator<Item = &'a CellPlan>) -> BTreeSet<String> {
    let mut combinations: HashMap<_, (&CellPlan, u32)> = HashMap::new();
    for cell in cells.filter(|cell| !cell.is_traced()) {
        let own = combinations.entry(cell.combination());
        own.or_insert((cell, 0)).1 += 1;
    }
    let all = combinations.len();
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    let each = combinations.into_values();
    for text in each.filter_map(|(cell, runs)| without_interval(cell, runs)) {
        *told.entry(text).or_default() += 1;
    }
    let of = |(text, number): (String, usize)| match number == all {
        true => text,
        false => format!("{number} of {all} combinations: {text}"),
    };
    told.into_iter().map(of).collect()
}

/// Says what is going to happen, before the first cell.
pub fn introduce(folder: &RunFolder, host: &Host, terminal: &Terminal) {
    let missing = folder.missing();
    let study = folder.plan().study.as_ref();
    terminal.note(&format!(
        "{}{}, into {}",
        study.map_or_else(String::new, |study| format!("{}: ", study.name)),
        duration(missing.iter().copied(), host),
        folder.path().display()
    ));
    let has_its_cpus = missing.iter().any(|cell| cell.has_its_cpus());
    if has_its_cpus {
        terminal.note(&format!("on {}", host.cpu_reason));
    }
    for text in resources(folder.plan()) {
        terminal.note(&text);
    }
    for text in announcements(folder.plan()) {
        terminal.note(&text);
    }
    for text in too_few_runs(folder.plan().cells.iter()) {
        terminal.note(&text);
    }
    if let Some(text) = tare_figures::analysis::shared_cpu(folder.plan()) {
        terminal.warn(&text);
    }
    for warning in host.cpu_warnings.iter().filter(|_| has_its_cpus) {
        terminal.warn(warning);
    }
}

/// Says what instances of each target get, where that is less than a process gets.
fn resources(plan: &Plan) -> BTreeSet<String> {
    // Guests that serve have the memory of their service, or what is searched.
    let is_told = |cell: &&CellPlan| cell.server.is_none() || !cell.target.kernel().is_guest();
    let given = plan.cells.iter().filter(is_told).filter_map(|cell| {
        let target = spec::of(&cell.target).ok()?;
        let work = cell.server.as_ref().unwrap_or(&cell.work);
        Some((&cell.target, &*cell.name, target.resources(work)?))
    });
    let given: BTreeSet<(&TargetSpec, &str, String)> = given.collect();
    let told = given.iter().map(|(target, name, gets)| {
        let mut all = given.iter();
        match all.any(|(other, _, others)| other == target && others != gets) {
            true => format!("{target} gets for {name}: {gets}"),
            false => format!("{target} gets {gets}"),
        }
    });
    told.collect()
}

/// Says what is to be known of the cells before they run.
fn announcements(plan: &Plan) -> BTreeSet<String> {
    let cells = plan.cells.iter();
    cells
        .filter_map(|cell| find(&cell.experiment)?.announces(cell))
        .collect()
}

//! How it was measured, what that cannot see, what was not measured, and where it all comes from.

use std::collections::HashSet;

use maud::{Markup, html};
use tare_results::model::{CellPlan, OtherTask, Plan, Program, Record, STARTED};

use crate::report::Report;
use crate::view::Story;
use tare_figures::group::grouped;
use tare_figures::notices::{Severity, name_cells};
use tare_figures::places::Placement;
use tare_figures::rows::{Figure, Row};
use tare_figures::words;

use crate::html::parts::{N, Table, facts, with_code};

/// The share of the time from which on a process is listed.
const LISTED: f64 = 0.001;
/// How many are listed.
const MOST_LISTED: usize = 200;

/// Renders how this run was measured.
pub(super) fn method(report: &Report) -> Markup {
    html! {
        @for story in report.stories() { (story.method()) }
        p {
            "A quantile is given only if ten samples of each run lie beyond it. The unit of replication is the run: shares and rates \
             are those of all runs together, as are means that divide a sum by a number (of delays); other means are the \
             mean of the runs' means, and the share of the slow of two modes is the mean of the runs' shares; \
             quantiles and deviations are the median over the runs. A value that is called max, longest, min, least or shortest is \
             the extreme of all runs. Intervals are at 95 % confidence over runs. A dash means that there is no figure, not that it is 0."
        }
    }
}

/// Renders what the method cannot see.
fn limits(report: &Report) -> Markup {
    html! {
        ul {
            @for limit in report.stories().flat_map(Story::limits) { li { (limit) } }
            @if report.run().rows.0.iter().any(is_longest) {
              li {
                "The longest of a run is not the longest possible. Rare events need long runs: what comes once a \
                 minute is mostly missed in ten seconds."
              }
            }
        }
    }
}

/// Returns whether a row is of the longest time of a run.
fn is_longest(row: &Row) -> bool {
    row.figure == Figure::Max && row.measure.unit == "ns"
}

/// Renders what was not measured and why.
pub(super) fn not_measured(report: &Report) -> Markup {
    let summary = report.summary();
    let mut table = Table::new(["", "state", "why, and what to do"]);
    let cells = summary.not_measured.iter();
    let same = grouped(cells.map(|cell| ((&cell.label, cell.state.name(), &cell.reason), cell.id)));
    for ((label, state, reason), cells) in same {
        let name = format!("{label} ({})", name_cells(&cells));
        table.row([name, state.to_owned(), reason.clone()]);
    }
    html! {
        @if table.rows.is_empty() {
            @match summary.planned {
                1 => p { "The one cell of the plan was measured." },
                all => p { "All " (N.count(all)) " cells of the plan were measured." },
            }
        } @else {
            p {
                (N.count(summary.done)) " of " (N.count(summary.planned)) " cells of the plan were measured. The others:"
            }
            div.findings { (table.render()) }
        }
        @let notes = || summary.alarms.iter().filter(|a| a.severity == Severity::Note);
        @if !summary.notices.is_empty() || notes().next().is_some() {
            h3 { "Notices while measuring" }
            ul {
                @for note in notes() { li { (with_code(&note.text)) } }
                @for notice in crate::words::in_short(&summary.notices) { li { (with_code(&notice)) } }
            }
        }
        (other_work(report))
        h3 { "What this method cannot see" }
        (limits(report))
    }
}

/// Lists which processes had the measured CPUs, cell by cell.
fn other_work(report: &Report) -> Markup {
    let mut table = Table::new(["cell", "where", "CPU", "process", "CPU time", "of the time"]);
    for cell in &report.run().cells {
        let places = [
            ("this machine", &cell.other_work),
            ("guest", &cell.guest_work),
        ];
        for (place, other) in places
            .into_iter()
            .filter_map(|(place, other)| Some((place, other.as_ref()?)))
            .filter(|(_, other)| cell.is_told_by(other))
        {
            let share = |task: &OtherTask| task.ns as f64 / other.watched_ns.max(1) as f64;
            for task in other.tasks.iter().filter(|task| share(task) >= LISTED) {
                table.row([
                    format!("{} · {}", cell.plan.id, cell.plan.label()),
                    place.to_owned(),
                    task.cpu.to_string(),
                    format!("{} ({})", task.name, task.pid),
                    N.ns(task.ns as f64, None),
                    N.percent(share(task)),
                ]);
            }
        }
    }
    let more = table.rows.len().saturating_sub(MOST_LISTED);
    table.rows.truncate(MOST_LISTED);
    html! {
        @if !table.rows.is_empty() {
            details {
                summary { "Other work on the measured CPUs" }
                (table.render())
                @if more > 0 { p { "And " (N.count(more as u64)) " more." } }
            }
        }
    }
}

/// Names the measured CPU, and why it was chosen.
fn cpu(plan: &Plan) -> String {
    match plan.measured_cpu() {
        Some(cpu) => format!("{cpu}: {}", plan.cpu_reason),
        None => "any: instances are not pinned".to_owned(),
    }
}

/// Renders where an imported run comes from: its file has neither plan, nor order, nor settings.
fn import(report: &Report) -> Markup {
    let plan = &report.run().plan;
    let records = report.run().cells.iter();
    let records = records.filter_map(|cell| cell.outcome.record());
    let mut programs = records.flat_map(|record| &record.programs);
    let is_started = |program: &Program| program.facts.iter().any(|fact| fact.name == STARTED);
    let measured = match programs.any(is_started) {
        true => span(report),
        false => format!("unknown; imported {}", plan.created),
    };
    let derived = &report.summary().tare_version;
    let versions = format!(
        "{} imported it, {derived} made this report",
        plan.tare_version
    );
    facts(&[
        ("Command", plan.command.join(" ")),
        ("Measured", measured),
        ("tare", versions),
        ("Source", plan.cpu_reason.clone()),
    ])
}

/// Renders where the run comes from.
pub(super) fn provenance(report: &Report) -> Markup {
    let plan = &report.run().plan;
    if report.run().is_imported() {
        return import(report);
    }
    let mut rows = vec![
        ("Command", plan.command.join(" ")),
        ("Planned", plan.created.to_string()),
        ("Measured", span(report)),
        ("tare", versions(plan, &report.summary().tare_version)),
        ("CPU", cpu(plan)),
        ("Order", order(plan)),
    ];
    let settings = plan.settings.iter();
    let settings = settings.map(|setting| format!("{} = {}", setting.path, setting.value));
    let settings = Vec::from_iter(settings.chain(switched(plan)));
    let settings = match settings.is_empty() {
        true => "none".to_owned(),
        false => settings.join(", "),
    };
    rows.push(("Kernel settings changed for the run", settings));
    for agent in agents(report) {
        rows.push(("Agent", agent));
    }
    facts(&rows)
}

/// Names the switches whose settings are changed for some cells.
fn switched(plan: &Plan) -> Option<String> {
    let cells = plan.cells.iter().filter(|cell| !cell.switches.is_empty());
    let ids: Vec<u32> = cells.clone().map(|cell| cell.id).collect();
    let all = cells.flat_map(|cell| &cell.switches);
    let names = grouped(all.map(|switch| (switch.name.clone(), ())));
    let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
    let of = || {
        format!(
            "the switches {} for {}",
            words::list(&names),
            name_cells(&ids)
        )
    };
    (!ids.is_empty()).then(of)
}

fn versions(plan: &Plan, derived: &str) -> String {
    if plan.tare_version == derived {
        return format!("{derived} measured it and made this report");
    }
    format!(
        "{} measured it, {derived} made this report",
        plan.tare_version
    )
}

fn order(plan: &Plan) -> String {
    let blocks = plan
        .cells
        .iter()
        .map(|cell| cell.block)
        .max()
        .unwrap_or_default();
    let cells = words::counted(N, plan.cells.len() as u64, "cell", "cells");
    let runs = words::counted(N, u64::from(blocks), "run", "runs");
    let ladders = match plan.cells.iter().any(|cell| cell.rung.is_some()) {
        true => ", but each ladder from its first step to its last",
        false => "",
    };
    let combinations: HashSet<_> = plan.cells.iter().map(CellPlan::combination).collect();
    // Some may have fewer runs: what is traced has one.
    let holds = match combinations.len() * blocks as usize == plan.cells.len() {
        true => "every combination once",
        false => "a combination at most once",
    };
    format!(
        "{cells} in {runs}; each run holds {holds}, in random order{ladders} (seed {})",
        plan.seed
    )
}

fn span(report: &Report) -> String {
    let starts = || report.run().cells.iter().map(|cell| cell.started_at);
    match (starts().min(), starts().max()) {
        (Some(first), Some(last)) if first != last => {
            format!("first cell {first}, last cell {last}")
        }
        (Some(first), _) => first.to_string(),
        _ => "nothing".to_owned(),
    }
}

/// Describes every agent and preparation once, with the cells that had it.
fn agents(report: &Report) -> Vec<String> {
    let cells = report.run().cells.iter();
    let described = cells.filter_map(|cell| {
        let program = cell.outcome.record().and_then(Record::program)?;
        let (agent, preparation) = (&program.agent, &program.preparation);
        if !program.is_reported() {
            let accelerator = agent.accelerator.as_ref()?;
            return Some((format!("none; executed by {accelerator}"), cell.plan.id));
        }
        let mut text = format!(
            "{} on {}{}, SHA-256 {}; buffers {}locked; /dev/cpu_dma_latency {}",
            agent.version,
            agent.environment,
            if agent.emulated { " (emulated)" } else { "" },
            agent.sha256,
            if preparation.locked { "" } else { "not " },
            if preparation.latency_held {
                "held at 0"
            } else {
                "not held"
            },
        );
        let placement = Placement::of(&report.run().plan, &cell.plan, program);
        text.push_str(&format!("; {}", placement.words()));
        if let Some(accelerator) = &agent.accelerator {
            text.push_str(&format!("; executed by {accelerator}"));
        }
        Some((text, cell.plan.id))
    });
    let described = grouped(described).into_iter();
    described
        .map(|(text, cells)| format!("{text} ({})", name_cells(&cells)))
        .collect()
}

//! The worst wake-ups: when each was, under which load, how late, what it missed, and who is to
//! blame.
//!
//! Wake-ups at or above the threshold are listed with their activation, and the first ones are kept
//! as they were. Where neither has a bin's maximum, the envelope still shows it, to the width of a
//! bin.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{SetHead, SetSamples};
use tare_stats::missed_by;
use tare_trace::blame::{Blame, blame};

use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::rows::CellData;
use tare_figures::words::NONE;
use tare_pages::html::parts::N;
use tare_pages::{Table, Titled};

use super::late::ending;
use super::words::{Phase, name_under};

/// How many of the worst wake-ups are named.
const WORST: usize = 10;

/// The headings of their table. The rest is the thread's own way to reading the clock, and what was
/// not recorded.
const HEAD: [&str; 8] = [
    "after",
    "late by",
    "missed",
    "L1 late\ninterrupt",
    "L2 not\npreempt.",
    "L3\nsched.",
    "rest",
    "culprit",
];
/// The number of columns without those of the parts.
const UNTRACED: usize = 3;

/// One of the worst wake-ups.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Worst {
    /// The target.
    pub target: String,
    /// Whether the kernel's events were recorded at that time, which has a cost.
    pub traced: bool,
    /// The cell in which it was.
    pub cell: u32,
    /// The block (run).
    pub block: u32,
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the activation; null if only its bin of time is known.
    pub activation: Option<u64>,
    /// Planned time after the start of the measurement.
    pub at_ns: u64,
    /// Greatest time by which it may have been planned later. 0 if the activation is known.
    pub within_ns: u64,
    /// Number of the phase, from 0.
    pub phase: u32,
    /// The load; if the wake-up is counted apart since the load began late, the one that still had
    /// to end.
    pub load: String,
    /// How late it was.
    pub latency_ns: u64,
    /// Activations that it missed.
    pub missed: u64,
    /// Its parts and the culprit; null if the kernel was not traced around it.
    pub blame: Option<Blame>,
}

/// Finds the worst wake-ups of a cell, worst first; where a limit was set, those above it.
pub(super) fn find(data: &CellData<'_>) -> Vec<Worst> {
    let plan = data.plan();
    let mut threads: BTreeMap<u32, BTreeMap<u32, (&SetHead, &SetSamples)>> = BTreeMap::new();
    for (set, of) in (0..).zip(data.record.sets.iter().zip(&data.samples.sets)) {
        let thread = of.0.labels.number("thread").unwrap_or(0) as u32;
        threads.entry(thread).or_default().insert(set, of);
    }
    let mut found = Vec::new();
    for (thread, sets) in threads {
        let traces = data.record.traces.iter();
        let own = traces.filter(|trace| sets.contains_key(&trace.set));
        let traces: Vec<_> = own.collect();
        let interval = sets.values().next().map_or(0, |(head, _)| head.period);
        let worst = |set, activation: Option<u64>, at_ns: u64, within_ns: u64, latency_ns: u64| {
            let (phase, load) = phase_of(data, set, at_ns);
            let trace = traces.iter().find(|trace| Some(trace.index) == activation);
            Worst {
                target: plan.target.text.clone(),
                traced: plan.is_traced(),
                cell: plan.id,
                block: plan.block,
                thread,
                activation,
                at_ns,
                within_ns,
                phase,
                load,
                latency_ns,
                missed: missed_by(latency_ns, interval),
                blame: trace.map(|trace| blame(trace, thread)),
            }
        };
        let events = sets.values().flat_map(|(head, set)| {
            let events = set.events.iter().chain(&set.raw);
            events.map(|event| (event.value, event.index, *head))
        });
        let traced = traces.iter().map(|trace| {
            let (head, _) = sets[&trace.set];
            (trace.value, trace.index, head)
        });
        let mut known: Vec<(u64, u64, &SetHead)> = events.chain(traced).collect();
        known
            .sort_unstable_by_key(|&(latency_ns, activation, _)| (Reverse(latency_ns), activation));
        known.dedup_by_key(|&mut (latency_ns, activation, _)| (latency_ns, activation));
        known.truncate(WORST);
        let exact = known.into_iter().map(|(latency_ns, activation, set)| {
            let at_ns = activation.saturating_mul(interval);
            worst(set, Some(activation), at_ns, 0, latency_ns)
        });
        let exact: Vec<Worst> = exact.collect();
        for (head, set) in sets.values() {
            for bin in &set.envelope {
                let from = u64::from(bin.bin).saturating_mul(head.bin);
                let bounds = from..from.saturating_add(head.bin);
                let is_maximum = |w: &Worst| w.latency_ns == bin.max && bounds.contains(&w.at_ns);
                if !exact.iter().any(is_maximum) {
                    found.push(worst(head, None, from, head.bin, bin.max));
                }
            }
        }
        found.extend(exact);
    }
    found.retain(|worst| plan.work.above.is_none_or(|above| worst.latency_ns > above));
    keep(&mut found);
    found
}

/// Returns the phase in which a wake-up was planned, and the load in whose figures it is. Its set
/// decides, not the moment at which the load began: what is counted apart since a load began late
/// goes by whole slots of the phase.
fn phase_of(data: &CellData<'_>, set: &SetHead, at_ns: u64) -> (u32, String) {
    let plan = data.plan();
    let phase = set.labels.number("phase").unwrap_or_else(|| {
        let last = plan.phases.len().max(1) as u64 - 1;
        let length = plan.phase_ns().unwrap_or(u64::MAX).max(1);
        last.min(at_ns / length)
    });
    let phase = u32::try_from(phase).unwrap_or(u32::MAX);
    // Each load has a set. So a trace is among what no room was left to count only if it is counted
    // apart.
    let is_apart =
        set.labels.get("between").is_some() || set.labels.get("phase") == Some("unknown");
    if let Some(load) = data.cell.load.as_ref().filter(|_| is_apart) {
        return (phase, ending(load, phase));
    }
    let load = Phase::all(plan).nth(phase as usize);
    (
        phase,
        load.map_or_else(String::new, |phase| phase.load.to_string()),
    )
}

/// Keeps the worst of several, worst first; each wake-up once.
pub(super) fn keep(found: &mut Vec<Worst>) {
    found.sort_by_key(|w| {
        (
            Reverse(w.latency_ns),
            w.cell,
            w.thread,
            w.at_ns,
            w.within_ns,
        )
    });
    found.dedup_by_key(|w| (w.latency_ns, w.cell, w.thread, w.at_ns));
    found.truncate(WORST);
}

/// The worst wake-ups of a case.
pub(super) type OfCase<'a> = (&'a Case<'a>, &'a [Worst]);

/// Makes the table, each target and load below a heading: without the columns of the parts if
/// nothing is known of them.
fn table(numbers: Numbers, all: &[OfCase<'_>], shown: impl Fn(bool) -> usize) -> Table {
    let mut worst = all.iter().flat_map(|(_, worst)| *worst);
    let is_blamed = worst.any(|worst| worst.blame.is_some());
    let columns = if is_blamed { HEAD.len() } else { UNTRACED };
    let mut table = Table::new(&HEAD[..columns]);
    table.ends_in_prose = is_blamed;
    for (case, worst) in all.iter().filter(|(_, worst)| !worst.is_empty()) {
        table.heading(name_under(case));
        let mut most = shown(is_blamed);
        // Without a limit to wait for, the ten worst are asked for only as far as they are recorded.
        if case.plan.work.above.is_none()
            && let Some(last) = worst.iter().rposition(|worst| worst.blame.is_some())
        {
            most = last + 1;
        }
        for worst in worst.iter().take(most) {
            let mut cells = row(numbers, case, worst);
            cells.truncate(columns);
            table.rows.push(cells);
        }
    }
    table
}

/// Makes a row of the table; its last five cells are dashes if it was not traced.
fn row(numbers: Numbers, case: &Case<'_>, worst: &Worst) -> Vec<String> {
    let time = |ns: u64| numbers.ns(ns as f64, Some(1.0));
    let run = match case.cells.len() {
        0 | 1 => String::new(),
        _ => format!("run {}, ", worst.block),
    };
    let (about, decimals) = if worst.within_ns > 0 {
        ("about ", 2)
    } else {
        ("", 4)
    };
    let seconds = numbers.fixed(worst.at_ns as f64 / 1e9, decimals);
    let thread = match case.plan.work.threads {
        0 | 1 => String::new(),
        _ => format!(", T{}", worst.thread),
    };
    // Of one load it is in the heading.
    let load = match case.plan.phases.len() {
        0 | 1 => String::new(),
        _ => format!(", {}", worst.load),
    };
    let seconds = numbers.with_unit(&seconds, "s");
    let mut row = vec![
        format!("{run}{about}{seconds}{thread}{load}"),
        time(worst.latency_ns),
        numbers.count(worst.missed),
    ];
    match &worst.blame {
        Some(blame) => {
            let parts = &blame.parts;
            row.extend([
                time(parts.late_interrupt_ns),
                time(parts.non_preemptible_ns),
                time(parts.scheduling_ns),
                time(parts.return_ns + parts.unseen_ns),
                blame.culprit_text.clone(),
            ]);
        }
        None => row.resize(HEAD.len(), NONE.to_owned()),
    }
    row
}

/// Returns the table for a terminal: of each target and load if their reasons are known, else only
/// a few.
pub(super) fn few(title: &str, all: &[OfCase<'_>]) -> Titled {
    const FEW: usize = 3;
    let shown = |is_blamed| if is_blamed { WORST } else { FEW };
    let table = table(Numbers::PLAIN, all, shown);
    Titled {
        title: title.to_owned(),
        read: String::new(),
        // The rest follows from the other columns.
        table: table.sparing(&[HEAD.len() - 2, 2]),
    }
}

/// Renders the worst wake-ups of each target and load.
pub(super) fn page(all: &[OfCase<'_>]) -> Markup {
    let table = table(N, all, |_| WORST);
    let is_blamed = table.ends_in_prose;
    let shown = html! {
        p.read {
            "The ten worst of each target" @if !all.iter().any(|(case, _)| case.plan.phases.len() > 1) { " under each load" }
            @if is_blamed { ", or as many as " code { "--trace" } " records if fewer" }
            ": when after the start, how late, how many activations that missed."
            @if is_blamed {
                " L1 is the time until the timer's interrupt, L2 interrupts, softirqs and sections that cannot be preempted, \
                 L3 threads of higher or the same rank; the rest is the thread's own way to reading the clock, and what was \
                 not recorded, which may have been spent in this kernel or outside it. The culprit has the greatest single \
                 share; a part may consist of several shares."
            }
        }
        (table.render())
    };
    html! {
        @if is_blamed {
            h3 { "The worst wake-ups, and who is to blame" }
            (shown)
        } @else if !table.rows.is_empty() {
            details { summary { "The worst wake-ups, one by one" } (shown) }
        }
    }
}

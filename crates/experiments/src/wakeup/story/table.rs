//! The tables of wake-ups, for terminal and page: per phase, and of the worst.

use super::combine::{WakeupCombination, WakeupPhase};
use super::latency::{LatencyQuantileSpread, LatencySpread};
use super::words::{median, missed, missed_share, place, quantile, schedule, time, us};
use super::worst::WorstFigure;
use crate::format::Numbers;

/// Is a column of the table per phase.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// Its heading; a line feed starts a new line.
    pub name: &'static str,
    /// Width of a terminal from which it is shown, in columns.
    pub from: usize,
    cell: fn(Numbers, &WakeupPhase) -> String,
}

/// Is a line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Names what the rows below it have in common.
    Heading(String),
    /// Is a row: its name and its cells.
    Row(String, Vec<String>),
}

/// Is the number of threads up to which each has rows of its own.
const THREADS: usize = 8;

const fn column(
    name: &'static str,
    from: usize,
    cell: fn(Numbers, &WakeupPhase) -> String,
) -> Column {
    Column { name, from, cell }
}

fn service(
    numbers: Numbers,
    phase: &WakeupPhase,
    of: fn(LatencySpread) -> LatencyQuantileSpread,
) -> String {
    quantile(numbers, phase.service.map(of))
}

fn response(
    numbers: Numbers,
    phase: &WakeupPhase,
    of: fn(LatencySpread) -> LatencyQuantileSpread,
) -> String {
    quantile(numbers, phase.response.map(of))
}

/// Is the width from which the tables have all columns.
pub(crate) const WIDE: usize = 130;

/// Lists the columns: the study's, then more of the service latencies, then the response latencies.
pub(crate) const COLUMNS: [Column; 14] = [
    column("max", 0, |n, phase| {
        phase
            .service
            .map_or_else(|| super::words::NONE.to_owned(), |s| us(n, s.longest_ns()))
    }),
    column("mean", 0, |n, phase| {
        median(n, phase.service.map(|s| s.mean))
    }),
    column("sd", 0, |n, phase| median(n, phase.service.map(|s| s.sd))),
    column("min", WIDE, |n, phase| {
        phase
            .service
            .map_or_else(|| super::words::NONE.to_owned(), |s| us(n, s.min_ns as f64))
    }),
    column("p50", 0, |n, phase| {
        median(n, phase.service.map(|s| s.median))
    }),
    column("p99", 0, |n, phase| service(n, phase, |s| s.p99)),
    column("p99.9", 0, |n, phase| service(n, phase, |s| s.p99_9)),
    column("p99.99", WIDE, |n, phase| service(n, phase, |s| s.p99_99)),
    column("resp.\nmean", WIDE, |n, phase| {
        median(n, phase.response.map(|s| s.mean))
    }),
    column("resp.\np99", 0, |n, phase| response(n, phase, |s| s.p99)),
    column("resp.\np99.9", 0, |n, phase| {
        response(n, phase, |s| s.p99_9)
    }),
    column("resp.\np99.99", WIDE, |n, phase| {
        response(n, phase, |s| s.p99_99)
    }),
    column("missed", 90, missed),
    column("missed\nshare", 0, missed_share),
];

/// Makes the table per phase of some combinations: one heading for each place, one row for each phase or load.
pub(crate) fn phases(
    numbers: Numbers,
    combinations: &[&WakeupCombination],
    columns: &[Column],
) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut before: Option<String> = None;
    let cells = |phase: &WakeupPhase| columns.iter().map(|c| (c.cell)(numbers, phase)).collect();
    for combination in by_place(combinations) {
        let mut heading = format!(
            "{} · {}",
            place(combination),
            schedule(numbers, combination)
        );
        if combination.traced {
            heading.push_str(" · traced");
        }
        if combination.runs < combination.planned_runs {
            let (done, planned) = (combination.runs, combination.planned_runs);
            heading.push_str(&format!(" · {done} of {planned} runs"));
        }
        if before.as_ref() != Some(&heading) {
            lines.push(Line::Heading(heading.clone()));
            before = Some(heading);
        }
        for (number, phase) in combination.phases.iter().enumerate() {
            let mut name = phase_name(combination, phase);
            if phase.absent.is_some() {
                name.push_str(", absent");
            }
            lines.push(Line::Row(name, cells(phase)));
            for thread in combination.threads.iter().take(THREADS) {
                let Some(own) = thread.phases.get(number) else {
                    continue;
                };
                let cpu = thread
                    .cpu
                    .map_or_else(String::new, |cpu| format!(" CPU {cpu}"));
                lines.push(Line::Row(format!("· T{}{cpu}", thread.number), cells(own)));
            }
        }
        if let Some(average) = combination
            .average_max
            .filter(|_| combination.phases.len() > 1)
        {
            // The first column is the maximum's.
            let mut row = vec![us(numbers, average.figure)];
            row.resize(columns.len(), String::new());
            // The average of the column above would be that of the longest of all runs.
            let name = match combination.runs {
                0 | 1 => "average max",
                _ => "average max/run",
            };
            lines.push(Line::Row(name.to_owned(), row));
        }
    }
    lines
}

/// Puts combinations of one place together, places in the order in which they come.
fn by_place<'a>(combinations: &[&'a WakeupCombination]) -> Vec<&'a WakeupCombination> {
    let mut places: Vec<(&str, Vec<&WakeupCombination>)> = Vec::new();
    for combination in combinations {
        match places
            .iter_mut()
            .find(|(target, _)| *target == combination.target)
        {
            Some((_, known)) => known.push(combination),
            None => places.push((&combination.target, vec![combination])),
        }
    }
    places.into_iter().flat_map(|(_, known)| known).collect()
}

/// Names a phase; several with one load are told apart by how often it came before.
pub(crate) fn phase_name(combination: &WakeupCombination, phase: &WakeupPhase) -> String {
    let same = combination
        .phases
        .iter()
        .filter(|other| other.load == phase.load);
    let before = same
        .clone()
        .filter(|other| other.number < phase.number)
        .count();
    match (same.count(), before) {
        (1, _) | (_, 0) => phase.load.clone(),
        (_, before) => format!("{} ({})", phase.load, before + 1),
    }
}

/// Says which quantiles were refused, and what they need; `None` if none was.
pub(crate) fn refused(numbers: Numbers, combinations: &[&WakeupCombination]) -> Option<String> {
    type Of = fn(&LatencySpread) -> LatencyQuantileSpread;
    const QUANTILES: [(&str, Of); 3] = [
        ("p99", |s| s.p99),
        ("p99.9", |s| s.p99_9),
        ("p99.99", |s| s.p99_99),
    ];
    let phases = || combinations.iter().flat_map(|c| &c.phases);
    let refused = QUANTILES.iter().filter_map(|(name, of)| {
        let needed = phases().filter_map(|phase| of(&phase.service?).samples_needed);
        Some(format!("{name} needs {}", numbers.count(needed.max()?)))
    });
    let refused: Vec<String> = refused.collect();
    (!refused.is_empty()).then(|| {
        format!(
            "A quantile is given only if ten latencies lie beyond it: {} in each phase and run.",
            refused.join(", ")
        )
    })
}

/// Are the headings of the table of the worst wake-ups. The rest is the thread's own way to reading the clock, and what
/// was not recorded.
pub(crate) const WORST: [&str; 9] = [
    "after",
    "late by",
    "missed",
    "under",
    "L1 late\ninterrupt",
    "L2 not\npreempt.",
    "L3\nsched.",
    "rest",
    "culprit",
];

/// Makes a row of the table of the worst wake-ups; its last five cells are empty if it was not traced.
pub(crate) fn worst(
    numbers: Numbers,
    combination: &WakeupCombination,
    worst: &WorstFigure,
) -> Vec<String> {
    let run = if combination.runs > 1 {
        format!("run {}, ", worst.block)
    } else {
        String::new()
    };
    let about = if worst.within_ns > 0 { "about " } else { "" };
    let seconds = numbers.fixed(
        worst.at_ns as f64 / 1e9,
        if worst.within_ns > 0 { 2 } else { 4 },
    );
    let thread = if combination.intervals_ns.len() > 1 {
        format!(", T{}", worst.thread)
    } else {
        String::new()
    };
    let mut row = vec![
        format!("{run}{about}{}{thread}", numbers.with_unit(&seconds, "s")),
        time(numbers, worst.latency_ns as f64),
        numbers.count(worst.missed),
        worst.load.clone(),
    ];
    match &worst.blame {
        Some(blame) => {
            let parts = &blame.parts;
            let ns = [
                parts.late_interrupt_ns,
                parts.non_preemptible_ns,
                parts.scheduling_ns,
                parts.return_ns + parts.unseen_ns,
            ];
            row.extend(ns.map(|ns| time(numbers, ns as f64)));
            row.push(blame.culprit_text.clone());
        }
        None => row.extend(std::iter::repeat_n(super::words::NONE.to_owned(), 5)),
    }
    row
}

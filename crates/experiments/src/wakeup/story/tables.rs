//! The tables of wake-ups: one heading for each target, one line for each load or phase, threads
//! below.

use std::collections::BTreeSet;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::derive::Refused;
use tare_figures::rows::{Figure, Row, behind};
use tare_pages::tables::{Column, Line, Tabled};

use super::NAME;
use super::words::{
    N, Phase, SCHEDULED, cases, fact_of, name as name_of, name_under, schedule, until_stopped,
};

/// The titles, by which lines know their table.
const PLAIN: &str = "Wake-up latency, µs";
const TRACED: &str = "With the kernel's events recorded, which costs time, µs";
const AVERAGES: &str = "Maximum, averaged over the phases of a run, µs";
const INTERVALS: &str = "Wake-up latency, intervals over runs at 95 %, µs";

/// The number of threads up to which each has separate lines.
const THREADS: u64 = 8;

const fn service(head: &'static str, figure: Figure) -> Column {
    Column::new(head, "latency", figure).in_microseconds()
}

const fn response(head: &'static str, figure: Figure) -> Column {
    Column::new(head, "response", figure).in_microseconds()
}

/// The columns: landolfi-2018's, then more of the service latencies, then the response latencies.
const COLUMNS: &[Column] = &[
    service("max", Figure::Max),
    service("mean", Figure::Mean),
    service("sd", Figure::Sd).spared(2),
    service("min", Figure::Min).spared(4),
    service("p50", Figure::MEDIAN).spared(1),
    service("p99", Figure::P99),
    service("p99.9", Figure::P99_9),
    service("p99.99", Figure::P99_99).spared(7),
    response("resp.\nmean", Figure::Mean).spared(5),
    response("resp.\np99", Figure::P99),
    response("resp.\np99.9", Figure::P99_9),
    response("resp.\np99.99", Figure::P99_99).spared(6),
    Column::new("wake-ups", "wake-ups", Figure::Total)
        .counted()
        .every_run_only(),
    Column::new("missed", "missed", Figure::Total)
        .counted()
        .spared(3),
    Column::new("missed\nshare", "missed", Figure::Share),
    // A phase without a wake-up has a line, too.
    Column::new("absent", "absent", Figure::Total).hidden(),
];

const fn average(head: &'static str) -> Column {
    Column::new(head, "average maximum", Figure::Value).in_microseconds()
}

const AVERAGE: &[Column] = &[
    average("mean of\nthe runs"),
    average("95 % interval").interval(),
    average("lowest").lowest(),
    average("highest").highest(),
];

/// Returns the tables.
pub(super) fn tables(run: &Run) -> Vec<Tabled> {
    let rows = || run.rows.0.iter().filter(|row| row.experiment == NAME);
    let until = until_stopped(&cases(run));
    let mut read = match rows().any(|row| row.measure.id == "response") {
        true => format!(
            "Of the wake-ups that happened{until}, as cyclictest counts; resp. is of all activations, each missed one with what \
             it waited. The longest is the same for both. Maxima, minima and missed activations are those of all runs; other \
             figures are the median over the runs, means the mean of the runs' means."
        ),
        false => format!(
            "The longest and the shortest are those of all runs{until}; other figures are the median over \
             the runs, means the mean of the runs' means."
        ),
    };
    let mut tables = Vec::new();
    for (title, traced) in [(PLAIN, false), (TRACED, true)] {
        let own: Vec<&Row> = rows().filter(|row| is_traced(row) == traced).collect();
        if own.is_empty() {
            continue;
        }
        let read_all = format!("{read}{}", refused(&own));
        tables.push(Tabled::new(title, &read_all, COLUMNS));
        "These measurements are in no figure above.".clone_into(&mut read);
    }
    tables.push(Tabled::new(AVERAGES, "", AVERAGE));
    tables.push(Tabled::interrupts(
        "From first to last sample. Fewer timer interrupts than wake-ups: the time of some had passed before the CPU could halt. More: some were not for a \
         wake-up. One is missed if its time had passed before the timer could be set; that is no missed activation.",
    ));
    if rows().any(|row| row.over.as_ref().is_ok_and(|over| over.interval.is_ok())) {
        const WITHOUT: [&str; 4] = ["min", "wake-ups", "missed", "absent"];
        let columns = COLUMNS
            .iter()
            .filter(|column| !WITHOUT.contains(&column.name().as_str()));
        tables.push(Tabled {
            title: INTERVALS.to_owned(),
            read: "Of means: by Student's t, from three runs on, on the logarithmic scale where it would reach 0. Of shares: likewise, on the logit scale. Of standard deviations \
                   and quantiles: of the median over runs, by order statistics, from six runs on. The unit of \
                   replication is the run, never the single wake-up."
                .to_owned(),
            columns: columns.map(|column| column.interval().page_only()).collect(),
        });
    }
    tables
}

fn is_traced(row: &Row) -> bool {
    row.plan.get("traced").is_some()
}

/// Says which quantiles were refused, and what they need; nothing if none was.
fn refused(rows: &[&Row]) -> String {
    let mut refused = BTreeSet::new();
    for row in rows.iter().filter(|row| row.measure.id == "latency") {
        if let Err(Refused::Samples { figure, needed, .. }) = &row.over {
            refused.insert((*needed, figure.as_str()));
        }
    }
    let each = refused.into_iter();
    let each = each.map(|(needed, figure)| format!("{figure} needs {}", N.count(needed)));
    match each.collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        refused => format!(
            " A quantile is given only if ten latencies lie beyond it: {} in each phase and run.",
            refused.join(", ")
        ),
    }
}

/// Puts the lines of a table in order: by target, case and phase, each thread below the phase.
pub(super) fn arrange(run: &Run, tabled: &Tabled, lines: &mut Vec<Line<'_>>) {
    let cases = cases(run);
    let all_traced = cases.iter().all(|case| case.plan.is_traced());
    lines.retain(|line| {
        let traced = is_traced(line.of);
        let is_here = match tabled.title.as_str() {
            TRACED => traced,
            PLAIN => !traced,
            _ => !traced || all_traced,
        };
        let thread = line.labels.number("thread").unwrap_or(0);
        is_here && thread < THREADS
    });
    lines.sort_by_cached_key(|line| {
        let target = |case: &Case<'_>| case.plan.target.text == line.of.target;
        let case = cases.iter().position(|case| case.has(line.of));
        let labels = ["phase", "thread"].map(|label| line.labels.number(label));
        (cases.iter().position(target), case, labels)
    });
}

/// Names a line, and the target above it.
pub(super) fn name(run: &Run, line: &Line<'_>) -> (Option<String>, String) {
    let cases = cases(run);
    let Some(case) = cases.iter().find(|case| case.has(line.of)) else {
        return (None, line.target());
    };
    if let Some(counter) = line.labels.get("counter") {
        return (None, format!("{} · {counter}", name_under(case)));
    }
    let number = line.labels.number("phase");
    let is_average = case.plan.phases.len() > 1 && number.is_none();
    let phase = Phase::all(case.plan).nth(number.unwrap_or(0) as usize);
    let Some(phase) = phase.filter(|_| !is_average) else {
        return (None, name_of(case));
    };
    let name = match line.labels.number("thread") {
        Some(thread) => {
            let cpu = fact_of(case, "CPU", thread).map(|cpu| format!(" CPU {cpu}"));
            format!("· T{thread}{}", cpu.unwrap_or_default())
        }
        None if phase.row(case, "latency", Figure::Max).is_none() => {
            format!("{}, absent", phase.name())
        }
        None => phase.name(),
    };
    let traced = if case.plan.is_traced() {
        " · traced"
    } else {
        ""
    };
    let further = behind(&case.plan.labels, &SCHEDULED);
    let schedule = match schedule(case) {
        none if none.is_empty() => none,
        schedule => format!(" · {schedule}"),
    };
    let heading = format!("{}{schedule}{further}{traced}", case.target());
    (Some(heading), name)
}

//! cse221-2022: what the primitives of an operating system should cost, and what they cost.

use tare_figures::Run;
use tare_figures::claims::{Answered, Claim, Comparison, Drawn, Inconclusive, Published, answer};
use tare_figures::mark::Mark;
use tare_figures::rows::{Figure, Row, written};
use tare_figures::words;
use tare_pages::kit::claim_table::{PublishedRow, rows};

use super::machine::{self, Claimed};
use super::measures::id_of;
use super::tables::named;
use super::{N, Variant, is, known, other};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "cse221-2022",
    question: "What do the primitives of an operating system cost?",
    claims: &[
        Claim::new(
            "A procedure call costs 22 to 31 cycles, with no visible trend per argument.",
            calls,
        ),
        Claim::new(
            "Creating a thread costs far less than creating a process.",
            |run| less(run, ("thread-create", &[]), PROCESS),
        ),
        Claim::new(
            "Switching between threads costs far less than switching between processes.",
            |run| less(run, SWITCH_THREAD, SWITCH_PROCESS),
        ),
        Claim::new(
            "The levels of the memory hierarchy and the line size can be read off the latency curve.",
            hierarchy,
        ),
    ],
    tables: &[(
        "Predicted and measured cost of each primitive",
        include_str!("../../../../../studies/published/cse221-2022.csv"),
    )],
    note: "Published figures are of a Core i5 at 3.1 GHz under macOS 12; expectations here are of this machine. The study's mean is compared with \
           the intrinsic cost, which has less in it.",
    compare: |run, tables| rows(tables).filter_map(|row| compared(run, row)).collect(),
};

const PROCESS: Variant = ("fork-exit", &[("memory", "small")]);
const SWITCH_THREAD: Variant = (
    "switch-thread",
    &[("cpu", "same"), ("memory", "0"), ("ring", "10")],
);
const SWITCH_PROCESS: Variant = ("switch-process", SWITCH_THREAD.1);

/// The published rows whose primitive has another name here, or several variants.
const ROWS: [(&str, Variant); 7] = [
    ("syscall-open", ("open", &[])),
    ("syscall-getppid", ("getppid", &[])),
    ("syscall-getpid", ("getpid", &[])),
    ("process-create", PROCESS),
    ("switch-process", SWITCH_PROCESS),
    ("switch-thread", SWITCH_THREAD),
    ("page-fault-major", ("fault-major", &[])),
];

/// By how much one is above the other that "costs far less".
const FAR: f64 = 3.0;
/// The greatest ratio of the costs of calls with the most and the fewest arguments that is no
/// trend.
const NO_TREND: f64 = 1.5;

/// Returns the row of a primitive's cost on an idle target, preferably on one without an emulator.
fn row<'a>(run: &'a Run, of: (&str, &[(&str, &str)])) -> Option<(&'a Row, f64)> {
    let rows = known(run, "cost", Figure::Best);
    let own = rows.filter(|(row, _)| row.load.is_idle() && is(row, of));
    own.min_by_key(|(row, _)| row.emulated)
}

/// Returns that of a claim: an emulator's says nothing of it.
fn measured<'a>(run: &'a Run, of: (&str, &[(&str, &str)])) -> Result<(&'a Row, f64), Inconclusive> {
    match row(run, of) {
        None => Err(format!("{} was not measured", of.0).into()),
        Some((row, _)) if row.emulated => Err(Inconclusive::emulated(format!(
            "{} was executed by an emulator",
            of.0
        ))),
        Some(found) => Ok(found),
    }
}

/// Tests the costs of calls, and whether arguments cost anything. Cycles are those of the core.
fn calls(run: &Run) -> Answered {
    let all = (0..8).map(|arguments| measured(run, (&format!("call-{arguments}"), &[])));
    let all: Vec<(&Row, f64)> = all.collect::<Result<_, _>>()?;
    let ((row, first), (_, last)) = (all[0], all[7]);
    let hz = core_hz(run, row).ok_or("the core's clock was not measured")?;
    let cycles = |ns: f64| ns * hz / 1e9;
    let costs = || all.iter().map(|(_, ns)| cycles(*ns));
    let ends = [
        costs().fold(f64::INFINITY, f64::min),
        costs().fold(0.0, f64::max),
    ];
    let [low, high] = ends.map(|cycles| N.short(cycles));
    let [without, with] = [first, last].map(|ns| N.short(cycles(ns)));
    answer(
        ends[0] >= 22.0 && ends[1] <= 31.0 && last <= first * NO_TREND,
        format!(
            "{low} to {high} cycles of the core's clock; {without} without arguments, {with} with seven"
        ),
    )
}

/// Tests whether one costs far less than another.
fn less(run: &Run, one: Variant, other: Variant) -> Answered {
    let ((of_one, one), (of_other, other)) = (measured(run, one)?, measured(run, other)?);
    let times = N.short(other / one);
    let [less, more] = [(of_one, one), (of_other, other)]
        .map(|(row, ns)| format!("{} ({})", N.ns(ns, None), named(&row.labels)));
    answer(
        other / one >= FAR,
        format!("{less} against {more}: {times} times"),
    )
}

/// Tests whether the curve shows as many levels as there are caches, and memory, and the size of a
/// line.
fn hierarchy(run: &Run) -> Answered {
    let claimed = machine::claimed(run);
    let has = |wanted: &str| claimed.iter().any(|[name, ..]| name == wanted);
    if !has("memory") {
        return Err("the latency curve was not measured on a machine".into());
    }
    let is_cache = |[name, ..]: &&Claimed| name.starts_with('L');
    let mut caches = claimed.iter().filter(is_cache).peekable();
    let is_seen = caches.peek().is_some() && caches.all(|[.., found]| found != machine::UNSEEN);
    let each = claimed
        .iter()
        .filter(|line| is_cache(line) || line[0] == "cache line");
    let each = each.map(|[name, claimed, found]| format!("{name} {found} (claimed {claimed})"));
    let each: Vec<String> = each.collect();
    answer(is_seen && has("cache line"), each.join("; "))
}

/// Returns a published figure: the mean of its trials, where the study printed those only.
fn published(row: PublishedRow<'_>) -> Option<f64> {
    let trials = row.field("trials").split(';');
    let trials: Vec<f64> = trials.filter_map(|trial| trial.parse().ok()).collect();
    let mean = trials.iter().sum::<f64>() / trials.len() as f64;
    let mean = (!trials.is_empty()).then_some(mean);
    row.number("measured").or(mean)
}

/// Puts a published figure next to that of the run.
fn compared(run: &Run, of: PublishedRow<'_>) -> Option<Comparison> {
    let (name, unit) = (of.field("primitive"), of.field("unit"));
    let published = published(of)?;
    let mut comparison = Comparison {
        what: name.to_owned(),
        published: format!("{} {unit}", N.short(published)),
        target: None,
        here: String::new(),
        drawn: Vec::new(),
    };
    if !of.field("predicted").is_empty() {
        let predicted = format!(", predicted {}", of.field("predicted"));
        comparison.published.push_str(&predicted);
    }
    match found(run, name) {
        Ok((row, value)) => {
            let mut here = written(value, row.unit);
            if unit == "cycles" {
                here = in_cycles(run, row, value);
            }
            let measure = match row.measure.id {
                "bandwidth" => "expected-bandwidth",
                _ => "expected",
            };
            if let Some(expected) = other(run, row, measure) {
                here.push_str(&format!(", expected {}", written(expected, row.unit)));
            }
            comparison.drawn = Vec::from_iter(drawn(row, name, (published, unit)));
            if !name.starts_with("latency-") && named(&row.labels) != id_of(&row.labels) {
                here.push_str(&format!(" ({})", named(&row.labels)));
            }
            if row.emulated {
                here.push_str(" (emulated)");
            }
            (comparison.target, comparison.here) = (Some(row.target.clone()), here);
        }
        Err(why) => comparison.here = why,
    }
    Some(comparison)
}

/// Returns the frequency of the core's clock of a row's target.
fn core_hz(run: &Run, row: &Row) -> Option<f64> {
    let mut clocks = known(run, "core-clock", Figure::MEDIAN);
    let clock = clocks.find(|(own, _)| own.target == row.target);
    clock.map(|(_, hz)| hz)
}

/// Writes a time in cycles of the core's clock, as the study does, and in ns.
fn in_cycles(run: &Run, row: &Row, ns: f64) -> String {
    let cycles = core_hz(run, row).map(|hz| words::cycles_figure(N, ns * hz / 1e9));
    match cycles {
        Some(cycles) => format!("{cycles} cycles ({})", N.ns(ns, None)),
        None => N.ns(ns, None),
    }
}

/// Finds the row that a published one is compared with, or the reason why there is none.
fn found<'a>(run: &'a Run, name: &str) -> Result<(&'a Row, f64), String> {
    let idle = |measure, figure, id| {
        let rows = known(run, measure, figure);
        rows.filter(move |(row, _)| row.load.is_idle() && id_of(&row.labels) == id)
    };
    if name.starts_with("bandwidth-") {
        let rows = idle("bandwidth", Figure::Best, name);
        let largest = rows.max_by_key(|(row, _)| (!row.emulated, row.labels.number("size")));
        return largest.ok_or_else(|| without(run, name));
    }
    let Some(level) = name.strip_prefix("latency-") else {
        let known = ROWS.iter().find(|(own, _)| *own == name);
        let of = known.map_or((name, &[][..]), |(_, of)| *of);
        return row(run, of).ok_or_else(|| without(run, of.0));
    };
    let rows = || idle("latency", Figure::Best, "latency");
    let (first, _) = rows().next().ok_or_else(|| without(run, "latency"))?;
    let points = machine::least(run, &first.target);
    let within = match level.trim_start_matches('l').parse::<usize>() {
        Ok(number) => points.levels().get(number - 1).and_then(|it| it.capacity),
        Err(_) => machine::slowest(run, &first.target).map(|_| f64::INFINITY),
    };
    // A working set that is well within a level.
    let held = within.map(|bytes| bytes / 2.0);
    let size = |row: &Row| row.labels.number("size").unwrap_or_default();
    let held = rows().filter(|(row, _)| {
        row.target == first.target
            && row.has("pages", points.pages())
            && held.is_some_and(|held| size(row) as f64 <= held)
    });
    // The latency of the level is that of its plateau, wherever it stands on the page.
    let level_ns = match level.trim_start_matches('l').parse::<usize>() {
        Ok(number) => points.levels().get(number - 1).map(|it| it.latency),
        Err(_) => machine::slowest(run, &first.target),
    };
    let row = held.max_by_key(|(row, _)| size(row));
    row.and_then(|(row, _)| Some((row, level_ns?)))
        .ok_or_else(|| "no such level was found in the latency curve".to_owned())
}

/// Returns the reason why a primitive has no figure.
fn without(run: &Run, id: &str) -> String {
    let mut absent = super::checks::absent(run).into_iter();
    let own = absent.find(|of| of.name.split(' ').next() == Some(id));
    own.map_or_else(
        || "not measured in this run".to_owned(),
        |of| format!("no figure: {}", of.why),
    )
}

/// Draws a published figure next to that of a row.
fn drawn(row: &Row, name: &str, (published, unit): (f64, &str)) -> Option<Drawn> {
    let (picture, across) = match unit {
        "GB/s" => ("Bandwidth", "bytes per second"),
        _ => ("Cost of each primitive", "ns"),
    };
    let published = published
        * match unit {
            // A cycle of the study's machine.
            "cycles" => 0.322,
            "us" => 1e3,
            "ms" => 1e6,
            "ns" => 1.0,
            _ => 1e9,
        };
    let write = |value| written(value, row.unit);
    Some(Drawn {
        picture,
        across,
        group: String::new(),
        name: name.to_owned(),
        published: (published, write(published)),
        here: Mark::of(row, 0, |value| value, write)?,
    })
}

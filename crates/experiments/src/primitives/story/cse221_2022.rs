//! cse221-2022: what the primitives of an operating system should cost, and what they cost.

use tare_figures::Run;
use tare_figures::claims::{
    Answered, Claim, Comparison, Drawn, Inconclusive, Published, PublishedTable, answer,
};
use tare_figures::mark::Mark;
use tare_figures::rows::{Figure, Row, written};
use tare_figures::words;

use super::super::NAME;
use super::measures::id_of;
use super::{N, known, machine};

/// The study.
pub(super) const STUDY: Published = Published {
    name: "cse221-2022",
    question: "What do the primitives of an operating system cost?",
    claims: &[
        Claim {
            tell: Some(calls),
            ..claim("A procedure call costs 22 to 31 cycles, with no visible trend per argument.")
        },
        Claim {
            tell: Some(|run| less(run, &THREAD, &PROCESS)),
            ..claim("Creating a thread costs far less than creating a process.")
        },
        Claim {
            tell: Some(|run| less(run, &SWITCH_THREAD, &SWITCH_PROCESS)),
            ..claim("Switching between threads costs far less than switching between processes.")
        },
        Claim {
            tell: Some(hierarchy),
            ..claim(
                "The levels of the memory hierarchy and the line size can be read off the latency curve.",
            )
        },
    ],
    tables: &[(
        "Predicted and measured cost of each primitive",
        include_str!("../../../../../studies/published/cse221-2022.csv"),
    )],
    note: "Published figures are of a Core i5 at 3.1 GHz under macOS 12; expectations here are of this machine. The study's mean is compared with \
           the intrinsic cost, which has less in it.",
    compare,
};

const fn claim(text: &'static str) -> Claim {
    Claim {
        text,
        experiment: NAME,
        measures: "what primitives cost",
        tell: None,
    }
}

/// Which row of a run a published one is compared with: its primitive and labels.
type Of = (&'static str, &'static [(&'static str, &'static str)]);

const THREAD: Of = ("thread-create", &[]);
const PROCESS: Of = ("fork-exit", &[("memory", "small")]);
const SWITCH_THREAD: Of = (
    "switch-thread",
    &[("cpu", "same"), ("memory", "0"), ("ring", "10")],
);
const SWITCH_PROCESS: Of = (
    "switch-process",
    &[("cpu", "same"), ("memory", "0"), ("ring", "10")],
);

/// The published rows that are primitives here, by their names in the table.
const ROWS: [(&str, Of); 18] = [
    ("timer-read", ("timer-read", &[])),
    ("loop", ("loop", &[])),
    ("call-0", ("call-0", &[])),
    ("call-1", ("call-1", &[])),
    ("call-2", ("call-2", &[])),
    ("call-3", ("call-3", &[])),
    ("call-4", ("call-4", &[])),
    ("call-5", ("call-5", &[])),
    ("call-6", ("call-6", &[])),
    ("call-7", ("call-7", &[])),
    ("syscall-open", ("open", &[])),
    ("syscall-getppid", ("getppid", &[])),
    ("syscall-getpid", ("getpid", &[])),
    ("process-create", PROCESS),
    ("thread-create", THREAD),
    ("switch-process", SWITCH_PROCESS),
    ("switch-thread", SWITCH_THREAD),
    ("page-fault-major", ("fault-major", &[])),
];

/// By how much one is above the other that "costs far less".
const FAR: f64 = 3.0;
/// The greatest ratio of the costs of calls with the most and the fewest arguments that is no trend.
const NO_TREND: f64 = 1.5;

/// Returns the row of a primitive: of the first target that is no emulator's.
fn row<'a>(run: &'a Run, (id, labels): &Of) -> Option<(&'a Row, f64)> {
    let is_it = |row: &Row| {
        id_of(&row.labels) == *id
            && row.load == "idle"
            && labels.iter().all(|(key, value)| row.has(key, value))
    };
    let all = || known(run, "cost", Figure::Min).filter(|(row, _)| is_it(row));
    all()
        .find(|(row, _)| !row.emulated)
        .or_else(|| all().next())
}

fn measured<'a>(run: &'a Run, of: &Of) -> Result<(&'a Row, f64), Inconclusive> {
    row(run, of).ok_or_else(|| format!("{} was not measured", of.0).into())
}

/// Writes a time in cycles, as the study does: of the TSC, as it ticks on the row's target.
fn in_cycles(run: &Run, row: &Row, ns: f64) -> String {
    let mut rows = run.rows.0.iter().filter(|own| own.target == row.target);
    let hz = rows.find_map(|own| own.tsc_hz);
    hz.map_or_else(
        || N.ns(ns, None),
        |hz| format!("{} cycles", words::cycles_figure(N, ns * hz / 1e9)),
    )
}

/// Asks what calls cost, and whether arguments cost anything.
fn calls(run: &Run) -> Answered {
    let all = (0..8).map(|arguments| {
        let (_, of) = &ROWS[2 + arguments];
        measured(run, of)
    });
    let all: Vec<(&Row, f64)> = all.collect::<Result<_, _>>()?;
    let (row, first) = all[0];
    let hz = run_hz(run, row)?;
    let last = all[7].1;
    let cycles = |ns: f64| ns * hz / 1e9;
    let costs = all.iter().map(|(_, ns)| cycles(*ns));
    let (low, high) = costs.fold((f64::INFINITY, 0.0_f64), |(low, high), own| {
        (low.min(own), high.max(own))
    });
    let why = format!(
        "{} to {} cycles of the core's clock; {} without arguments, {} with seven",
        N.short(low),
        N.short(high),
        N.short(cycles(first)),
        N.short(cycles(last))
    );
    let holds = low >= 22.0 && high <= 31.0 && last <= first * NO_TREND;
    answer(holds, why)
}

/// Returns the frequency of the clock in whose cycles costs are told: the core's.
fn run_hz(run: &Run, row: &Row) -> Result<f64, Inconclusive> {
    let clock = known(run, "core-clock", Figure::MEDIAN).find(|(own, _)| own.target == row.target);
    clock
        .map(|(_, hz)| hz)
        .ok_or_else(|| "the core's clock was not measured".into())
}

/// Asks whether one costs far less than another.
fn less(run: &Run, one: &Of, other: &Of) -> Answered {
    let ((_, one), (_, other)) = (measured(run, one)?, measured(run, other)?);
    let why = format!(
        "{} against {}: {} times",
        N.ns(one, None),
        N.ns(other, None),
        N.short(other / one)
    );
    answer(other / one >= FAR, why)
}

/// Asks whether the curve shows as many levels as there are caches, and memory, and the size of a line.
fn hierarchy(run: &Run) -> Answered {
    let claimed = machine::claimed(run);
    if claimed.iter().all(|[name, ..]| name != "memory") {
        return Err("the latency curve was not measured on a machine".into());
    }
    let caches: Vec<&[String; 3]> = claimed
        .iter()
        .filter(|[name, ..]| name.starts_with('L'))
        .collect();
    let untold = caches
        .iter()
        .filter(|[.., effective]| effective == machine::UNSEEN)
        .count();
    let line = claimed.iter().find(|[name, ..]| name == "cache line");
    let each: Vec<String> = claimed
        .iter()
        .filter(|[name, ..]| name.starts_with('L') || name == "cache line")
        .map(|[name, _, effective]| format!("{name} {effective}"))
        .collect();
    answer(
        !caches.is_empty() && untold == 0 && line.is_some(),
        each.join("; "),
    )
}

/// Returns a published figure: the mean of its trials, where the study printed those only.
fn published(measured: &str, trials: &str) -> Option<f64> {
    let trials: Vec<f64> = trials
        .split(';')
        .filter_map(|trial| trial.parse().ok())
        .collect();
    let mean = trials.iter().sum::<f64>() / trials.len() as f64;
    measured
        .parse()
        .ok()
        .or((!trials.is_empty()).then_some(mean))
}

/// Puts published figures beside those of the run.
fn compare(run: &Run, tables: &[PublishedTable]) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (table, line) in tables
        .iter()
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
    {
        let (name, unit) = (table.field(line, "primitive"), table.field(line, "unit"));
        let Some(published) = published(table.field(line, "measured"), table.field(line, "trials"))
        else {
            continue;
        };
        let predicted = match table.field(line, "predicted") {
            "" => String::new(),
            predicted => format!(", predicted {predicted}"),
        };
        let found = found(run, name);
        let (target, here, drawn) = match found {
            Ok((row, value)) => {
                let expected = expectation(run, row);
                let expected = expected.map_or_else(String::new, |value| {
                    format!(", expected {}", written(value, row.unit))
                });
                let here = match unit {
                    "cycles" => format!(
                        "{} ({}){expected}",
                        in_cycles(run, row, value),
                        written(value, row.unit)
                    ),
                    _ => format!("{}{expected}", written(value, row.unit)),
                };
                (
                    Some(row.target.clone()),
                    here,
                    Vec::from_iter(drawn(row, name, (published, unit))),
                )
            }
            Err(why) => (None, why, Vec::new()),
        };
        comparisons.push(Comparison {
            what: name.to_owned(),
            published: format!("{} {unit}{predicted}", N.short(published)),
            target,
            here,
            drawn,
        });
    }
    comparisons
}

/// Returns what was expected of a row.
fn expectation(run: &Run, row: &Row) -> Option<f64> {
    let measure = if row.measure.id == "bandwidth" {
        "expected-bandwidth"
    } else {
        "expected"
    };
    let mut all = known(run, measure, Figure::Value);
    let found = all.find(|(own, _)| own.labels == row.labels && own.target == row.target)?;
    Some(found.1)
}

/// Finds what a published row is compared with, or says why there is nothing.
fn found<'a>(run: &'a Run, name: &str) -> Result<(&'a Row, f64), String> {
    if let Some((_, of)) = ROWS.iter().find(|(own, _)| *own == name) {
        return row(run, of).ok_or_else(|| without(run, of.0));
    }
    if name.starts_with("bandwidth-") {
        let rows = known(run, "bandwidth", Figure::Max)
            .filter(|(row, _)| id_of(&row.labels) == name && row.load == "idle");
        let largest = rows.max_by_key(|(row, _)| (!row.emulated, row.labels.number("size")));
        return largest.ok_or_else(|| without(run, name));
    }
    let level = name.strip_prefix("latency-").unwrap_or_default();
    let rows = known(run, "latency", Figure::Min)
        .filter(|(row, _)| row.load == "idle" && id_of(&row.labels) == "latency");
    let mut rows: Vec<(&Row, f64)> = rows.collect();
    let Some(target) = rows.first().map(|(row, _)| row.target.clone()) else {
        return Err(without(run, "latency"));
    };
    let points = machine::least(run, &target);
    let pages = points.pages();
    rows.retain(|(row, _)| row.target == target && row.has("pages", pages));
    let size = |row: &Row| row.labels.number("size").unwrap_or_default();
    let levels = points.levels();
    let within = match level.trim_start_matches('l').parse::<usize>() {
        Ok(number) => levels.get(number - 1).and_then(|level| level.capacity),
        Err(_) => machine::slowest(run, &target).map(|_| f64::INFINITY),
    };
    // A working set that is well within a level.
    let held = within.map(|bytes| bytes / 2.0);
    let held = rows
        .into_iter()
        .filter(|(row, _)| held.is_some_and(|held| size(row) as f64 <= held));
    held.max_by_key(|(row, _)| size(row))
        .ok_or_else(|| "no such level was found in the latency curve".to_owned())
}

/// Says why a primitive has no figure.
fn without(run: &Run, id: &str) -> String {
    let absent = super::checks::absent(run).into_iter();
    let mut own = absent.filter(|(name, _)| name.split(' ').next() == Some(id));
    own.next().map_or_else(
        || "not measured in this run".to_owned(),
        |(_, why)| format!("no figure: {why}"),
    )
}

/// Returns how a published figure is drawn beside that of a row.
fn drawn(row: &Row, name: &str, (published, unit): (f64, &str)) -> Option<Drawn> {
    /// A cycle of the study's machine, in ns.
    const CYCLE: f64 = 0.322;
    let (picture, across, published) = match unit {
        "cycles" => ("Cost of each primitive", "ns", published * CYCLE),
        "us" => ("Cost of each primitive", "ns", published * 1e3),
        "ms" => ("Cost of each primitive", "ns", published * 1e6),
        "ns" => ("Cost of each primitive", "ns", published),
        _ => ("Bandwidth", "bytes per second", published * 1e9),
    };
    let row_unit = row.unit;
    Some(Drawn {
        picture,
        across,
        group: String::new(),
        name: name.to_owned(),
        published: (published, written(published, row_unit)),
        here: Mark::of(row, 0, |value| value, |value| written(value, row_unit))?,
    })
}

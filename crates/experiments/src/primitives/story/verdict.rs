//! What a run says of primitives, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{CellData, Figure, Row, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::sure;
use tare_results::target::Kernel;

use super::measures::{MEASURES, id_of};
use super::tables::named;
use super::{N, checks, estimate, known, machine};

/// A primitive, labels, and what it is called in a sentence.
type Key = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The primitives that a headline names, each with its labels and how it is called in a sentence.
const KEY: [Key; 6] = [
    ("getppid", &[], "a system call"),
    (
        "switch-process",
        &[("cpu", "same"), ("ring", "2"), ("memory", "0")],
        "a context switch",
    ),
    ("fault-anonymous", &[], "a page fault"),
    ("fork-exit", &[("memory", "small")], "a process"),
    ("thread-create", &[], "a thread"),
    (
        "tcp-round-trip",
        &[("at", "loopback"), ("cpu", "same")],
        "a TCP round trip",
    ),
];
/// From which factor on an expectation missed.
const MISSED: f64 = 2.0;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let rows: Vec<(&Row, f64)> = known(run, "cost", Figure::Min)
        .chain(known(run, "bandwidth", Figure::Max))
        .collect();
    let first = rows
        .iter()
        .find(|(row, _)| !row.emulated)
        .or(rows.first())
        .map(|(row, _)| *row)
        .or_else(|| {
            known(run, "latency", Figure::Min)
                .next()
                .map(|(row, _)| row)
        })?;
    let own = |row: &Row| row.target == first.target && row.load == first.load;
    let told: Vec<&Row> = KEY
        .iter()
        .filter_map(|(id, labels, _)| {
            let mut all = rows.iter().map(|(row, _)| *row);
            all.find(|row| own(row) && is(row, id, labels))
        })
        .collect();
    let mut costs: Vec<String> = told
        .iter()
        .filter_map(|row| {
            let (.., name) = KEY.iter().find(|(id, ..)| *id == id_of(&row.labels))?;
            Some(format!("{name} {}", written(estimate(row)?, row.unit)))
        })
        .collect();
    costs.extend(
        machine::slowest(run, &first.target)
            .map(|ns| format!("a load from memory {}", N.ns(ns, None))),
    );
    let place = match first.load.as_str() {
        "idle" => first.marked_target(),
        load => format!("{} under {load}", first.marked_target()),
    };
    let headline = match costs.is_empty() {
        false => format!("On {place}: {}.", words::list(&costs)),
        true => {
            let mut own = rows.iter().filter(|(row, _)| own(row));
            let (row, value) = own.next()?;
            format!(
                "On {place}: {} {}.",
                named(&row.labels),
                written(*value, row.unit)
            )
        }
    };
    let mut details = Vec::new();
    details.extend(expectations(run));
    details.extend(machine::sentence(run));
    details.extend(calls(run, first));
    details.extend(barrier(run));
    let absent = checks::absent(run).len();
    if absent > 0 {
        details.push(format!(
            "{} {} no figures here; the report says why.",
            N.count(absent as u64),
            if absent == 1 {
                "primitive has"
            } else {
                "primitives have"
            }
        ));
    }
    Some(Verdict {
        headline,
        details,
        certainty: told
            .iter()
            .take(2)
            .map(|row| sure(&named(&row.labels), row))
            .collect(),
        ..Verdict::default()
    })
}

fn is(row: &Row, id: &str, labels: &[(&str, &str)]) -> bool {
    id_of(&row.labels) == id && labels.iter().all(|(key, value)| row.has(key, value))
}

/// Says whether a row is of a primitive that the headline names.
pub(super) fn is_key(row: &Row) -> bool {
    KEY.iter().any(|(id, labels, _)| is(row, id, labels))
}

/// Says how many expectations came true, and which missed by most.
fn expectations(run: &Run) -> Option<String> {
    let ratios: Vec<(&Row, f64)> = known(run, "ratio", Figure::Value)
        .filter(|(_, ratio)| *ratio > 0.0)
        .collect();
    let far = |ratio: f64| ratio.ln().abs();
    let (row, most) = ratios.iter().max_by(|a, b| far(a.1).total_cmp(&far(b.1)))?;
    let near = ratios
        .iter()
        .filter(|(_, ratio)| far(*ratio) <= MISSED.ln())
        .count();
    let most = match *most >= 1.0 {
        true => format!("{} times", N.short(*most)),
        false => format!("{} of", N.percent(*most)),
    };
    Some(format!(
        "{near} of {} expectations were right within a factor of 2; furthest off is {}, at {most} what was expected.",
        ratios.len(),
        named(&row.labels)
    ))
}

/// Compares a procedure call with a system call, both without arguments, on one target.
fn calls(run: &Run, of: &Row) -> Option<String> {
    let cost = |id: &str| {
        let mut rows = known(run, "cost", Figure::Min);
        let own = |row: &Row| row.target == of.target && row.load == of.load;
        rows.find(|(row, _)| own(row) && id_of(&row.labels) == id)
            .map(|(_, ns)| ns)
    };
    let (procedure, system) = (cost("call-0")?, cost("getpid")?);
    (procedure > 0.0).then(|| {
        format!(
            "A system call (getpid) takes {} times as long as a procedure call: {} against {}.",
            N.short(system / procedure),
            N.ns(system, None),
            N.ns(procedure, None)
        )
    })
}

/// Compares a system call with the call that takes its place on a unikernel.
fn barrier(run: &Run) -> Option<String> {
    let of = |is_unikernel: bool| {
        let mut rows = known(run, "cost", Figure::Min);
        rows.find(|(row, _)| {
            id_of(&row.labels) == "getpid"
                && row.load == "idle"
                && (row.group.capabilities().kernel == Kernel::None) == is_unikernel
        })
    };
    let (with, without) = (of(false)?, of(true)?);
    (with.0.emulated == without.0.emulated && without.1 > 0.0).then(|| {
        format!(
            "The barrier between program and kernel: getpid takes {} on {}, and {} on {}.",
            N.ns(with.1, None),
            with.0.marked_target(),
            N.ns(without.1, None),
            without.0.marked_target()
        )
    })
}

/// Says in one short line what a cell has shown.
pub(super) fn live(data: &CellData<'_>) -> Result<String, String> {
    let mut shown = Vec::new();
    let mut all = 0;
    for measure in MEASURES
        .iter()
        .filter(|measure| ["cost", "latency", "bandwidth", "share"].contains(&measure.id))
    {
        for (labels, sample) in (measure.from)(data)? {
            all += 1;
            let value = sample
                .figure(measure.figures[0])
                .and_then(|figure| figure.value());
            if shown.len() < 2 {
                shown.extend(
                    value.map(|value| {
                        format!("{} {}", named(&labels), written(value, measure.unit))
                    }),
                );
            }
        }
    }
    match all {
        0 => Err("no primitive has figures here".to_owned()),
        all => Ok(format!(
            "{}, {}",
            words::counted(N, all, "figure", "figures"),
            shown.join(", ")
        )),
    }
}

//! What a run says of primitives, in a few plain sentences.

use tare_figures::Run;
use tare_figures::group::{distinct, entry};
use tare_figures::rows::{CellData, Figure, Row, RunFigure, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::sure;
use tare_results::target::Kernel;

use super::measures::{CURVES, MEASURES, id_of};
use super::tables::named;
use super::{N, Variant, checks, is, known, machine};

/// The primitives that a headline names, each with its name in a sentence.
const KEY: [(Variant, &str); 6] = [
    (("getppid", &[]), "a system call (getppid)"),
    (
        (
            "switch-process",
            &[("cpu", "same"), ("ring", "2"), ("memory", "0")],
        ),
        "a context switch between two processes",
    ),
    (("fault-anonymous", &[]), "a page fault"),
    (("fork-exit", &[("memory", "small")]), "a process"),
    (("thread-create", &[]), "a thread"),
    (
        ("tcp-round-trip", &[("at", "loopback"), ("cpu", "same")]),
        "a TCP round trip",
    ),
];
/// The factor from which on an expectation missed.
const MISSED: f64 = 2.0;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let costs = known(run, "cost", Figure::Min);
    let rows: Vec<_> = costs.chain(known(run, "bandwidth", Figure::Max)).collect();
    let native = rows.iter().copied().min_by_key(|(row, _)| row.emulated);
    let (first, _) = native.or_else(|| known(run, "latency", Figure::Min).next())?;
    let mut own = rows.clone();
    own.retain(|(row, _)| row.target == first.target && row.load == first.load);
    let told = key(&own);
    let mut costs: Vec<String> = told.iter().map(|(_, text)| text.clone()).collect();
    let memory = machine::slowest(run, &first.target);
    let runs = first.over.as_ref().map_or(1, |over| over.runs);
    let of = if runs > 1 {
        " (the curve of all runs)"
    } else {
        ""
    };
    costs.extend(memory.map(|ns| format!("a load from memory {}{of}", N.ns(ns, None))));
    if costs.is_empty() {
        let (row, value) = own.first()?;
        costs.push(format!(
            "{} {}",
            named(&row.labels),
            written(*value, row.unit)
        ));
    }
    let (target, under) = (first.marked_target(), first.load.under());
    let mut details = others(&rows, first);
    details.extend(
        [
            expectations(run, first),
            machine::sentence(run),
            calls(&own).map(|calls| format!("On {target}{under}, {calls}")),
            barrier(&rows),
            absent(run),
        ]
        .into_iter()
        .flatten(),
    );
    let sure = |(row, _): &(&Row, String)| {
        sure(&format!("{} on {target}{under}", named(&row.labels)), row)
    };
    Some(Verdict {
        headline: format!("On {target}{under}: {}.", words::list(&costs)),
        details,
        certainty: told.iter().take(2).map(sure).collect(),
        ..Verdict::default()
    })
}

/// Returns those of a target's primitives that a headline names, with their costs.
fn key<'a>(own: &[(&'a Row, f64)]) -> Vec<(&'a Row, String)> {
    let told = KEY.iter().filter_map(|(variant, name)| {
        let (row, value) = own.iter().find(|(row, _)| is(row, *variant))?;
        Some((*row, format!("{name} {}", written(*value, row.unit))))
    });
    told.collect()
}

/// Says of the other targets and loads what the headline says of the first. Emulated figures stand in
/// the table only.
fn others(rows: &[(&Row, f64)], first: &Row) -> Vec<String> {
    let is_place = |row: &Row, of: &Row| row.target == of.target && row.load == of.load;
    let real = rows
        .iter()
        .filter(|(row, _)| !row.emulated && !is_place(row, first));
    let mut places: Vec<(&Row, Vec<(&Row, f64)>)> = Vec::new();
    for (row, value) in real {
        let known = |(of, _): &(&Row, Vec<(&Row, f64)>)| is_place(row, of);
        entry(&mut places, known, || (*row, Vec::new()))
            .1
            .push((*row, *value));
    }
    let told = places.into_iter().filter_map(|(of, own)| {
        let costs: Vec<String> = key(&own).into_iter().map(|(_, text)| text).collect();
        let (target, under) = (of.marked_target(), of.load.under());
        (!costs.is_empty()).then(|| format!("On {target}{under}: {}.", words::list(&costs)))
    });
    told.collect()
}

/// Returns whether a row is of a primitive that the headline names.
pub(super) fn is_key(row: &Row) -> bool {
    KEY.iter().any(|(variant, _)| is(row, *variant))
}

/// Returns how many primitives were not measured, or not to their end.
fn absent(run: &Run) -> Option<String> {
    let all = checks::absent(run);
    let absent = distinct(all.iter().map(|of| of.id.as_str())).len() as u64;
    let told = (absent > 0).then(|| {
        let absent = words::counted(N, absent, "primitive was", "primitives were");
        format!("{absent} not measured everywhere, or not to the end; the report says why.")
    });
    let needing = checks::needing_a_system(run).into_iter();
    let needing = needing.map(|(target, number)| {
        let number = words::counted(
            N,
            number,
            "primitive needs an operating system and was",
            "primitives need an operating system and were",
        );
        format!("{number} not measured on {target}.")
    });
    let sentences: Vec<String> = told.into_iter().chain(needing).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Returns how many expectations came true where the headline's figures are from, and which missed by
/// most.
fn expectations(run: &Run, first: &Row) -> Option<String> {
    let ratios = known(run, "ratio", Figure::MEDIAN).filter(|(_, ratio)| *ratio > 0.0);
    // Points of curves are in pictures, not next to what was expected.
    let ratios = ratios.filter(|(row, _)| {
        let is_own = row.target == first.target && row.load == first.load;
        is_own && !CURVES.contains(&id_of(&row.labels))
    });
    let ratios: Vec<(&Row, f64)> = ratios.collect();
    let far = |ratio: f64| ratio.ln().abs();
    let is_always_off = |row: &Row| {
        let over = row.over.as_ref();
        over.is_ok_and(|over| over.lowest > 1.0 || over.highest < 1.0)
    };
    let near = ratios
        .iter()
        .filter(|(_, own)| far(as_written(*own)) <= MISSED.ln());
    let furthest = ratios.iter().filter(|(row, _)| is_always_off(row));
    let furthest = furthest.max_by(|a, b| far(a.1).total_cmp(&far(b.1)));
    let furthest = furthest.map_or_else(String::new, |(row, ratio)| {
        let ratio = match *ratio >= 1.0 {
            true => format!("{} times", N.short(*ratio)),
            false => format!("{} of", N.percent(*ratio)),
        };
        format!(
            "; furthest of those off in every run is {}, at {ratio} the expected value",
            named(&row.labels)
        )
    });
    (!ratios.is_empty()).then(|| {
        format!(
            "On {}{}, {} of {} expectations were right within a factor of 2{furthest}.",
            first.marked_target(),
            first.load.under(),
            near.count(),
            ratios.len(),
        )
    })
}

/// Returns a ratio as the tables write it, to three digits.
fn as_written(ratio: f64) -> f64 {
    let step = 10_f64.powf(ratio.log10().floor() - 2.0);
    (ratio / step).round() * step
}

/// Compares a procedure call with a system call, both without arguments, on one target.
fn calls(own: &[(&Row, f64)]) -> Option<String> {
    let cost = |id: &str| own.iter().find(|(row, _)| id_of(&row.labels) == id);
    let ((_, procedure), (_, system)) = (cost("call-0")?, cost("getpid")?);
    let times = N.short(system / procedure);
    let [own, other] = [*system, *procedure].map(|ns| N.ns(ns, None));
    (*procedure > 0.0).then(|| {
        format!(
            "a system call (getpid) takes {times} times as long as a procedure call: {own} against {other}."
        )
    })
}

/// Compares a system call with the call that takes its place on a unikernel.
fn barrier(rows: &[(&Row, f64)]) -> Option<String> {
    let calls = || {
        let idle = rows.iter().filter(|(row, _)| row.load.is_idle());
        idle.filter(|(row, _)| id_of(&row.labels) == "getpid")
    };
    let is_bare = |row: &Row| row.group.capabilities().kernel == Kernel::None;
    let (with, with_ns) = calls().find(|(row, _)| !is_bare(row))?;
    let (without, without_ns) = calls().find(|(row, _)| is_bare(row))?;
    (with.emulated == without.emulated && *without_ns > 0.0).then(|| {
        format!(
            "The barrier between program and kernel: getpid takes {} on {}, and {} on {}.",
            N.ns(*with_ns, None),
            with.marked_target(),
            N.ns(*without_ns, None),
            without.marked_target()
        )
    })
}

/// Says in one short line what a cell has shown.
pub(super) fn live(data: &CellData<'_>) -> Result<String, String> {
    let (mut shown, mut all) = (Vec::new(), 0);
    for id in ["cost", "latency", "bandwidth", "share"] {
        let Some(measure) = MEASURES.iter().find(|measure| measure.id == id) else {
            continue;
        };
        for (labels, sample) in (measure.from)(data)? {
            all += 1;
            let value = sample.figure(measure.figures[0]).and_then(RunFigure::value);
            let shown_value =
                |value| format!("{} {}", named(&labels), written(value, measure.unit));
            shown.extend(value.map(shown_value));
        }
    }
    shown.truncate(2);
    match all {
        0 => Err("no primitive has figures here".to_owned()),
        all => Ok(format!(
            "{}, {}",
            words::counted(N, all, "figure", "figures"),
            shown.join(", ")
        )),
    }
}

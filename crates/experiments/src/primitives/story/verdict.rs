//! What a run says of primitives, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{CellData, Figure, Row, RunFigure, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::figure_or_modes;
use tare_pages::kit::series::native_first;

use super::measures::MEASURES;
use super::tables::{named, place};
use super::{N, Variant, is, known, machine};

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

/// The number of places of which a sentence names costs.
const PLACES: usize = 4;

/// Writes the verdict, a sentence for each target and load; `None` if nothing was measured. Cautions
/// are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let rows = || {
        let costs = known(run, "cost", Figure::Best);
        costs.chain(known(run, "bandwidth", Figure::Best))
    };
    let mut places: Vec<&Row> = Vec::new();
    for (row, _) in rows().chain(known(run, "latency", Figure::Best)) {
        if !places.iter().any(|of| is_there(row, of)) {
            places.push(row);
        }
    }
    let (places, _) = native_first(places, |row| row.emulated);
    let more = places.len().saturating_sub(PLACES);
    let each = places.iter().take(PLACES).filter_map(|of| {
        let own = rows().filter(|(row, _)| is_there(row, of));
        about(run, of, &own.collect::<Vec<_>>())
    });
    let mut each = Vec::from_iter(each);
    if more > 0 {
        let more = words::counted(
            N,
            more as u64,
            "more target or load",
            "more targets and loads",
        );
        each.push(format!("The tables have {more}."));
    }
    let details = each.split_off(1.min(each.len()));
    Some(Verdict {
        headline: each.pop()?,
        details,
        ..Verdict::default()
    })
}

/// Returns whether a row is of the target and load of another one.
fn is_there(row: &Row, of: &Row) -> bool {
    row.target == of.target && row.load == of.load
}

/// Says what primitives cost in one place; `None` if it has no cost.
fn about(run: &Run, of: &Row, own: &[(&Row, f64)]) -> Option<String> {
    let mut costs = key(own);
    let memory = of.load.is_idle().then(|| machine::slowest(run, &of.target));
    let runs = match of.each.len() {
        0 | 1 => "",
        _ => " (the curve of all runs)",
    };
    let memory = memory.flatten();
    costs.extend(memory.map(|ns| format!("a load from memory {}{runs}", N.ns(ns, None))));
    if costs.is_empty() {
        let (row, value) = own.iter().min_by_key(|(row, _)| place(&row.labels))?;
        let of = match own.len() {
            1 => String::new(),
            all => format!(", the first of {all} costs and bandwidths"),
        };
        let value = figure_or_modes(row, written(*value, row.unit), false);
        costs.push(format!("{} {value}{of}", named(&row.labels)));
    }
    let (target, under) = (of.marked_target(), of.load.under());
    Some(format!("On {target}{under}: {}.", words::list(&costs)))
}

/// Returns the costs of those of a place's primitives that a headline names.
fn key(own: &[(&Row, f64)]) -> Vec<String> {
    let told = KEY.iter().filter_map(|(variant, name)| {
        let (row, value) = own.iter().find(|(row, _)| is(row, *variant))?;
        let value = figure_or_modes(row, written(*value, row.unit), false);
        Some(format!("{name} {value}"))
    });
    told.collect()
}

/// Returns whether a row is of a primitive that the headline names.
pub(super) fn is_key(row: &Row) -> bool {
    KEY.iter().any(|(variant, _)| is(row, *variant))
}

/// Says in one short line what a cell has shown.
pub(super) fn live(data: &CellData<'_>) -> Result<String, String> {
    let (mut shown, mut figures, mut points) = (Vec::new(), 0, 0);
    for id in ["cost", "bandwidth", "share", "latency"] {
        let Some(measure) = MEASURES.iter().find(|measure| measure.id == id) else {
            continue;
        };
        for (labels, sample) in measure.samples(data)? {
            // Of latencies there are only curves and maps.
            match id {
                "latency" => points += 1,
                _ => figures += 1,
            }
            let value = measure
                .figure(measure.figures[0], &sample)
                .and_then(RunFigure::value);
            let shown_value =
                |value| format!("{} {}", named(&labels), written(value, measure.unit));
            shown.extend(value.map(shown_value));
        }
    }
    shown.truncate(2);
    let points = words::counted(N, points, "point of a curve", "points of curves");
    let figures = words::counted(N, figures, "figure", "figures");
    let counted = [figures, points].into_iter();
    let mut all = Vec::from_iter(counted.filter(|counted| !counted.starts_with("0 ")));
    if all.is_empty() {
        return Err("no primitive has figures here".to_owned());
    }
    all.extend(shown);
    Ok(all.join(", "))
}

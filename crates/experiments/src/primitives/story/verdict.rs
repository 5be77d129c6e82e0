//! What a run says of primitives, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{CellData, Figure, Row, RunFigure, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;

use super::measures::MEASURES;
use super::tables::named;
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
    Some(Verdict {
        headline: format!("On {target}{under}: {}.", words::list(&costs)),
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

/// Returns whether a row is of a primitive that the headline names.
pub(super) fn is_key(row: &Row) -> bool {
    KEY.iter().any(|(variant, _)| is(row, *variant))
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

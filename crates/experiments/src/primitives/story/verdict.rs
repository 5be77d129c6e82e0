//! What a run says of primitives, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{CellData, Figure, Row, RunFigure, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::sure;
use tare_results::target::Kernel;

use super::measures::{MEASURES, id_of};
use super::tables::named;
use super::{N, Variant, checks, is, known, machine};

/// The primitives that a headline names, each with its name in a sentence.
const KEY: [(Variant, &str); 6] = [
    (("getppid", &[]), "a system call"),
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
    let told = KEY.iter().filter_map(|(variant, name)| {
        let (row, value) = own.iter().find(|(row, _)| is(row, *variant))?;
        Some((*row, format!("{name} {}", written(*value, row.unit))))
    });
    let told: Vec<(&Row, String)> = told.collect();
    let mut costs: Vec<String> = told.iter().map(|(_, text)| text.clone()).collect();
    let memory = machine::slowest(run, &first.target);
    costs.extend(memory.map(|ns| format!("a load from memory {}", N.ns(ns, None))));
    if costs.is_empty() {
        let (row, value) = own.first()?;
        costs.push(format!(
            "{} {}",
            named(&row.labels),
            written(*value, row.unit)
        ));
    }
    let (target, under) = (first.marked_target(), first.load.under());
    let details = [
        expectations(run),
        machine::sentence(run),
        calls(&own),
        barrier(&rows),
        absent(run),
    ];
    let sure = |(row, _): &(&Row, String)| sure(&named(&row.labels), row);
    Some(Verdict {
        headline: format!("On {target}{under}: {}.", words::list(&costs)),
        details: details.into_iter().flatten().collect(),
        certainty: told.iter().take(2).map(sure).collect(),
        ..Verdict::default()
    })
}

/// Returns whether a row is of a primitive that the headline names.
pub(super) fn is_key(row: &Row) -> bool {
    KEY.iter().any(|(variant, _)| is(row, *variant))
}

/// Returns how many primitives have no figures.
fn absent(run: &Run) -> Option<String> {
    let all = checks::absent(run).len() as u64;
    let absent = words::counted(N, all, "primitive has", "primitives have");
    (all > 0).then(|| format!("{absent} no figures here; the report says why."))
}

/// Returns how many expectations came true, and which missed by most.
fn expectations(run: &Run) -> Option<String> {
    let ratios = known(run, "ratio", Figure::Value).filter(|(_, ratio)| *ratio > 0.0);
    let ratios: Vec<(&Row, f64)> = ratios.collect();
    let far = |ratio: f64| ratio.ln().abs();
    let (row, most) = ratios.iter().max_by(|a, b| far(a.1).total_cmp(&far(b.1)))?;
    let near = ratios.iter().filter(|(_, own)| far(*own) <= MISSED.ln());
    let most = match *most >= 1.0 {
        true => format!("{} times", N.short(*most)),
        false => format!("{} of", N.percent(*most)),
    };
    Some(format!(
        "{} of {} expectations were right within a factor of 2; furthest off is {}, at {most} what was expected.",
        near.count(),
        ratios.len(),
        named(&row.labels)
    ))
}

/// Compares a procedure call with a system call, both without arguments, on one target.
fn calls(own: &[(&Row, f64)]) -> Option<String> {
    let cost = |id: &str| own.iter().find(|(row, _)| id_of(&row.labels) == id);
    let ((_, procedure), (_, system)) = (cost("call-0")?, cost("getpid")?);
    let times = N.short(system / procedure);
    let [own, other] = [*system, *procedure].map(|ns| N.ns(ns, None));
    (*procedure > 0.0).then(|| {
        format!(
            "A system call (getpid) takes {times} times as long as a procedure call: {own} against {other}."
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

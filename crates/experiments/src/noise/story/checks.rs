//! Checks whether the figures of noise may be believed.

use std::collections::{BTreeMap, BTreeSet};

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::interval::Time;
use tare_figures::notices::{Notice, Severity, name_some};
use tare_figures::rows::Figure;
use tare_figures::words;
use tare_pages::kit::checks::{about, about_cells, latency_not_held};
use tare_results::model::{CellPlan, Labels};
use tare_results::target::Kernel;

use super::super::workload;
use super::NAME;
use super::panels::step;

const N: Numbers = Numbers::PLAIN;

/// The number of steps of the timer from which on the shortest gap is long enough for its length to
/// be taken as known: with ten, one step is 10 % of it.
const STEPS_OF_GAP: f64 = 10.0;
/// The share of the median duration above which the timer's step is reported to shape the
/// distribution.
const STEP_OF_MEDIAN: f64 = 0.02;

/// Returns the notices about all cases.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let cases = Case::all(run, NAME);
    let mut notices = work_differs(&cases);
    let near = |threshold, step| threshold < STEPS_OF_GAP * step;
    // A step of one cycle is as fine as the counter.
    let narrow = |median, step| step > 1.0 && median * STEP_OF_MEDIAN < step;
    let others = [
        list_full(
            &cases,
            "gap",
            "Time lost, rate and longest gap include the others. Percentiles, classes and the standard deviation are \
             missing; pictures show the listed ones only.",
        ),
        list_full(
            &cases,
            "duration",
            "All figures include the others, since they come from exact counts; over time only the longest of each bin is \
             drawn.",
        ),
        coarse(
            &cases,
            ("threshold", Figure::Max),
            near,
            |step, labels, threshold| {
                format!(
                    "The timer advances in steps of {step}, and gaps count from {threshold} on ({labels}): near that length one \
                 step decides whether there is a gap at all. Do not rely on the number of such short gaps; raise --threshold."
                )
            },
        ),
        coarse(
            &cases,
            ("duration", Figure::MEDIAN),
            narrow,
            |step, labels, median| {
                format!(
                    "The timer advances in steps of {step}, and {labels} takes only {median} in the median: some steps of the \
                 spread of common durations are the timer's doing. Means, shares of time and delays of many steps are not \
                 affected."
                )
            },
        ),
        page_sizes(&cases, run),
        about_cells(
            (Severity::Note, "idle-states-allowed"),
            &latency_not_held(run, NAME),
            |cells| {
                format!(
                    "/dev/cpu_dma_latency was not held in {cells}, so cores next to the measured one could enter deep idle states \
                 and change its turbo frequency. Run as root, or give access to that file."
                )
            },
        ),
    ];
    notices.extend(others.into_iter().flatten());
    notices
}

/// The targets by what was done, of each workload and size.
type Sizes<'a> = BTreeMap<(&'a str, u64), BTreeMap<[u64; 2], BTreeSet<&'a str>>>;

/// Compares the work of all cells of the same workload and size.
fn work_differs(cases: &[Case<'_>]) -> Vec<Notice> {
    let mut sizes: Sizes<'_> = BTreeMap::new();
    for case in cases {
        let plan = case.plan;
        let Some(size) = plan.labels.number("size") else {
            continue;
        };
        let done = sizes.entry((&plan.work.id, size)).or_default();
        for record in case.records() {
            let value = |measure| record.value(measure, &Labels::default());
            let work = ["result", "work"].map(|measure| value(measure).unwrap_or_default() as u64);
            done.entry(work).or_default().insert(&plan.target.text);
        }
    }
    let differing = sizes.into_iter().filter(|(_, done)| done.len() > 1);
    let notice = |((workload, size), done): (_, BTreeMap<[u64; 2], BTreeSet<&str>>)| {
        let each = done.into_iter().map(|([result, work], targets)| {
            let targets = Vec::from_iter(targets).join(" and ");
            format!(
                "{targets}: result {}, {} steps",
                N.count(result),
                N.count(work)
            )
        });
        let each = each.collect::<Vec<_>>().join("; ");
        let text = format!(
            "The cells of {workload} {size} did not do the same work ({each}). Their figures cannot be compared; one of the \
             programs is broken or of another version: rebuild all of them and measure again."
        );
        Notice::error("work-differs", text)
    };
    differing.map(notice).collect()
}

/// Finds cells whose list had no room for all gaps or delays.
fn list_full(cases: &[Case<'_>], measure: &str, lost: &str) -> Option<Notice> {
    let (mut cells, mut kept, mut seen) = (Vec::new(), 0, 0);
    for cell in cases.iter().flat_map(|case| &case.cells) {
        let record = cell.outcome.record().into_iter();
        let head = record.flat_map(|record| record.sets_of(measure)).next();
        if let Some((_, head)) = head.filter(|(_, head)| head.kept < head.seen) {
            cells.push(cell.plan.id);
            kept += head.kept;
            seen += head.seen;
        }
    }
    about_cells((Severity::Warning, "list-full"), &cells, |cells| {
        let (kept, seen) = (N.count(kept), N.count(seen));
        format!(
            "In {cells} the list of delays was full: {kept} of {seen} are listed. {lost} Raise --threshold or lower \
             --repetitions to have all of them listed."
        )
    })
}

/// Warns of cases whose figure is too short for the step of their timer; `text` gets step, labels
/// and figure of the shortest.
fn coarse(
    cases: &[Case<'_>],
    (measure, figure): (&str, Figure),
    is_coarse: impl Fn(f64, f64) -> bool,
    text: impl Fn(String, &str, String) -> String,
) -> Option<Notice> {
    let found = cases.iter().filter_map(|case| {
        let row = case.row(measure, figure, &[])?;
        let value = row.estimate()?;
        let cycles = row.time(value).cycles;
        is_coarse(cycles, step(case) as f64).then(|| (cycles, case, row.in_time(N, value)))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let labels: Vec<String> = found.iter().map(|(_, case, _)| case.plan.label()).collect();
    let ((_, worst, least), (_, _, most)) = (found.first()?, found.last()?);
    let values = match least == most {
        true => least.clone(),
        false => format!("{least} to {most}"),
    };
    let step = words::step(N, Time::new(step(worst) as f64, worst.hz()));
    about((Severity::Warning, "coarse-timer"), &labels, |labels| {
        text(step, labels, values)
    })
}

/// Warns that a workload on memory meets pages of different sizes: the unikernel maps its buffers
/// with large pages.
fn page_sizes(cases: &[Case<'_>], run: &Run) -> Option<Notice> {
    let uses_memory = |plan: &&CellPlan| workload(&plan.work.id).is_some_and(|one| one.uses_memory);
    let plans = || cases.iter().map(|case| case.plan).filter(uses_memory);
    let ids: BTreeSet<String> = plans().map(|plan| plan.work.id.clone()).collect();
    let of = |is_large: bool| {
        let own = plans().filter(|plan| (plan.target.kernel() == Kernel::None) == is_large);
        let targets: BTreeSet<String> = own.map(|plan| plan.target.text.clone()).collect();
        Vec::from_iter(targets)
    };
    let (large, small) = (of(true), of(false));
    let setting = run.machine.as_ref();
    let setting = setting.and_then(|record| record.machine.memory.transparent_hugepages.known());
    let transparent = setting.map_or_else(String::new, |setting| {
        format!("; transparent huge pages on this machine: {setting}")
    });
    let small = (!small.is_empty()).then(|| name_some(&small))?;
    let ids = name_some(&Vec::from_iter(ids));
    about((Severity::Warning, "page-sizes"), &large, |large| {
        format!(
            "The buffers of {large} lie on pages of 2 MiB, those of {small} on pages of 4 KiB unless their kernel gave huge \
             ones{transparent}: a comparison by {ids} includes that difference, since more pages are more misses of the \
             TLB. Compare a workload that stays in registers, or sizes that need few pages."
        )
    })
}

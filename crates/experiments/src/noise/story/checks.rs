//! Finds what bears on whether the figures of noise may be believed.

use std::collections::{BTreeMap, BTreeSet};

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::interval::Time;
use tare_figures::notices::{Notice, name_cells, name_some};
use tare_figures::rows::Figure;
use tare_figures::words;
use tare_results::model::{Cell, CellPlan, Labels, Record};
use tare_results::target::Kernel;

use super::super::workload;
use super::NAME;
use super::panels::step;

const N: Numbers = Numbers::PLAIN;

/// How many steps of the timer the shortest gap must have before its length is taken as known: with ten, one step is 10 %
/// of it.
const STEPS_OF_GAP: f64 = 10.0;
/// The share of the median duration from which the timer's step is said to shape the distribution.
const STEP_OF_MEDIAN: f64 = 0.02;

/// Finds what bears on the figures of all cases.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let cases = Case::all(run, NAME);
    let mut notices = work_differs(&cases);
    let full = [
        (
            "gap",
            "Time lost, rate and longest gap include the others. Percentiles, classes and the standard deviation are refused; \
             pictures show the listed ones only.",
        ),
        (
            "duration",
            "All figures include the others, since they come from exact counts; over time only the longest of each bin is \
             drawn.",
        ),
    ];
    notices.extend(
        full.into_iter()
            .filter_map(|(measure, lost)| list_full(&cases, measure, lost)),
    );
    let near = |threshold, step| threshold < STEPS_OF_GAP * step;
    notices.extend(coarse(&cases, ("threshold", Figure::Max), near, |step, labels, threshold| {
        format!(
            "The timer advances in steps of {step}, and gaps count from {threshold} on ({labels}): near that length one step \
             decides whether there is a gap at all. Do not rely on how many are so short; raise --threshold."
        )
    }));
    // A step of one cycle is as fine as the counter.
    let narrow = |median, step| step > 1.0 && median * STEP_OF_MEDIAN < step;
    notices.extend(coarse(&cases, ("duration", Figure::MEDIAN), narrow, |step, labels, median| {
        format!(
            "The timer advances in steps of {step}, and {labels} takes only {median} in the median: how common durations \
             spread is mostly the timer's doing. Means, shares of time and delays of many steps are not affected."
        )
    }));
    notices.extend(page_sizes(&cases, run));
    let not_held = |cell: &&&Cell| {
        let program = cell.outcome.record().and_then(Record::program);
        program.is_some_and(|program| {
            !program.preparation.latency_held && program.agent.environment != "unikernel"
        })
    };
    let not_held = cases.iter().flat_map(|case| &case.cells).filter(not_held);
    let not_held: Vec<u32> = not_held.map(|cell| cell.plan.id).collect();
    if !not_held.is_empty() {
        notices.push(Notice::note(
            "idle-states-allowed",
            format!(
                "/dev/cpu_dma_latency was not held in {}, so cores next to the measured one could enter deep idle states and \
                 change its turbo frequency. Run as root, or give access to that file.",
                name_cells(&not_held)
            ),
        ));
    }
    notices
}

/// Compares the work of all cells of the same workload and size.
fn work_differs(cases: &[Case<'_>]) -> Vec<Notice> {
    type Work = (u64, u64);
    let mut sizes: BTreeMap<(&str, u64), BTreeMap<Work, Vec<&str>>> = BTreeMap::new();
    for case in cases {
        let plan = case.plan;
        let Some(size) = plan.labels.number("size") else {
            continue;
        };
        for record in case.records() {
            let value = |measure| {
                record
                    .value(measure, &Labels::default())
                    .unwrap_or_default() as u64
            };
            let work = (value("result"), value("work"));
            let done = sizes.entry((&plan.work.id, size)).or_default();
            let targets = done.entry(work).or_default();
            if !targets.contains(&plan.target.text.as_str()) {
                targets.push(&plan.target.text);
            }
        }
    }
    let differing = sizes.into_iter().filter(|(_, done)| done.len() > 1);
    let notice = |((workload, size), done): (_, BTreeMap<Work, Vec<&str>>)| {
        let said = done.iter().map(|((result, work), targets)| {
            let who = targets.join(" and ");
            format!(
                "{who}: result {}, {} steps",
                N.count(*result),
                N.count(*work)
            )
        });
        Notice::error(
            "work-differs",
            format!(
                "The cells of {workload} {size} did not do the same work ({}). Their figures cannot be compared; one of the \
                 programs is broken or of another version: build all of them anew and measure again.",
                said.collect::<Vec<_>>().join("; ")
            ),
        )
    };
    differing.map(notice).collect()
}

/// Finds cells whose list had no room for all gaps or delays.
fn list_full(cases: &[Case<'_>], measure: &str, lost: &str) -> Option<Notice> {
    let (mut cells, mut kept, mut seen) = (Vec::new(), 0, 0);
    for cell in cases.iter().flat_map(|case| &case.cells) {
        let mut heads = cell
            .outcome
            .record()
            .into_iter()
            .flat_map(|record| record.sets_of(measure));
        if let Some((_, head)) = heads.next().filter(|(_, head)| head.kept < head.seen) {
            cells.push(cell.plan.id);
            kept += head.kept;
            seen += head.seen;
        }
    }
    (!cells.is_empty()).then(|| {
        Notice::warning(
            "list-full",
            format!(
                "In {} the list of delays was full: {} of {} are listed. {lost} Raise --threshold or lower --repetitions to \
                 have all of them listed.",
                name_cells(&cells),
                N.count(kept),
                N.count(seen)
            ),
        )
    })
}

/// Warns of cases whose figure is too short for the step of their timer; `say` gets the step and figure of the shortest.
fn coarse(
    cases: &[Case<'_>],
    (measure, figure): (&str, Figure),
    is: impl Fn(f64, f64) -> bool,
    say: impl Fn(String, String, String) -> String,
) -> Option<Notice> {
    let mut coarse: Vec<(f64, &Case<'_>, String)> = Vec::new();
    for case in cases {
        let Some(row) = case.row(measure, figure, &[]) else {
            continue;
        };
        let Ok(over) = &row.over else { continue };
        let value = if figure == Figure::Max {
            over.highest
        } else {
            over.estimate
        };
        let cycles = row.time(value).cycles;
        if is(cycles, step(case) as f64) {
            coarse.push((cycles, case, row.in_time(N, value)));
        }
    }
    coarse.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (_, worst, least) = coarse.first()?;
    let step = words::step(N, Time::new(step(worst) as f64, worst.hz()));
    let labels: Vec<String> = coarse
        .iter()
        .map(|(_, case, _)| case.plan.label())
        .collect();
    Some(Notice::warning(
        "coarse-timer",
        say(step, name_some(&labels), least.clone()),
    ))
}

/// Warns that a workload on memory meets pages of different sizes: the unikernel maps its buffers with large pages.
fn page_sizes(cases: &[Case<'_>], run: &Run) -> Option<Notice> {
    let uses_memory = |plan: &&CellPlan| workload(&plan.work.id).is_some_and(|one| one.uses_memory);
    let plans = || cases.iter().map(|case| case.plan).filter(uses_memory);
    let ids: BTreeSet<String> = plans().map(|plan| plan.work.id.clone()).collect();
    let of = |is_large: bool| {
        let mut targets: Vec<String> = plans()
            .filter(|plan| (plan.target.kernel() == Kernel::None) == is_large)
            .map(|plan| plan.target.text.clone())
            .collect();
        targets.sort();
        targets.dedup();
        targets
    };
    let (large, small) = (of(true), of(false));
    let setting = run.machine.as_ref();
    let setting = setting.and_then(|record| record.machine.memory.transparent_hugepages.known());
    let transparent = setting.map_or_else(String::new, |setting| {
        format!("; transparent huge pages on this machine: {setting}")
    });
    (!large.is_empty() && !small.is_empty()).then(|| {
        Notice::warning(
            "page-sizes",
            format!(
                "The buffers of {} lie on pages of 2 MiB, those of {} on pages of 4 KiB unless their kernel gave huge \
                 ones{transparent}: a comparison by {} includes that difference, since more pages are more misses of the \
                 TLB. Compare a workload that stays in registers, or sizes that need few pages.",
                name_some(&large),
                name_some(&small),
                name_some(&Vec::from_iter(ids))
            ),
        )
    })
}

//! Finds what bears on whether the figures of noise may be believed.

use std::collections::BTreeMap;

use tare_report::analysis::{Alarm, Run, Time, name_cells, name_some};
use tare_report::cases::Case;
use tare_report::format::Numbers;
use tare_report::rows::Figure;
use tare_report::words;
use tare_results::model::{Cell, Labels, Record};
use tare_results::target::Group;

use super::NAME;
use super::panels::step;

const N: Numbers = Numbers::PLAIN;

/// How many steps of the timer the shortest gap must have before its length is taken as known: with ten, one step is 10 %
/// of it.
const STEPS_OF_GAP: f64 = 10.0;
/// The share of the median duration from which the timer's step is said to shape the distribution.
const STEP_OF_MEDIAN: f64 = 0.02;

/// Finds what bears on the figures of all cases.
pub(super) fn find(run: &Run) -> Vec<Alarm> {
    let cases = Case::all(run, NAME);
    let mut alarms = work_differs(&cases);
    alarms.extend(list_full(
        &cases,
        "gap",
        "Time lost, rate and longest gap include the others; percentiles, classes, \
                                            period and pictures do not.",
    ));
    alarms.extend(list_full(
        &cases,
        "duration",
        "All figures include the others, since they come from exact counts; over \
                                                 time only the longest of each bin is drawn.",
    ));
    alarms.extend(coarse_gaps(&cases));
    alarms.extend(coarse_spread(&cases));
    alarms.extend(page_sizes(&cases, run));
    let not_held = |cell: &&Cell| {
        let program = cell.outcome.record().and_then(Record::program);
        program.is_some_and(|program| {
            !program.preparation.latency_held && program.agent.environment != "unikernel"
        })
    };
    let not_held = cases
        .iter()
        .flat_map(|case| case.cells.iter().copied())
        .filter(not_held);
    let not_held: Vec<u32> = not_held.map(|cell| cell.plan.id).collect();
    if !not_held.is_empty() {
        alarms.push(Alarm::note(
            "idle-states-allowed",
            format!(
                "/dev/cpu_dma_latency was not held in {}, so cores next to the measured one could enter deep idle states and \
                 change its turbo frequency. Run as root, or give access to that file.",
                name_cells(&not_held)
            ),
        ));
    }
    alarms
}

/// Compares the work of all cells of the same workload and size.
fn work_differs(cases: &[Case<'_>]) -> Vec<Alarm> {
    type Work = (u64, u64);
    let mut sizes: BTreeMap<(&str, u64), BTreeMap<Work, Vec<&str>>> = BTreeMap::new();
    for case in cases {
        let plan = case.plan;
        let Some(size) = plan.size else { continue };
        for record in case.records() {
            let value = |measure| {
                record
                    .value(measure, &Labels::default())
                    .unwrap_or_default() as u64
            };
            let work = (value("result"), value("work"));
            let done = sizes.entry((&plan.workload, size)).or_default();
            let targets = done.entry(work).or_default();
            if !targets.contains(&plan.target.text.as_str()) {
                targets.push(&plan.target.text);
            }
        }
    }
    let differing = sizes.into_iter().filter(|(_, done)| done.len() > 1);
    let alarm = |((workload, size), done): (_, BTreeMap<Work, Vec<&str>>)| {
        let said = done.iter().map(|((result, work), targets)| {
            let who = targets.join(" and ");
            format!(
                "{who}: result {}, {} steps",
                N.count(*result),
                N.count(*work)
            )
        });
        Alarm::error(
            "work-differs",
            format!(
                "The cells of {workload} {size} did not do the same work ({}). Their figures cannot be compared; one of the \
                 programs is broken or of another version: build all of them anew and measure again.",
                said.collect::<Vec<_>>().join("; ")
            ),
        )
    };
    differing.map(alarm).collect()
}

/// Finds cells whose list had no room for all gaps or delays.
fn list_full(cases: &[Case<'_>], measure: &str, lost: &str) -> Option<Alarm> {
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
        Alarm::warning(
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

/// Returns the cases whose figure is too short for the step of their timer, with it: the shortest first.
fn coarse<'c, 'a>(
    cases: &'c [Case<'a>],
    (measure, figure): (&str, Figure),
    is: impl Fn(f64, f64) -> bool,
) -> Option<(Vec<String>, String, String)> {
    let cycles = |case: &'c Case<'a>| {
        let row = case.row(measure, figure, &[])?;
        let over = row.over.as_ref().ok()?;
        let value = if figure == Figure::Max {
            over.highest
        } else {
            over.estimate
        };
        let cycles = row.time(value).cycles;
        is(cycles, step(case) as f64).then(|| (case, cycles, row.in_time(N, value)))
    };
    let mut coarse: Vec<_> = cases.iter().filter_map(cycles).collect();
    coarse.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (worst, _, least) = coarse.first()?;
    let step = words::step(N, Time::new(step(worst) as f64, worst.hz()));
    let labels = coarse.iter().map(|(case, ..)| case.plan.label());
    Some((labels.collect(), step, least.clone()))
}

/// Finds cases of `gap` whose shortest gaps are only some steps long.
fn coarse_gaps(cases: &[Case<'_>]) -> Option<Alarm> {
    let is = |threshold, step| threshold < STEPS_OF_GAP * step;
    let (labels, step, threshold) = coarse(cases, ("threshold", Figure::Max), is)?;
    Some(Alarm::warning(
        "coarse-timer",
        format!(
            "The timer advances in steps of {step}, and gaps count from {threshold} on ({}): near that length one step \
             decides whether there is a gap at all. Do not rely on how many are so short; raise --threshold.",
            name_some(&labels)
        ),
    ))
}

/// Finds cases of timed workloads whose distribution is only some steps wide. A step of one cycle is as fine as the counter.
fn coarse_spread(cases: &[Case<'_>]) -> Option<Alarm> {
    let is = |median, step| step > 1.0 && median * STEP_OF_MEDIAN < step;
    let (labels, step, median) = coarse(cases, ("duration", Figure::MEDIAN), is)?;
    Some(Alarm::warning(
        "coarse-timer",
        format!(
            "The timer advances in steps of {step}, and {} takes only {median} in the median: how common durations spread is \
             mostly the timer's doing. Means, shares of time and delays of many steps are not affected.",
            name_some(&labels)
        ),
    ))
}

/// Says that `copy` meets pages of different sizes: the unikernel maps its buffers with large pages.
fn page_sizes(cases: &[Case<'_>], run: &Run) -> Option<Alarm> {
    let of = |is_large: bool| {
        let mut targets: Vec<String> = (cases.iter().map(|case| case.plan))
            .filter(|plan| plan.workload == "copy" && plan.target.group != Group::Foreign)
            .filter(|plan| (plan.target.group == Group::Unikernel) == is_large)
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
        Alarm::warning(
            "page-sizes",
            format!(
                "The buffers of {} lie on pages of 2 MiB, those of {} on pages of 4 KiB unless their kernel gave huge \
                 ones{transparent}: copy compares them under that difference, since more pages are more misses of the TLB. \
                 Compare prime, or sizes that need few pages.",
                name_some(&large),
                name_some(&small)
            ),
        )
    })
}

//! What bears on whether wake-up latencies may be believed.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::notices::{Notice, name_cells, name_some};
use tare_trace::blame::Culprit;

use super::words::{N, cases, fact_of};
use super::{NAME, Woken, late, recording, sums, total};

/// The share of an interval from which on recording costs much.
const COSTLY: f64 = 0.02;

/// Finds what bears on the figures of wake-ups.
pub(super) fn find(story: &Woken, run: &Run) -> Vec<Notice> {
    let cases = cases(run);
    let labels = |of: &dyn Fn(&Case<'_>) -> bool| -> Vec<String> {
        let found = cases.iter().filter(|case| of(case));
        found.map(|case| case.plan.label()).collect()
    };
    let mut notices = Vec::new();
    let is_uncounted = |case: &Case<'_>| total(case, "uncounted") > 0.0;
    let uncounted = labels(&is_uncounted);
    if !uncounted.is_empty() {
        let each = cases.iter().filter(|case| is_uncounted(case));
        let (counted, woken) = each
            .map(|case| sums(case, "uncounted"))
            .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
        notices.push(Notice::warning(
            "wakeups-uncounted",
            format!(
                "There was no room for the latencies of {} of {} wake-ups of {}: they are in no mean and no quantile, only in \
                 the maximum over all phases and in the number of missed activations. Measure for a shorter time, or in fewer \
                 phases.",
                N.count(counted as u64),
                N.count(woken as u64),
                name_some(&uncounted)
            ),
        ));
    }
    let is_costly = |case: &Case<'_>| recording(case).0 > COSTLY;
    let costly = cases.iter().filter(|case| is_costly(case)).map(recording);
    if let Some((share, ns)) = costly.max_by(|a, b| a.0.total_cmp(&b.0)) {
        notices.push(Notice::warning(
            "recording-cost",
            format!(
                "Recording a wake-up takes {} of the interval ({}) on {}: the measured CPU is busier than the measurement \
                 claims. Choose a longer interval.",
                N.percent(share),
                N.ns(ns, None),
                name_some(&labels(&is_costly))
            ),
        ));
    }
    let throttled = |case: &Case<'_>| story.worst(case).iter().filter(|w| is_throttled(w)).count();
    let held_up = labels(&|case| throttled(case) > 0);
    if !held_up.is_empty() {
        let wakeups: usize = cases.iter().map(throttled).sum();
        notices.push(Notice::warning(
            "rt-throttled",
            format!(
                "RT throttling, the kernel's limit for all real-time threads together, made {} of the worst wake-ups of {} \
                 late: somebody had used the limit up. Find out who, or turn it off: `sysctl -w \
                 kernel.sched_rt_runtime_us=-1`.",
                N.count(wakeups as u64),
                name_some(&held_up)
            ),
        ));
    }
    let ordinary = labels(&|case| fact_of(case, "scheduling policy", 0) == Some("other"));
    if !ordinary.is_empty() {
        notices.push(Notice::note(
            "ordinary-task",
            format!(
                "The threads of {} were ordinary tasks (SCHED_OTHER): their latencies hold the turns of other tasks as well as \
                 what the kernel takes. Use --policy fifo to leave those out.",
                name_some(&ordinary)
            ),
        ));
    }
    let beyond: f64 = cases.iter().map(beyond_the_end).sum();
    if beyond > 0.0 {
        notices.push(Notice::note(
            "missed-beyond-end",
            format!(
                "{} activations that the last wake-ups missed lie behind the end of the measurement. They are among the \
                 response latencies, since the stall was as long as that.",
                N.count(beyond as u64)
            ),
        ));
    }
    let cells = run.cells.iter().filter(|cell| cell.plan.experiment == NAME);
    let asleep = cells.filter(|cell| {
        let program = cell.outcome.record().and_then(|record| record.program());
        program.is_some_and(|program| {
            !program.preparation.latency_held && program.agent.environment != "unikernel"
        })
    });
    let asleep: Vec<u32> = asleep.map(|cell| cell.plan.id).collect();
    if !asleep.is_empty() {
        notices.push(Notice::warning(
            "woken-from-idle",
            format!(
                "/dev/cpu_dma_latency was not held in {}: the measured CPU could enter deep idle states between wake-ups, and \
                 leaving one lengthens each. Run as root, or give access to that file.",
                name_cells(&asleep)
            ),
        ));
    }
    notices.extend(late::find(run));
    notices
}

fn is_throttled(worst: &super::Worst) -> bool {
    let blame = worst.blame.as_ref();
    blame.is_some_and(|blame| matches!(blame.culprit, Culprit::Throttled { .. }))
}

/// Returns how many activations the last wake-ups missed that were not planned any more.
fn beyond_the_end(case: &Case<'_>) -> f64 {
    let derived = total(case, "missed") + total(case, "missed between");
    (derived - total(case, "skipped")).max(0.0)
}

//! What bears on whether wake-up latencies may be believed.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::notices::{Notice, Severity};
use tare_pages::kit::checks::{about, about_cells, labels, latency_not_held, untraced};
use tare_trace::blame::Culprit;

use super::words::{N, cases, fact_of};
use super::{NAME, Woken, costliest, late, recording, sums, total};

/// The share of an interval from which on recording costs much.
const COSTLY: f64 = 0.02;

/// Finds what bears on the figures of wake-ups.
pub(super) fn find(story: &Woken, run: &Run) -> Vec<Notice> {
    use Severity::{Note, Warning};
    let cases = cases(run);
    let uncounted = cases.iter().map(|case| sums(case, "uncounted"));
    let (uncounted, woken) = uncounted
        .filter(|(uncounted, _)| *uncounted > 0.0)
        .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let (share, ns) = costliest(&cases).map(recording).unwrap_or_default();
    let throttled = |case: &Case<'_>| story.worst(case).iter().filter(|w| is_throttled(w)).count();
    let held_up: usize = cases.iter().map(throttled).sum();
    let is_ordinary = |case: &Case<'_>| fact_of(case, "scheduling policy", 0) == Some("other");
    let asleep = latency_not_held(run, NAME);
    let own = run.plan.cells.iter().filter(|plan| plan.experiment == NAME);
    let traced = own.map(|plan| (plan.target.text.clone(), plan.is_traced()));
    let notices = [
        about(
            (Warning, "wakeups-uncounted"),
            &labels(&cases, |case| total(case, "uncounted") > 0.0),
            |names| {
                format!(
                    "{} of {} latencies of {names} were not counted one by one; their range and maximum are known. A figure \
                     that may lie among them is shown as what it is at least. Measure for a shorter time, in fewer phases, or, \
                     where another tool did, with a longer histogram.",
                    N.count(uncounted as u64),
                    N.count(woken as u64)
                )
            },
        ),
        about(
            (Warning, "recording-cost"),
            &labels(&cases, |case| recording(case).0 > COSTLY),
            |names| {
                format!(
                    "Recording a wake-up takes up to {} of the interval ({}) on {names}: the measured CPU is busier than the \
                     measurement claims. Choose a longer interval.",
                    N.percent(share),
                    N.ns(ns, None)
                )
            },
        ),
        about(
            (Warning, "rt-throttled"),
            &labels(&cases, |case| throttled(case) > 0),
            |names| {
                format!(
                    "RT throttling, the kernel's limit for all real-time threads together, made {} of the worst wake-ups of \
                     {names} late: the limit had been used up. Find out by whom, or turn it off: `sysctl -w \
                     kernel.sched_rt_runtime_us=-1`.",
                    N.count(held_up as u64)
                )
            },
        ),
        about(
            (Note, "ordinary-task"),
            &labels(&cases, is_ordinary),
            |names| {
                format!(
                    "The threads of {names} were ordinary tasks (SCHED_OTHER): their latencies hold the turns of other tasks as \
                 well as the time that the kernel takes. Use --policy fifo to exclude those turns."
                )
            },
        ),
        untraced("--trace", traced),
        about_cells((Warning, "woken-from-idle"), &asleep, |cells| {
            format!(
                "/dev/cpu_dma_latency was not held in {cells}: the measured CPU could enter deep idle states between wake-ups, \
                 and leaving one lengthens each. Run as root, or give access to that file."
            )
        }),
    ];
    notices
        .into_iter()
        .flatten()
        .chain(late::find(run))
        .collect()
}

fn is_throttled(worst: &super::Worst) -> bool {
    let blame = worst.blame.as_ref();
    blame.is_some_and(|blame| matches!(blame.culprit, Culprit::Throttled { .. }))
}

//! How long a batch of noise will take, roughly.

use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_measured::noise::{Plan, Workload};

/// The time of the two stamps around a repetition and its store.
const STAMPS_NS: f64 = 45.0;
/// The time to fold one sample.
const FOLD_NS: f64 = 10.0;

/// The time to end the recording of the kernel's events.
const EXPLAINED_SECONDS: f64 = 1.0;

/// Returns the estimated duration of a cell in seconds.
#[must_use]
pub fn seconds(plan: &Plan, workload: &Workload) -> f64 {
    if let Some(ns) = plan.duration_ns {
        let explained = f64::from(u8::from(plan.explain_ns.is_some()));
        return OVERHEAD_SECONDS + EXPLAINED_SECONDS * explained + ns as f64 / 1e9;
    }
    let work_ns = (workload.ns)(plan.size);
    let (stamps_ns, fold_ns) = match plan.workload.only_reads_clock() {
        true => (0.0, 0.0),
        false => (STAMPS_NS, FOLD_NS),
    };
    let (timed, untimed) = (plan.repetitions as f64, plan.warmup as f64);
    OVERHEAD_SECONDS + ((timed + untimed) * (work_ns + stamps_ns) + timed * fold_ns) / 1e9
}

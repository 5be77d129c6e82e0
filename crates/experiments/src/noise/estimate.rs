//! How long a batch of noise will take, roughly.

use tare_lab::estimate::OVERHEAD_SECONDS;
use tare_measured::noise::{Plan, Workload};

/// The time of one 32-bit division with the loop around it.
const DIVISION_NS: f64 = 3.0;
/// The time to copy and increment one element.
const ELEMENT_NS: f64 = 0.5;
/// The time of the two stamps around a repetition and its store.
const STAMPS_NS: f64 = 45.0;
/// The time of one bare timer read.
const READ_NS: f64 = 9.0;
/// The time to fold one sample.
const FOLD_NS: f64 = 10.0;

/// Returns the estimated duration of a cell in seconds.
#[must_use]
pub fn seconds(plan: &Plan) -> f64 {
    let repetition_ns = match plan.workload {
        Workload::Prime { limit } => divisions(limit) * DIVISION_NS + STAMPS_NS,
        Workload::Copy { size } => size as f64 * ELEMENT_NS + STAMPS_NS,
        Workload::Gap => READ_NS,
    };
    let fold_ns = match plan.workload {
        Workload::Gap => 0.0,
        Workload::Prime { .. } | Workload::Copy { .. } => plan.repetitions as f64 * FOLD_NS,
    };
    let all = plan.repetitions as f64 + plan.warmup as f64;
    OVERHEAD_SECONDS + (all * repetition_ns + fold_ns) / 1e9
}

/// Approximates the number of divisions for `limit` by the prime number theorem: primes dominate,
/// each p costs p − 1 divisions, and the primes below x sum to about x² / (2 ln x).
fn divisions(limit: u32) -> f64 {
    let x = f64::from(limit).max(3.0);
    x * x / (2.0 * x.ln()) + x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximation_of_divisions_is_within_a_fifth_of_the_count() {
        // Counted by the workload itself, which this crate can't call: limit 22 takes 84 (the
        // figure of kot-2019), limit 46 takes 310, limit 1000 takes 78 189.
        for (limit, count) in [(22, 84.0), (46, 310.0), (1_000, 78_189.0)] {
            let ratio = divisions(limit) / count;
            assert!((0.8..1.25).contains(&ratio), "limit {limit}: {ratio}");
        }
    }

    #[test]
    fn a_longer_plan_takes_longer() {
        let plan = |repetitions| Plan::new(Workload::Prime { limit: 22 }, repetitions);
        assert!(seconds(&plan(1_000_000)) < seconds(&plan(2_000_000)));
        assert!(seconds(&plan(1)) >= OVERHEAD_SECONDS);
    }
}

//! What a plan may ask for, and what its thresholds mean in ticks.

use tare_wire::plan::{Plan, Threshold, Workload};
use tare_workloads::{copy, gap, prime};

/// Is the greatest number of repetitions of a workload whose every sample is kept: 4 GiB of
/// stamps.
pub const MAX_STAMPED_REPETITIONS: u64 = 1 << 28;

/// Is the greatest number of timer reads of `gap`: about forty minutes. The sum of squares then
/// stays within 64 bits.
pub const MAX_GAP_READS: u64 = 100_000_000_000;

/// Is the greatest number of delays that can be listed.
pub const MAX_CAPACITY: u64 = 1 << 26;

/// Is the greatest number of envelope bins.
pub const MAX_BINS: u32 = 100_000;

/// Is the greatest number of raw samples in the window.
pub const MAX_WINDOW: u32 = 1_000_000;

/// Is the delay above the mean from which samples of `prime` and `copy` are listed, unless the
/// plan says otherwise: the lower of the two bounds T that kot-2019 uses.
pub const DEFAULT_DELAY_CYCLES: u64 = 400;

/// Is the length from which gaps are listed, unless the plan says otherwise or the timer is too
/// coarse.
pub const DEFAULT_GAP_NS: u64 = 500;

/// Is how many steps of the timer the default gap must at least have, so that its length is known
/// to 5 %.
pub const DEFAULT_GAP_STEPS: u64 = 20;

/// Names a value of the plan that is out of bounds.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Key of the value.
    pub what: &'static str,
    /// What was given.
    pub given: u64,
    /// Least value allowed.
    pub least: u64,
    /// Greatest value allowed.
    pub most: u64,
}

/// Checks that every value of a plan is within its bounds.
///
/// # Errors
///
/// Returns the first value that is not.
pub fn check(plan: &Plan) -> Result<(), Refusal> {
    let most = match plan.workload {
        Workload::Prime { limit } => {
            let (least, most) = (prime::MIN_LIMIT.into(), prime::MAX_LIMIT.into());
            within("limit", limit.into(), least, most)?;
            MAX_STAMPED_REPETITIONS
        }
        Workload::Copy { size } => {
            within("size", size, 1, copy::MAX_ELEMENTS)?;
            MAX_STAMPED_REPETITIONS
        }
        Workload::Gap => MAX_GAP_READS,
    };
    within("repetitions", plan.repetitions, 1, most)?;
    within("warmup", plan.warmup, 0, MAX_GAP_READS)?;
    within("capacity", plan.capacity, 1, MAX_CAPACITY)?;
    within("bins", plan.bins.into(), 1, MAX_BINS.into())?;
    within("window", plan.window.into(), 0, MAX_WINDOW.into())?;
    if let (Workload::Gap, Threshold::Cycles(cycles)) = (plan.workload, plan.threshold) {
        within("threshold", cycles, 1, gap::MAX_THRESHOLD)?;
    }
    Ok(())
}

/// Says why a threshold can't be told in ticks.
pub(super) enum Refused {
    /// It is out of bounds.
    OutOfBounds(Refusal),
    /// It is given in ns, but the TSC's frequency is not known.
    NoFrequency,
}

/// Converts the plan's threshold to ticks: for `gap` the least length of a gap, for other
/// workloads the least delay above the mean.
pub(super) fn threshold_cycles(
    plan: &Plan,
    hz: Option<f64>,
    step_cycles: u64,
) -> Result<u64, Refused> {
    let cycles_of = |ns| {
        let hz = hz.ok_or(Refused::NoFrequency)?;
        Ok((ns as f64 * hz / 1e9 + 0.5) as u64)
    };
    let is_gap = plan.workload == Workload::Gap;
    let cycles = match plan.threshold {
        Threshold::Cycles(cycles) => cycles,
        Threshold::Ns(ns) => cycles_of(ns)?,
        Threshold::Auto if is_gap => {
            cycles_of(DEFAULT_GAP_NS)?.max(step_cycles * DEFAULT_GAP_STEPS)
        }
        Threshold::Auto => DEFAULT_DELAY_CYCLES,
    };
    if is_gap {
        within("threshold in cycles", cycles, 1, gap::MAX_THRESHOLD)
            .map_err(Refused::OutOfBounds)?;
    }
    Ok(cycles)
}

fn within(what: &'static str, given: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    Err(Refusal {
        what,
        given,
        least,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(workload: Workload, repetitions: u64) -> Option<&'static str> {
        check(&Plan::new(workload, repetitions))
            .err()
            .map(|refusal| refusal.what)
    }

    #[test]
    fn sizes_out_of_bounds_are_refused_by_name() {
        let prime = |limit| Workload::Prime { limit };
        assert_eq!(refused(prime(0), 1), Some("limit"));
        assert_eq!(refused(prime(prime::MAX_LIMIT + 1), 1), Some("limit"));
        assert_eq!(refused(prime(22), 0), Some("repetitions"));
        assert_eq!(
            refused(prime(22), MAX_STAMPED_REPETITIONS + 1),
            Some("repetitions")
        );
        assert_eq!(refused(prime(22), 10_000_000), None);
        assert_eq!(refused(Workload::Copy { size: 0 }, 1), Some("size"));
        assert_eq!(refused(Workload::Gap, 1_000_000_000), None);
    }

    fn threshold(workload: Workload, threshold: Threshold, step_cycles: u64) -> Option<u64> {
        let plan = Plan {
            threshold,
            ..Plan::new(workload, 1)
        };
        threshold_cycles(&plan, Some(2.6e9), step_cycles).ok()
    }

    #[test]
    fn the_default_gap_is_500_ns_unless_the_timer_is_coarse() {
        assert_eq!(threshold(Workload::Gap, Threshold::Auto, 1), Some(1_300));
        assert_eq!(threshold(Workload::Gap, Threshold::Auto, 260), Some(5_200));
    }

    #[test]
    fn thresholds_in_ns_follow_the_frequency_and_gaps_have_a_bound() {
        assert_eq!(
            threshold(Workload::Gap, Threshold::Ns(2_000), 1),
            Some(5_200)
        );
        assert_eq!(
            threshold(Workload::Gap, Threshold::Ns(10_000_000_000), 1),
            None
        );
        let prime = Workload::Prime { limit: 22 };
        assert_eq!(threshold(prime, Threshold::Auto, 26), Some(400));
        assert_eq!(threshold(prime, Threshold::Ns(1_000), 26), Some(2_600));
    }

    #[test]
    fn a_threshold_in_ns_needs_a_frequency_and_one_in_cycles_does_not() {
        let mut plan = Plan::new(Workload::Gap, 1);
        assert!(threshold_cycles(&plan, None, 1).is_err());
        plan.threshold = Threshold::Cycles(1_000);
        assert!(matches!(threshold_cycles(&plan, None, 1), Ok(1_000)));
    }
}

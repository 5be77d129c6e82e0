//! What a plan's threshold means in ticks of this machine's TSC.

use tare_wire::bounds::within;

use super::bounds::MAX_GAP_THRESHOLD;
use super::plan::{Plan, Threshold, Workload};
use crate::session::Stop;

/// The delay above the mean from which samples of `prime` and `copy` are listed, unless the
/// plan says otherwise: the lower of the two bounds T that kot-2019 uses.
const DEFAULT_DELAY_CYCLES: u64 = 400;

/// The length from which gaps are listed, unless the plan says otherwise or the timer is too
/// coarse.
const DEFAULT_GAP_NS: u64 = 500;

/// How many steps of the timer the default gap must at least have, so that its length is known
/// to 5 %.
const DEFAULT_GAP_STEPS: u64 = 20;

/// Converts the plan's threshold to ticks: for `gap` the least length of a gap, for other
/// workloads the least delay above the mean.
///
/// # Errors
///
/// Returns [`Stop`] if it is out of bounds, or given in ns where the TSC's frequency is not known.
pub(super) fn threshold_cycles(
    plan: &Plan,
    hz: Option<f64>,
    step_cycles: u64,
) -> Result<u64, Stop> {
    let cycles_of = |ns| match hz {
        Some(hz) => Ok((ns as f64 * hz / 1e9 + 0.5) as u64),
        None => Err(Stop::Place(
            "nothing tells the TSC's frequency here: give the threshold in cycles",
        )),
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
        within("threshold in cycles", cycles, 1, MAX_GAP_THRESHOLD)?;
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests {
    use super::*;

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

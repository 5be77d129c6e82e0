//! The median's interval by order statistics, for figures whose distribution nobody knows.
//!
//! A maximum or a tail quantile of a run is skewed, and its mean over a few runs follows the worst
//! of them; an interval that assumes a normal distribution says little there. This one assumes only
//! that runs are independent and alike.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::interval::{Interval, Level, Method, median};

/// Returns the median's interval by order statistics over one value per run or block, of which
/// there are at least [`median_runs_needed`].
///
/// The ends are the k-th value from either side, with the greatest k for which P(X < k) ≤ (1 −
/// level)/2, X binomial with n trials and p = 1/2: the number of values on one side of the true
/// median (David and Nagaraja, Order Statistics, 3rd ed., 2003, section 7.1). It holds the median
/// at least as often as the level says, of any continuous distribution.
pub(crate) fn ordered_median(run_values: &[f64], level: Level) -> Interval {
    let runs = run_values.len() as u64;
    let mut values = run_values.to_vec();
    let estimate = median(&mut values);
    values.sort_unstable_by(f64::total_cmp);
    let tail = level.outside() / 2.0;
    // The parameters are valid for any number of runs.
    let below = |k: u64| Binomial::new(0.5, runs).map_or(1.0, |on_a_side| on_a_side.cdf(k));
    // The outermost values are sure enough, since there are enough runs.
    let from_the_end = (0..runs / 2).take_while(|&k| below(k) <= tail).last();
    let k = from_the_end.unwrap_or(0) as usize;
    Interval {
        estimate,
        low: values[k],
        high: values[values.len() - 1 - k],
        level,
        method: Method::OrderedMedian { runs },
    }
}

/// Returns how many runs an interval of the median needs at this level: 5 at 90 %, 6 at 95 %.
///
/// The widest such interval goes from the smallest value to the largest. All n values are on one
/// side of the true median with probability 2^(1−n), so below 1 − 2^(1−n) ≥ level no interval can
/// keep its promise.
pub(crate) fn median_runs_needed(level: Level) -> u64 {
    let enough = |runs: &u64| 0.5_f64.powi(*runs as i32 - 1) <= level.outside();
    (2..64).find(enough).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(blocks: u32) -> (f64, f64) {
        let values: Vec<f64> = (1..=blocks).map(f64::from).collect();
        let interval = ordered_median(&values, Level::P95);
        (interval.low, interval.high)
    }

    #[test]
    fn ends_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, 3rd ed., table A3 with p = 1/2.
        for (blocks, ends) in [
            (6, (1.0, 6.0)),
            (8, (1.0, 8.0)),
            (9, (2.0, 8.0)),
            (12, (3.0, 10.0)),
            (20, (6.0, 15.0)),
        ] {
            assert_eq!(places(blocks), ends, "{blocks}");
        }
    }

    #[test]
    fn a_median_needs_enough_runs_for_its_level() {
        assert_eq!(median_runs_needed(Level::P90), 5);
        assert_eq!(median_runs_needed(Level::P95), 6);
    }

    proptest! {
        #[test]
        fn it_follows_any_rising_change_of_scale(values in prop::collection::vec(1.0_f64..1e6, 6..40)) {
            let interval = ordered_median(&values, Level::P95);
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let of_logs = ordered_median(&logs, Level::P95);
            prop_assert_eq!((interval.low.ln(), interval.high.ln()), (of_logs.low, of_logs.high));
            prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
        }
    }
}

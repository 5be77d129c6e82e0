//! The median's interval by order statistics, for figures whose distribution nobody knows.
//!
//! A maximum or a tail quantile of a run is skewed, and its mean over a few runs follows the worst of them; an
//! interval that assumes a normal distribution says little there. This one assumes only that runs are
//! independent and alike.

use statrs::distribution::{Binomial, DiscreteCDF};

use crate::error::StatsError;
use crate::interval::{Interval, Level, Method, enough, finite, median, median_blocks_needed};

/// Returns the median's interval by order statistics over one value per block or run.
///
/// The ends are the k-th value from either side, with the greatest k for which P(X < k) ≤ (1 − level)/2,
/// X binomial with n trials and p = 1/2: the number of values on one side of the true median (David and Nagaraja,
/// Order Statistics, 3rd ed., section 7.1). It holds the median at least as often as the level says, of any
/// continuous distribution.
///
/// # Errors
///
/// [`StatsError::TooFew`] with fewer than [`median_blocks_needed`] blocks: even the whole range is not
/// sure enough then. [`StatsError::Number`] if a value is infinite or not a number.
pub fn ordered_median(block_values: &[f64], level: Level) -> Result<Interval, StatsError> {
    let blocks = block_values.len() as u64;
    let needed = median_blocks_needed(level);
    let method = "an interval of the median by order statistics";
    enough(method, "blocks or runs", needed, blocks)?;
    finite(block_values)?;
    let mut values = block_values.to_vec();
    let estimate = median(&mut values);
    values.sort_unstable_by(f64::total_cmp);
    let tail = level.outside() / 2.0;
    // The parameters are valid for any number of blocks.
    let below = |k: u64| Binomial::new(0.5, blocks).map_or(1.0, |on_a_side| on_a_side.cdf(k));
    // The outermost values are sure enough, since there are enough blocks.
    let from_the_end = (0..blocks / 2).take_while(|&k| below(k) <= tail).last();
    let k = from_the_end.unwrap_or(0) as usize;
    Ok(Interval {
        estimate,
        low: values[k],
        high: values[values.len() - 1 - k],
        level,
        method: Method::OrderedMedian { blocks },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(blocks: u32) -> (f64, f64) {
        let values: Vec<f64> = (1..=blocks).map(f64::from).collect();
        let interval = ordered_median(&values, Level::P95).unwrap();
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
    fn five_runs_are_too_few_for_95_percent() {
        let few = ordered_median(&[1.0; 5], Level::P95);
        assert!(matches!(few, Err(StatsError::TooFew { needed: 6, .. })));
        assert!(ordered_median(&[1.0; 5], Level::P90).is_ok());
        assert!(ordered_median(&[f64::NAN; 9], Level::P90).is_err());
    }

    proptest! {
        #[test]
        fn it_follows_any_rising_change_of_scale(values in prop::collection::vec(1.0_f64..1e6, 6..40)) {
            let interval = ordered_median(&values, Level::P95).unwrap();
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let of_logs = ordered_median(&logs, Level::P95).unwrap();
            prop_assert_eq!((interval.low.ln(), interval.high.ln()), (of_logs.low, of_logs.high));
            prop_assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
        }
    }
}

//! By how much two sets of values differ, by their ranks.
//!
//! A figure of a run's tail is skewed, and a mean of such figures follows the worst run. Ranks
//! assume only that the values are independent, and that a set that differs is shifted.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::error::StatsError;
use crate::interval::{Interval, Level, Method, enough, finite, median};
use crate::rank_sum::{EXACT, ways};

/// The greatest number of runs that [`invocations_needed`] looks at.
const MOST_RUNS: u64 = 60;

/// Returns by how much the second set of block values is above the first, with its interval.
///
/// The estimate is Hodges and Lehmann's: the median of all differences between a value of the
/// second set and one of the first. The ends are the k-th differences from either side, with the
/// greatest k that the exact distribution of Mann and Whitney's U allows at this level (Hollander,
/// Wolfe and Chicken, Nonparametric Statistical Methods, 3rd ed., sections 4.2 and 4.3); with more
/// than 40 values in total, by its normal approximation. Equal values make it wider, never
/// narrower.
///
/// # Errors
///
/// [`StatsError::TooFew`] if even the extreme differences are not sure enough: at 95 % four values
/// in each set are enough, three are not. [`StatsError::Number`] if a value is infinite or not a
/// number.
pub(crate) fn shift(first: &[f64], second: &[f64], level: Level) -> Result<Interval, StatsError> {
    let (n, m) = (first.len() as u64, second.len() as u64);
    finite(first)?;
    finite(second)?;
    if least_p_value(n, m) > level.outside() {
        let (method, unit) = ("an interval of a shift", "blocks or runs on each side");
        let needed = invocations_needed(level.outside()).unwrap_or(MOST_RUNS);
        enough(method, unit, needed, n.min(m))?;
    }
    let mut differences = differences(first, second);
    let estimate = median(&mut differences);
    differences.sort_unstable_by(f64::total_cmp);
    let k = outermost(n, m, level.outside() / 2.0);
    Ok(Interval {
        estimate,
        low: differences[k],
        high: differences[differences.len() - 1 - k],
        level,
        method: Method::Shift {
            first: n,
            second: m,
        },
    })
}

/// Returns all differences of a value of the second set less one of the first.
pub(crate) fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    let of_one = |b: &f64| first.iter().map(move |a| *b - a).collect::<Vec<_>>();
    second.iter().flat_map(of_one).collect()
}

/// Returns how many of the sorted differences are left out at either end: the greatest k with P(U <
/// k) ≤ tail.
fn outermost(n: u64, m: u64, tail: f64) -> usize {
    let all = n + m;
    let pairs = (n * m) as usize;
    if all as usize <= EXACT {
        let ranks: Vec<u64> = (1..=all).collect();
        let ways = ways(&ranks, n as usize);
        // The sum of the n lowest ranks is where U is 0.
        let from = (n * (n + 1) / 2) as usize;
        let total: u64 = ways.iter().sum();
        let mut below = 0;
        let kept = ways[from..].iter().take_while(|&&count| {
            below += count;
            below as f64 <= tail * total as f64
        });
        return kept.count().saturating_sub(1).min((pairs - 1) / 2);
    }
    let sd = (pairs as f64 * (all as f64 + 1.0) / 12.0).sqrt();
    let z = Normal::standard().inverse_cdf(1.0 - tail);
    ((pairs as f64 / 2.0 - 0.5 - z * sd).floor().max(0.0) as usize).min((pairs - 1) / 2)
}

/// Returns the least p-value that ranks of this number of values can have: 2 / C(n + m, n).
pub fn least_p_value(first: u64, second: u64) -> f64 {
    let few = first.min(second);
    (2.0 / divisions(first + second, few)).min(1.0)
}

/// Returns in how many ways a number of all values can be chosen.
pub(crate) fn divisions(all: u64, chosen: u64) -> f64 {
    // Each step is a binomial coefficient by itself, so nothing is rounded that matters.
    (1..=chosen).fold(1.0, |ways, i| ways * (all - chosen + i) as f64 / i as f64)
}

/// Returns how many invocations, or runs, each side needs so that any figure can be said to differ:
/// 4 at 5 %; `None` if more than 60 would not do.
pub fn invocations_needed(significance: f64) -> Option<u64> {
    (1..=MOST_RUNS).find(|&runs| least_p_value(runs, runs) <= significance)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-12, "{left} is not {right}");
    }

    #[test]
    fn the_shift_of_a_known_set() {
        let first = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        let second = first.map(|value| value + 100.0);
        let shift = shift(&first, &second, Level::P95).unwrap();
        assert_eq!(shift.estimate, 100.0);
        // For 8 and 8 at 95 %: P(U ≤ 13) = 0.0249, so the 14th difference from either side: of -7,
        // -6, -6, -5, … that is -3.
        assert_eq!((shift.low, shift.high), (97.0, 103.0));
        let wider = [1.0, 3.0, 6.0, 10.0];
        let ends = super::shift(&wider, &wider.map(|v| v * 2.0), Level::P95).unwrap();
        assert_eq!((ends.low, ends.high), (2.0 - 10.0, 20.0 - 1.0));
    }

    #[test]
    fn three_runs_are_too_few_for_95_percent() {
        let few = shift(&[1.0; 3], &[2.0; 3], Level::P95);
        assert!(matches!(few, Err(StatsError::TooFew { needed: 4, .. })));
        assert!(shift(&[1.0; 4], &[2.0; 4], Level::P95).is_ok());
        // Two runs are enough against eight.
        assert!(shift(&[1.0; 2], &[2.0; 8], Level::P95).is_ok());
        assert!(shift(&[], &[2.0; 8], Level::P95).is_err());
    }

    #[test]
    fn the_least_p_value_decides_how_many_runs_are_needed() {
        assert_eq!(invocations_needed(0.05), Some(4));
        assert_eq!(invocations_needed(0.05 / 35.0), Some(7));
        assert_eq!(invocations_needed(1e-80), None);
        close(least_p_value(4, 4), 2.0 / 70.0);
        close(least_p_value(0, 4), 1.0);
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_shift() {
        let mut random = Rng::with_seed(5);
        // As skewed as maxima are.
        let skewed = |random: &mut Rng| {
            let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            (2.0 * normal).exp()
        };
        for (first, second) in [(4, 4), (5, 9), (12, 12), (25, 25)] {
            let mut held = 0;
            for _ in 0..2_000 {
                let a: Vec<f64> = (0..first).map(|_| skewed(&mut random)).collect();
                let b: Vec<f64> = (0..second).map(|_| skewed(&mut random) + 3.0).collect();
                let interval = shift(&a, &b, Level::P95).unwrap();
                held += u32::from(interval.low <= 3.0 && 3.0 <= interval.high);
            }
            assert!(held >= 1_870, "{first} and {second}: {held} of 2,000");
        }
    }

    fn values() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec((0_u32..30).prop_map(f64::from), 4..9)
    }

    proptest! {
        #[test]
        fn what_is_true_of_one_side_is_of_the_other(first in values(), second in values(), by in 1_u32..50) {
            let by = f64::from(by);
            let one = shift(&first, &second, Level::P95).unwrap();
            let other = shift(&second, &first, Level::P95).unwrap();
            prop_assert_eq!((one.low, one.estimate, one.high), (-other.high, -other.estimate, -other.low));
            prop_assert!(one.low <= one.estimate && one.estimate <= one.high);
            let moved: Vec<f64> = second.iter().map(|value| value + by).collect();
            let further = shift(&first, &moved, Level::P95).unwrap();
            prop_assert_eq!(further.estimate, one.estimate + by);
        }
    }
}

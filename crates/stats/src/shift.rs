//! By how much two runs differ, and whether chance explains it: by ranks of their blocks.
//!
//! A figure of a run's tail is skewed, and a mean of such figures follows the worst block. Ranks assume only
//! that blocks are independent, and that a run that differs is shifted.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::error::StatsError;
use crate::interval::{Interval, Level, Method, enough, finite, median};
use crate::rank_sum::{EXACT, doubled_ranks, ways};

/// Is the greatest number of runs that [`runs_needed`] looks at.
const MOST_RUNS: u64 = 60;

/// Returns by how much the second set of block values is above the first, with its interval.
///
/// The estimate is Hodges and Lehmann's: the median of all differences between a value of the second set and
/// one of the first. The ends are the k-th differences from either side, with the greatest k that the exact
/// distribution of Mann and Whitney's U allows at this level (Hollander, Wolfe and Chicken, Nonparametric
/// Statistical Methods, 3rd ed., sections 4.2 and 4.3); with more than 40 values in all, by its normal
/// approximation. Equal values make it wider, never narrower.
///
/// # Errors
///
/// [`StatsError::TooFew`] if even the extreme differences are not sure enough: at 95 % four values in each set are
/// enough, three are not. [`StatsError::Number`] if a value is infinite or not a number.
pub fn shift(first: &[f64], second: &[f64], level: Level) -> Result<Interval, StatsError> {
    let (n, m) = (first.len() as u64, second.len() as u64);
    finite(first)?;
    finite(second)?;
    // One test of differences at this level.
    let needed = runs_needed(level.outside(), 1).unwrap_or(MOST_RUNS);
    if least_p_value(n, m) > level.outside() {
        enough(
            "an interval of a shift",
            "blocks or runs on each side",
            needed,
            n.min(m),
        )?;
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

/// Returns how many of the sorted differences are left out at either end: the greatest k with P(U < k) ≤ tail.
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

/// Returns how probable a difference of ranks as large as this is, either way, if both sets are alike.
///
/// It is the permutation test of Wilcoxon's rank sum (Mann and Whitney's U): all divisions of the
/// values into two sets of these sizes count, equal values have their mean rank, so it is exact with ties, too. With
/// more than 40 values in all it is the normal approximation with the correction for ties (Hollander,
/// Wolfe and Chicken, section 4.1).
///
/// # Errors
///
/// [`StatsError::TooFew`] if a set is empty, [`StatsError::Number`] if a value is infinite or not a number.
pub fn rank_sum_p_value(first: &[f64], second: &[f64]) -> Result<f64, StatsError> {
    let fewest = first.len().min(second.len()) as u64;
    enough(
        "a comparison of ranks",
        "blocks or runs on each side",
        1,
        fewest,
    )?;
    finite(first)?;
    finite(second)?;
    let ranks = doubled_ranks(first, second);
    let (n, all) = (first.len() as u64, ranks.len() as u64);
    let sum: u64 = ranks[..first.len()].iter().sum();
    // Twice the mean rank is all + 1.
    let centre = n * (all + 1);
    let distance = sum.abs_diff(centre);
    if ranks.len() <= EXACT {
        let ways = ways(&ranks, first.len());
        let total: u64 = ways.iter().sum();
        let as_far = (0..).zip(&ways);
        let as_far = as_far.filter(|(sum, _)| u64::abs_diff(*sum, centre) >= distance);
        let as_far: u64 = as_far.map(|(_, count)| count).sum();
        return Ok(as_far as f64 / total as f64);
    }
    let mean = (all + 1) as f64;
    let squares: f64 = ranks.iter().map(|&rank| (rank as f64 - mean).powi(2)).sum();
    let m = second.len() as f64;
    let variance = n as f64 * m / (all as f64 * (all as f64 - 1.0)) * squares;
    if variance == 0.0 {
        return Ok(1.0);
    }
    // Half a rank, which is one of the doubled ones.
    let z = (distance as f64 - 1.0).max(0.0) / variance.sqrt();
    Ok((2.0 * Normal::standard().sf(z)).min(1.0))
}

/// Returns the least p-value that ranks of so many values can have: 2 / C(n + m, n).
pub fn least_p_value(first: u64, second: u64) -> f64 {
    let (few, many) = (first.min(second), first.max(second));
    if few == 0 {
        return 1.0;
    }
    let divisions: f64 = (1..=few)
        .map(|i| (many + i) as f64 / i as f64)
        .product::<f64>();
    (2.0 / divisions).min(1.0)
}

/// Returns how many runs each side needs so that one of `tests` differences can be called one at this level by
/// [`holm`]; `None` if more than 60 would not do.
pub fn runs_needed(significance: f64, tests: u64) -> Option<u64> {
    let least = significance / tests.max(1) as f64;
    (1..=MOST_RUNS).find(|&runs| least_p_value(runs, runs) <= least)
}

/// Returns the p-values of a table so that calling those at most `α` a difference is wrong anywhere in the table
/// with a probability of at most α.
///
/// Holm's step-down method: the i-th smallest of K is multiplied by K − i + 1, and none is less than one
/// before it (S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6,
/// 1979). It assumes nothing of how the tests depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut before = 0.0_f64;
    for (step, place) in order.into_iter().enumerate() {
        let factor = (p_values.len() - step) as f64;
        before = before.max((p_values[place] * factor).min(1.0));
        adjusted[place] = before;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-12, "{left} is not {right}");
    }

    #[test]
    fn p_values_are_those_of_the_tables() {
        // All of one set below all of the other: 2 of C(n + m, n) divisions are as extreme.
        close(
            rank_sum_p_value(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap(),
            0.1,
        );
        // U = 1 for 4 and 5: P(U ≤ 1) = 2/126.
        let p = rank_sum_p_value(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0, 9.0]).unwrap();
        close(p, 4.0 / 126.0);
        close(rank_sum_p_value(&[7.0; 4], &[7.0; 4]).unwrap(), 1.0);
        assert!(rank_sum_p_value(&[], &[1.0]).is_err());
        assert!(rank_sum_p_value(&[f64::INFINITY], &[1.0]).is_err());
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
        // Two runs are enough beside eight.
        assert!(shift(&[1.0; 2], &[2.0; 8], Level::P95).is_ok());
        assert!(shift(&[], &[2.0; 8], Level::P95).is_err());
    }

    #[test]
    fn a_table_needs_more_runs_than_one_test() {
        assert_eq!(runs_needed(0.05, 1), Some(4));
        assert_eq!(runs_needed(0.05, 35), Some(7));
        assert_eq!(runs_needed(0.05, 140), Some(8));
        assert_eq!(runs_needed(1e-80, 1), None);
        close(least_p_value(4, 4), 2.0 / 70.0);
        close(least_p_value(0, 4), 1.0);
    }

    #[test]
    fn holm_is_that_of_the_textbook() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (ours, exact) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            close(ours, exact);
        }
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
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
            let p = rank_sum_p_value(&first, &second).unwrap();
            prop_assert!((p - rank_sum_p_value(&second, &first).unwrap()).abs() < 1e-12);
            prop_assert!(p > 0.0 && p <= 1.0);
            let moved: Vec<f64> = second.iter().map(|value| value + by).collect();
            let further = shift(&first, &moved, Level::P95).unwrap();
            prop_assert_eq!(further.estimate, one.estimate + by);
        }

        #[test]
        fn holm_keeps_the_order_and_never_lowers(p_values in prop::collection::vec(0.0_f64..1.0, 0..20)) {
            let adjusted = holm(&p_values);
            for (place, p) in p_values.iter().enumerate() {
                prop_assert!(adjusted[place] >= *p && adjusted[place] <= 1.0);
                for (other, q) in p_values.iter().enumerate() {
                    prop_assert!(p > q || adjusted[place] <= adjusted[other]);
                }
            }
        }

        #[test]
        fn the_approximation_meets_the_exact_one(first in prop::collection::vec(0.0_f64..1.0, 20..21)) {
            // One value more than can be counted out.
            let mut second: Vec<f64> = first.iter().map(|value| value + 0.1).collect();
            let exact = rank_sum_p_value(&first, &second).unwrap();
            second.push(0.6);
            let near = rank_sum_p_value(&first, &second).unwrap();
            prop_assert!((exact - near).abs() < 0.12, "{} {}", exact, near);
        }
    }
}

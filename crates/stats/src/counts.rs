//! The exact histogram that every statistic of samples starts from.
//!
//! A run of ten million samples has a few thousand different durations, because a timer counts in
//! steps. Pairs of value and count hold all of them without rounding and without a choice of bins,
//! so that any statistic can still be computed later, by anybody.

use crate::error::StatsError;
use crate::moments::{Moments, nearest_to_mean};
use crate::quantile::{Quantile, QuantileEstimate};
use crate::tally::Tally;

/// How often each value occurred, exactly.
///
/// Values are mostly cycles. The pairs rise strictly in value and no count is zero, so two
/// histograms of the same samples are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pairs: Vec<(u64, u64)>,
    tally: Tally,
}

impl Counts {
    /// Collects pairs of value and count, in any order; equal values are added up.
    ///
    /// Pairs that already rise cost O(n), others a sort.
    ///
    /// # Errors
    ///
    /// [`StatsError::CountOverflow`] if there are more than 2^64 − 1 samples.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u64, u64)>) -> Result<Self, StatsError> {
        let mut pairs: Vec<(u64, u64)> =
            pairs.into_iter().filter(|&(_, count)| count != 0).collect();
        pairs.sort_by_key(|&(value, _)| value);
        Self::from_sorted(pairs)
    }

    /// Counts samples, in any order.
    ///
    /// Takes the vector and sorts it in place: 10 million samples need no second copy.
    pub fn from_samples(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let equal = samples.chunk_by(|a, b| a == b);
        Self::of_rising(equal.map(|run| (run[0], run.len() as u64)).collect())
    }

    /// Adds the samples of two histograms.
    ///
    /// # Errors
    ///
    /// [`StatsError::CountOverflow`] if there are more than 2^64 − 1 samples.
    pub fn merge(&self, other: &Self) -> Result<Self, StatsError> {
        // It finds the two sorted halves, and merges them.
        let mut merged = [&*self.pairs, &*other.pairs].concat();
        merged.sort_by_key(|&(value, _)| value);
        Self::from_sorted(merged)
    }

    /// Adds the samples of many histograms, for example of all runs of a cell.
    ///
    /// # Errors
    ///
    /// [`StatsError::CountOverflow`] if there are more than 2^64 − 1 samples.
    pub fn merge_all<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Result<Self, StatsError> {
        parts
            .into_iter()
            .try_fold(Self::default(), |sum, part| sum.merge(part))
    }

    /// Returns the pairs of value and count, rising in value.
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.pairs
    }

    /// Iterates over the pairs of value and count, rising in value.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator + '_ {
        self.pairs.iter().copied()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the number of samples.
    pub fn total(&self) -> u64 {
        self.tally.count
    }

    /// Returns the exact sum of all samples.
    pub fn sum(&self) -> u128 {
        self.tally.sum
    }

    /// Returns number and sum of all samples.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the mean, or `None` without samples.
    pub fn mean(&self) -> Option<f64> {
        self.tally.mean()
    }

    /// Returns number, mean and standard deviation of the population, or `None` without samples.
    ///
    /// The sum of the squared distances from a whole number next to the mean is exact: squares of
    /// 128 bits times counts of 64 are added up in two halves, and rounded once.
    pub fn moments(&self) -> Option<Moments> {
        const HALF: f64 = (1_u128 << 64) as f64;
        let pivot = nearest_to_mean(self.tally);
        let (mut high, mut low) = (0_u128, 0_u128);
        for &(value, count) in &self.pairs {
            let distance = u128::from(value.abs_diff(pivot));
            let square = distance * distance;
            // Neither sum overflows: the counts add up to less than 2^64, the halves have 64 bits.
            high += u128::from(count) * (square >> 64);
            low += u128::from(count) * (square & u128::from(u64::MAX));
        }
        high += low >> 64;
        low &= u128::from(u64::MAX);
        let squares = if high >> 64 == 0 {
            ((high << 64) | low) as f64
        } else {
            high as f64 * HALF
        };
        Moments::about(self.tally, squares)
    }

    /// Returns the smallest value, or `None` without samples.
    pub fn min(&self) -> Option<u64> {
        self.pairs.first().map(|&(value, _)| value)
    }

    /// Returns the largest value, or `None` without samples.
    pub fn max(&self) -> Option<u64> {
        self.pairs.last().map(|&(value, _)| value)
    }

    /// Returns a quantile by nearest rank, or `None` without samples.
    ///
    /// It is the ⌈q·n⌉-th smallest sample (Hyndman and Fan's definition 1): always a duration that
    /// occurred, never a mean of two. Whether there are enough samples to print it is another
    /// question, which [`Counts::supported_quantile`] answers.
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        let rank = quantile.rank(self.total());
        let mut seen = 0;
        for &(value, count) in &self.pairs {
            seen += count;
            if seen >= rank {
                return Some(value);
            }
        }
        None
    }

    /// Returns a quantile if enough samples lie beyond it, and else how many samples it needs.
    pub fn supported_quantile(&self, quantile: Quantile) -> QuantileEstimate {
        QuantileEstimate::of(quantile, self.total(), || self.quantile(quantile))
    }

    /// Returns the median by nearest rank (the lower one of an even number), or `None` without
    /// samples.
    pub fn median(&self) -> Option<u64> {
        self.quantile(Quantile::MEDIAN)
    }

    /// Returns how many samples are larger than `bound`.
    pub fn count_above(&self, bound: u64) -> u64 {
        self.pairs[self.first_above(bound)..]
            .iter()
            .map(|&(_, count)| count)
            .sum()
    }

    /// Returns number and sum of the samples in (`above`, `up_to`]; `None` means no upper bound.
    pub fn tally_between(&self, above: u64, up_to: Option<u64>) -> Tally {
        let from = self.first_above(above);
        let to = up_to.map_or(self.pairs.len(), |bound| self.first_above(bound));
        let inside = self.pairs.get(from..to).unwrap_or_default();
        inside.iter().copied().collect()
    }

    /// Returns the samples less a fixed overhead, such as the minimum of an empty region.
    ///
    /// Samples shorter than the overhead become 0, so the number of samples stays.
    pub fn net(&self, overhead: u64) -> Self {
        let (at_zero, above) = self.pairs.split_at(self.first_above(overhead));
        let zeros: u64 = at_zero.iter().map(|&(_, count)| count).sum();
        let zeros = (zeros > 0).then_some((0, zeros));
        let above = above
            .iter()
            .map(|&(value, count)| (value - overhead, count));
        Self::of_rising(zeros.into_iter().chain(above).collect())
    }

    /// Takes pairs that rise weakly in value and hold no zero count.
    fn from_sorted(mut pairs: Vec<(u64, u64)>) -> Result<Self, StatsError> {
        let mut total = 0_u64;
        for &(value, count) in &pairs {
            let sum = total.checked_add(count);
            total = sum.ok_or(StatsError::CountOverflow { value })?;
        }
        pairs.dedup_by(|next, kept| {
            let equal = next.0 == kept.0;
            if equal {
                kept.1 += next.1;
            }
            equal
        });
        Ok(Self::of_rising(pairs))
    }

    /// Takes pairs that rise strictly in value, hold no zero count and fewer than 2^64 samples.
    fn of_rising(pairs: Vec<(u64, u64)>) -> Self {
        let tally = pairs.iter().copied().collect();
        Self { pairs, tally }
    }

    fn first_above(&self, bound: u64) -> usize {
        self.pairs.partition_point(|&(value, _)| value <= bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(u64, u64)]) -> Counts {
        Counts::from_pairs(pairs.iter().copied()).unwrap()
    }

    fn sd(counts: &Counts) -> f64 {
        counts.moments().unwrap().population_sd
    }

    #[test]
    fn pairs_are_sorted_added_up_and_freed_of_zeros() {
        let made = counts(&[(9, 1), (3, 2), (9, 4), (5, 0), (3, 1)]);
        assert_eq!(made.pairs(), [(3, 3), (9, 5)]);
        assert_eq!((made.total(), made.sum()), (8, 54));
        assert_eq!(made, Counts::from_samples(vec![9, 3, 9, 3, 9, 9, 3, 9]));
    }

    #[test]
    fn nothing_has_no_statistics() {
        let nothing = counts(&[(7, 0)]);
        assert!(nothing.is_empty());
        assert_eq!(nothing.moments(), None);
        assert_eq!((nothing.min(), nothing.max()), (None, None));
        assert_eq!((nothing.mean(), nothing.median()), (None, None));
        assert_eq!(nothing.net(5), nothing);
    }

    #[test]
    fn more_samples_than_fit_are_refused() {
        let full = counts(&[(3, u64::MAX)]);
        assert_eq!(
            full.merge(&counts(&[(4, 1)])),
            Err(StatsError::CountOverflow { value: 4 })
        );
        let doubled = Counts::from_pairs([(3, u64::MAX), (3, 1)]);
        assert_eq!(doubled, Err(StatsError::CountOverflow { value: 3 }));
    }

    #[test]
    fn a_hundred_million_samples_near_a_billion_keep_their_spread() {
        let half = 50_000_000;
        let made = counts(&[(1_000_000_000, half), (1_000_000_003, half)]);
        let moments = made.moments().unwrap();
        assert_eq!(
            (moments.mean, moments.population_sd),
            (1_000_000_001.5, 1.5)
        );
        // One sample among 10^8 is one cycle longer: variance (1/n)(1 − 1/n).
        let made = counts(&[(1_000_000_000, 99_999_999), (1_000_000_001, 1)]);
        let expected = (1e-8_f64 * (1.0 - 1e-8)).sqrt();
        assert!((sd(&made) / expected - 1.0).abs() < 1e-14);
        // And one shorter, where the pivot is above the mean.
        let made = counts(&[(999_999_999, 1), (1_000_000_000, 99_999_999)]);
        assert!((sd(&made) / expected - 1.0).abs() < 1e-14);
    }

    #[test]
    fn equal_samples_have_no_spread_and_extremes_do_not_overflow() {
        assert_eq!(sd(&counts(&[(1_000_000_007, 100_000_000)])), 0.0);
        assert_eq!(sd(&counts(&[(u64::MAX, u64::MAX)])), 0.0);
        let wide = counts(&[(0, 1 << 63), (u64::MAX, (1 << 63) - 1)]);
        assert!((sd(&wide) / 2_f64.powi(63) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn bounds_are_open_below_and_closed_above() {
        let made = counts(&[(150, 1), (151, 2), (400, 3), (401, 4)]);
        assert_eq!(
            made.tally_between(150, Some(400)),
            Tally {
                count: 5,
                sum: 1_502
            }
        );
        assert_eq!(made.tally_between(400, Some(150)), Tally::default());
        assert_eq!(
            made.tally_between(400, None),
            Tally {
                count: 4,
                sum: 1_604
            }
        );
        assert_eq!((made.count_above(150), made.count_above(401)), (9, 0));
    }

    #[test]
    fn net_samples_never_fall_below_zero_and_none_is_lost() {
        let made = counts(&[(20, 1), (26, 2), (30, 3)]);
        assert_eq!(made.net(26).pairs(), [(0, 3), (4, 3)]);
        assert_eq!(made.net(0), made);
        assert_eq!(made.net(u64::MAX).pairs(), [(0, 6)]);
    }

    #[test]
    fn a_million_distinct_values_are_handled_exactly() {
        let made = Counts::from_pairs((0..1_000_000).rev().map(|value| (value, 3))).unwrap();
        assert_eq!(made.total(), 3_000_000);
        assert_eq!(made.sum(), 3 * 999_999 * 1_000_000 / 2);
        assert_eq!(made.median(), Some(499_999));
        let n = 1e6_f64;
        let expected = ((n * n - 1.0) / 12.0).sqrt();
        assert!((sd(&made) / expected - 1.0).abs() < 1e-14);
        assert_eq!(made.merge(&made).unwrap().count_above(499_999), 3_000_000);
    }
}

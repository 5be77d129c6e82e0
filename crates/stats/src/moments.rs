//! Mean and standard deviation from exact integer sums.
//!
//! A sum of squares in floating point loses the spread of long samples: near 10^9 cycles the
//! squares need 60 bits before they are added up at all. Here every sum is an exact integer, taken
//! about a pivot next to the mean, and rounding happens once, at the end.

use crate::error::StatsError;
use crate::tally::Tally;

/// The first two moments of a set of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Number of samples, at least 1.
    pub count: u64,
    /// Mean, in the unit of the samples.
    pub mean: f64,
    /// Standard deviation of the population: divided by n, not by n − 1. Exactly 0 for equal
    /// samples.
    pub population_sd: f64,
}

/// Count, sum and sum of squares of samples that were not kept one by one.
///
/// The `gap` workload knows only this of the iterations below its threshold. Adding the recorded
/// ones gives the moments of all iterations exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerSums {
    tally: Tally,
    sum_of_squares: u128,
}

impl PowerSums {
    /// Takes the three sums.
    ///
    /// # Errors
    ///
    /// [`StatsError::PowerSums`] if no samples have these sums, for example because one of them
    /// wrapped where it was counted.
    pub fn new(count: u64, sum: u128, sum_of_squares: u128) -> Result<Self, StatsError> {
        let tally = Tally { count, sum };
        let sums = Self {
            tally,
            sum_of_squares,
        };
        match sums.squares_about(nearest_to_mean(tally)) {
            Some(_) => Ok(sums),
            None => Err(sums.refused()),
        }
    }

    /// Adds `count` samples of `value` cycles.
    ///
    /// # Errors
    ///
    /// [`StatsError::PowerSums`] if a sum no longer fits.
    pub fn with(&self, value: u64, count: u64) -> Result<Self, StatsError> {
        let sum = u128::from(value) * u128::from(count);
        let squares = sum.checked_mul(value.into());
        let parts = (
            self.tally.count.checked_add(count),
            self.tally.sum.checked_add(sum),
            squares.and_then(|squares| self.sum_of_squares.checked_add(squares)),
        );
        match parts {
            (Some(count), Some(sum), Some(squares)) => Self::new(count, sum, squares),
            _ => Err(self.refused()),
        }
    }

    /// Returns the moments, or `None` without samples.
    pub fn moments(&self) -> Option<Moments> {
        let squares = self.squares_about(nearest_to_mean(self.tally))?;
        Moments::about(self.tally, squares as f64)
    }

    /// Returns the sum of the squared distances from `pivot`, S₂ − 2pS + np², if it exists.
    fn squares_about(&self, pivot: u64) -> Option<u128> {
        let pivot = u128::from(pivot);
        let count = u128::from(self.tally.count);
        let raised = self
            .sum_of_squares
            .checked_add(count.checked_mul(pivot * pivot)?)?;
        let squares = raised.checked_sub(pivot.checked_mul(self.tally.sum)?.checked_mul(2)?)?;
        // Cauchy and Schwarz: n Σd² ≥ (Σd)², with the pivot next to the mean so that |Σd| ≤ n / 2.
        // A mean beyond 64 bits, or a sum without samples, has no such pivot.
        let offset = (count * pivot).abs_diff(self.tally.sum);
        if offset > count / 2 {
            return None;
        }
        let impossible = match count.checked_mul(squares) {
            Some(spread) => spread < offset * offset,
            None => false,
        };
        let without_samples = self.tally.count == 0 && self.sum_of_squares != 0;
        (!impossible && !without_samples).then_some(squares)
    }

    fn refused(&self) -> StatsError {
        StatsError::PowerSums {
            count: self.tally.count,
            sum: self.tally.sum,
            sum_of_squares: self.sum_of_squares,
        }
    }
}

impl Moments {
    /// Finishes the moments, given the sum of the squared distances from [`nearest_to_mean`].
    ///
    /// The variance is Σd²/n − δ² with δ = mean − pivot. With the pivot next to the mean |δ| ≤ ½,
    /// and the subtraction cancels at most one bit: if at most half of the samples differ from the
    /// pivot, Cauchy and Schwarz give δ² ≤ Σd²/2n; if more do, Σd²/n > ½ and δ² ≤ ¼.
    pub(crate) fn about(tally: Tally, squares: f64) -> Option<Self> {
        let mean = tally.mean()?;
        let count = tally.count as f64;
        let at_pivot = u128::from(nearest_to_mean(tally)) * u128::from(tally.count);
        let offset = at_pivot.abs_diff(tally.sum) as f64 / count;
        let variance = (squares / count - offset * offset).max(0.0);
        Some(Self {
            count: tally.count,
            mean,
            population_sd: variance.sqrt(),
        })
    }
}

/// Returns the whole number next to the mean, 0 without samples.
pub(crate) fn nearest_to_mean(tally: Tally) -> u64 {
    if tally.count == 0 {
        return 0;
    }
    let count = u128::from(tally.count);
    let round_up = u128::from(tally.sum % count > count / 2);
    u64::try_from(tally.sum / count + round_up).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_single_samples_give_the_same_moments() {
        let quiet = PowerSums::new(3, 26 + 25 + 27, 26 * 26 + 25 * 25 + 27 * 27).unwrap();
        let all = quiet.with(5_000, 1).unwrap();
        let moments = all.moments().unwrap();
        let mean = 5_078.0 / 4.0;
        let variance = [25.0, 26.0, 27.0, 5_000.0]
            .map(|v: f64| (v - mean).powi(2))
            .iter()
            .sum::<f64>()
            / 4.0;
        assert_eq!(moments.mean, mean);
        assert!((moments.population_sd - variance.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn equal_samples_have_no_spread_however_many() {
        let sums = PowerSums::default()
            .with(1_000_000_007, 100_000_000)
            .unwrap();
        let moments = sums.moments().unwrap();
        assert_eq!(
            (moments.mean, moments.population_sd),
            (1_000_000_007.0, 0.0)
        );
    }

    #[test]
    fn impossible_sums_are_refused() {
        for (count, sum, squares) in [(2, 10, 49), (0, 1, 0), (0, 0, 1), (1, 5, 24), (3, 4, 5)] {
            assert!(
                PowerSums::new(count, sum, squares).is_err(),
                "{count} {sum} {squares}"
            );
        }
        assert!(PowerSums::new(1, u128::MAX, u128::MAX).is_err());
        assert!(PowerSums::new(u64::MAX, 1 << 100, u128::MAX).is_err());
        let full = PowerSums::new(u64::MAX, 0, 0).unwrap();
        assert!(full.with(1, 1).is_err());
    }

    #[test]
    fn nothing_has_no_moments() {
        assert_eq!(PowerSums::default().moments(), None);
    }
}

//! Quantiles as exact fractions, and the rule when one may be printed.
//!
//! In floating point 100 · (1 − 0.9) is below 10 and 0.07 · 100 is above 7, and ranks and refusals
//! go wrong by one. A quantile is therefore a whole number of billionths.

use std::fmt;

/// A quantile strictly between 0 and 1, in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u32);

const ONE: u32 = 1_000_000_000;

impl Quantile {
    /// The 1st percentile.
    pub const P1: Self = Self(10_000_000);
    /// The 5th percentile.
    pub const P5: Self = Self(50_000_000);
    /// The 50th percentile.
    pub const MEDIAN: Self = Self(500_000_000);
    /// The 95th percentile.
    pub const P95: Self = Self(950_000_000);
    /// The 99th percentile.
    pub const P99: Self = Self(990_000_000);
    /// The 99.9th percentile.
    pub const P99_9: Self = Self(999_000_000);
    /// The 99.99th percentile.
    pub const P99_99: Self = Self(999_900_000);

    /// How many samples must lie beyond a quantile before it may be printed.
    const SAMPLES_BEYOND: u64 = 10;

    /// Returns the quantile as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }

    /// Returns the nearest rank ⌈q·n⌉ among `samples`, counted from 1; 0 for no samples.
    pub fn rank(self, samples: u64) -> u64 {
        let product = u128::from(samples) * u128::from(self.0);
        // Not larger than `samples`, since q < 1.
        product.div_ceil(u128::from(ONE)) as u64
    }

    /// Returns the least number of samples of which at least 10 lie beyond the quantile: n·(1 − q)
    /// ≥ 10.
    ///
    /// With fewer the figure is decided by a handful of samples and changes from run to run. Below
    /// the median "beyond" is on the other side, n·q ≥ 10.
    pub fn samples_needed(self) -> u64 {
        let beyond = self.0.min(ONE - self.0);
        (Self::SAMPLES_BEYOND * u64::from(ONE)).div_ceil(u64::from(beyond))
    }
}

impl fmt::Display for Quantile {
    /// Writes the usual name: p50, p99.9.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / 10_000_000;
        let rest = self.0 % 10_000_000;
        if rest == 0 {
            return write!(f, "p{whole}");
        }
        write!(f, "p{whole}.{}", format!("{rest:07}").trim_end_matches('0'))
    }
}

/// A quantile that may be printed, or the reason why it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantileEstimate {
    /// The quantile, in the unit of the samples.
    Value(u64),
    /// Fewer than 10 samples lie beyond it.
    Refused {
        /// How many samples would be enough.
        needed: u64,
    },
}

impl QuantileEstimate {
    /// Takes the quantile of this number of samples, if they support it.
    pub(crate) fn of(
        quantile: Quantile,
        samples: u64,
        value: impl FnOnce() -> Option<u64>,
    ) -> Self {
        let needed = quantile.samples_needed();
        let value = if samples < needed { None } else { value() };
        value.map_or(Self::Refused { needed }, Self::Value)
    }

    /// Returns the value, if it may be printed.
    pub fn value(self) -> Option<u64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Refused { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;

    #[test]
    fn ranks_are_exact_where_floating_point_is_not() {
        assert_eq!(Quantile(70_000_000).rank(100), 7);
        assert_eq!(Quantile::P99.rank(100), 99);
        assert_eq!(Quantile::P99.rank(101), 100);
        assert_eq!(Quantile::MEDIAN.rank(1), 1);
        assert_eq!(
            Quantile(999_990_000).rank(u64::MAX),
            18_446_559_606_268_814_520
        );
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let needed = [
            (Quantile::MEDIAN, 20),
            (Quantile::P99, 1_000),
            (Quantile::P99_9, 10_000),
            (Quantile::P99_99, 100_000),
            (Quantile(10_000_000), 1_000),
        ];
        for (quantile, needed) in needed {
            assert_eq!(quantile.samples_needed(), needed, "{quantile}");
        }
    }

    #[test]
    fn too_few_samples_are_refused_with_the_number_needed() {
        let made = Counts::from_samples((1..=9_999).collect());
        assert_eq!(
            made.supported_quantile(Quantile::P99),
            QuantileEstimate::Value(9_900)
        );
        let refused = made.supported_quantile(Quantile::P99_9);
        assert_eq!(refused, QuantileEstimate::Refused { needed: 10_000 });
        assert_eq!(refused.value(), None);
        let nothing = Counts::default().supported_quantile(Quantile::MEDIAN);
        assert_eq!(nothing, QuantileEstimate::Refused { needed: 20 });
    }

    #[test]
    fn names_are_the_usual_ones() {
        assert_eq!(Quantile::MEDIAN.to_string(), "p50");
        assert_eq!(Quantile::P99_99.to_string(), "p99.99");
        assert_eq!(Quantile(5_000_000).to_string(), "p0.5");
        assert_eq!(Quantile(70_500_000).to_string(), "p7.05");
        assert_eq!(Quantile::P99.fraction(), 0.99);
    }
}

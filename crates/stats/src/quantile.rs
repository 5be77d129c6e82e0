//! Quantiles as exact fractions, and the rule when one may be printed.
//!
//! In floating point 100 · (1 − 0.9) is below 10 and 0.07 · 100 is above 7, and ranks and refusals
//! go wrong by one. A quantile is therefore a whole number of billionths.

use std::fmt;

use crate::error::StatsError;

/// Names a quantile strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile {
    billionths: u32,
}

const ONE: u32 = 1_000_000_000;

impl Quantile {
    /// Is the 50th percentile.
    pub const MEDIAN: Self = Self {
        billionths: 500_000_000,
    };
    /// Is the 90th percentile.
    pub const P90: Self = Self {
        billionths: 900_000_000,
    };
    /// Is the 95th percentile.
    pub const P95: Self = Self {
        billionths: 950_000_000,
    };
    /// Is the 99th percentile.
    pub const P99: Self = Self {
        billionths: 990_000_000,
    };
    /// Is the 99.9th percentile.
    pub const P99_9: Self = Self {
        billionths: 999_000_000,
    };
    /// Is the 99.99th percentile.
    pub const P99_99: Self = Self {
        billionths: 999_900_000,
    };
    /// Is the 99.999th percentile.
    pub const P99_999: Self = Self {
        billionths: 999_990_000,
    };

    /// Is how many samples must lie beyond a quantile before it may be printed.
    pub const SAMPLES_BEYOND: u64 = 10;

    /// Takes a fraction, rounded to the nearest billionth.
    ///
    /// # Errors
    ///
    /// [`StatsError::Quantile`] unless that is above 0 and below 1.
    pub fn new(fraction: f64) -> Result<Self, StatsError> {
        let billionths = (fraction * f64::from(ONE)).round();
        if !(1.0..f64::from(ONE)).contains(&billionths) {
            return Err(StatsError::Quantile { given: fraction });
        }
        Ok(Self {
            billionths: billionths as u32,
        })
    }

    /// Returns the quantile as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.billionths) / f64::from(ONE)
    }

    /// Returns the nearest rank ⌈q·n⌉ among `samples`, counted from 1; 0 for no samples.
    pub fn rank(self, samples: u64) -> u64 {
        let product = u128::from(samples) * u128::from(self.billionths);
        // Not larger than `samples`, since q < 1.
        product.div_ceil(u128::from(ONE)) as u64
    }

    /// Says whether at least 10 of `samples` lie beyond the quantile: n·(1 − q) ≥ 10.
    ///
    /// With fewer the figure is decided by a handful of samples and changes from run to run. Below
    /// the median "beyond" is on the other side, n·q ≥ 10.
    pub fn is_supported_by(self, samples: u64) -> bool {
        samples >= self.samples_needed()
    }

    /// Returns the least number of samples by which the quantile is supported.
    pub fn samples_needed(self) -> u64 {
        let beyond = self.billionths.min(ONE - self.billionths);
        (Self::SAMPLES_BEYOND * u64::from(ONE)).div_ceil(u64::from(beyond))
    }
}

impl fmt::Display for Quantile {
    /// Writes the usual name: p50, p99.9.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.billionths / 10_000_000;
        let rest = self.billionths % 10_000_000;
        if rest == 0 {
            return write!(f, "p{whole}");
        }
        write!(f, "p{whole}.{}", format!("{rest:07}").trim_end_matches('0'))
    }
}

/// Is a quantile that may be printed, or the reason why it may not.
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
        assert_eq!(Quantile::new(0.07).unwrap().rank(100), 7);
        assert_eq!(Quantile::P90.rank(100), 90);
        assert_eq!(Quantile::P90.rank(101), 91);
        assert_eq!(Quantile::MEDIAN.rank(1), 1);
        assert_eq!(Quantile::P99_999.rank(u64::MAX), 18_446_559_606_268_814_520);
    }

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let needed = [
            (Quantile::MEDIAN, 20),
            (Quantile::P90, 100),
            (Quantile::P95, 200),
            (Quantile::P99, 1_000),
            (Quantile::P99_9, 10_000),
            (Quantile::P99_99, 100_000),
            (Quantile::P99_999, 1_000_000),
            (Quantile::new(0.01).unwrap(), 1_000),
        ];
        for (quantile, needed) in needed {
            assert_eq!(quantile.samples_needed(), needed, "{quantile}");
            assert!(quantile.is_supported_by(needed) && !quantile.is_supported_by(needed - 1));
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
    fn only_fractions_between_zero_and_one_are_quantiles() {
        for bad in [0.0, 1.0, -0.1, 1.5, f64::NAN, f64::INFINITY, 1e-12] {
            assert!(Quantile::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Quantile::new(0.999), Ok(Quantile::P99_9));
        assert_eq!(Quantile::P99.fraction(), 0.99);
    }

    #[test]
    fn names_are_the_usual_ones() {
        assert_eq!(Quantile::MEDIAN.to_string(), "p50");
        assert_eq!(Quantile::P99_999.to_string(), "p99.999");
        assert_eq!(Quantile::new(0.005).unwrap().to_string(), "p0.5");
        assert_eq!(Quantile::new(0.0705).unwrap().to_string(), "p7.05");
    }
}

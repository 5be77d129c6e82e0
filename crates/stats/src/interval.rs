//! Confidence intervals: what they are, and those of a mean by the normal and by Student's
//! distribution.
//!
//! Samples of one run follow each other within microseconds and share every slow influence: heat,
//! neighbours, where memory happens to lie. They are not independent, and an interval computed as
//! if they were shrinks with √n towards a value that the next run will not repeat. So every
//! interval takes one value per run, by the rule of [`over_runs`](crate::over_runs()).

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::error::StatsError;

/// A confidence level, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

/// How an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Student's t around a mean, or a ratio of sums, over runs or blocks.
    Student {
        /// Scale on which the interval is symmetric.
        scale: Scale,
        /// Number of runs or blocks.
        runs: u64,
    },
    /// Order statistics around the median over runs or blocks.
    OrderedMedian {
        /// Number of runs or blocks.
        runs: u64,
    },
    /// Hodges and Lehmann's shift between two sets of values of blocks or runs, within order
    /// statistics of their differences.
    Shift {
        /// Number of blocks or runs of the first set.
        first: u64,
        /// Number of those of the second.
        second: u64,
    },
}

/// A scale on which an interval is symmetric around its estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The figure itself.
    Linear,
    /// Its logarithm: the interval stays above 0.
    Log,
    /// Its log odds, ln(p / (1 − p)): the interval stays between 0 and 1.
    Logit,
}

/// An estimate with its confidence interval, all in the unit of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate itself.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such intervals hold the true value, if the method's assumptions do.
    pub level: Level,
    /// How it was computed.
    pub method: Method,
}

impl Method {
    /// Returns a short name of the method that stays the same between versions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Student {
                scale: Scale::Linear,
                ..
            } => "student",
            Self::Student {
                scale: Scale::Log, ..
            } => "student log",
            Self::Student {
                scale: Scale::Logit,
                ..
            } => "student logit",
            Self::OrderedMedian { .. } => "order statistics",
            Self::Shift { .. } => "hodges-lehmann",
        }
    }
}

impl Level {
    /// 90 %, which kot-2019 publishes.
    pub const P90: Self = Self(90);
    /// 95 %.
    pub const P95: Self = Self(95);

    /// Returns the level as a fraction of 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }

    /// Returns the probability below the upper end of a two-sided interval.
    fn upper(self) -> f64 {
        f64::from(100 + self.0) / 200.0
    }

    /// Returns the probability outside of a two-sided interval.
    pub(crate) fn outside(self) -> f64 {
        f64::from(100 - self.0) / 100.0
    }
}

/// Returns the quantile of Student's t that bounds an interval above.
///
/// The inverse of statrs goes through 1 − y for y near 1 and loses 10^−5 at 100,000 degrees of
/// freedom. From 1,000 on, the expansion in 1/ν around z is exact to 10^−8 at usual levels
/// (Abramowitz and Stegun 26.7.5, its first two terms).
pub(crate) fn student_t(level: Level, freedom: f64) -> f64 {
    if freedom >= 1_000.0 {
        let z = normal_z(level);
        let first = (z.powi(3) + z) / 4.0;
        let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
        return z + first / freedom + second / freedom.powi(2);
    }
    // The parameters are valid for any positive degree of freedom; infinity makes no claim.
    StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::INFINITY, |student| student.inverse_cdf(level.upper()))
}

/// Returns the quantile of the normal distribution that bounds an interval above.
fn normal_z(level: Level) -> f64 {
    Normal::standard().inverse_cdf(level.upper())
}

/// Returns the median of at least one finite value and leaves them in another order.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        // Half the distance instead of half the sum, which could overflow.
        Some(lower) if even => lower + (upper - lower) / 2.0,
        _ => upper,
    }
}

pub(crate) fn enough(
    method: &'static str,
    unit: &'static str,
    needed: u64,
    got: u64,
) -> Result<(), StatsError> {
    if got < needed {
        return Err(StatsError::TooFew {
            method,
            unit,
            needed,
            got,
        });
    }
    Ok(())
}

pub(crate) fn finite(values: &[f64]) -> Result<(), StatsError> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(&given) => Err(StatsError::Number {
            what: "the value of a block",
            given,
            allowed: "a finite number",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, tolerance: f64) {
        assert!((left - right).abs() <= tolerance, "{left} is not {right}");
    }

    #[test]
    fn z_has_its_textbook_values() {
        close(normal_z(Level::P90), 1.644_853_626_951_472_2, 1e-9);
        close(normal_z(Level::P95), 1.959_963_984_540_054, 1e-9);
        close(normal_z(Level(99)), 2.575_829_303_548_900_4, 1e-9);
    }

    #[test]
    fn t_has_its_textbook_values() {
        for (freedom, t) in [
            (1.0, 12.706_204_736_432_1),
            (2.0, 4.302_652_729_911_28),
            (4.0, 2.776_445_105_197_79),
            (9.0, 2.262_157_162_740_99),
            (29.0, 2.045_229_642_132_7),
            (99.0, 1.984_216_951_508_68),
        ] {
            close(student_t(Level::P95, freedom), t, 1e-8);
        }
        close(student_t(Level::P90, 9.0), 1.833_112_932_653_67, 1e-8);
        close(student_t(Level(99), 4.0), 4.604_094_871_415_9, 1e-8);
        // Where the two formulas meet, and far beyond.
        close(student_t(Level::P95, 999.0), 1.962_341_461_13, 1e-8);
        close(student_t(Level::P95, 1_000.0), 1.962_339_080_83, 1e-8);
        close(student_t(Level::P95, 99_999.0), 1.959_987_7, 1e-6);
    }

    #[test]
    fn medians_of_even_and_odd_numbers() {
        assert_eq!(median(&mut [9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&mut [9.0, 1.0, 5.0, 6.0]), 5.5);
        assert_eq!(median(&mut [f64::MAX, f64::MAX]), f64::MAX);
        assert_eq!(median(&mut [4.0]), 4.0);
    }
}

//! A figure over runs: the kind of the figure decides how runs are put together, and which interval
//! it has.
//!
//! Headline and interval always belong to the same estimator:
//!
//! | kind | figure over runs | interval | runs needed at 95 % |
//! |---|---|---|---|
//! | mean, of either sign | mean | Student's t; on the log scale if no run is 0 or less and it would reach 0 | 3 |
//! | rate, total, positive ratio | sum / sum | Student's t on the log scale | 3 |
//! | share | sum / sum | Student's t on the logit scale | 3 |
//! | quantile, minimum, maximum, standard deviation | median | order statistics | 6 |
//!
//! Below that number there is no interval, but the range over the runs, which promises nothing.
//!
//! # Sums
//!
//! A share is a ratio of sums: time lost over all time. The mean of the runs' own shares is another
//! figure wherever runs differ in length, and a run that holds a long delay is long for that very
//! reason. With R = Σa / Σb, the standard error of R is s = √(k/(k−1) · Σ(a − R·b)²) / Σb (the
//! linearised ratio estimator: W. G. Cochran, Sampling Techniques, 3rd ed., 1977, section 6.4).
//! Where all b are equal this is the mean with its standard error.
//!
//! On another scale g the interval is g⁻¹(g(R) ± t · s · g′(R)), by the delta method, with k − 1
//! degrees of freedom: R · e^±(t·s/R) for a rate, and for a share ln(R/(1−R)) ± t · s/(R·(1−R)),
//! turned back (A. Agresti, Categorical Data Analysis, 3rd ed., 2013, sections 1.4 and 16.1; N.
//! Dean and M. Pagano, Evaluating confidence interval methods for binomial proportions in clustered
//! surveys, Journal of Survey Statistics and Methodology 3, 2015). Neither can leave the bounds of
//! its figure, and both are wider towards the side on which few long delays make it uncertain. The
//! logarithm is taken of the figure over runs and not of each run, since a geometric mean hides the
//! one run that was disturbed, and does not exist if one run has 0.
//!
//! # How often they hold the true value
//!
//! Of 20,000 intervals at 95 % each, over 3, 5, 6 and 12 runs (`tests/coverage.rs` repeats it with
//! fewer):
//!
//! | runs whose shares are | plain t, % | logit scale, % |
//! |---|---|---|
//! | normal | 95, 95, 95, 95 | 95, 95, 95, 95 |
//! | lognormal, σ = 1 | 84, 82, 82, 85 | 92, 89, 89, 89 |
//! | exponential | 88, 89, 89, 91 | 94, 94, 93, 93 |
//! | U-shaped on 0 to 1 | 90, 93, 94, 95 | 95, 96, 96, 97 |
//! | small, every second run stalled | 76, 80, 81, 81 | 83, 89, 89, 92 |
//! | small, every tenth run stalled | 25, 37, 41, 57 | 26, 37, 41, 60 |
//!
//! The last row is what no method can mend: a stall that none of the runs has seen is in no figure
//! of theirs. With two runs the second last row has 73 %, and an interval of Student's t is 13
//! standard errors wide to either side; hence the least of three.

use thiserror::Error;

use crate::error::StatsError;
use crate::interval::{Interval, Level, Method, Scale, enough, finite, median, student_t};
use crate::ordered::{median_runs_needed, ordered_median};

/// The least number of runs that an interval by Student's t is given for; the module says why not
/// two.
pub const STUDENT_RUNS: u64 = 3;

/// The kind of a figure, which decides how runs are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mean, or a difference, of either sign.
    Mean,
    /// A rate, a total or a positive ratio: never below 0.
    Rate,
    /// A share, from 0 to 1.
    Share,
    /// A quantile, the minimum, the maximum or the standard deviation of a run.
    Order,
}

/// A figure over runs, in the unit of the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverRuns {
    /// The figure over all runs; that of the interval, if there is one.
    pub estimate: f64,
    /// The lowest of the runs' own.
    pub lowest: f64,
    /// The highest of the runs' own.
    pub highest: f64,
    /// Number of runs.
    pub runs: u64,
    /// The interval, or why there is none.
    pub interval: Result<Interval, NoInterval>,
}

/// The reason why a figure over runs has no interval.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NoInterval {
    /// There are fewer runs than the method needs.
    #[error("an interval needs {needed} runs and has {got}: measure more")]
    TooFew {
        /// The least that it needs.
        needed: u64,
        /// The number present.
        got: u64,
    },
    /// A side of a comparison has fewer than the interval of a shift needs.
    #[error("a shift needs {needed} repetitions of each side, one has {got}: measure more")]
    TooFewOfEach {
        /// The least that each needs.
        needed: u64,
        /// The number on the side with the fewest.
        got: u64,
    },
    /// It is the extreme of all runs, which more runs may exceed.
    #[error("an extreme of all runs has no interval: more runs may exceed it")]
    Extreme,
    /// All runs agree, so nothing says how much another one may differ.
    #[error("all {runs} runs have the same value, so nothing says how much others may differ")]
    Alike {
        /// How many there are.
        runs: u64,
    },
}

impl Kind {
    /// Returns how many runs an interval of such a figure needs.
    pub fn runs_needed(self, level: Level) -> u64 {
        match self {
            Self::Mean | Self::Rate | Self::Share => STUDENT_RUNS,
            Self::Order => median_runs_needed(level),
        }
    }
}

/// Puts the figures of runs together, or of long blocks of a single run.
///
/// For a rate or share, the runs are taken to be equally long; else see [`rate_over_runs`] and
/// [`share_over_runs`].
///
/// # Errors
///
/// [`StatsError::TooFew`] without runs. [`StatsError::Number`] if a value is not a finite number, a
/// rate is below 0, or a share outside of 0 to 1.
pub fn over_runs(kind: Kind, values: &[f64], level: Level) -> Result<OverRuns, StatsError> {
    let whole = || values.iter().map(|&value| (value, 1.0)).collect::<Vec<_>>();
    match kind {
        Kind::Mean => mean(values, level),
        Kind::Rate => rate_over_runs(&whole(), level),
        Kind::Share => share_over_runs(&whole(), level),
        Kind::Order => {
            some(values.len())?;
            finite(values)?;
            let estimate = median(&mut values.to_vec());
            let spread = || Some(ordered_median(values, level));
            Ok(put(kind, estimate, values, level, spread))
        }
    }
}

/// Puts shares together that each run has as part and whole, such as cycles lost and all cycles.
///
/// # Errors
///
/// [`StatsError::TooFew`] without runs. [`StatsError::Number`] unless all numbers are finite, no
/// part is below 0 or above its whole, and no whole is 0.
pub fn share_over_runs(parts: &[(f64, f64)], level: Level) -> Result<OverRuns, StatsError> {
    for &(part, whole) in parts {
        within(
            "a part of a share",
            part,
            part <= whole,
            "at most its whole",
        )?;
    }
    of_sums(Kind::Share, Scale::Logit, parts, level)
}

/// Puts rates together that each run has as number and time, or other ratios of two positive sums.
///
/// # Errors
///
/// [`StatsError::TooFew`] without runs. [`StatsError::Number`] unless all numbers are finite, no
/// first one is below 0, and all second ones are above 0.
pub fn rate_over_runs(pairs: &[(f64, f64)], level: Level) -> Result<OverRuns, StatsError> {
    of_sums(Kind::Rate, Scale::Log, pairs, level)
}

/// Puts differences of paired measurements together, one for each run or block: their mean, with an
/// interval by Student's t. Unlike that of a mean, it may always reach 0.
///
/// # Errors
///
/// As [`over_runs`].
pub fn differences_over_runs(values: &[f64], level: Level) -> Result<OverRuns, StatsError> {
    mean_of(values, level, false)
}

fn mean(values: &[f64], level: Level) -> Result<OverRuns, StatsError> {
    mean_of(values, level, true)
}

/// Returns the mean. With `is_time`, positive values have no interval that reaches 0.
fn mean_of(values: &[f64], level: Level, is_time: bool) -> Result<OverRuns, StatsError> {
    some(values.len())?;
    finite(values)?;
    let runs = values.len() as f64;
    // Distances from one of the values keep equal ones exact and large ones accurate.
    let pivot = values[0];
    let offset = values.iter().map(|value| value - pivot).sum::<f64>() / runs;
    let squares: f64 = values.iter().map(|v| (v - pivot - offset).powi(2)).sum();
    let error = (squares / (runs - 1.0) / runs).sqrt();
    let estimate = pivot + offset;
    let on = |scale| student(estimate, error, values.len(), scale, level);
    let spread = || {
        let reaches_0 = |linear: &Interval| linear.low <= 0.0 && values.iter().all(|v| *v > 0.0);
        let linear = on(Scale::Linear)?;
        // That a time may be 0 is no statement.
        if is_time && reaches_0(&linear) {
            on(Scale::Log)
        } else {
            Some(linear)
        }
    };
    Ok(put(Kind::Mean, estimate, values, level, spread))
}

fn of_sums(
    kind: Kind,
    scale: Scale,
    pairs: &[(f64, f64)],
    level: Level,
) -> Result<OverRuns, StatsError> {
    some(pairs.len())?;
    for &(over, under) in pairs {
        within("a figure of a run", over, over >= 0.0, "0 or more")?;
        within("what it is divided by", under, under > 0.0, "above 0")?;
    }
    let runs = pairs.len() as f64;
    let over: f64 = pairs.iter().map(|(over, _)| over).sum();
    let under: f64 = pairs.iter().map(|(_, under)| under).sum();
    let each: Vec<f64> = pairs.iter().map(|(over, under)| over / under).collect();
    let (lowest, highest) = ends(&each);
    // Rounding may put it next to equal ones.
    let ratio = (over / under).clamp(lowest, highest);
    let squares: f64 = pairs.iter().map(|(a, b)| (a - ratio * b).powi(2)).sum();
    let error = (runs / (runs - 1.0) * squares).sqrt() / under;
    let spread = || student(ratio, error, pairs.len(), scale, level);
    Ok(put(kind, ratio, &each, level, spread))
}

/// Adds range and interval, or the reason why there is no interval.
fn put(
    kind: Kind,
    estimate: f64,
    each: &[f64],
    level: Level,
    interval: impl FnOnce() -> Option<Interval>,
) -> OverRuns {
    let (lowest, highest) = ends(each);
    let runs = each.len() as u64;
    let needed = kind.runs_needed(level);
    let interval = if runs < needed {
        Err(NoInterval::TooFew { needed, got: runs })
    } else if kind != Kind::Order && lowest == highest {
        Err(NoInterval::Alike { runs })
    } else {
        interval().ok_or(NoInterval::Alike { runs })
    };
    OverRuns {
        estimate,
        lowest,
        highest,
        runs,
        interval,
    }
}

/// Returns the interval by Student's t that is symmetric on a scale; `None` at the bounds of that
/// scale.
pub(crate) fn student(
    estimate: f64,
    error: f64,
    runs: usize,
    scale: Scale,
    level: Level,
) -> Option<Interval> {
    let half = student_t(level, runs as f64 - 1.0) * error;
    let (low, high) = match scale {
        Scale::Linear => (estimate - half, estimate + half),
        Scale::Log if estimate > 0.0 => {
            let factor = (half / estimate).exp();
            (estimate / factor, estimate * factor)
        }
        Scale::Logit if estimate > 0.0 && estimate < 1.0 => {
            let odds = estimate / (1.0 - estimate);
            let factor = (half / (estimate * (1.0 - estimate))).exp();
            // 1 − 1/(1 + odds) would lose what is left of a tiny share.
            let share = |odds: f64| {
                if odds.is_finite() {
                    odds / (1.0 + odds)
                } else {
                    1.0
                }
            };
            let (low, high) = (share(odds / factor), share(odds * factor));
            (low.min(estimate), high.max(estimate))
        }
        Scale::Log | Scale::Logit => return None,
    };
    let runs = runs as u64;
    let method = Method::Student { scale, runs };
    Some(Interval {
        estimate,
        low,
        high,
        level,
        method,
    })
}

fn ends(values: &[f64]) -> (f64, f64) {
    let fold = |from: f64, of: fn(f64, f64) -> f64| values.iter().copied().fold(from, of);
    (
        fold(f64::INFINITY, f64::min),
        fold(f64::NEG_INFINITY, f64::max),
    )
}

fn some(runs: usize) -> Result<(), StatsError> {
    enough("a figure over runs", "runs", 1, runs as u64)
}

pub(crate) fn within(
    what: &'static str,
    given: f64,
    is_within: bool,
    allowed: &'static str,
) -> Result<(), StatsError> {
    if given.is_finite() && is_within {
        return Ok(());
    }
    Err(StatsError::Number {
        what,
        given,
        allowed,
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn close(left: f64, right: f64) {
        assert!((left / right - 1.0).abs() < 1e-8, "{left} is not {right}");
    }

    fn of(kind: Kind, values: &[f64]) -> OverRuns {
        over_runs(kind, values, Level::P95).unwrap()
    }

    #[test]
    fn differences_of_one_sign_may_still_be_chance() {
        let values = [0.1, 0.5, 3.0];
        let of = |over: Result<OverRuns, StatsError>| over.unwrap().interval.unwrap();
        assert!(of(over_runs(Kind::Mean, &values, Level::P95)).low > 0.0);
        assert!(of(differences_over_runs(&values, Level::P95)).low < 0.0);
    }

    #[test]
    fn the_mean_of_a_known_set() {
        let over = of(Kind::Mean, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((over.estimate, over.lowest, over.highest), (3.0, 1.0, 5.0));
        // t(4) · √2.5 / √5
        let half = 2.776_445_105_197_79 * 0.5_f64.sqrt();
        close(over.interval.unwrap().high, 3.0 + half);
        let far = of(Kind::Mean, &[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]);
        let far = far.interval.unwrap();
        let half = (far.high - far.low) / 2.0;
        assert!((half - 4.302_652_729_911_28 / 3_f64.sqrt()).abs() < 1e-6);
        // Mean 4, standard error √7: 4 − 11 would be below 0.
        let wide = of(Kind::Mean, &[1.0, 2.0, 9.0]).interval.unwrap();
        let factor = (4.302_652_729_911_28 * 19_f64.sqrt() / 3_f64.sqrt() / 4.0).exp();
        close(wide.low, 4.0 / factor);
        close(wide.high, 4.0 * factor);
        assert_eq!(wide.method.name(), "student log");
        let negative = of(Kind::Mean, &[-3.0, -1.0, 1.0]);
        assert_eq!(negative.estimate, -1.0);
    }

    #[test]
    fn a_rate_and_a_share_of_a_known_set() {
        // Mean 2, standard error 1/√3.
        let rate = of(Kind::Rate, &[1.0, 2.0, 3.0]).interval.unwrap();
        let half = 4.302_652_729_911_28 / 3_f64.sqrt();
        close(rate.low, 2.0 * (-half / 2.0).exp());
        close(rate.high, 2.0 * (half / 2.0).exp());
        // Mean 0.2, standard error 0.1/√3, log odds ln(1/4).
        let share = of(Kind::Share, &[0.1, 0.2, 0.3]).interval.unwrap();
        let k = (half * 0.1 / 0.16).exp();
        close(share.low, 1.0 / (1.0 + 4.0 * k));
        close(share.high, 1.0 / (1.0 + 4.0 / k));
        let runs = 3;
        let scale = Scale::Logit;
        assert_eq!(share.method, Method::Student { scale, runs });
    }

    #[test]
    fn the_ratio_of_sums_is_not_the_mean_of_ratios() {
        // One run of ten is a hundred times longer, and lost: 100 of 109.
        let mut pairs = vec![(0.0, 1.0); 9];
        pairs.push((100.0, 100.0));
        let over = share_over_runs(&pairs, Level::P95).unwrap();
        close(over.estimate, 100.0 / 109.0);
        assert_eq!((over.lowest, over.highest), (0.0, 1.0));
        let interval = over.interval.unwrap();
        assert!(interval.low < over.estimate && over.estimate < interval.high);
        assert!(interval.high < 1.0);
    }

    #[test]
    fn one_stalled_run_of_three_is_no_reason_to_leave_the_bounds() {
        // By Student's t on the share itself: −24 to 38 %.
        let stalled = of(Kind::Share, &[0.0004, 0.0003, 0.217]);
        let interval = stalled.interval.unwrap();
        assert!(interval.low > 0.0 && interval.low < 0.001, "{interval:?}");
        assert!(interval.high > 0.8 && interval.high < 1.0, "{interval:?}");
        let two = of(Kind::Share, &[0.0004, 0.217]);
        assert_eq!(two.interval, Err(NoInterval::TooFew { needed: 3, got: 2 }));
        assert_eq!((two.lowest, two.highest), (0.0004, 0.217));
    }

    #[test]
    fn order_figures_need_six_runs_at_95_percent() {
        let over = of(Kind::Order, &[3.0, 9.0, 4.0, 700.0, 5.0, 6.0]);
        let interval = over.interval.unwrap();
        assert_eq!(
            (interval.low, over.estimate, interval.high),
            (3.0, 5.5, 700.0)
        );
        let five = of(Kind::Order, &[1.0; 5]);
        assert_eq!(five.interval, Err(NoInterval::TooFew { needed: 6, got: 5 }));
        assert_eq!(Kind::Order.runs_needed(Level::P90), 5);
    }

    #[test]
    fn equal_runs_promise_nothing() {
        for kind in [Kind::Mean, Kind::Rate, Kind::Share] {
            for value in [0.0, 0.1, 1.0] {
                let over = of(kind, &[value; 7]);
                assert_eq!(over.estimate, value);
                assert_eq!(over.interval, Err(NoInterval::Alike { runs: 7 }));
            }
        }
        // Order statistics assume no spread.
        let order = of(Kind::Order, &[880.0; 7]).interval.unwrap();
        assert_eq!((order.low, order.high), (880.0, 880.0));
    }

    #[test]
    fn what_a_kind_excludes_is_refused() {
        let bad = |kind, values: &[f64]| over_runs(kind, values, Level::P95).is_err();
        for kind in [Kind::Mean, Kind::Rate, Kind::Share, Kind::Order] {
            assert!(bad(kind, &[]) && bad(kind, &[0.5, f64::NAN]), "{kind:?}");
        }
        assert!(bad(Kind::Rate, &[-0.1, 1.0]) && bad(Kind::Share, &[1.1, 0.2]));
        assert!(share_over_runs(&[(1.0, 2.0), (0.0, 0.0)], Level::P95).is_err());
        assert!(rate_over_runs(&[(1.0, f64::INFINITY)], Level::P95).is_err());
    }

    /// A share of any size, the bounds among them.
    fn share() -> impl Strategy<Value = f64> {
        prop_oneof![
            1 => Just(0.0),
            1 => Just(1.0),
            3 => 0.0_f64..1.0,
            3 => (-300.0_f64..0.0).prop_map(|exponent| 10_f64.powf(exponent)),
            1 => (-16.0_f64..-1.0).prop_map(|exponent| 1.0 - 10_f64.powf(exponent)),
        ]
    }

    proptest! {
        #[test]
        fn a_share_stays_between_0_and_1(
            runs in vec((share(), 1e-3_f64..1e15), 1..13),
            stall in share(),
        ) {
            let mut parts: Vec<(f64, f64)> =
                runs.iter().map(|(share, whole)| (share * whole, *whole)).collect();
            // A stall lasts on top of everything else in its run.
            let (part, whole) = parts[0];
            parts[0] = (part + stall * 1e12, whole + stall * 1e12);
            let over = share_over_runs(&parts, Level::P95).unwrap();
            prop_assert!(0.0 <= over.lowest && over.lowest <= over.estimate);
            prop_assert!(over.estimate <= over.highest && over.highest <= 1.0);
            if let Ok(interval) = over.interval {
                prop_assert!(0.0 <= interval.low && interval.low <= over.estimate, "{:?}", over);
                prop_assert!(over.estimate <= interval.high && interval.high <= 1.0, "{:?}", over);
            }
            // Runs that differ by rounding alone may count as equal.
            let differs = |by: f64| parts.len() >= 3 && over.highest - over.lowest > by;
            prop_assert!(!differs(1e-12) || over.interval.is_ok(), "{:?}", over);
            prop_assert!(over.interval.is_err() || differs(0.0), "{:?}", over);
        }

        #[test]
        fn a_share_and_what_is_left_mirror_each_other(shares in vec(0.001_f64..0.999, 3..9)) {
            let share = of(Kind::Share, &shares).interval.unwrap();
            let rest: Vec<f64> = shares.iter().map(|share| 1.0 - share).collect();
            let rest = of(Kind::Share, &rest).interval.unwrap();
            prop_assert!((share.low + rest.high - 1.0).abs() < 1e-9);
            prop_assert!((share.high + rest.low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_unit_of_a_rate_does_not_matter(rates in vec(0.0_f64..1e6, 3..9), unit in 1e-9_f64..1e9) {
            let one = of(Kind::Rate, &rates);
            let scaled: Vec<f64> = rates.iter().map(|rate| rate * unit).collect();
            let other = of(Kind::Rate, &scaled);
            prop_assume!(one.interval.is_ok());
            let (one, other) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!(0.0 < one.low && one.low <= one.estimate && one.estimate <= one.high);
            prop_assert!((one.low * unit / other.low - 1.0).abs() < 1e-9);
            prop_assert!((one.high * unit / other.high - 1.0).abs() < 1e-9);
        }

        #[test]
        fn nearly_equal_runs_have_the_same_interval_on_any_scale(values in vec(0.3_f64..0.300_03, 3..9)) {
            let mean = of(Kind::Mean, &values).interval.unwrap();
            for kind in [Kind::Rate, Kind::Share] {
                let other = of(kind, &values).interval.unwrap();
                let width = mean.high - mean.low;
                prop_assert!((other.low - mean.low).abs() < width * 0.01);
                prop_assert!((other.high - mean.high).abs() < width * 0.01);
            }
        }
    }
}

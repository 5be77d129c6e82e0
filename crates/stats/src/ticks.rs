//! Where an axis gets its numbers: at 1, 2 or 5 times a power of ten.

/// The largest number of ticks returned, whatever was asked for.
const MAX_TICKS: usize = 1_000;

/// Returns round numbers from `min` to `max`, about `target` of them, equally spaced.
///
/// The distance is 1, 2 or 5 times a power of ten. There are at most `target` + 1 ticks. If `min`
/// and `max` are equal there is that one; if they make no range there are none.
pub fn nice_ticks(min: f64, max: f64, target: usize) -> Vec<f64> {
    if !(min.is_finite() && max.is_finite() && (max - min).is_finite() && min <= max) {
        return Vec::new();
    }
    if min == max {
        return vec![min];
    }
    let spaces = target.clamp(1, MAX_TICKS - 1) as f64;
    let step = NiceStep::at_least((max - min) / spaces);
    // A tick that rounding puts just outside still belongs to the axis.
    let first = (step.count_in(min) - 1e-9).ceil();
    let last = (step.count_in(max) + 1e-9).floor();
    let mut ticks: Vec<f64> = (0..=MAX_TICKS)
        .map(|i| first + i as f64)
        .take_while(|&multiple| multiple <= last)
        .map(|multiple| step.times(multiple).clamp(min, max))
        .collect();
    // Far from zero neighbouring multiples may be one and the same number.
    ticks.dedup();
    ticks
}

/// Returns round numbers from `min` to `max` for a logarithmic axis, about `target` of them.
///
/// Powers of ten, with 2 and 5 times these if there is room; every n-th power if there are too
/// many. Less than one decade with fewer than two such numbers gets [`nice_ticks`]. If the numbers
/// make no positive range there are none.
pub fn log_ticks(min: f64, max: f64, target: usize) -> Vec<f64> {
    if !(min > 0.0 && max.is_finite() && min <= max) {
        return Vec::new();
    }
    let target = target.clamp(2, MAX_TICKS);
    let first = min.log10().floor() as i32;
    let last = max.log10().ceil() as i32;
    let inside = |mantissas: &[f64], every: usize| -> Vec<f64> {
        (first..=last)
            .filter(|exponent| exponent.rem_euclid(every as i32) == 0)
            .flat_map(|exponent| mantissas.iter().map(move |&m| decimal(m, exponent)))
            .filter(|tick| (min..=max).contains(tick))
            .collect()
    };
    let fine = inside(&[1.0, 2.0, 5.0], 1);
    let coarse = inside(&[1.0], 1);
    match (fine.len(), coarse.len()) {
        (0 | 1, _) => nice_ticks(min, max, target),
        (fits, _) if fits <= target => fine,
        (_, 0 | 1) => fine,
        (_, powers) => inside(&[1.0], powers.div_ceil(target)),
    }
}

/// A distance between ticks: a mantissa of 1, 2 or 5 and a power of ten.
struct NiceStep {
    mantissa: f64,
    exponent: i32,
}

impl NiceStep {
    /// Returns the smallest such distance that is not below `least`, which is positive.
    fn at_least(least: f64) -> Self {
        let exponent = least.log10().floor() as i32;
        let fraction = least / decimal(1.0, exponent);
        // Rounding must not turn 2 into 5.
        let fits = |&mantissa: &f64| fraction <= mantissa * (1.0 + 1e-9);
        match [1.0, 2.0, 5.0].into_iter().find(fits) {
            Some(mantissa) => Self { mantissa, exponent },
            None => Self {
                mantissa: 1.0,
                exponent: exponent + 1,
            },
        }
    }

    fn count_in(&self, value: f64) -> f64 {
        value / decimal(self.mantissa, self.exponent)
    }

    fn times(&self, multiple: f64) -> f64 {
        decimal(multiple * self.mantissa, self.exponent)
    }
}

/// Returns mantissa · 10^exponent, correctly rounded for whole mantissas and usual exponents.
///
/// Negative powers of ten are not exact, but their inverses are: 3 / 10 is 0.3, 3 · 0.1 is not.
fn decimal(mantissa: f64, exponent: i32) -> f64 {
    if exponent < 0 {
        mantissa / 10_f64.powi(-exponent)
    } else {
        mantissa * 10_f64.powi(exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(nice_ticks(0.0, 10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(nice_ticks(903.0, 999.0, 5), [920.0, 940.0, 960.0, 980.0]);
        assert_eq!(
            nice_ticks(0.0, 1.0, 10),
            [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        );
        assert_eq!(nice_ticks(-0.05, 0.05, 2), [-0.05, 0.0, 0.05]);
        assert_eq!(nice_ticks(0.0, 7_000_000.0, 4), [0.0, 2e6, 4e6, 6e6]);
    }

    #[test]
    fn strange_ranges_end() {
        assert_eq!(nice_ticks(5.0, 5.0, 10), [5.0]);
        assert!(nice_ticks(2.0, 1.0, 10).is_empty());
        assert!(nice_ticks(f64::NAN, 1.0, 10).is_empty());
        assert!(nice_ticks(0.0, f64::INFINITY, 10).is_empty());
        assert!(nice_ticks(f64::MIN, f64::MAX, 10).is_empty());
        assert!(!nice_ticks(1e16, 1e16 + 4.0, 100).is_empty());
        assert!(nice_ticks(0.0, 1.0, usize::MAX).len() <= MAX_TICKS + 1);
        assert!(!nice_ticks(0.0, 1.0, 0).is_empty());
        let _ = nice_ticks(0.0, f64::MIN_POSITIVE, 10);
        let _ = log_ticks(f64::MIN_POSITIVE / 8.0, f64::MAX, 10);
    }

    #[test]
    fn logarithmic_ticks_suit_the_number_of_decades() {
        assert_eq!(
            log_ticks(1.0, 100.0, 10),
            [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]
        );
        assert_eq!(
            log_ticks(1.0, 1e6, 10),
            [1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6]
        );
        assert_eq!(log_ticks(1.0, 1e12, 6), [1.0, 1e3, 1e6, 1e9, 1e12]);
        assert_eq!(log_ticks(0.001, 0.1, 3), [0.001, 0.01, 0.1]);
        assert_eq!(log_ticks(110.0, 190.0, 4), [120.0, 140.0, 160.0, 180.0]);
        assert_eq!(log_ticks(20.0, 60.0, 2), [20.0, 50.0]);
        assert!(log_ticks(0.0, 10.0, 5).is_empty());
        assert!(log_ticks(10.0, 1.0, 5).is_empty());
    }
}

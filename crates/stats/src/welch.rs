//! Welch's t-test.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the two-sided p-value of the hypothesis that two sets of independent values have the
/// same mean, whatever their variances (Welch, Biometrika 34, 1947, 28–35). `None` if a set has
/// fewer than two values, or a value is no finite number.
pub fn welch(first: &[f64], second: &[f64]) -> Option<f64> {
    let [(mean, squared_error, n), other] = [first, second].map(described);
    let least = n.min(other.2);
    let both = squared_error + other.1;
    let difference = mean - other.0;
    if least < 2.0 || !difference.is_finite() || !both.is_finite() {
        return None;
    }
    if both == 0.0 {
        return Some(f64::from(u8::from(difference == 0.0)));
    }
    let part = |(_, squared_error, n): (f64, f64, f64)| squared_error * squared_error / (n - 1.0);
    let freedom = both * both / (part((mean, squared_error, n)) + part(other));
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * student.cdf(-(difference / both.sqrt()).abs()))
}

/// Returns the two-sided p-value of the hypothesis that independent values have a mean of 0 (Student,
/// Biometrika 6, 1908, 1–25). `None` of fewer than two values, or if one is no finite number.
pub(crate) fn student_p_value(values: &[f64]) -> Option<f64> {
    let (mean, squared_error, n) = described(values);
    if n < 2.0 || !mean.is_finite() || !squared_error.is_finite() {
        return None;
    }
    if squared_error == 0.0 {
        return Some(f64::from(u8::from(mean == 0.0)));
    }
    let student = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    Some(2.0 * student.cdf(-(mean / squared_error.sqrt()).abs()))
}

/// Returns the mean of some values, the square of its standard error, and their number.
fn described(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (mean, squares.sum::<f64>() / (n - 1.0) / n, n)
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_p_value_is_that_of_the_integral() {
        // t = −2.251 with 5.521 degrees of freedom; the density was integrated numerically.
        let p = welch(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
        assert!((p - 0.069_133_593).abs() < 1e-8, "{p}");
        // t = 3.464 with 2 degrees of freedom.
        let p = student_p_value(&[1.0, 2.0, 3.0]).unwrap();
        assert!((p - 0.074_179_900).abs() < 1e-8, "{p}");
        assert_eq!(student_p_value(&[0.0, 0.0]), Some(1.0));
        assert_eq!(student_p_value(&[1.0]), None);
        assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        assert_eq!(welch(&[1.0], &[2.0, 3.0]), None);
        assert_eq!(welch(&[1.0, f64::NAN], &[2.0, 3.0]), None);
    }

    /// Returns about a normal value: the sum of twelve uniform ones.
    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum()
    }

    #[test]
    fn equal_data_are_told_apart_as_often_as_the_level_says() {
        let mut random = Rng::with_seed(31);
        let mut alarms = 0;
        for _ in 0..4_000 {
            let mut some = |n: usize| Vec::from_iter((0..n).map(|_| normal(&mut random)));
            let (first, second) = (some(20), some(20));
            alarms += u32::from(welch(&first, &second).unwrap() <= 0.1);
        }
        // The standard deviation of the number is 19.
        assert!((320..=480).contains(&alarms), "{alarms} of 4,000");
    }

    proptest! {
        #[test]
        fn a_p_value_is_a_probability_and_the_same_either_way(
            first in prop::collection::vec(-1e6..1e6, 2..30),
            second in prop::collection::vec(-1e6..1e6, 2..30),
        ) {
            let p = welch(&first, &second).unwrap();
            prop_assert!((0.0..=1.0).contains(&p));
            let back = welch(&second, &first).unwrap();
            prop_assert!((p - back).abs() < 1e-12);
        }
    }
}

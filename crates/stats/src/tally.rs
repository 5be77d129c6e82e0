//! A count and a sum: the pair that nearly every figure is made of.

/// A number of samples and their exact sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of samples.
    pub count: u64,
    /// Their sum, in the unit of the samples (mostly cycles).
    pub sum: u128,
}

impl Tally {
    /// Returns the mean, or `None` without samples.
    ///
    /// Whole part and remainder are divided apart, so that the mean of equal values is that value
    /// exactly, however many there are.
    pub fn mean(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let count = u128::from(self.count);
        Some((self.sum / count) as f64 + (self.sum % count) as f64 / self.count as f64)
    }
}

impl FromIterator<(u64, u64)> for Tally {
    /// Adds up pairs of value and count. The counts are less than 2^64 together, so that the sum
    /// fits.
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(pairs: I) -> Self {
        let mut tally = Self::default();
        for (value, count) in pairs {
            tally.count += count;
            tally.sum += u128::from(value) * u128::from(count);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_equal_values_is_that_value() {
        for value in [0_u64, 1, 880, 1_000_000_007, (1 << 53) - 1] {
            for count in [1, 3, 99_999_999, u64::MAX] {
                let tally = Tally {
                    count,
                    sum: u128::from(value) * u128::from(count),
                };
                assert_eq!(tally.mean(), Some(value as f64));
            }
        }
        assert_eq!(Tally::default().mean(), None);
    }
}

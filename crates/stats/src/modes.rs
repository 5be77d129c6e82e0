//! Two modes of a distribution.

use crate::{Counts, Quantile};

/// Two groups of samples with hardly anything between them: cold and warm starts, a tick that is
/// hit or missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    /// The median of the lower group.
    pub low: u64,
    /// The median of the upper group.
    pub high: u64,
    /// The middle between the greatest value of the lower group and the least of the upper one, on
    /// a logarithmic scale.
    pub border: u64,
    /// The number of samples in the upper group.
    pub above: u64,
    /// The number of all samples.
    pub total: u64,
}

impl Modes {
    /// The least number of samples in each group.
    pub const LEAST: u64 = 10;
    /// The least part of all samples that each group has.
    const SHARE: f64 = 0.15;
    /// The least ratio of the medians.
    const APART: f64 = 1.6;
    /// The least ratio of what 95 % of the upper group are above to what 95 % of the lower one are
    /// below.
    const VALLEY: f64 = 1.4;

    /// Finds two modes; `None` if there is but one, or too few samples. The border is where the
    /// variance between the groups is greatest (Otsu, 1979), on a logarithmic scale.
    pub fn of(counts: &Counts) -> Option<Self> {
        let total = counts.total();
        let log = |value: u64| (value.max(1) as f64).ln();
        let weigh = |(value, count): (u64, u64)| log(value) * count as f64;
        let sum: f64 = counts.iter().map(weigh).sum();
        let (mut below, mut sum_below, mut best) = (0, 0.0, (0.0, 0));
        for (value, count) in counts.iter() {
            below += count;
            sum_below += weigh((value, count));
            let above = total - below;
            if above == 0 {
                break;
            }
            let apart = sum_below / below as f64 - (sum - sum_below) / above as f64;
            let between = below as f64 * above as f64 * apart * apart;
            if between > best.0 {
                best = (between, value);
            }
        }
        let group = |is_above: bool| {
            let own = counts.iter();
            let own = own.filter(|(value, _)| (*value > best.1) == is_above);
            Counts::from_pairs(own).ok().filter(|own| !own.is_empty())
        };
        let (lower, upper) = (group(false)?, group(true)?);
        let least = lower.total().min(upper.total());
        let (top, bottom) = (
            lower.quantile(Quantile::P95)?,
            upper.quantile(Quantile::P5)?,
        );
        let (low, high) = (lower.median()?, upper.median()?);
        let is_apart =
            log(high) - log(low) > Self::APART.ln() && log(bottom) - log(top) > Self::VALLEY.ln();
        let is_enough = least >= Self::LEAST && least as f64 >= Self::SHARE * total as f64;
        (is_apart && is_enough).then_some(Self {
            low,
            high,
            border: (best.1.max(1) as f64 * upper.min()? as f64).sqrt() as u64,
            above: upper.total(),
            total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u64, u64)]) -> Option<Modes> {
        Modes::of(&Counts::from_pairs(pairs.iter().copied()).unwrap())
    }

    #[test]
    fn two_humps_are_found_with_the_share_of_the_upper_one() {
        let modes = of(&[(4, 5), (5, 40), (6, 6), (104, 5), (105, 40), (106, 4)]);
        let found = Modes {
            low: 5,
            high: 105,
            border: 24,
            above: 49,
            total: 100,
        };
        assert_eq!(modes, Some(found));
        assert_eq!(of(&[(0, 50), (9, 50)]).unwrap().low, 0);
    }

    #[test]
    fn one_hump_a_tail_and_few_samples_are_no_modes() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(7, 1_000)]), None);
        // A wide hump has no valley.
        let wide: Vec<(u64, u64)> = (100..400).map(|value| (value, 10)).collect();
        assert_eq!(of(&wide), None);
        // One in a hundred is a tail, and nine are none that say anything.
        assert_eq!(of(&[(5, 990), (500, 10)]), None);
        assert_eq!(of(&[(5, 9), (500, 9)]), None);
        assert!(of(&[(5, 10), (500, 10)]).is_some());
    }
}

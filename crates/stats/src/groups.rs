//! Two groups of invocations against each other, by all of their figures at once.
//!
//! Runs of one invocation share their minute: what else the host did, where memory lay, how warm it
//! was. They say how one run of that minute would differ from another, not how the system would
//! tomorrow. So the unit of a comparison is the invocation, with one value for each figure, and
//! both groups should be taken in alternation: what changes slowly then meets both, and what comes
//! in bursts hits either by chance.
//!
//! # The test
//!
//! If the groups do not differ, any division of the invocations into groups of these sizes was as
//! likely as the one that happened. The p-value is the share of divisions whose statistic is at
//! least as large: exact for few invocations, of any distribution. A division moves an invocation
//! with all of its figures, so figures that rise and fall together are taken as what they are, one
//! piece of evidence; the p-value of a figure is adjusted by the greatest statistic of all figures
//! that differ no more than it does (P. H. Westfall and S. S. Young, Resampling-Based Multiple
//! Testing, 1993, algorithm 4.1 with max T; Y. Ge, S. Dudoit and T. P. Speed, Resampling-based
//! multiple testing for microarray data analysis, TEST 12, 2003). Calling those at most α a
//! difference is wrong anywhere in the table with a probability of at most α. Above
//! [`MOST_DIVISIONS`] that many are drawn, the one that happened among them (B. Phipson and G. K.
//! Smyth, Permutation p-values should never be zero, Statistical Applications in Genetics and
//! Molecular Biology 9, 2010).
//!
//! The statistic is the difference of means over the standard deviation of all values, which orders
//! divisions as Student's t does. Of N values the ⌊N/12⌋ lowest and the as many highest count as
//! their neighbours (Winsorized t: W. J. Dixon and J. W. Tukey, Technometrics 10, 1968), so that
//! one wild invocation of twelve doesn't hide what the others show.
//!
//! # Why this statistic
//!
//! Of 400 simulated tables of 6 against 6 invocations, with 10 figures of latencies that correlate
//! with 0.8, one of them shifted by the greater of 20 % and three standard deviations, these per
//! cent were found at 5 %:
//!
//! | statistic | quiet, one noisy figure | quiet, of 40 independent ones | 20 %, one of twenty invocations in a burst | alarms without a shift |
//! |---|---|---|---|---|
//! | mean | 95 | 78 | 62 | 5.0 |
//! | mean of logarithms, also Welch's | 95 | 77 | 64 | 4.8 |
//! | **Winsorized by 1 of 12** | 94 | 73 | 74 | 4.5 |
//! | Winsorized by 2 of 12 | 93 | 69 | 82 | 5.0 |
//! | ranks (Mann and Whitney's U) | 88 | 0 | 70 | 4.0 |
//!
//! Ranks can't tell a shift by ten standard deviations from one that just separates the groups, so
//! among many figures chance always has as extreme ones; Holm's correction finds nothing among more
//! than 23, as no p-value of 6 against 6 is below 2/924. Logarithms gain nothing and don't exist
//! for a share of 0.
//!
//! # How large
//!
//! The size of a difference is Hodges and Lehmann's shift with its interval by ranks (`shift.rs`).
//! It holds for a figure by itself, so a figure whose interval leaves out 0 need not differ once all
//! figures are considered.

use fastrand::Rng;
use statrs::distribution::{Beta, ContinuousCDF};

use crate::error::StatsError;
use crate::interval::{Interval, Level, enough, finite, median};
use crate::over_runs::NoInterval;
use crate::shift::{differences, divisions, shift};

/// The number of divisions up to which all are tried: 8 against 8 invocations have 12,870.
pub const MOST_DIVISIONS: usize = 20_000;

/// Two divisions with statistics this near to each other are equally extreme; rounding may part
/// them.
const ROUNDING: f64 = 1e-9;

/// One figure of two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median over the first group, BASE.
    pub base: f64,
    /// Median over the second group, NEW.
    pub new: f64,
    /// By how much NEW is above BASE, in the unit of the figure.
    pub shift: Shift,
    /// The probability of as large a statistic in this figure alone, if the groups don't differ.
    pub p_value: f64,
    /// The same, adjusted over all figures compared.
    pub adjusted_p_value: f64,
}

/// A shift, with the interval of that figure by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Hodges and Lehmann's estimate.
    pub estimate: f64,
    /// The interval, or why there is none.
    pub interval: Result<Interval, NoInterval>,
}

/// How often a machine that is compared with itself is found to differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FalseAlarms {
    /// Comparisons with any alarm, as a share of all.
    pub rate: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Difference {
    /// Returns whether the groups differ in this figure, with a probability of at most
    /// `significance` that any figure of the table is wrongly said to.
    pub fn differs(&self, significance: f64) -> bool {
        self.adjusted_p_value <= significance
    }
}

/// Compares two groups of invocations by all rows together.
///
/// A row holds one figure: its value in each invocation of BASE, and in each of NEW. The
/// invocations are the same, in the same order, in all rows. The seed decides which divisions are
/// drawn where there are too many to try all.
///
/// The values may be those of the runs of two single invocations; what differs is then told of
/// these two only.
///
/// # Errors
///
/// [`StatsError::TooFew`] if a group is empty, [`StatsError::Rows`] if rows hold different numbers
/// of invocations, [`StatsError::Number`] if a value is infinite or not a number.
pub fn compare_groups(
    rows: &[(Vec<f64>, Vec<f64>)],
    level: Level,
    seed: u64,
) -> Result<Vec<Difference>, StatsError> {
    let Some((base, new)) = rows.first() else {
        return Ok(Vec::new());
    };
    let sizes = (base.len(), new.len());
    let fewest = sizes.0.min(sizes.1) as u64;
    enough("a comparison", "invocations on each side", 1, fewest)?;
    for (row, (base, new)) in rows.iter().enumerate() {
        if (base.len(), new.len()) != sizes {
            return Err(StatsError::Rows { row });
        }
        finite(base)?;
        finite(new)?;
    }
    let scores: Vec<Vec<f64>> = rows.iter().map(|(base, new)| scores(base, new)).collect();
    let p_values = p_values(&scores, sizes.0, seed);
    let found = rows.iter().zip(p_values);
    found
        .map(|((base, new), (p_value, adjusted_p_value))| {
            Ok(Difference {
                base: median(&mut base.clone()),
                new: median(&mut new.clone()),
                shift: shifted(base, new, level)?,
                p_value,
                adjusted_p_value,
            })
        })
        .collect()
}

/// Returns the rate of false alarms among comparisons of a machine with itself.
///
/// The interval is exact (C. J. Clopper and E. S. Pearson, The use of confidence or fiducial
/// limits, Biometrika 26, 1934).
///
/// # Errors
///
/// [`StatsError::TooFew`] without comparisons, or with more alarms than comparisons.
pub fn false_alarms(
    comparisons: u64,
    alarms: u64,
    level: Level,
) -> Result<FalseAlarms, StatsError> {
    enough(
        "a rate of false alarms",
        "comparisons",
        alarms.max(1),
        comparisons,
    )?;
    let tail = level.outside() / 2.0;
    let (hit, missed) = (alarms as f64, (comparisons - alarms) as f64);
    // Both parameters are above 0 where these are called.
    let beta =
        |a: f64, b: f64, p: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(p));
    Ok(FalseAlarms {
        rate: hit / comparisons as f64,
        low: if alarms == 0 {
            0.0
        } else {
            beta(hit, missed + 1.0, tail)
        },
        high: if alarms == comparisons {
            1.0
        } else {
            beta(hit + 1.0, missed, 1.0 - tail)
        },
    })
}

/// Returns the values of both groups, Winsorized, less their mean and over the root of their sum of
/// squares; all 0 if they are equal.
fn scores(base: &[f64], new: &[f64]) -> Vec<f64> {
    let mut all = [base, new].concat();
    let mut sorted = all.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let outermost = sorted.len() / 12;
    let (low, high) = (sorted[outermost], sorted[sorted.len() - 1 - outermost]);
    for value in &mut all {
        *value = value.clamp(low, high) - low;
    }
    if low == high {
        return all;
    }
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
    all.iter()
        .map(|value| (value - mean) / squares.sqrt())
        .collect()
}

/// Returns the p-value of each row by itself, and adjusted over all; the first `chosen` scores are
/// those of BASE.
fn p_values(rows: &[Vec<f64>], chosen: usize, seed: u64) -> Vec<(f64, f64)> {
    // All scores of a row sum up to 0, so those of one group say it all.
    let statistic = |row: &[f64], group: &[usize]| group.iter().map(|&i| row[i]).sum::<f64>().abs();
    let happened: Vec<usize> = (0..chosen).collect();
    let observed: Vec<f64> = rows.iter().map(|row| statistic(row, &happened)).collect();
    let mut rising: Vec<usize> = (0..rows.len()).collect();
    rising.sort_by(|&a, &b| observed[a].total_cmp(&observed[b]));
    let mut alone = vec![0_u32; rows.len()];
    let mut together = vec![0_u32; rows.len()];
    let mut tried = 0_u32;
    for_each_division(rows[0].len(), chosen, seed, |group| {
        tried += 1;
        let mut greatest = 0.0_f64;
        for &row in &rising {
            let of_row = statistic(&rows[row], group);
            greatest = greatest.max(of_row);
            alone[row] += u32::from(of_row >= observed[row] - ROUNDING);
            together[row] += u32::from(greatest >= observed[row] - ROUNDING);
        }
    });
    let mut found = vec![(1.0, 1.0); rows.len()];
    let mut before = 0_u32;
    for &row in rising.iter().rev() {
        before = before.max(together[row]);
        let share = |count: u32| f64::from(count) / f64::from(tried);
        found[row] = (share(alone[row]), share(before));
    }
    found
}

/// Calls a function with the first group of each division of `all` invocations; of
/// [`MOST_DIVISIONS`] drawn ones and the one that happened, if there are more.
fn for_each_division(all: usize, chosen: usize, seed: u64, mut of: impl FnMut(&[usize])) {
    let mut group: Vec<usize> = (0..chosen).collect();
    if divisions(all as u64, chosen as u64) > MOST_DIVISIONS as f64 {
        of(&group);
        let mut random = Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..all).collect();
        for _ in 0..MOST_DIVISIONS {
            random.shuffle(&mut order);
            of(&order[..chosen]);
        }
        return;
    }
    loop {
        of(&group);
        // The last place that can still move up, and those after it close behind.
        let Some(place) = (0..chosen).rev().find(|&i| group[i] < all - chosen + i) else {
            return;
        };
        let from = group[place] + 1;
        for (value, place) in (from..).zip(place..chosen) {
            group[place] = value;
        }
    }
}

fn shifted(base: &[f64], new: &[f64], level: Level) -> Result<Shift, StatsError> {
    let interval = match shift(base, new, level) {
        Ok(interval) => Ok(interval),
        Err(StatsError::TooFew { needed, got, .. }) => {
            Err(NoInterval::TooFewOfEach { needed, got })
        }
        Err(other) => return Err(other),
    };
    Ok(Shift {
        estimate: median(&mut differences(base, new)),
        interval,
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn compared(rows: &[(Vec<f64>, Vec<f64>)]) -> Vec<Difference> {
        compare_groups(rows, Level::P95, 1).unwrap()
    }

    fn close(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    const SIX: [f64; 6] = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];

    #[test]
    fn groups_far_apart_are_two_divisions_of_924() {
        let rows = [(SIX.to_vec(), SIX.map(|value| value * 2.0).to_vec())];
        let found = compared(&rows)[0];
        close(found.p_value, 2.0 / 924.0);
        close(found.adjusted_p_value, 2.0 / 924.0);
        assert_eq!(
            (found.base, found.new, found.shift.estimate),
            (12.5, 25.0, 12.5)
        );
        let interval = found.shift.interval.unwrap();
        assert!(interval.low > 7.0 && interval.high < 18.0, "{interval:?}");
        // Many rows of the same evidence weigh no more than one.
        let same = compared(&vec![rows[0].clone(); 50]);
        close(same[49].adjusted_p_value, 2.0 / 924.0);
    }

    #[test]
    fn the_p_value_is_that_of_the_textbook() {
        // The 6 divisions have 3 distinct statistics, each twice.
        let found = compared(&[(vec![1.0, 2.0], vec![3.0, 5.0])])[0];
        close(found.p_value, 2.0 / 6.0);
        let found = compared(&[(vec![1.0, 3.0], vec![2.0, 5.0])])[0];
        close(found.p_value, 4.0 / 6.0);
    }

    #[test]
    fn one_wild_invocation_hides_nothing() {
        let mut base = SIX.to_vec();
        base[0] = 1e9;
        let new: Vec<f64> = SIX.iter().map(|value| value + 20.0).collect();
        let found = compared(&[(base, new)])[0];
        assert!(found.p_value < 0.02, "{found:?}");
    }

    #[test]
    fn equal_values_and_zeros_do_not_differ() {
        let zeros = vec![0.0; 6];
        let mut one_missed = zeros.clone();
        one_missed[3] = 0.7;
        let rows = [(vec![880.0; 6], vec![880.0; 6]), (zeros, one_missed)];
        for found in compared(&rows) {
            assert_eq!((found.p_value, found.adjusted_p_value), (1.0, 1.0));
        }
        // Where nothing varies within a group, any difference is found.
        let exact = compared(&[(vec![880.0; 4], vec![881.0; 4])])[0];
        close(exact.p_value, 2.0 / 70.0);
    }

    #[test]
    fn too_few_or_uneven_rows_are_refused() {
        assert_eq!(compare_groups(&[], Level::P95, 1), Ok(Vec::new()));
        let refused =
            |rows: &[(Vec<f64>, Vec<f64>)]| compare_groups(rows, Level::P95, 1).unwrap_err();
        assert!(matches!(
            refused(&[(vec![], vec![1.0])]),
            StatsError::TooFew { .. }
        ));
        let uneven = [(vec![1.0; 2], vec![1.0; 2]), (vec![1.0; 2], vec![1.0])];
        assert_eq!(refused(&uneven), StatsError::Rows { row: 1 });
        assert!(matches!(
            refused(&[(vec![1.0], vec![f64::NAN])]),
            StatsError::Number { .. }
        ));
        // One of each says how far they are apart, and no more.
        let rows = [(vec![10.0], vec![12.0])];
        let two = compared(&rows)[0];
        assert!(!two.differs(0.05));
        assert_eq!(two.shift.estimate, 2.0);
        let needed = NoInterval::TooFewOfEach { needed: 4, got: 1 };
        assert_eq!(two.shift.interval, Err(needed));
    }

    #[test]
    fn divisions_are_all_there_once() {
        let mut seen = Vec::new();
        for_each_division(5, 2, 1, |group| seen.push(group.to_vec()));
        assert_eq!(seen.len(), 10);
        assert_eq!((&seen[0], &seen[9]), (&vec![0, 1], &vec![3, 4]));
        seen.dedup();
        assert_eq!(seen.len(), 10);
        assert_eq!(divisions(12, 6), 924.0);
        assert_eq!(divisions(16, 8), 12_870.0);
        let mut drawn = 0;
        for_each_division(20, 10, 1, |_| drawn += 1);
        assert_eq!(drawn, MOST_DIVISIONS + 1);
    }

    #[test]
    fn drawn_divisions_say_what_all_do() {
        // Among evenly spaced values means order divisions as ranks do, but for one Winsorized
        // value at each end.
        let base = [0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 10.0, 12.0];
        let new = [4.0, 6.0, 8.0, 11.0, 13.0, 14.0, 15.0, 16.0, 17.0];
        let drawn = compared(&[(base.to_vec(), new.to_vec())])[0].p_value;
        // Of the 48,620 divisions, 690 have as extreme a sum of ranks.
        let all: f64 = 690.0 / 48_620.0;
        assert!((drawn / all).ln().abs() < 0.2, "{drawn} and {all}");
    }

    #[test]
    fn rates_of_false_alarms_are_those_of_the_tables() {
        // Clopper and Pearson at 95 %: 2 of 40 are 0.6 to 16.9 %.
        let of_40 = false_alarms(40, 2, Level::P95).unwrap();
        assert_eq!(of_40.rate, 0.05);
        assert!((of_40.low - 0.006_114).abs() < 1e-5, "{of_40:?}");
        assert!((of_40.high - 0.169_197).abs() < 1e-5, "{of_40:?}");
        let none = false_alarms(40, 0, Level::P95).unwrap();
        close(none.high, 1.0 - 0.025_f64.powf(1.0 / 40.0));
        let all = false_alarms(3, 3, Level::P95).unwrap();
        assert_eq!((all.rate, all.high), (1.0, 1.0));
        close(all.low, 0.025_f64.powf(1.0 / 3.0));
        assert!(false_alarms(0, 0, Level::P95).is_err());
        assert!(false_alarms(3, 4, Level::P95).is_err());
    }

    fn tables() -> impl Strategy<Value = Vec<(Vec<f64>, Vec<f64>)>> {
        let group = |size| vec((0_u32..30).prop_map(f64::from), size);
        (1_usize..6, 1_usize..6)
            .prop_flat_map(move |(base, new)| vec((group(base), group(new)), 1..6))
    }

    proptest! {
        #[test]
        fn adjusting_never_lowers_and_keeps_the_order(rows in tables()) {
            let found = compared(&rows);
            for one in &found {
                prop_assert!(0.0 < one.p_value && one.p_value <= one.adjusted_p_value);
                prop_assert!(one.adjusted_p_value <= 1.0);
            }
            let mut swapped: Vec<_> = rows.iter().map(|(base, new)| (new.clone(), base.clone())).collect();
            swapped.reverse();
            let swapped = compared(&swapped);
            for (one, other) in found.iter().zip(swapped.iter().rev()) {
                prop_assert!((one.p_value - other.p_value).abs() < 1e-12);
                prop_assert!((one.adjusted_p_value - other.adjusted_p_value).abs() < 1e-12);
                prop_assert_eq!(one.shift.estimate, -other.shift.estimate);
            }
        }

        #[test]
        fn the_unit_does_not_matter(rows in tables(), unit in 1_u32..50, offset in 1_u32..50) {
            let (unit, offset) = (f64::from(unit), f64::from(offset));
            let scale = |values: &[f64]| values.iter().map(|v| v * unit + offset).collect::<Vec<_>>();
            let scaled: Vec<_> = rows.iter().map(|(base, new)| (scale(base), scale(new))).collect();
            for (one, other) in compared(&rows).iter().zip(compared(&scaled)) {
                prop_assert!((one.p_value - other.p_value).abs() < 1e-12);
                prop_assert!((one.adjusted_p_value - other.adjusted_p_value).abs() < 1e-12);
            }
        }
    }
}

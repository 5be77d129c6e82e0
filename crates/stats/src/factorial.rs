//! Screening: which of several switches change a figure, each by how much.
//!
//! A design has one row for each combination that is measured, and one column for each switch. The
//! columns are those of Plackett and Burman (The design of optimum multifactorial experiments,
//! Biometrika 33, 1946): any two are orthogonal, so each switch is estimated from all rows, and as
//! precisely as if it were the only one. The rows are followed by their mirror images (fold-over: G.
//! E. P. Box and K. B. Wilson, Journal of the Royal Statistical Society B 13, 1951), which makes the
//! resolution IV: that two switches together do more, or less, than the sum of both changes the effect
//! of no third one.
//!
//! A block holds every row once. The effect of a switch in a block is the mean of the rows that have
//! it less the mean of the others, so it is an average over all settings of the others. Blocks are the unit of replication: an effect's interval and
//! p-value are those of Student's t over the effects of the blocks. The p-values are adjusted by
//! Holm's method (A simple sequentially rejective multiple test procedure, Scandinavian Journal of
//! Statistics 6, 1979): calling those at most α an effect is wrong of any switch with a probability
//! of at most α, however the effects depend on each other.

use crate::error::StatsError;
use crate::interval::{Level, enough};
use crate::over_runs::{OverRuns, differences_over_runs};
use crate::welch::student_p_value;

/// First rows of the designs of Plackett and Burman, whose other rows are their rotations; a last row
/// has none of the switches.
const FIRST_ROWS: [&str; 6] = [
    "++-",
    "+++-+--",
    "++-+++---+-",
    "++++-+-++--+---",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

/// The greatest number of switches of a design.
pub const MOST_SWITCHES: usize = 23;

/// The effect of a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The mean over blocks, in the unit of the figure, with the interval of that switch by itself.
    pub over: OverRuns,
    /// The probability of as large an effect of this switch alone, if it has none; `None` with fewer
    /// than two blocks.
    pub p_value: Option<f64>,
    /// The same, adjusted over all switches.
    pub adjusted_p_value: Option<f64>,
}

impl Effect {
    /// Returns whether the switch has an effect, with a probability of at most `significance` that
    /// any switch of the design is wrongly said to.
    pub fn is_shown(&self, significance: f64) -> bool {
        self.adjusted_p_value.is_some_and(|p| p <= significance)
    }
}

/// Returns the rows of a design for some switches: whether each is on. One switch has two rows.
///
/// # Errors
///
/// [`StatsError::Number`] if there are none, or more than [`MOST_SWITCHES`].
pub fn design(switches: usize) -> Result<Vec<Vec<bool>>, StatsError> {
    if switches == 1 {
        return Ok(vec![vec![false], vec![true]]);
    }
    let mut first = FIRST_ROWS.iter();
    let first = first.find(|row| row.len() >= switches && switches > 0);
    let first = first.ok_or(StatsError::Number {
        what: "the number of switches",
        given: switches as f64,
        allowed: "1 to 23",
    })?;
    let mut row: Vec<bool> = first.chars().map(|sign| sign == '+').collect();
    let mut rows = Vec::new();
    for _ in 0..row.len() {
        rows.push(row[..switches].to_vec());
        row.rotate_right(1);
    }
    rows.push(vec![false; switches]);
    let mirrored = rows.clone().into_iter();
    rows.extend(mirrored.map(|row| row.into_iter().map(|is_on| !is_on).collect::<Vec<_>>()));
    Ok(rows)
}

/// Returns the effect of each switch of a design. `blocks` has the figure of each row, block by
/// block.
///
/// # Errors
///
/// [`StatsError::TooFew`] without blocks, or if a switch is on, or off, in all rows of one.
/// [`StatsError::Number`] if a value is not a finite number.
pub fn effects(design: &[Vec<bool>], blocks: &[Vec<f64>]) -> Result<Vec<Effect>, StatsError> {
    const METHOD: &str = "an effect";
    enough(METHOD, "blocks", 1, blocks.len() as u64)?;
    let mean = |block: &[f64], switch: usize, is_on: bool| {
        let own = design.iter().zip(block);
        let own = own.filter(|(row, _)| row.get(switch) == Some(&is_on));
        let own: Vec<f64> = own.map(|(_, figure)| *figure).collect();
        enough(METHOD, "rows with and without it", 1, own.len() as u64)?;
        Ok(own.iter().sum::<f64>() / own.len() as f64)
    };
    let switches = design.first().map_or(0, Vec::len);
    let all = (0..switches).map(|switch| {
        let each = blocks.iter();
        let each = each.map(|block| Ok(mean(block, switch, true)? - mean(block, switch, false)?));
        let each = each.collect::<Result<Vec<f64>, StatsError>>()?;
        Ok(Effect {
            over: differences_over_runs(&each, Level::P95)?,
            p_value: student_p_value(&each),
            adjusted_p_value: None,
        })
    });
    let mut all: Vec<Effect> = all.collect::<Result<_, StatsError>>()?;
    let p_values: Option<Vec<f64>> = all.iter().map(|effect| effect.p_value).collect();
    let adjusted = p_values.map(|p_values| holm(&p_values)).unwrap_or_default();
    for (effect, adjusted) in all.iter_mut().zip(adjusted) {
        effect.adjusted_p_value = Some(adjusted);
    }
    Ok(all)
}

/// Returns a figure of each row in each block for shares that are given as part and whole. The mean of
/// a row over the blocks is the share of all its parts in all its wholes, so that an effect is the
/// difference of shares over runs, and its interval that of the linearised ratio estimator
/// ([`share_over_runs`](crate::share_over_runs)).
pub fn linearised(blocks: &[Vec<(f64, f64)>]) -> Vec<Vec<f64>> {
    let number = blocks.len() as f64;
    let sums = |row: usize| {
        let own = blocks.iter().map(|block| block[row]);
        own.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
    };
    let figure = |(row, (part, whole)): (usize, &(f64, f64))| {
        let (parts, wholes) = sums(row);
        let share = parts / wholes;
        share + (part - share * whole) / (wholes / number)
    };
    let each = blocks.iter();
    each.map(|block| block.iter().enumerate().map(figure).collect())
        .collect()
}

/// Adjusts p-values by Holm's method.
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 0.0;
    for (place, at) in order.into_iter().enumerate() {
        let tests = (p_values.len() - place) as f64;
        least = least.max((p_values[at] * tests).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    #[test]
    fn the_columns_of_all_designs_are_balanced_and_orthogonal() {
        for switches in 1..=MOST_SWITCHES {
            let rows = design(switches).unwrap();
            let agree = |a: usize, b: usize| rows.iter().filter(|row| row[a] == row[b]).count();
            for a in 0..switches {
                let on = rows.iter().filter(|row| row[a]).count();
                assert_eq!(2 * on, rows.len(), "{switches} switches");
                for b in 0..a {
                    assert_eq!(2 * agree(a, b), rows.len(), "{switches}: {a} and {b}");
                    // Resolution IV: the product of two columns is orthogonal to any third.
                    for c in 0..switches {
                        let same = rows.iter().filter(|row| (row[a] == row[b]) == row[c]);
                        assert!(c == a || c == b || 2 * same.count() == rows.len());
                    }
                }
            }
        }
        assert_eq!(
            [design(3), design(9)].map(|rows| rows.unwrap().len()),
            [8, 24]
        );
        for wrong in [0, MOST_SWITCHES + 1] {
            assert!(design(wrong).is_err());
        }
    }

    #[test]
    fn effects_are_found_as_they_were_planted() {
        // 7 − 2·first + 3·second, and the two together 5 more than the sum of both.
        let rows = design(4).unwrap();
        let figure = |row: &Vec<bool>| {
            let [a, b] = [row[0], row[1]].map(|is_on| f64::from(u8::from(is_on)));
            7.0 - 2.0 * a + 3.0 * b + 5.0 * a * b
        };
        let block: Vec<f64> = rows.iter().map(figure).collect();
        let shifted = block.iter().map(|figure| figure + 1.0).collect();
        let found = effects(&rows, &[block, shifted]).unwrap();
        let estimates: Vec<f64> = found.iter().map(|effect| effect.over.estimate).collect();
        // An effect is the mean of those with the other switch on and off.
        assert_eq!(estimates, [0.5, 5.5, 0.0, 0.0]);
    }

    #[test]
    fn an_effect_on_shares_is_the_difference_of_shares_over_runs() {
        // A stall makes the second block of the second row ten times as long.
        let blocks = [[(1.0, 10.0), (2.0, 10.0)], [(3.0, 10.0), (80.0, 100.0)]];
        let figures = linearised(&blocks.map(Vec::from));
        let found = effects(&design(1).unwrap(), &figures).unwrap();
        let [without, with] = [4.0 / 20.0, 82.0 / 110.0];
        assert!((found[0].over.estimate - (with - without)).abs() < 1e-12);
    }

    #[test]
    fn p_values_are_adjusted_as_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.9, 0.6]), [1.0, 1.0]);
    }

    /// Planted switches: one helps, one hurts, six do nothing. Noise of the cells has a long tail, as
    /// that of lost time, and each block has its own level.
    #[test]
    fn planted_switches_are_found_and_nothing_else() {
        const SCREENINGS: usize = 400;
        let mut random = Rng::with_seed(11);
        let rows = design(8).unwrap();
        let mut exact = 0;
        for _ in 0..SCREENINGS {
            let blocks = (0..6).map(|_| {
                let level = 5.0 + random.f64();
                let row = |row: &Vec<bool>| {
                    let [helps, hurts] = [row[2], row[5]].map(|is_on| f64::from(u8::from(is_on)));
                    let noise = -0.3 * random.f64().max(1e-9).ln();
                    level - 1.0 * helps + 1.0 * hurts + noise
                };
                rows.iter().map(row).collect()
            });
            let blocks: Vec<Vec<f64>> = blocks.collect();
            let found = effects(&rows, &blocks).unwrap();
            let shown = found
                .iter()
                .enumerate()
                .filter(|(_, effect)| effect.is_shown(0.05));
            let shown: Vec<(usize, bool)> = shown
                .map(|(switch, effect)| (switch, effect.over.estimate < 0.0))
                .collect();
            exact += usize::from(shown == [(2, true), (5, false)]);
        }
        // 19 of 20.
        assert!(exact * 20 >= SCREENINGS * 19, "{exact} of {SCREENINGS}");
    }

    #[test]
    fn one_block_has_effects_and_nothing_that_is_shown() {
        let rows = design(1).unwrap();
        let found = effects(&rows, &[vec![3.0, 1.0]]).unwrap();
        assert_eq!(found[0].over.estimate, -2.0);
        assert!(!found[0].is_shown(0.05) && found[0].over.interval.is_err());
        assert!(effects(&rows, &[]).is_err());
        assert!(effects(&[vec![true]], &[vec![3.0]]).is_err());
    }
}

//! Delays: what a sample lasted beyond the mean of its run.
//!
//! kot-2019 counts them in classes and gives the share of execution time that delays above a limit
//! take. The mean is a fraction and samples are whole cycles, so for a whole bound b
//!
//! ```text
//! value − mean > b   exactly when   value > b + ⌊mean⌋
//! ```
//!
//! and every boundary is decided in integers, exactly as written. Only sizes are rounded.

use crate::classes::{ClassRow, DelayClass, DelayClasses};
use crate::counts::Counts;
use crate::error::StatsError;
use crate::tally::Tally;

/// The samples of one run as delays.
#[derive(Clone, Copy, Debug)]
pub struct Delays<'a> {
    counts: &'a Counts,
    base_whole: u64,
    base_fraction: f64,
    smallest_recorded: u64,
    unkept: u64,
    execution_cycles: u128,
}

impl<'a> Delays<'a> {
    /// Takes all samples of one run; delays are relative to its own mean. `None` without samples.
    pub fn of_run(counts: &'a Counts) -> Option<Self> {
        if counts.is_empty() {
            return None;
        }
        let total = u128::from(counts.total());
        Some(Self {
            counts,
            // A mean is not larger than the largest value.
            base_whole: u64::try_from(counts.sum() / total).ok()?,
            base_fraction: (counts.sum() % total) as f64 / counts.total() as f64,
            smallest_recorded: 0,
            unkept: 0,
            execution_cycles: counts.sum(),
        })
    }

    /// Takes the samples that a workload recorded from a threshold on.
    ///
    /// # Errors
    ///
    /// [`StatsError::Number`] for a base that is not a duration, [`StatsError::BelowThreshold`] and
    /// [`StatsError::LongerThanExecution`] for samples that contradict the recording.
    pub fn of_recording(counts: &'a Counts, recording: Recording) -> Result<Self, StatsError> {
        let Recording {
            base_cycles,
            smallest_recorded_cycles,
            unkept,
            execution_cycles,
        } = recording;
        let base_whole = base_cycles.floor();
        if !(0.0..2_f64.powi(63)).contains(&base_whole) {
            return Err(StatsError::Number {
                what: "the base of the delays",
                given: base_cycles,
                allowed: "a number of cycles from 0 to 2^63",
            });
        }
        if let Some(value) = counts
            .min()
            .filter(|&value| value < smallest_recorded_cycles)
        {
            let smallest = smallest_recorded_cycles;
            return Err(StatsError::BelowThreshold { value, smallest });
        }
        if counts.sum() > execution_cycles {
            let (recorded, execution) = (counts.sum(), execution_cycles);
            return Err(StatsError::LongerThanExecution {
                recorded,
                execution,
            });
        }
        Ok(Self {
            counts,
            base_whole: base_whole as u64,
            base_fraction: base_cycles - base_whole,
            smallest_recorded: smallest_recorded_cycles,
            unkept,
            execution_cycles,
        })
    }

    /// Counts the delays by class.
    pub fn classify(&self, classes: &DelayClasses) -> Vec<ClassRow> {
        let row = |class: DelayClass| ClassRow {
            class,
            delays: self.recorded(class.above, class.up_to),
        };
        classes.iter().map(row).collect()
    }

    /// Returns the share of execution time in delays above `limit` cycles; `None` unless all of
    /// them were recorded.
    ///
    /// The sum of those delays over the sum of all cycles. kot-2019 takes the limits 400 and 2,000.
    pub fn share_above(&self, limit: u64) -> Option<DelayShare> {
        let delays = self.recorded(limit, None)?;
        let share = match self.execution_cycles {
            0 => 0.0,
            all => delays.cycles / all as f64,
        };
        Some(DelayShare {
            delays,
            share,
            execution_cycles: self.execution_cycles,
        })
    }

    /// Returns the delays in (`above`, `up_to`]; `None` unless all of them were recorded.
    fn recorded(&self, above: u64, up_to: Option<u64>) -> Option<DelayTally> {
        let above = above.saturating_add(self.base_whole);
        let up_to = up_to.map(|bound| bound.saturating_add(self.base_whole));
        let are_all = self.unkept == 0 && self.smallest_recorded <= above.saturating_add(1);
        are_all.then(|| self.delays(self.counts.tally_between(above, up_to)))
    }

    /// Subtracts the base from values that are all above its whole part.
    fn delays(&self, values: Tally) -> DelayTally {
        let whole = values.sum - u128::from(self.base_whole) * u128::from(values.count);
        let cycles = whole as f64 - values.count as f64 * self.base_fraction;
        DelayTally {
            count: values.count,
            cycles,
        }
    }
}

/// The contents of a recording, and the samples that it left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recording {
    /// The duration of an undisturbed sample, in cycles: the mean of the run, or the typical
    /// iteration.
    pub base_cycles: f64,
    /// The smallest value that is recorded, in cycles: a workload that records "at or above T"
    /// gives T, one that records "above T" gives T + 1.
    pub smallest_recorded_cycles: u64,
    /// How many values should have been recorded, but found the buffer full.
    pub unkept: u64,
    /// Duration of everything executed, recorded or not, in cycles.
    pub execution_cycles: u128,
}

/// Number and sum of some delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelayTally {
    /// Number of delays.
    pub count: u64,
    /// Their sum, in cycles.
    pub cycles: f64,
}

impl DelayTally {
    /// Returns the mean delay in cycles (the study's size of a class), or `None` without delays.
    pub fn mean_cycles(&self) -> Option<f64> {
        (self.count > 0).then(|| self.cycles / self.count as f64)
    }
}

/// What delays above a limit took of the execution time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayShare {
    /// The delays.
    pub delays: DelayTally,
    /// Their sum over all cycles executed, as a fraction of 1.
    pub share: f64,
    /// All cycles executed.
    pub execution_cycles: u128,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(u64, u64)]) -> Counts {
        Counts::from_pairs(pairs.iter().copied()).unwrap()
    }

    fn seen(rows: &[ClassRow]) -> Vec<(char, u64)> {
        let each = rows.iter();
        each.map(|row| (row.class.letter, row.delays.unwrap().count))
            .collect()
    }

    #[test]
    fn a_delay_on_a_bound_belongs_below_it() {
        // Symmetric around 10,000, so the mean is exactly that.
        let mut pairs = vec![(10_000, 1_000)];
        for delay in [150, 151, 400, 401, 2_000, 2_001, 6_000, 6_001] {
            pairs.extend([(10_000 + delay, 1), (10_000 - delay, 1)]);
        }
        let made = counts(&pairs);
        let rows = Delays::of_run(&made)
            .unwrap()
            .classify(&DelayClasses::kot_2019());
        assert_eq!(seen(&rows), [('A', 2), ('B', 2), ('C', 2), ('D', 1)]);
        let sizes: Vec<_> = rows
            .iter()
            .map(|row| row.delays.unwrap().mean_cycles())
            .collect();
        assert_eq!(
            sizes,
            [Some(275.5), Some(1_200.5), Some(4_000.5), Some(6_001.0)]
        );
    }

    #[test]
    fn a_fractional_mean_moves_the_bounds_by_its_fraction() {
        // The mean is 1,000 + 500/2,000 = 1,000.25: the sample of 1,400 has a delay of 399.75, that
        // of 1,401 one of 400.75; the first belongs to A, the second to B.
        let made = counts(&[(1_000, 1_996), (1_400, 1), (1_401, 1), (849, 1), (850, 1)]);
        assert_eq!(made.mean(), Some(1_000.25));
        let rows = Delays::of_run(&made)
            .unwrap()
            .classify(&DelayClasses::kot_2019());
        assert_eq!(seen(&rows), [('A', 1), ('B', 1), ('C', 0), ('D', 0)]);
        let size = |row: usize| rows[row].delays.unwrap().mean_cycles();
        assert_eq!(
            (size(0), size(1), size(2)),
            (Some(399.75), Some(400.75), None)
        );
    }

    #[test]
    fn the_share_is_the_sum_of_the_delays_over_all_cycles() {
        let made = counts(&[(900, 9_999), (10_900, 1)]);
        let delays = Delays::of_run(&made).unwrap();
        let share = delays.share_above(2_000).unwrap();
        assert_eq!(
            share.delays,
            DelayTally {
                count: 1,
                cycles: 9_999.0
            }
        );
        assert!((share.share - 9_999.0 / 9_010_000.0).abs() < 1e-15);
        assert_eq!(delays.share_above(9_999).unwrap().share, 0.0);
        assert_eq!(delays.share_above(u64::MAX).unwrap().delays.count, 0);
    }

    #[test]
    fn what_a_threshold_hides_is_never_zero() {
        // From 1,000 cycles on; an undisturbed iteration lasts 26.5: delays from 973.5 on.
        let made = counts(&[(1_000, 2), (3_000, 3)]);
        let recording = Recording {
            base_cycles: 26.5,
            smallest_recorded_cycles: 1_000,
            unkept: 0,
            execution_cycles: 1_000_000,
        };
        let delays = Delays::of_recording(&made, recording).unwrap();
        let rows = delays.classify(&DelayClasses::kot_2019());
        let seen: Vec<_> = rows.iter().map(|row| row.delays).collect();
        let c = DelayTally {
            count: 3,
            cycles: 9_000.0 - 79.5,
        };
        assert_eq!(seen, [None, None, Some(c), Some(DelayTally::default())]);
        assert!(delays.share_above(400).is_none());
        assert!(delays.share_above(2_000).is_some());
    }

    #[test]
    fn a_threshold_on_a_class_bound_decides_to_the_cycle() {
        let nothing = Counts::default();
        let classes = DelayClasses::kot_2019();
        let is_seen = |smallest| {
            let recording = Recording {
                base_cycles: 26.0,
                smallest_recorded_cycles: smallest,
                unkept: 0,
                execution_cycles: 1,
            };
            let rows = Delays::of_recording(&nothing, recording)
                .unwrap()
                .classify(&classes);
            // (400, 2,000]
            rows[1].delays.is_some()
        };
        assert!(is_seen(427) && !is_seen(428));
    }

    #[test]
    fn no_class_is_told_of_a_full_list() {
        let made = counts(&[(9_000, 1)]);
        let recording = Recording {
            base_cycles: 26.0,
            smallest_recorded_cycles: 100,
            unkept: 5,
            execution_cycles: 1_000_000,
        };
        let rows = Delays::of_recording(&made, recording)
            .unwrap()
            .classify(&DelayClasses::kot_2019());
        assert!(rows.iter().all(|row| row.delays.is_none()));
    }

    #[test]
    fn recordings_that_contradict_themselves_are_refused() {
        let made = counts(&[(50, 1)]);
        let good = Recording {
            base_cycles: 26.0,
            smallest_recorded_cycles: 50,
            unkept: 0,
            execution_cycles: 50,
        };
        assert!(Delays::of_recording(&made, good).is_ok());
        for base_cycles in [f64::NAN, f64::INFINITY, -1.0, 1e30] {
            assert!(
                Delays::of_recording(
                    &made,
                    Recording {
                        base_cycles,
                        ..good
                    }
                )
                .is_err()
            );
        }
        let above = Recording {
            smallest_recorded_cycles: 51,
            ..good
        };
        assert!(Delays::of_recording(&made, above).is_err());
        assert!(
            Delays::of_recording(
                &made,
                Recording {
                    execution_cycles: 49,
                    ..good
                }
            )
            .is_err()
        );
    }
}

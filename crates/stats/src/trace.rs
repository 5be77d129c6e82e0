//! Interruptions of a spin: the times from one to the next, and the clock behind them.
//!
//! The `gap` workload reads the timer in a loop and records each difference that reaches a
//! threshold. Such a list is only trusted if it fits together: gaps in order, none overlapping the
//! next, all of them inside the spin. [`Trace::new`] checks that once, so the figures need no
//! caveats.
//!
//! Time stamps are those of a 64-bit counter that may wrap, and so may the index: both are only
//! ever used as differences.

use crate::error::StatsError;
use crate::period::{Period, detect};

/// One recorded interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the iteration that it lengthened.
    pub index: u64,
    /// Time stamp counter at its start.
    pub start: u64,
    /// Time from that read of the timer to the next, in cycles.
    pub length: u64,
}

/// The figures of the spin as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spin {
    /// Number of iterations.
    pub iterations: u64,
    /// Time from the first to the last read of the timer, in cycles.
    pub wall_cycles: u64,
    /// The duration of an undisturbed iteration, in cycles.
    pub typical_cycles: f64,
    /// Sum of the gaps that found the buffer full, in cycles; they are all later than the recorded
    /// ones.
    pub unkept_cycles: u64,
}

/// The interruptions of one spin, checked for consistency.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    gaps: Vec<Gap>,
}

impl Trace {
    /// Takes the gaps of one spin in the order in which they happened.
    ///
    /// # Errors
    ///
    /// [`StatsError::Number`] for a spin without duration or with an impossible typical iteration;
    /// [`StatsError::Trace`] if gaps are not in order, overlap, are shorter than a typical
    /// iteration, or don't fit into the spin; [`StatsError::LongerThanExecution`] if all
    /// gaps together don't.
    pub fn new(spin: Spin, gaps: Vec<Gap>) -> Result<Self, StatsError> {
        check_spin(&spin)?;
        check_gaps(&spin, &gaps)?;
        let listed: u128 = gaps.iter().map(|gap| u128::from(gap.length)).sum();
        let recorded = listed + u128::from(spin.unkept_cycles);
        let execution = u128::from(spin.wall_cycles);
        if recorded > execution {
            return Err(StatsError::LongerThanExecution {
                recorded,
                execution,
            });
        }
        Ok(Self { gaps })
    }

    /// Returns the times from start to start of successive recorded gaps, in cycles.
    pub fn inter_arrivals(&self) -> Vec<u64> {
        self.gaps
            .windows(2)
            .map(|pair| pair[1].start.wrapping_sub(pair[0].start))
            .collect()
    }

    /// Looks for a clock among the recorded gaps, such as the kernel's tick.
    ///
    /// See [`Period`] for what is reported and [`period`](crate::period) for how.
    pub fn period(&self) -> Option<Period> {
        detect(&self.gaps)
    }
}

fn check_spin(spin: &Spin) -> Result<(), StatsError> {
    let refused = |what, given, allowed| {
        Err(StatsError::Number {
            what,
            given,
            allowed,
        })
    };
    if spin.wall_cycles == 0 {
        return refused("the duration of the spin", 0.0, "at least 1 cycle");
    }
    if !(spin.typical_cycles.is_finite() && spin.typical_cycles >= 0.0) {
        let given = spin.typical_cycles;
        return refused(
            "the typical iteration",
            given,
            "a number of cycles from 0 on",
        );
    }
    Ok(())
}

fn check_gaps(spin: &Spin, gaps: &[Gap]) -> Result<(), StatsError> {
    let refused = |position, problem| Err(StatsError::Trace { position, problem });
    for (position, gap) in gaps.iter().enumerate() {
        if (gap.length as f64) < spin.typical_cycles {
            return refused(position, "is shorter than a typical iteration");
        }
    }
    // Differences add up in 128 bits: a step backwards looks like one of nearly 2^64 forwards.
    let (mut iterations, mut cycles) = (0_u128, 0_u128);
    for (before, pair) in gaps.windows(2).enumerate() {
        let [earlier, later] = pair else { continue };
        let index_step = later.index.wrapping_sub(earlier.index);
        let start_step = later.start.wrapping_sub(earlier.start);
        iterations += u128::from(index_step);
        cycles += u128::from(start_step);
        if index_step == 0 || iterations >= u128::from(spin.iterations) {
            return refused(
                before + 1,
                "has an index that is not after the one before it, or not in the spin",
            );
        }
        if start_step < earlier.length {
            return refused(before + 1, "starts before the one before it ends");
        }
        if cycles + u128::from(later.length) > u128::from(spin.wall_cycles) {
            return refused(
                before + 1,
                "ends after the spin, or before the gaps before it",
            );
        }
    }
    if gaps.len() as u64 > spin.iterations {
        return refused(
            spin.iterations as usize,
            "is one more than there were iterations",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(iterations: u64, wall_cycles: u64) -> Spin {
        Spin {
            iterations,
            wall_cycles,
            typical_cycles: 26.0,
            unkept_cycles: 0,
        }
    }

    /// Gaps of the given lengths, one every `every` iterations of 26 cycles.
    fn regular(first: Gap, lengths: &[u64], every: u64) -> Vec<Gap> {
        let mut next = first;
        lengths
            .iter()
            .map(|&length| {
                let gap = Gap { length, ..next };
                next.index = next.index.wrapping_add(every);
                next.start = next.start.wrapping_add((every - 1) * 26 + length);
                gap
            })
            .collect()
    }

    const FIRST: Gap = Gap {
        index: 99,
        start: 5_000_000,
        length: 0,
    };

    #[test]
    fn regular_gaps_give_exactly_their_distances() {
        let gaps = regular(FIRST, &[5_026; 10], 100);
        let wall = 990 * 26 + 10 * 5_026;
        let trace = Trace::new(spin(1_000, wall), gaps).unwrap();
        assert_eq!(trace.inter_arrivals(), [99 * 26 + 5_026; 9]);
    }

    #[test]
    fn a_burst_of_gaps_without_pause_is_counted_gap_by_gap() {
        let gaps = regular(FIRST, &[1_000, 2_000, 3_000, 2_500], 1);
        let trace = Trace::new(spin(1_000, 100_000), gaps).unwrap();
        assert_eq!(trace.inter_arrivals(), [1_000, 2_000, 3_000]);
        assert_eq!(trace.period(), None);
    }

    #[test]
    fn one_huge_gap_may_take_nearly_everything() {
        let huge = 1 << 42;
        let gap = Gap {
            length: huge,
            ..FIRST
        };
        let trace = Trace::new(spin(1_000, huge + 999 * 26), vec![gap]).unwrap();
        assert!(trace.inter_arrivals().is_empty());
    }

    #[test]
    fn neither_a_large_index_nor_the_counters_wrap_change_anything() {
        let lengths: Vec<u64> = (1..=500).map(|i| 1_000 + i * 7 % 64 * 10).collect();
        let plain = Trace::new(spin(1 << 40, 1 << 40), regular(FIRST, &lengths, 1_000)).unwrap();
        for first in [
            Gap {
                index: u64::from(u32::MAX) - 3,
                start: 0,
                length: 0,
            },
            Gap {
                index: u64::MAX - 7,
                start: u64::MAX - 1_000_000,
                length: 0,
            },
        ] {
            let moved =
                Trace::new(spin(1 << 40, 1 << 40), regular(first, &lengths, 1_000)).unwrap();
            assert_eq!(moved.inter_arrivals(), plain.inter_arrivals());
            assert_eq!(moved.period(), plain.period());
        }
        let period = plain.period().unwrap();
        assert!((period.period_cycles / (999.0 * 26.0 + 1_320.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn no_gaps_have_no_distances() {
        let trace = Trace::new(spin(1_000, 26_000), Vec::new()).unwrap();
        assert_eq!(trace.period(), None);
        assert!(trace.inter_arrivals().is_empty());
    }

    #[test]
    fn gaps_that_found_the_buffer_full_still_take_their_time() {
        let of = |unkept_cycles| {
            let spin = Spin {
                unkept_cycles,
                ..spin(1_000, 100_000)
            };
            Trace::new(spin, regular(FIRST, &[1_000, 2_000], 10))
        };
        assert!(of(97_000).is_ok() && of(97_001).is_err());
    }

    #[test]
    fn contradictions_are_refused_with_their_place() {
        let good = regular(FIRST, &[1_000; 4], 10);
        let position = |change: &dyn Fn(&mut Vec<Gap>)| {
            let mut gaps = good.clone();
            change(&mut gaps);
            match Trace::new(spin(1_000, 100_000), gaps) {
                Err(StatsError::Trace { position, .. }) => position,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(position(&|gaps| gaps[2].length = 25), 2);
        assert_eq!(position(&|gaps| gaps[2].index = gaps[1].index), 2);
        assert_eq!(position(&|gaps| gaps[3].index = 0), 3);
        assert_eq!(position(&|gaps| gaps[3].index = 5_000), 3);
        assert_eq!(position(&|gaps| gaps[1].start = gaps[0].start + 999), 1);
        assert_eq!(position(&|gaps| gaps.swap(1, 2)), 2);
        assert_eq!(position(&|gaps| gaps[3].start += 1_000_000), 3);
        assert_eq!(position(&|gaps| gaps[3].length = 100_000), 3);

        for typical_cycles in [f64::NAN, -1.0, f64::INFINITY] {
            let spin = Spin {
                typical_cycles,
                ..spin(1_000, 100_000)
            };
            assert!(Trace::new(spin, Vec::new()).is_err());
        }
        assert!(Trace::new(spin(1_000, 0), Vec::new()).is_err());
        assert!(Trace::new(spin(0, 100_000), good[..1].to_vec()).is_err());
        assert!(Trace::new(spin(1_000, 999), good[..1].to_vec()).is_err());
        assert!(Trace::new(spin(1_000, 100_000), good).is_ok());
    }
}

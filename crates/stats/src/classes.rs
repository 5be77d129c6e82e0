//! The classes in which kot-2019 counts delays.
//!
//! The study counts delays in four classes by size and gives each class's mean. A table here adds
//! to that how much of each class could be seen.

use crate::delays::DelayTally;
use crate::error::StatsError;
use crate::observed::{LeftOut, Observed};

/// The lower bounds of classes of delays, rising: each class ends at the next one's, the last has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayClasses([u64; 4]);

/// One class: delays in (`above`, `up_to`] cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayClass {
    /// `A` for the smallest delays, then in the order of the alphabet.
    pub letter: char,
    /// Lower bound, which is outside, in cycles.
    pub above: u64,
    /// Upper bound, which is inside, in cycles; `None` for the last class.
    pub up_to: Option<u64>,
}

impl DelayClasses {
    /// Returns the classes of kot-2019: A (150, 400], B (400, 2,000], C (2,000, 6,000], D above 6,000 cycles.
    ///
    /// They were set on a machine whose TSC runs at 2.2 GHz.
    pub fn kot_2019() -> Self {
        Self([150, 400, 2_000, 6_000])
    }

    /// Iterates over the classes, smallest delays first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = DelayClass> + '_ {
        let letters = ('A'..).zip(self.0);
        letters.enumerate().map(|(i, (letter, above))| DelayClass {
            letter,
            above,
            up_to: self.0.get(i + 1).copied(),
        })
    }
}

/// One line of a class table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassRow {
    /// Which delays are counted.
    pub class: DelayClass,
    /// How many there were and how long.
    pub delays: Observed<DelayTally>,
}

/// The delays of one run or of several, by class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTable {
    /// One row per class, smallest delays first.
    pub rows: Vec<ClassRow>,
}

impl ClassTable {
    /// Adds the delays of another run, each relative to its own run's mean.
    ///
    /// A class that one of the two could not see in full is not seen in full in the sum.
    ///
    /// # Errors
    ///
    /// [`StatsError::ClassesDiffer`] if the bounds differ.
    pub fn add(&self, other: &Self) -> Result<Self, StatsError> {
        let classes = |table: &Self| table.rows.iter().map(|row| row.class).collect::<Vec<_>>();
        if classes(self) != classes(other) {
            return Err(StatsError::ClassesDiffer);
        }
        let pairs = self.rows.iter().zip(&other.rows);
        let rows = pairs
            .map(|(a, b)| ClassRow {
                class: a.class,
                delays: add_observed(&a.delays, &b.delays),
            })
            .collect();
        Ok(Self { rows })
    }
}

fn add_observed(a: &Observed<DelayTally>, b: &Observed<DelayTally>) -> Observed<DelayTally> {
    let seen = match (a.seen(), b.seen()) {
        (Some(a), Some(b)) => Some(DelayTally {
            count: a.count + b.count,
            cycles: a.cycles + b.cycles,
        }),
        (one, other) => one.or(other).copied(),
    };
    let left_out = match (a.left_out(), b.left_out()) {
        (Some(a), Some(b)) => Some(LeftOut {
            recorded_from_cycles: a.recorded_from_cycles.max(b.recorded_from_cycles),
            unkept: a.unkept + b.unkept,
        }),
        (one, other) => one.or(other),
    };
    match (seen, left_out) {
        (Some(seen), Some(left_out)) => Observed::Partly(seen, left_out),
        (Some(seen), None) => Observed::Fully(seen),
        (None, left_out) => Observed::NotAtAll(left_out.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counts, Delays, Recording};

    #[test]
    fn the_classes_are_those_of_the_study() {
        let classes: Vec<_> = DelayClasses::kot_2019().iter().collect();
        let bounds: Vec<_> = classes
            .iter()
            .map(|c| (c.letter, c.above, c.up_to))
            .collect();
        assert_eq!(
            bounds,
            [
                ('A', 150, Some(400)),
                ('B', 400, Some(2_000)),
                ('C', 2_000, Some(6_000)),
                ('D', 6_000, None),
            ]
        );
    }

    fn counts_of(table: &ClassTable) -> Vec<(char, u64)> {
        let rows = table.rows.iter();
        rows.map(|row| (row.class.letter, row.delays.fully().unwrap().count))
            .collect()
    }

    #[test]
    fn tables_add_up_and_keep_what_was_not_seen() {
        let made = Counts::from_pairs([(900, 9_999), (10_900, 1)]).unwrap();
        let classes = DelayClasses::kot_2019();
        let full = Delays::of_run(&made).unwrap().classify(&classes);
        let twice = full.add(&full).unwrap();
        assert_eq!(counts_of(&twice), [('A', 0), ('B', 0), ('C', 0), ('D', 2)]);

        let nothing = Counts::default();
        let recording = Recording {
            base_cycles: 26.0,
            smallest_recorded_cycles: 1_000,
            unkept: 0,
            execution_cycles: 1_000_000,
        };
        let blind = Delays::of_recording(&nothing, recording)
            .unwrap()
            .classify(&classes);
        let mixed = full.add(&blind).unwrap();
        assert_eq!(mixed.rows[0].delays.seen().unwrap().count, 0);
        assert!(mixed.rows[0].delays.fully().is_none());
        assert!(mixed.rows[3].delays.fully().is_some());
        let blind_twice = blind.add(&blind).unwrap();
        assert!(blind_twice.rows[0].delays.seen().is_none());

        let other = Delays::of_run(&made)
            .unwrap()
            .classify(&DelayClasses([7, 8, 9, 10]));
        assert_eq!(full.add(&other), Err(StatsError::ClassesDiffer));
    }
}

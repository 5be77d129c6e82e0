//! The classes in which kot-2019 counts delays.
//!
//! The study counts delays in four classes by size and gives each class's mean. A class of which a
//! recording threshold hides some has no count here.

use crate::delays::DelayTally;

/// The lower bounds of classes of delays, rising: each class ends at the next one's, the last has
/// no end.
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
    /// Returns the classes of kot-2019: A (150, 400], B (400, 2,000], C (2,000, 6,000], D above
    /// 6,000 cycles.
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

/// The delays of one class in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassRow {
    /// Which delays are counted.
    pub class: DelayClass,
    /// How many there were and how long; `None` unless all of them were recorded, since 0 would
    /// read as "no delays".
    pub delays: Option<DelayTally>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

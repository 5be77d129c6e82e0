//! Rows of a set's lists, packed into small numbers and unpacked.
//!
//! Numbers are relative to the row before within one set and one record, so that a lost record does
//! not affect others. [`crate::record::Record`] describes the layout.

use crate::packed::Malformed;
use crate::record::List;
use crate::trace::{unzigzag, zigzag};

/// The count of a value in a part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// Number of the set.
    pub set: u32,
    /// Number of the part.
    pub part: u32,
    /// The value.
    pub value: u64,
    /// How often it occurred.
    pub count: u64,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Number of the set.
    pub set: u32,
    /// Number of the sample.
    pub index: u64,
    /// Its time, counted from the set's first sample.
    pub time: u64,
    /// Its value.
    pub value: u64,
}

/// The samples of one bin of time, summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Number of the set.
    pub set: u32,
    /// Number of the bin.
    pub number: u64,
    /// Samples.
    pub n: u64,
    /// Sum of their values.
    pub sum: u64,
    /// Least value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
}

/// The beginning of one part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of the set.
    pub set: u32,
    /// Time at which it begins, counted from the set's first sample.
    pub begin: u64,
}

impl Count {
    /// Packs the row that follows `before` in a record; values of a part rise.
    pub fn pack(self, before: Option<Self>) -> [u64; 4] {
        let step = self.value - self.base(before);
        [self.set.into(), self.part.into(), step, self.count]
    }

    fn base(self, before: Option<Self>) -> u64 {
        let before = before.filter(|b| (b.set, b.part) == (self.set, self.part));
        before.map_or(0, |b| b.value)
    }
}

impl Sample {
    /// Packs the row that follows `before` in a record of [`crate::record::Record::Events`] or
    /// [`crate::record::Record::Raw`]; indices of a set rise. `period` is that of the set.
    pub fn pack(self, before: Option<Self>, period: u64) -> [u64; 4] {
        let (index, time) = self.base(before);
        let time = match period {
            0 => self.time.wrapping_sub(time),
            _ => zigzag(self.time.wrapping_sub(self.due(period)).cast_signed()),
        };
        [self.set.into(), self.index - index, time, self.value]
    }

    fn base(self, before: Option<Self>) -> (u64, u64) {
        let before = before.filter(|before| before.set == self.set);
        before.map_or((0, 0), |before| (before.index, before.time))
    }

    fn due(self, period: u64) -> u64 {
        self.index.wrapping_mul(period)
    }
}

impl Bin {
    /// Packs the row.
    pub fn pack(self) -> [u64; 6] {
        let set = self.set.into();
        [set, self.number, self.n, self.sum, self.min, self.max]
    }
}

impl Part {
    /// Packs the row that follows `before` in a record; begins of a set rise.
    pub fn pack(self, before: Option<Self>) -> [u64; 2] {
        [self.set.into(), self.begin - self.base(before)]
    }

    fn base(self, before: Option<Self>) -> u64 {
        let before = before.filter(|before| before.set == self.set);
        before.map_or(0, |before| before.begin)
    }
}

/// Iterates over the rows of [`crate::record::Record::Counts`].
pub fn counts(list: List<'_>) -> impl Iterator<Item = Result<Count, Malformed>> {
    unpacked(list, |[set, part, step, count], before: Option<Count>| {
        let row = Count {
            set: narrow(set)?,
            part: narrow(part)?,
            value: step,
            count,
        };
        let value = sum(row.base(before), step)?;
        Ok(Count { value, ..row })
    })
}

/// Iterates over the rows of [`crate::record::Record::Events`] or [`crate::record::Record::Raw`].
/// `period_of` knows the period of a set; a row of a set that it does not know is [`Malformed`].
pub fn samples(
    list: List<'_>,
    period_of: impl Fn(u32) -> Option<u64>,
) -> impl Iterator<Item = Result<Sample, Malformed>> {
    unpacked(
        list,
        move |[set, step, time, value], before: Option<Sample>| {
            let mut row = Sample {
                set: narrow(set)?,
                index: step,
                time,
                value,
            };
            let (index, from) = row.base(before);
            row.index = sum(index, step)?;
            row.time = match period_of(row.set).ok_or(Malformed)? {
                0 => from.wrapping_add(time),
                period => row.due(period).wrapping_add_signed(unzigzag(time)),
            };
            Ok(row)
        },
    )
}

/// Iterates over the rows of [`crate::record::Record::Envelope`].
pub fn bins(list: List<'_>) -> impl Iterator<Item = Result<Bin, Malformed>> {
    unpacked(list, |[set, number, n, sum, min, max], _| {
        let set = narrow(set)?;
        Ok(Bin {
            set,
            number,
            n,
            sum,
            min,
            max,
        })
    })
}

/// Iterates over the rows of [`crate::record::Record::Parts`].
pub fn parts(list: List<'_>) -> impl Iterator<Item = Result<Part, Malformed>> {
    unpacked(list, |[set, step], before: Option<Part>| {
        let row = Part {
            set: narrow(set)?,
            begin: step,
        };
        let begin = sum(row.base(before), step)?;
        Ok(Part { begin, ..row })
    })
}

/// Unpacks rows, each with the one before it.
fn unpacked<T: Copy, const N: usize>(
    list: List<'_>,
    read: impl Fn([u64; N], Option<T>) -> Result<T, Malformed>,
) -> impl Iterator<Item = Result<T, Malformed>> {
    list.rows.rows().scan(None, move |before, row| {
        let row = row.and_then(|row| read(row, *before));
        *before = row.ok();
        Some(row)
    })
}

fn narrow(number: u64) -> Result<u32, Malformed> {
    u32::try_from(number).map_err(|_| Malformed)
}

fn sum(base: u64, step: u64) -> Result<u64, Malformed> {
    base.checked_add(step).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::packed::{Packed, Packer};

    /// Packs rows into records of at most `most` rows.
    fn packed<T: Copy, const N: usize>(
        rows: &[T],
        most: usize,
        pack: impl Fn(T, Option<T>) -> [u64; N],
    ) -> Vec<Vec<u8>> {
        let record = |rows: &[T]| {
            let mut packer = Packer::default();
            let mut before = None;
            for row in rows {
                assert!(packer.push(pack(*row, before)));
                before = Some(*row);
            }
            packer.packed().0.to_vec()
        };
        rows.chunks(most).map(record).collect()
    }

    fn list(bytes: &[u8]) -> List<'_> {
        let rows = Packed(bytes);
        List { rows }
    }

    /// Sets of a few rows each; what is made of the numbers rises within a set.
    fn rising<T: core::fmt::Debug>(
        make: impl Fn(u32, u64, [u64; 3]) -> T,
    ) -> impl Strategy<Value = Vec<T>> {
        let steps = prop::collection::vec((1_u64..1 << 50, any::<[u64; 3]>()), 0..20);
        let sets = prop::collection::vec(steps, 0..4);
        sets.prop_map(move |sets| {
            let mut rows = vec![];
            for (set, steps) in (0..).zip(sets) {
                let mut at = 0;
                for (step, others) in steps {
                    at += step;
                    rows.push(make(set, at, others));
                }
            }
            rows
        })
    }

    fn some_counts() -> impl Strategy<Value = Vec<Count>> {
        let rows = rising(|set, value, [count, ..]| Count {
            set,
            part: 0,
            value,
            count,
        });
        rows.prop_map(|mut rows| {
            // Values start anew with each part.
            for (at, row) in rows.iter_mut().enumerate() {
                row.part = (at / 7) as u32;
                row.value >>= at / 7;
            }
            rows
        })
    }

    fn some_samples() -> impl Strategy<Value = Vec<Sample>> {
        rising(|set, index, [time, value, _]| Sample {
            set,
            index,
            time,
            value,
        })
    }

    proptest! {
        #[test]
        fn counts_come_back(rows in some_counts(), most in 1_usize..60) {
            let bytes = packed(&rows, most, Count::pack);
            let back: Result<Vec<_>, _> = bytes.iter().flat_map(|b| counts(list(b))).collect();
            prop_assert_eq!(back, Ok(rows));
        }

        #[test]
        fn samples_come_back_with_any_period(
            rows in some_samples(), most in 1_usize..60, period in prop_oneof![Just(0), any::<u64>()]
        ) {
            let bytes = packed(&rows, most, |row, before| Sample::pack(row, before, period));
            let read = |b| samples(list(b), |_| Some(period));
            let back: Result<Vec<_>, _> = bytes.iter().flat_map(|b| read(b)).collect();
            prop_assert_eq!(back, Ok(rows));
        }

        #[test]
        fn bins_and_parts_come_back(numbers in rising(|set, at, rest| (set, at, rest)), most in 1_usize..40) {
            let rows = numbers.iter().map(|&(set, number, [n, sum, min])| Bin {
                set, number, n, sum, min, max: n ^ sum
            });
            let rows: Vec<_> = rows.collect();
            let bytes = packed(&rows, most, |row, _| row.pack());
            let back: Result<Vec<_>, _> = bytes.iter().flat_map(|b| bins(list(b))).collect();
            prop_assert_eq!(back, Ok(rows));

            let rows: Vec<_> = numbers.iter().map(|&(set, begin, _)| Part { set, begin }).collect();
            let bytes = packed(&rows, most, Part::pack);
            let back: Result<Vec<_>, _> = bytes.iter().flat_map(|b| parts(list(b))).collect();
            prop_assert_eq!(back, Ok(rows));
        }

        #[test]
        fn any_bytes_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), period in any::<u64>()) {
            let list = list(&bytes);
            let _ = counts(list).count() + bins(list).count() + parts(list).count();
            let _ = samples(list, |set| (set < 3).then_some(period)).count();
        }
    }

    #[test]
    fn numbers_are_relative_within_a_set_and_a_part() {
        let count = |set, part, value| Count {
            set,
            part,
            value,
            count: 1,
        };
        let before = Some(count(1, 2, 100));
        assert_eq!(count(1, 2, 130).pack(before), [1, 2, 30, 1]);
        assert_eq!(count(1, 3, 130).pack(before), [1, 3, 130, 1]);
        assert_eq!(count(2, 2, 130).pack(before), [2, 2, 130, 1]);
        assert_eq!(count(1, 2, 130).pack(None), [1, 2, 130, 1]);

        let sample = |set, index, time| Sample {
            set,
            index,
            time,
            value: 9,
        };
        let before = Some(sample(0, 10, 1_000));
        assert_eq!(sample(0, 12, 1_500).pack(before, 0), [0, 2, 500, 9]);
        assert_eq!(sample(1, 12, 1_500).pack(before, 0), [1, 12, 1_500, 9]);
        // Due at 1,200 and at 1,200 − 1.
        assert_eq!(sample(0, 12, 1_200).pack(before, 100), [0, 2, 0, 9]);
        assert_eq!(sample(0, 12, 1_199).pack(before, 100), [0, 2, 1, 9]);

        let part = |begin| Part { set: 0, begin };
        assert_eq!(part(50).pack(Some(part(20))), [0, 30]);
    }

    #[test]
    fn numbers_out_of_range_are_malformed() {
        let mut packer = Packer::default();
        packer.push([0, 0, u64::MAX, 1]);
        packer.push([0, 0, 1, 1]);
        packer.push([1 << 32, 0, 1, 1]);
        let rows = packer.packed();
        let kinds: Vec<_> = counts(List { rows }).map(|row| row.is_ok()).collect();
        assert_eq!(kinds, [true, false, false]);
        let known: Vec<_> = samples(List { rows }, |set| (set > 0).then_some(0)).collect();
        assert_eq!(known[0], Err(Malformed));
    }
}

//! A set of CPUs, as the kernel writes it: `0,2-3`.

use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// How many CPUs a set can name: 0 to 1023, as the C library's mask.
pub const MOST: u32 = 1_024;

const WORDS: usize = (MOST / 64) as usize;

/// A set of CPUs by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cpus {
    words: [u64; WORDS],
}

impl Cpus {
    /// Returns the set of one CPU; empty if the number is beyond [`MOST`].
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        let mut set = Self::default();
        set.insert(cpu);
        set
    }

    /// Adds a CPU. Says whether its number fits.
    pub fn insert(&mut self, cpu: u32) -> bool {
        let fits = cpu < MOST;
        if fits {
            self.words[(cpu / 64) as usize] |= 1 << (cpu % 64);
        }
        fits
    }

    /// Says whether a CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        cpu < MOST && self.words[(cpu / 64) as usize] & (1 << (cpu % 64)) != 0
    }

    /// Lists the CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MOST).filter(|cpu| self.contains(*cpu))
    }

    /// Returns how many CPUs are in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the lowest CPU; None if the set is empty.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// Returns the CPU of a thread, if threads take them in turn; None if the set is empty.
    #[must_use]
    pub fn in_turn(&self, thread: u32) -> Option<u32> {
        let place = thread.checked_rem(self.count())?;
        self.iter().nth(place as usize)
    }

    /// Returns the CPUs that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.iter().filter(|cpu| !other.contains(*cpu)).collect()
    }

    /// Reads `0`, `0,2` or `0-3,8`. None if the text is not of that form, is empty, or names a CPU
    /// beyond [`MOST`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut set = Self::default();
        for part in text.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if from > to || to >= MOST {
                return None;
            }
            for cpu in from..=to {
                set.insert(cpu);
            }
        }
        Some(set)
    }
}

/// Reads digits only: `parse` would take a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

impl FromIterator<u32> for Cpus {
    /// Collects CPUs; those beyond [`MOST`] are left out.
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        let mut set = Self::default();
        for cpu in cpus {
            set.insert(cpu);
        }
        set
    }
}

impl fmt::Display for Cpus {
    /// Writes the set in the form that [`Cpus::parse`] reads, ranges as ranges.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = 0;
        let mut separator = "";
        while let Some(from) = (next..MOST).find(|cpu| self.contains(*cpu)) {
            let mut to = from;
            while self.contains(to + 1) {
                to += 1;
            }
            write!(f, "{separator}{from}")?;
            if to > from {
                write!(f, "-{to}")?;
            }
            separator = ",";
            next = to + 1;
        }
        Ok(())
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;

        impl Visitor<'_> for List {
            type Value = Cpus;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("CPUs such as 0,2-3")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Cpus, E> {
                Cpus::parse(text).ok_or_else(|| E::custom("these are no CPUs"))
            }
        }

        deserializer.deserialize_str(List)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        let set = Cpus::parse("0,2-3,1023").unwrap();
        let cpus: std::vec::Vec<u32> = set.iter().collect();
        assert_eq!(cpus, [0, 2, 3, 1_023]);
        assert_eq!((set.count(), set.first()), (4, Some(0)));
        assert_eq!(set.to_string(), "0,2-3,1023");
        assert_eq!(set.without(&Cpus::one(2)).to_string(), "0,3,1023");
        assert_eq!([1, 6].map(|thread| set.in_turn(thread)), [Some(2), Some(3)]);
        assert_eq!(Cpus::default().in_turn(0), None);
        for text in ["", ",", "1-", "-1", "3-2", "1024", "0-1024", "+1", "a"] {
            assert_eq!(Cpus::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in prop::collection::btree_set(0..MOST, 1..40)) {
            let set: Cpus = cpus.into_iter().collect();
            prop_assert_eq!(Cpus::parse(&set.to_string()), Some(set));
        }

        #[test]
        fn any_text_ends_without_panic(text in "[0-9,-]{0,20}") {
            let _ = Cpus::parse(&text);
        }
    }
}

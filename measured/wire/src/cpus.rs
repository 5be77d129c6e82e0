//! A set of CPUs in the kernel's list notation, `0,2-3`, for both sides.
//!
//! The same notation is used by plans, sysfs, `/proc/*/status`, cpusets and kernel parameters. Two
//! more forms occur in parameters only: groups (`0-15:1/2`, the first of every two), and the words
//! `all` and `N` (the last CPU), which need to know the number of CPUs: [`Cpus::parse_parameter`].
//!
//! A set holds the numbers 0 to 8,191. Text with a greater number is invalid, and a caller that
//! collects unchecked numbers uses [`Cpus::checked`]: no CPU vanishes silently.

use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// The number of CPUs that a set can name, 0 to 8,191: the most for which Linux is built.
pub const MOST: u32 = 8_192;

const WORDS: usize = (MOST / 64) as usize;

/// A set of CPUs by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cpus {
    words: [u64; WORDS],
}

impl Cpus {
    /// Returns the set of one CPU.
    ///
    /// # Panics
    ///
    /// Panics if the number is not below [`MOST`].
    pub fn one(cpu: u32) -> Self {
        [cpu].into_iter().collect()
    }

    /// Returns the set of some CPUs. None if one of the numbers is not below [`MOST`].
    pub fn checked(cpus: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut set = Self::default();
        for cpu in cpus {
            *set.words.get_mut((cpu / 64) as usize)? |= 1 << (cpu % 64);
        }
        Some(set)
    }

    /// Adds a CPU.
    ///
    /// # Panics
    ///
    /// Panics if the number is not below [`MOST`].
    pub fn insert(&mut self, cpu: u32) {
        *self = self.union(&Self::one(cpu));
    }

    /// Returns whether a CPU is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        let word = self.words.get((cpu / 64) as usize);
        word.is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// Lists the CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let words = (0_u32..WORDS as u32).zip(self.words);
        words
            .filter(|(_, word)| *word != 0)
            .flat_map(|(place, word)| {
                let bits = (0..64).filter(move |bit| word >> bit & 1 != 0);
                bits.map(move |bit| 64 * place + bit)
            })
    }

    /// Returns how many CPUs are in the set.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Returns the lowest CPU. None if the set is empty.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// Returns the highest CPU. None if the set is empty.
    pub fn last(&self) -> Option<u32> {
        self.iter().next_back()
    }

    /// Returns the CPU of a thread, if threads take them in turn. None if the set is empty.
    pub fn in_turn(&self, thread: u32) -> Option<u32> {
        let place = thread.checked_rem(self.count())?;
        self.iter().nth(place as usize)
    }

    /// Returns the CPUs that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combined(other, |own, other| own | other)
    }

    /// Returns the CPUs that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combined(other, |own, other| own & other)
    }

    /// Returns the CPUs that are not in the other set.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        self.combined(other, |own, other| own & !other)
    }

    fn combined(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let words = core::array::from_fn(|place| combine(self.words[place], other.words[place]));
        Self { words }
    }

    /// Reads `0`, `0,2` or `0-3,8`. None if the text is empty or not of that form.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|set: &Self| !set.is_empty())
    }

    /// Reads the value of a kernel parameter, which may say `all` and `N` (the last CPU).
    ///
    /// # Errors
    ///
    /// Returns [`CpusError`] if the text is not of that form.
    pub fn parse_parameter(text: &str, last_cpu: u32) -> Result<Self, CpusError> {
        parse(text, Some(last_cpu)).ok_or(CpusError)
    }
}

impl Default for Cpus {
    fn default() -> Self {
        Self { words: [0; WORDS] }
    }
}

/// The error for a text that is not a list of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not CPUs such as 0,2-3, with numbers below {MOST}")]
pub struct CpusError;

/// Reads a list. `last_cpu` is what `N` means and where `all` ends, where those words may stand.
fn parse(text: &str, last_cpu: Option<u32>) -> Option<Cpus> {
    let mut set = Cpus::default();
    let text = text.trim();
    // Some kernels print this for a nohz_full= mask that was never set.
    if text.is_empty() || text == "(null)" {
        return Some(set);
    }
    for part in text.split(',') {
        let (range, group) = part.split_once(':').unwrap_or((part, "1/1"));
        let (first, last) = match (range, last_cpu) {
            ("all", Some(last)) => (0, last),
            _ => {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (number(first, last_cpu)?, number(last, last_cpu)?)
            }
        };
        let (used, size) = group.split_once('/')?;
        let (used, size) = (number(used, None)?, number(size, None)?);
        if first > last || !(1..=size).contains(&used) {
            return None;
        }
        let cpus = (first..=last).filter(|cpu| (cpu - first) % size < used);
        set = set.union(&Cpus::checked(cpus)?);
    }
    Some(set)
}

/// Reads digits only, since `parse` would take a sign, or `N` where it may stand.
fn number(text: &str, last_cpu: Option<u32>) -> Option<u32> {
    match last_cpu {
        Some(last) if text == "N" => Some(last),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    }
}

impl FromStr for Cpus {
    type Err = CpusError;

    fn from_str(text: &str) -> Result<Self, CpusError> {
        parse(text, None).ok_or(CpusError)
    }
}

impl FromIterator<u32> for Cpus {
    /// Collects CPUs whose numbers are known to be below [`MOST`]; it panics for others.
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        Self::checked(cpus).expect("a number of a CPU is below 8,192")
    }
}

impl Ord for Cpus {
    /// Compares the numbers in ascending order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.iter().cmp(other.iter())
    }
}

impl PartialOrd for Cpus {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Cpus {
    /// Writes the shortest list; an empty set is `none`, which reads well in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut separator = "";
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_empty() {
            true => serializer.serialize_str(""),
            false => serializer.collect_str(self),
        }
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
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(List)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Cpus {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "CpuList".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A set of CPU numbers in the kernel's list notation, for example \
                \"0-3,8\"; \"\" is the empty set.",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_and_ranges_are_read() {
        let set = Cpus::parse("0,2-3,1023,8191").unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 2, 3, 1_023, 8_191]);
        assert_eq!(set.count(), 5);
        assert_eq!((set.first(), set.last()), (Some(0), Some(8_191)));
        assert_eq!(set.to_string(), "0,2-3,1023,8191");
        assert_eq!(set.without(&Cpus::one(2)).to_string(), "0,3,1023,8191");
        assert_eq!([1, 7].map(|thread| set.in_turn(thread)), [Some(2), Some(3)]);
        assert_eq!(Cpus::default().in_turn(0), None);
        for text in [
            "", "(null)", ",", "1-", "-1", "3-2", "1,,2", "+1", "a", "all",
        ] {
            assert_eq!(Cpus::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_cpu_beyond_the_bound_is_an_error_and_never_dropped() {
        for text in ["8192", "0-8192", "0,8192", "0-4000000000", "4294967296"] {
            assert_eq!(text.parse::<Cpus>(), Err(CpusError), "{text}");
        }
        assert_eq!(Cpus::checked([0, MOST]), None);
        assert!(std::panic::catch_unwind(|| Cpus::one(MOST)).is_err());
        assert!(std::panic::catch_unwind(|| (0..=MOST).collect::<Cpus>()).is_err());
    }

    #[test]
    fn what_the_kernel_writes_is_read() {
        let read = |text: &str| text.parse::<Cpus>().unwrap().to_string();
        assert_eq!(
            ["0-3,8\n", "\n", " (null)\n"].map(read),
            ["0-3,8", "none", "none"]
        );
        assert_eq!(["0-7:1/2", "2-9:2/4"].map(read), ["0,2,4,6", "2-3,6-7"]);
        for text in ["0-7:0/2", "0-7:3/2", "0-7:1", "0-7:1/0"] {
            assert_eq!(text.parse::<Cpus>(), Err(CpusError), "{text}");
        }
        let parameter = |text| Cpus::parse_parameter(text, 7).unwrap().to_string();
        assert_eq!(["all", "1,4-N"].map(parameter), ["0-7", "1,4-7"]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in prop::collection::btree_set(0..MOST, 1..40)) {
            let set: Cpus = cpus.iter().copied().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), cpus.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(Cpus::parse(&set.to_string()), Some(set));
        }

        #[test]
        fn any_text_ends_without_panic(text in "[0-9,:/N-]{0,20}|.{0,40}") {
            let _ = Cpus::parse(&text);
            let _ = Cpus::parse_parameter(&text, 3);
        }
    }
}

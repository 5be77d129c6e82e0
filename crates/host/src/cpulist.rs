//! Lists of CPUs as the kernel writes them: `0-3,8`.
//!
//! The same notation is used by sysfs, `/proc/*/status`, cpusets and kernel
//! parameters. Parameters know two more forms that sysfs never prints: groups
//! (`0-15:1/2`, the first of every two) and the words `all` and `N` (the last CPU).
//! The words need to know how many CPUs there are, so they are a separate function.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::HostError;

/// The largest CPU number that a list may name. Linux is built for at most 8,192
/// CPUs; the bound keeps a damaged file from asking for gigabytes.
const MAX_CPU: u32 = 65_535;

/// A set of CPU numbers, printed and stored in the kernel's list notation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(BTreeSet<u32>);

impl CpuList {
    /// Make an empty list.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// Parse the notation of kernel parameters, where `all` and `N` (the last CPU) may stand.
    ///
    /// # Errors
    /// [`HostError::CpuList`] when the text is not such a list.
    pub fn parse_parameter(text: &str, last_cpu: u32) -> Result<Self, HostError> {
        parse(text, Some(last_cpu))
    }

    /// Tell whether the list holds this CPU.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Tell whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Return how many CPUs the list holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Return the CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Return the highest-numbered CPU.
    pub fn last(&self) -> Option<u32> {
        self.0.last().copied()
    }

    /// Add one CPU.
    pub fn insert(&mut self, cpu: u32) {
        self.0.insert(cpu);
    }

    /// Return the CPUs that are in either list.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    /// Return the CPUs that are in both lists.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    /// Return the CPUs of this list that are not in the other.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    /// Return the CPUs of this list except one.
    #[must_use]
    pub fn without_cpu(&self, cpu: u32) -> Self {
        self.iter().filter(|&other| other != cpu).collect()
    }

    /// Tell whether every CPU of this list is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        parse(text, None)
    }
}

impl TryFrom<String> for CpuList {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        if list.is_empty() {
            String::new()
        } else {
            list.to_string()
        }
    }
}

impl fmt::Display for CpuList {
    /// Write the shortest list; an empty one is written `none`, which reads well in a sentence.
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
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first}-{last}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

impl JsonSchema for CpuList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
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

/// Parse a list; `last_cpu` is what `N` means and where `all` ends, if those words may stand.
fn parse(text: &str, last_cpu: Option<u32>) -> Result<CpuList, HostError> {
    let refuse = |problem: String| HostError::CpuList {
        text: text.trim().chars().take(80).collect(),
        problem,
    };
    let trimmed = text.trim();
    // Some kernels print this for a nohz_full= mask that was never set.
    if trimmed.is_empty() || trimmed == "(null)" {
        return Ok(CpuList::new());
    }
    let mut cpus = BTreeSet::new();
    for part in trimmed.split(',') {
        let (range, group) = match part.trim().split_once(':') {
            Some((range, group)) => (range, Some(group)),
            None => (part.trim(), None),
        };
        let (first, last) = match (range, last_cpu) {
            ("all", Some(last)) => (0, last.min(MAX_CPU)),
            _ => match range.split_once('-') {
                Some((first, last)) => (
                    number(first, last_cpu).map_err(refuse)?,
                    number(last, last_cpu).map_err(refuse)?,
                ),
                None => {
                    let cpu = number(range, last_cpu).map_err(refuse)?;
                    (cpu, cpu)
                }
            },
        };
        if first > last {
            return Err(refuse(format!("the range {range} runs backwards")));
        }
        let (used, size) = match group {
            None => (1, 1),
            Some(group) => used_and_size(group).map_err(refuse)?,
        };
        cpus.extend((first..=last).filter(|cpu| (cpu - first) % size < used));
    }
    Ok(CpuList(cpus))
}

/// Parse one CPU number, or `N` where it may stand.
fn number(text: &str, last_cpu: Option<u32>) -> Result<u32, String> {
    if let ("N", Some(last)) = (text, last_cpu) {
        return Ok(last.min(MAX_CPU));
    }
    match text.parse::<u32>() {
        Ok(cpu) if cpu <= MAX_CPU => Ok(cpu),
        Ok(cpu) => Err(format!("no machine has a CPU {cpu}")),
        Err(_) => Err(format!("\"{text}\" is not a number")),
    }
}

/// Parse the group of `0-15:1/2`: use the first 1 of every 2.
fn used_and_size(group: &str) -> Result<(u32, u32), String> {
    let parsed = group
        .split_once('/')
        .and_then(|(used, size)| Some((used.parse::<u32>().ok()?, size.parse::<u32>().ok()?)));
    match parsed {
        Some((used, size)) if used >= 1 && used <= size => Ok((used, size)),
        _ => Err(format!(
            "the group \"{group}\" is not of the form used/size"
        )),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(text: &str) -> CpuList {
        text.parse().unwrap()
    }

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!(list("0-3,8\n").iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert_eq!(list("5").iter().collect::<Vec<_>>(), [5]);
        assert!(list("\n").is_empty());
        assert!(list(" (null)\n").is_empty());
    }

    #[test]
    fn reads_groups_and_words_of_kernel_parameters() {
        assert_eq!(list("0-7:1/2").to_string(), "0,2,4,6");
        assert_eq!(list("2-9:2/4").to_string(), "2-3,6-7");
        assert_eq!(
            CpuList::parse_parameter("all", 3).unwrap().to_string(),
            "0-3"
        );
        assert_eq!(
            CpuList::parse_parameter("1,4-N", 7).unwrap().to_string(),
            "1,4-7"
        );
        assert!("all".parse::<CpuList>().is_err());
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("3-1", "backwards"),
            ("a", "not a number"),
            ("1,,2", "not a number"),
            ("-3", "not a number"),
            ("4294967295", "no machine has"),
            ("0-4000000000", "no machine has"),
            ("0-7:0/2", "used/size"),
            ("0-7:3/2", "used/size"),
        ] {
            let message = text.parse::<CpuList>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn the_empty_list_survives_json() {
        let text = serde_json::to_string(&CpuList::new()).unwrap();
        assert_eq!(text, "\"\"");
        assert!(serde_json::from_str::<CpuList>(&text).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(
            cpus in proptest::collection::btree_set(0_u32..9_000, 1..60),
        ) {
            let list: CpuList = cpus.iter().copied().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list.clone());
            let json = serde_json::to_string(&list).unwrap();
            prop_assert_eq!(serde_json::from_str::<CpuList>(&json).unwrap(), list);
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,40}") {
            let _ = text.parse::<CpuList>();
            let _ = CpuList::parse_parameter(&text, 3);
        }
    }
}

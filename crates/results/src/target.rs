//! A target as plans, run folders and reports know it: its kind, options, group and capabilities.
//!
//! A target is written `kind,key=value,key=value`, as on QEMU's command line: a comma inside a
//! value is doubled (`isolate=1,,3`). That grammar is read and written here and nowhere else. The
//! kinds and their options are a table in `tare_targets`, which makes a [`TargetSpec`] of the text
//! that a user types, once; after that nobody reads the text.

mod capabilities;

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use tare_host::visible_in_line;

use crate::{bounded, bounds};

pub use capabilities::{Capabilities, Engine, Kernel};

/// A target in canonical form: options in a fixed order, without defaults. Two texts that mean the
/// same target become equal.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TargetSpec {
    /// As it is written on the command line: `linux,preempt=full`.
    #[serde(deserialize_with = "one_line")]
    pub text: String,
    /// Its kind: `linux`.
    pub kind: String,
    /// Its options in canonical order. A key may occur several times.
    #[serde(deserialize_with = "bounded::list::<{ bounds::MOST_OPTIONS }, _, _>")]
    pub options: Vec<TargetOption>,
    /// Its group.
    pub group: Group,
    /// The clock of its figures.
    pub clock: Clock,
}

/// Reads a name that tables, errors and files quote in the middle of a line.
pub(crate) fn one_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    Ok(visible_in_line(&text).into_owned())
}

/// One option of a target.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TargetOption {
    /// Its key: `preempt`.
    pub key: String,
    /// Its value, commas not doubled: `full`.
    pub value: String,
}

/// The meaning of a target's nanoseconds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Time.
    Host,
    /// Instructions of a guest, which an emulator counts (`clock=instructions`).
    Instructions,
}

/// A kind of place. Reports show the targets of a group together, in this order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Directly under this machine's kernel: `process`.
    Process,
    /// Under this machine's kernel, in namespaces and control groups: `docker`, `podman`, `runc`,
    /// `crun`.
    Container,
    /// In a Linux guest whose only program is the agent: `linux`.
    LinuxGuest,
    /// In a Linux guest with a whole distribution: `linux,root=debian`.
    DebianGuest,
    /// Without a kernel: `unikernel`.
    Unikernel,
    /// On another machine: `ssh`.
    Remote,
    /// Somebody else's system: `guest`.
    Foreign,
    /// Wherever another tool measured what was imported.
    Imported,
}

impl TargetSpec {
    /// Creates a target from its parts.
    pub fn new(kind: &str, options: Vec<TargetOption>, group: Group) -> Self {
        let mut text = kind.to_owned();
        for TargetOption { key, value } in &options {
            text += &format!(",{key}={}", value.replace(',', ",,"));
        }
        let mut spec = Self {
            text,
            kind: kind.to_owned(),
            options,
            group,
            clock: Clock::Host,
        };
        if spec.option("clock") == Some("instructions") {
            spec.clock = Clock::Instructions;
        }
        spec
    }

    /// Creates the target of results that another tool measured.
    pub fn imported(name: &str) -> Self {
        Self::new(name, Vec::new(), Group::Imported)
    }

    /// Returns the value of an option; None if it has its default.
    pub fn option(&self, key: &str) -> Option<&str> {
        let mut options = self.options.iter();
        let option = options.find(|option| option.key == key)?;
        Some(&option.value)
    }

    /// Returns the number of a guest's CPUs; None if the target is no guest.
    pub fn guest_cpus(&self) -> Option<u32> {
        let cpus = self.option("cpus").and_then(|cpus| cpus.parse().ok());
        self.kernel().is_guest().then(|| cpus.unwrap_or(1))
    }
}

impl fmt::Display for TargetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl PartialEq<str> for TargetSpec {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for TargetSpec {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

/// Splits a target's text into its kind and its options. An option without `=` has an empty value.
pub fn split(text: &str) -> (String, Vec<TargetOption>) {
    let mut pieces = pieces(text);
    let kind = pieces.next().unwrap_or_default().into_owned();
    let options = pieces.map(|piece| {
        let (key, value) = piece.split_once('=').unwrap_or((&piece, ""));
        TargetOption {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    });
    (kind, options.collect())
}

/// Splits a text at its single commas; a doubled one belongs to a value.
fn pieces(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let mut from = 0;
        while let Some(at) = text[from..].find(',').map(|at| from + at) {
            if !text[at + 1..].starts_with(',') {
                rest = Some(&text[at + 1..]);
                return Some(single_commas(&text[..at]));
            }
            from = at + 2;
        }
        Some(single_commas(text))
    })
}

fn single_commas(piece: &str) -> Cow<'_, str> {
    match piece.contains(',') {
        true => Cow::Owned(piece.replace(",,", ",")),
        false => Cow::Borrowed(piece),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(text: &str) -> TargetSpec {
        let (kind, options) = split(text);
        TargetSpec::new(&kind, options, Group::LinuxGuest)
    }

    #[test]
    fn a_comma_inside_a_value_is_doubled() {
        for (text, expected) in [
            ("", &[""][..]),
            ("name", &["name"]),
            ("name,a=1", &["name", "a=1"]),
            ("a=1,,2,b=3", &["a=1,2", "b=3"]),
            ("a=,,,b", &["a=,", "b"]),
            ("a=1,,,,2", &["a=1,,2"]),
            ("a,", &["a", ""]),
            ("é,,é,x", &["é,é", "x"]),
        ] {
            let split: Vec<_> = pieces(text).collect();
            assert_eq!(split, expected, "{text}");
        }
    }

    #[test]
    fn an_option_inside_a_value_is_part_of_the_value() {
        let counted = spec("linux,cmdline=quiet,clock=instructions");
        assert_eq!(counted.clock, Clock::Instructions);
        let quiet = spec("linux,cmdline=quiet,,clock=instructions");
        assert_eq!(quiet.clock, Clock::Host);
        assert_eq!(quiet.option("cmdline"), Some("quiet,clock=instructions"));
        assert_eq!(quiet.option("clock"), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            kind in "[a-z]{1,8}",
            options in prop::collection::vec(("[a-z]{1,8}", "[a-z=,é ]{0,8}"), 0..4),
        ) {
            let options = options.into_iter();
            let options: Vec<_> = options.map(|(key, value)| TargetOption { key, value }).collect();
            let written = TargetSpec::new(&kind, options, Group::Foreign);
            let (kind, options) = split(&written.text);
            prop_assert_eq!(TargetSpec::new(&kind, options, Group::Foreign), written);
        }

        #[test]
        fn any_text_ends_without_panic(text in "\\PC{0,40}") {
            let _ = split(&text);
        }
    }
}

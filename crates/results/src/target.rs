//! What a target is, as far as those need to know who plan, keep and show: its kind, its options, its group.
//!
//! A target is written `kind,key=value,key=value`, as on QEMU's command line: a comma inside of a value is written
//! twice (`isolate=1,,3`). That grammar is read and written here and nowhere else. Which kinds and options there are
//! is known to `tare_targets::spec`, which makes a [`TargetSpec`] of what was typed; behind it nobody reads the text.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A target in canonical form: options in a fixed order, those that have their default left out. Two texts that mean
/// the same target become equal.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TargetSpec {
    /// As it is written on the command line: `linux,preempt=full`.
    pub text: String,
    /// Its kind: `linux`.
    pub kind: String,
    /// Its options in canonical order. A key may be there several times.
    pub options: Vec<TargetOption>,
    /// The group that it belongs to.
    pub group: Group,
    /// The clock that its figures are by.
    pub clock: Clock,
}

/// One option of a target.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TargetOption {
    /// Its key: `preempt`.
    pub key: String,
    /// Its value, with each comma once: `full`.
    pub value: String,
}

/// What a target's nanoseconds are.
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

/// A kind of place. Targets of one group stand together, in this order.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Under this machine's kernel, with nothing between: `process`.
    Process,
    /// Under this machine's kernel, in namespaces and control groups: `docker`, `podman`, `runc`,
    /// `crun`.
    Container,
    /// Under a kernel of its own, the agent being the only program there: `linux`.
    LinuxGuest,
    /// Under a kernel of its own with a whole distribution around it: `linux,root=debian`.
    DebianGuest,
    /// Under no kernel: `unikernel`.
    Unikernel,
    /// On another machine: `ssh`.
    Remote,
    /// Somebody else's system or tool: `guest`, and what was imported.
    Foreign,
}

impl TargetSpec {
    /// Makes a target of its parts.
    #[must_use]
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

    /// Makes the target of what somebody else's tool measured.
    #[must_use]
    pub fn foreign(name: &str) -> Self {
        Self::new(name, Vec::new(), Group::Foreign)
    }

    /// Returns the value of an option; None where it is not given, as where it has its default.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        let mut options = self.options.iter();
        let option = options.find(|option| option.key == key)?;
        Some(&option.value)
    }

    /// Returns how many CPUs a guest has; None where this machine's or another one's are meant.
    #[must_use]
    pub fn guest_cpus(&self) -> Option<u32> {
        let cpus = self.option("cpus").and_then(|cpus| cpus.parse().ok());
        self.group.is_guest().then(|| cpus.unwrap_or(1))
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

impl Group {
    /// Returns its name in files and gates.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "container",
            Self::LinuxGuest => "linux_guest",
            Self::DebianGuest => "debian_guest",
            Self::Unikernel => "unikernel",
            Self::Remote => "remote",
            Self::Foreign => "foreign",
        }
    }

    /// Names the group as a heading does.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "Process",
            Self::Container => "Containers",
            Self::LinuxGuest => "Linux guests, initramfs only",
            Self::DebianGuest => "Linux guests, whole Debian",
            Self::Unikernel => "Unikernel",
            Self::Remote => "Other machines",
            Self::Foreign => "Foreign guests",
        }
    }

    /// Names the group within a sentence.
    #[must_use]
    pub fn in_a_sentence(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "containers",
            Self::LinuxGuest => "Linux guests with an initramfs",
            Self::DebianGuest => "Linux guests with a whole Debian",
            Self::Unikernel => "unikernel",
            Self::Remote => "other machines",
            Self::Foreign => "foreign guests",
        }
    }

    /// Says whether its targets run under a kernel, or none, of its own on this machine.
    #[must_use]
    pub fn is_guest(self) -> bool {
        self.is_linux_guest() || matches!(self, Self::Unikernel | Self::Foreign)
    }

    /// Says whether its targets run under a Linux of their own on this machine.
    #[must_use]
    pub fn is_linux_guest(self) -> bool {
        matches!(self, Self::LinuxGuest | Self::DebianGuest)
    }

    /// Says whether its targets run under this machine's kernel, so that its CPUs and its clock are theirs.
    #[must_use]
    pub fn is_here(self) -> bool {
        matches!(self, Self::Process | Self::Container)
    }
}

/// Splits a target's text into its kind and its options. An option without `=` has an empty value.
#[must_use]
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

/// Splits a text at its commas; two that follow each other are one that belongs to a value.
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
    fn a_comma_inside_of_a_value_is_written_twice() {
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
    fn what_looks_like_an_option_inside_of_a_value_is_none() {
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

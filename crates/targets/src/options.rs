//! The options of targets, as data.
//!
//! Each kind of target has a table of [`Opt`]s. Reading, the canonical form, errors, the tables of
//! docs/targets.md and `tare targets --json` are made from it, so that an option is described once.
//! The grammar is that of [`tare_results::target`].

use std::fmt::{self, Display};
use std::path::{self, PathBuf};

use serde::Serialize;
use tare_results::target::{Clock, Group, TargetOption, TargetSpec};
use tare_wire::cpus::Cpus;

use crate::error::TargetError;

/// One option of a kind of target.
#[derive(Clone, Copy, Debug)]
pub struct Opt {
    /// Its key: `preempt`.
    pub key: &'static str,
    takes: Takes,
    unset: Unset,
    repeats: bool,
    meaning: &'static str,
}

/// The values of an option.
#[derive(Clone, Copy, Debug)]
enum Takes {
    /// Whole numbers.
    Number { least: u32, most: u32 },
    /// Sizes of memory from `least` on.
    Memory { least: Size },
    /// One of a few words.
    Word(fn() -> Vec<&'static str>),
    /// A text of some form, and the canonical text of a value, if it has that form.
    Text {
        form: &'static str,
        wanted: &'static str,
        canonical: fn(&str) -> Option<String>,
    },
}

/// The meaning of a missing option.
#[derive(Clone, Copy, Debug)]
enum Unset {
    /// The same as this value.
    Value(&'static str),
    /// Something that no value means, in words.
    Words(&'static str),
    /// An error.
    Missing,
}

/// An option as it is documented.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Its key.
    pub key: &'static str,
    /// The form of its value: `N`, `on|off`.
    pub form: String,
    /// Its default, in words if no value means the same; None if it is required.
    pub default: Option<&'static str>,
    /// Whether the default is a value of the option.
    #[serde(skip)]
    pub is_value: bool,
    /// Whether it may be given several times.
    pub repeats: bool,
    /// Its meaning, in Markdown.
    pub meaning: &'static str,
}

impl Opt {
    const fn new(key: &'static str, takes: Takes) -> Self {
        Self {
            key,
            takes,
            unset: Unset::Words("none"),
            repeats: false,
            meaning: "",
        }
    }

    /// An option for whole numbers.
    pub const fn number(key: &'static str, least: u32, most: u32) -> Self {
        Self::new(key, Takes::Number { least, most })
    }

    /// The option `mem`, from a least size on.
    pub const fn memory(least: Size) -> Self {
        Self::new("mem", Takes::Memory { least })
            .unset("the plan's buffers and 512M")
            .means("memory; untouched memory costs the host nothing")
    }

    /// An option for one of a few words.
    pub const fn word<T: Word>(key: &'static str) -> Self {
        Self::new(key, Takes::Word(words::<T>))
    }

    /// An option for texts. `form` stands for the value in lists, `wanted` describes it in errors,
    /// and `canonical` returns its canonical text, or None for an invalid value.
    pub const fn text(
        key: &'static str,
        form: &'static str,
        wanted: &'static str,
        canonical: fn(&str) -> Option<String>,
    ) -> Self {
        let takes = Takes::Text {
            form,
            wanted,
            canonical,
        };
        Self::new(key, takes)
    }

    /// An option for the path of a file, which becomes absolute: the target then means the same
    /// file wherever a run is resumed.
    pub const fn file(key: &'static str, wanted: &'static str) -> Self {
        Self::text(key, "FILE", wanted, canonical::<PathBuf>)
    }

    /// The value that a missing option stands for.
    #[must_use]
    pub const fn default(self, value: &'static str) -> Self {
        Self {
            unset: Unset::Value(value),
            ..self
        }
    }

    /// The meaning of a missing option that no value has.
    #[must_use]
    pub const fn unset(self, words: &'static str) -> Self {
        Self {
            unset: Unset::Words(words),
            ..self
        }
    }

    /// An option that must be given.
    #[must_use]
    pub const fn required(self) -> Self {
        Self {
            unset: Unset::Missing,
            ..self
        }
    }

    /// An option that may be given several times.
    #[must_use]
    pub const fn repeated(self) -> Self {
        Self {
            repeats: true,
            ..self
        }
    }

    /// The meaning of the option, for its documentation.
    #[must_use]
    pub const fn means(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// Returns whether it must be given.
    pub fn is_required(&self) -> bool {
        matches!(self.unset, Unset::Missing)
    }

    /// Returns the option as it is documented.
    pub fn description(&self) -> Description {
        Description {
            key: self.key,
            form: self.takes.form(),
            default: match self.unset {
                Unset::Value(text) | Unset::Words(text) => Some(text),
                Unset::Missing => None,
            },
            is_value: matches!(self.unset, Unset::Value(_)),
            repeats: self.repeats,
            meaning: self.meaning,
        }
    }

    fn default_value(&self) -> Option<&'static str> {
        match self.unset {
            Unset::Value(value) => Some(value),
            Unset::Words(_) | Unset::Missing => None,
        }
    }
}

impl Takes {
    fn form(&self) -> String {
        match self {
            Self::Number { .. } => "N".to_owned(),
            Self::Memory { .. } => "SIZE".to_owned(),
            Self::Word(words) => words().join("|"),
            Self::Text { form, .. } => (*form).to_owned(),
        }
    }

    fn wanted(&self) -> String {
        match self {
            Self::Number { least, most } => format!("a whole number from {least} to {most}"),
            Self::Memory { least } => {
                let most = Size::MOST;
                format!("a size in MiB or GiB from {least} to {most}, such as 64M or 2G")
            }
            Self::Word(words) => alternatives(&words()),
            Self::Text { wanted, .. } => (*wanted).to_owned(),
        }
    }

    fn canonical(&self, text: &str) -> Option<String> {
        match self {
            Self::Number { least, most } => {
                let number: u32 = text.parse().ok()?;
                (*least..=*most)
                    .contains(&number)
                    .then(|| number.to_string())
            }
            Self::Memory { least } => {
                let size = Size::parse(text)?;
                (*least..=Size::MOST)
                    .contains(&size)
                    .then(|| size.to_string())
            }
            Self::Word(words) => words().contains(&text).then(|| text.to_owned()),
            Self::Text { canonical, .. } => canonical(text),
        }
    }
}

/// Returns how a target is written: `ssh,host=[USER@]HOST[,port=N]…`.
pub(crate) fn form(kind: &str, table: &[Opt]) -> String {
    table.iter().fold(kind.to_owned(), |form, option| {
        let (key, value) = (option.key, option.takes.form());
        match (option.is_required(), option.repeats) {
            (true, _) => format!("{form},{key}={value}"),
            (false, false) => format!("{form}[,{key}={value}]"),
            (false, true) => format!("{form}[,{key}={value}]…"),
        }
    })
}

/// A value that is one of a few words.
pub trait Word: Copy + PartialEq + 'static {
    /// The values with their words.
    const WORDS: &'static [(Self, &'static str)];

    /// Returns the word for the value.
    fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let found = words.find(|(value, _)| *value == self);
        found.expect("each value has a word").1
    }
}

fn words<T: Word>() -> Vec<&'static str> {
    T::WORDS.iter().map(|(_, word)| *word).collect()
}

impl Word for Clock {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Host, "host"), (Self::Instructions, "instructions")];
}

/// A value that options can have.
pub trait Value: Sized {
    /// Reads a value; None if the text is invalid.
    fn parse(text: &str) -> Option<Self>;

    /// Returns its canonical text.
    fn text(&self) -> String;
}

impl<T: Word> Value for T {
    fn parse(text: &str) -> Option<Self> {
        let mut words = T::WORDS.iter();
        Some(words.find(|(_, word)| *word == text)?.0)
    }

    fn text(&self) -> String {
        self.word().to_owned()
    }
}

impl Value for u32 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for Size {
    fn parse(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn text(&self) -> String {
        self.clone()
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Option<Self> {
        path::absolute(text).ok()
    }

    fn text(&self) -> String {
        self.display().to_string()
    }
}

impl Value for Cpus {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|list: &Self| !list.is_empty())
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Returns the canonical text of a value, if it is one.
pub fn canonical<T: Value>(text: &str) -> Option<String> {
    Some(T::parse(text)?.text())
}

/// Returns a text that is not empty.
pub fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The options of a target, checked against the table of its kind.
#[derive(Debug)]
pub struct Options {
    /// The kind of target.
    pub kind: &'static str,
    table: &'static [Opt],
    /// In the order of the table, with canonical values.
    given: Vec<TargetOption>,
}

impl Options {
    /// Reads the options that a user gives to a kind of target.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Usage`] for an option that does not exist, is given twice, has an
    /// invalid value or is missing.
    pub(crate) fn read(
        kind: &'static str,
        table: &'static [Opt],
        typed: Vec<TargetOption>,
    ) -> Result<Self, TargetError> {
        let mut given = Vec::new();
        for option in table {
            let key = option.key;
            let before = given.len();
            for TargetOption { value, .. } in typed.iter().filter(|typed| typed.key == key) {
                let value = option
                    .takes
                    .canonical(value)
                    .ok_or_else(|| not_wanted(kind, key, value, &option.takes.wanted()))?;
                let key = key.to_owned();
                given.push(TargetOption { key, value });
            }
            if given.len() > before + 1 && !option.repeats {
                return Err(TargetError::Usage(format!(
                    "the option '{key}' of the target '{kind}' is given twice"
                )));
            }
        }
        let is_known = |typed: &&TargetOption| table.iter().any(|option| option.key == typed.key);
        if let Some(typed) = typed.iter().find(|typed| !is_known(typed)) {
            return Err(unknown(kind, table, typed));
        }
        let is_given = |key: &str| given.iter().any(|given| given.key == key);
        let mut required = table.iter().filter(|option| option.is_required());
        if let Some(Opt { key, .. }) = required.find(|option| !is_given(option.key)) {
            return Err(TargetError::Usage(format!(
                "the target '{kind}' needs '{key}': it is written {}",
                form(kind, table)
            )));
        }
        Ok(Self { kind, table, given })
    }

    /// Returns all values of an option that may be repeated.
    ///
    /// # Panics
    ///
    /// Panics if the option takes values of another type: a mistake in its table, as below.
    pub fn all<T: Value>(&self, option: &Opt) -> Vec<T> {
        let given = self.given.iter().filter(|given| given.key == option.key);
        let values = given.map(|given| T::parse(&given.value));
        let values: Option<Vec<T>> = values.collect();
        values.expect("the option takes values of this type")
    }

    /// Returns the value of an option, or its default; None if it is not given and has none.
    ///
    /// # Panics
    ///
    /// As [`all`](Self::all).
    pub fn find<T: Value>(&self, option: &Opt) -> Option<T> {
        let default = || option.default_value().and_then(T::parse);
        self.all(option).into_iter().next().or_else(default)
    }

    /// Returns the value of an option that is required or has a default.
    ///
    /// # Panics
    ///
    /// Panics if the option is neither, or as [`all`](Self::all).
    pub fn get<T: Value>(&self, option: &Opt) -> T {
        let found = self.find(option);
        found.expect("the option is required or has a default of this type")
    }

    /// Returns whether an option is given, even if with its default.
    pub fn has(&self, option: &Opt) -> bool {
        self.given.iter().any(|given| given.key == option.key)
    }

    /// Returns the target in canonical form.
    pub fn spec(&self, group: Group) -> TargetSpec {
        let default = |key: &str| {
            let mut options = self.table.iter();
            options.find(|option| option.key == key)?.default_value()
        };
        let differs = |given: &&TargetOption| default(&given.key) != Some(&given.value);
        let options = self.given.iter().filter(differs).cloned();
        TargetSpec::new(self.kind, options.collect(), group)
    }
}

fn unknown(kind: &str, table: &[Opt], typed: &TargetOption) -> TargetError {
    let known = table.iter();
    let known = known.map(|option| format!("{}={}", option.key, option.takes.form()));
    let mut known: Vec<String> = known.collect();
    // As after a list of CPUs with a single comma.
    if typed.value.is_empty() && !known.is_empty() {
        known.push("and a comma inside a value is doubled".to_owned());
    }
    if known.is_empty() {
        known.push("none".to_owned());
    }
    let (key, known) = (&typed.key, known.join(", "));
    TargetError::Usage(format!(
        "the target '{kind}' has no option '{key}'; it takes: {known}"
    ))
}

/// Creates the error of an invalid value.
pub(crate) fn not_wanted(kind: &str, key: &str, value: &str, wanted: &str) -> TargetError {
    TargetError::contradiction(
        kind,
        format_args!("'{key}={value}'"),
        &format!("want {wanted}"),
    )
}

/// An amount of memory in MiB, written as `64M` or `2G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// The amount.
    pub mib: u64,
}

impl Size {
    /// The largest possible size: a TiB.
    pub const MOST: Self = Self::mib(1 << 20);

    /// Creates a size from MiB.
    pub const fn mib(mib: u64) -> Self {
        Self { mib }
    }

    /// Returns the sum.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self::mib(self.mib.saturating_add(other.mib))
    }

    /// Reads `64M` or `2G`; None if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u64 = number.parse().ok()?;
        let mib = match unit {
            "M" => number,
            "G" => number.checked_mul(1024)?,
            _ => return None,
        };
        Some(Self { mib })
    }
}

impl Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mib {
            mib if mib > 0 && mib % 1024 == 0 => write!(f, "{}G", mib / 1024),
            mib => write!(f, "{mib}M"),
        }
    }
}

/// Joins words as a sentence does: `a, b or c`.
fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use tare_results::target;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        Green,
        Blue,
    }

    impl Word for Colour {
        const WORDS: &'static [(Self, &'static str)] = &[
            (Self::Red, "red"),
            (Self::Green, "green"),
            (Self::Blue, "blue"),
        ];
    }

    const COLOUR: Opt = Opt::word::<Colour>("colour").default("red");
    const NUMBER: Opt = Opt::number("number", 1, 9);
    const MEMORY: Opt = Opt::memory(Size::mib(2));
    const WORDS: Opt = Opt::text("word", "WORD", "a word", non_empty).repeated();
    const TABLE: &[Opt] = &[COLOUR, NUMBER, MEMORY, WORDS];

    fn read(text: &str) -> Result<Options, String> {
        let (_, mut typed) = target::split(&format!("thing,{text}"));
        typed.retain(|option| !option.key.is_empty() || !option.value.is_empty());
        Options::read("thing", TABLE, typed).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_in_any_order_and_written_in_that_of_the_table_without_defaults() {
        for (text, colour, number, memory, canonical) in [
            ("", Colour::Red, None, None, "thing"),
            (
                "mem=1G,word=b=c,number=07,colour=blue,word=a",
                Colour::Blue,
                Some(7),
                Some(Size::mib(1024)),
                "thing,colour=blue,number=7,mem=1G,word=b=c,word=a",
            ),
            (
                "colour=red,mem=4096M,word=1,,3",
                Colour::Red,
                None,
                Some(Size::mib(4096)),
                "thing,mem=4G,word=1,,3",
            ),
        ] {
            let options = read(text).unwrap();
            assert_eq!(options.get::<Colour>(&COLOUR), colour);
            assert_eq!(options.find(&NUMBER), number);
            assert_eq!(options.find(&MEMORY), memory);
            assert_eq!(options.spec(Group::Foreign), canonical);
        }
        let options = read("word=b=c,word=a,colour=red").unwrap();
        assert_eq!(options.all::<String>(&WORDS), ["b=c", "a"]);
        assert!(options.has(&COLOUR) && !options.has(&NUMBER));
    }

    #[test]
    fn errors_name_the_option_and_what_it_takes() {
        const SIZES: &str = "a size in MiB or GiB from 2M to 1024G, such as 64M or 2G";
        const KNOWN: &str = "it takes: colour=red|green|blue, number=N, mem=SIZE, word=WORD";
        let is_not = |what: &str, wanted: &str| {
            format!("the target 'thing' can't have '{what}': want {wanted}")
        };
        for (text, message) in [
            ("colour=pink", is_not("colour=pink", "red, green or blue")),
            ("colour", is_not("colour=", "red, green or blue")),
            (
                "number=1,3",
                format!(
                    "the target 'thing' has no option '3'; {KNOWN}, and a comma inside a value is \
                     doubled"
                ),
            ),
            (
                "number=10",
                is_not("number=10", "a whole number from 1 to 9"),
            ),
            (
                "number=-1",
                is_not("number=-1", "a whole number from 1 to 9"),
            ),
            ("mem=64", is_not("mem=64", SIZES)),
            ("mem=1M", is_not("mem=1M", SIZES)),
            ("mem=99999999999999999999G", {
                is_not("mem=99999999999999999999G", SIZES)
            }),
            ("mem=5µ", is_not("mem=5µ", SIZES)),
            ("word=b,word=", is_not("word=", "a word")),
            (
                "shape=round",
                format!("the target 'thing' has no option 'shape'; {KNOWN}"),
            ),
            (
                "=1",
                format!("the target 'thing' has no option ''; {KNOWN}"),
            ),
            (
                "number=1,colour=red,number=2",
                "the option 'number' of the target 'thing' is given twice".to_owned(),
            ),
        ] {
            assert_eq!(read(text).map(drop), Err(message), "{text}");
        }
    }
}

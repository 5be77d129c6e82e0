//! Reading the options of a target, `key=value`, and putting its canonical form together.
//!
//! How they are written is said by [`tare_results::target`].

use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::path::{self, PathBuf};

use tare_results::target::{Clock, Group, TargetOption, TargetSpec};

use crate::error::TargetError;

/// A value that is one of a few words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// The values with their words.
    const WORDS: &'static [(Self, &'static str)];

    /// Return the word for the value.
    fn word(self) -> &'static str {
        let mut words = Self::WORDS.iter();
        let found = words.find(|(value, _)| *value == self);
        found.expect("each value has a word").1
    }
}

impl Word for Clock {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Host, "host"), (Self::Instructions, "instructions")];
}

/// The options of a target as they were written.
///
/// Each option is asked for by its key; [`finish`](Self::finish) then refuses those that were not
/// asked for.
#[derive(Debug)]
pub(crate) struct Options {
    /// The kind of target.
    pub(crate) target: &'static str,
    given: Vec<TargetOption>,
    /// Those that were asked for, with their values: `irq=on|off`.
    known: Vec<(&'static str, String)>,
}

impl Options {
    /// Take the options of a kind of target.
    pub(crate) fn new(target: &'static str, given: Vec<TargetOption>) -> Self {
        Self {
            target,
            given,
            known: Vec::new(),
        }
    }

    /// Read options from a text.
    #[cfg(test)]
    pub(crate) fn of(target: &'static str, text: &str) -> Self {
        let (_, mut given) = tare_results::target::split(&format!("{target},{text}"));
        given.retain(|option| !option.key.is_empty() || !option.value.is_empty());
        Self::new(target, given)
    }

    /// Read an option whose value is one of a few words; None if it is not given.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Usage`] for another value, or if the option is given twice, as do the
    /// other readers.
    pub(crate) fn word<T: Word>(&mut self, key: &'static str) -> Result<Option<T>, TargetError> {
        let words: Vec<&str> = T::WORDS.iter().map(|(_, word)| *word).collect();
        self.known.push((key, words.join("|")));
        let parse = |text: &str| Some(T::WORDS.iter().find(|(_, word)| *word == text)?.0);
        self.read(key, parse, || alternatives(&words))
    }

    /// Read an option whose value is a whole number; None if it is not given.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, TargetError> {
        self.known.push((key, "N".to_owned()));
        let parse = |text: &str| text.parse().ok().filter(|number| range.contains(number));
        self.read(key, parse, || {
            format!("a whole number from {} to {}", range.start(), range.end())
        })
    }

    /// Read `mem=`, at least so much; None if it is not given.
    pub(crate) fn memory(&mut self, least: Size) -> Result<Option<Size>, TargetError> {
        self.known.push(("mem", "SIZE".to_owned()));
        let parse =
            |text: &str| Size::parse(text).filter(|size| (least..=Size::MOST).contains(size));
        self.read("mem", parse, || {
            let most = Size::MOST;
            format!("a size in MiB or GiB from {least} to {most}, such as 64M or 2G")
        })
    }

    /// Read an option whose value is a text of some form; None if it is not given. `form` is how
    /// the value is written in a list of options, `wanted` describes it.
    pub(crate) fn text<T>(
        &mut self,
        key: &'static str,
        form: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, TargetError> {
        self.known.push((key, form.to_owned()));
        self.read(key, parse, || wanted.to_owned())
    }

    /// Read an option as [`text`](Self::text) does, which may stand several times.
    pub(crate) fn texts<T>(
        &mut self,
        key: &'static str,
        form: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, TargetError> {
        self.known.push((key, form.to_owned()));
        let values = self.given.iter().filter(|option| option.key == key);
        values
            .map(|option| self.parsed(key, &option.value, &parse, || wanted.to_owned()))
            .collect()
    }

    /// Refuse options that were not asked for.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Usage`] with those that were.
    pub(crate) fn finish(self) -> Result<(), TargetError> {
        let is_known = |key: &str| self.known.iter().any(|(known, _)| *known == key);
        let mut given = self.given.into_iter();
        let Some(TargetOption { key, value }) = given.find(|option| !is_known(&option.key)) else {
            return Ok(());
        };
        let mut known: Vec<String> = self
            .known
            .iter()
            .map(|(key, values)| format!("{key}={values}"))
            .collect();
        // As after a list of CPUs with a single comma.
        if value.is_empty() && !known.is_empty() {
            known.push("and a comma inside of a value is written twice".to_owned());
        }
        if known.is_empty() {
            known.push("none".to_owned());
        }
        let (target, known) = (self.target, known.join(", "));
        Err(TargetError::Usage(format!(
            "the target '{target}' has no option '{key}'; it takes: {known}"
        )))
    }

    fn read<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        wanted: impl Fn() -> String,
    ) -> Result<Option<T>, TargetError> {
        let mut values = self.given.iter().filter(|option| option.key == key);
        let Some(TargetOption { value, .. }) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            let target = self.target;
            return Err(TargetError::Usage(format!(
                "the option '{key}' of the target '{target}' is given twice"
            )));
        }
        self.parsed(key, value, parse, wanted).map(Some)
    }

    fn parsed<T>(
        &self,
        key: &'static str,
        text: &str,
        parse: impl Fn(&str) -> Option<T>,
        wanted: impl Fn() -> String,
    ) -> Result<T, TargetError> {
        parse(text).ok_or_else(|| not_wanted(self.target, key, text, &wanted()))
    }
}

/// Make the error of an option that must be given and is not; `form` is how the target is written.
pub(crate) fn missing(target: &str, option: &str, form: &str) -> TargetError {
    TargetError::Usage(format!(
        "the target '{target}' needs '{option}': it is written {form}"
    ))
}

/// Read a path and make it absolute: the target means the same file wherever a run is resumed.
pub(crate) fn file(text: &str) -> Option<PathBuf> {
    path::absolute(text).ok()
}

/// Make the error of an option that does not take its value.
pub(crate) fn not_wanted(target: &str, key: &str, value: &str, wanted: &str) -> TargetError {
    TargetError::contradiction(
        target,
        format_args!("'{key}={value}'"),
        &format!("want {wanted}"),
    )
}

/// An amount of memory in MiB, written as `64M` or `2G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size {
    /// The amount.
    pub(crate) mib: u64,
}

impl Size {
    /// The most that can be given: a TiB.
    pub(crate) const MOST: Self = Self::mib(1 << 20);

    /// Make a size from MiB.
    pub(crate) const fn mib(mib: u64) -> Self {
        Self { mib }
    }

    /// Return both together.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self::mib(self.mib.saturating_add(other.mib))
    }

    /// Read `64M`, `2G`; None if it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

/// A target in canonical form, put together option by option.
#[derive(Debug)]
pub(crate) struct Canonical {
    kind: &'static str,
    options: Vec<TargetOption>,
}

impl Canonical {
    /// Begin with the target's kind.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            options: Vec::new(),
        }
    }

    /// Add an option unless it has its default.
    pub(crate) fn word<T: Word>(self, key: &str, value: T, default: T) -> Self {
        self.option(key, (value != default).then(|| value.word()))
    }

    /// Add an option if there is a value.
    pub(crate) fn option(mut self, key: &str, value: Option<impl Display>) -> Self {
        self.options.extend(value.map(|value| TargetOption {
            key: key.to_owned(),
            value: value.to_string(),
        }));
        self
    }

    /// Return the target.
    pub(crate) fn of_group(self, group: Group) -> TargetSpec {
        TargetSpec::new(self.kind, self.options, group)
    }
}

/// Join words as a sentence does: `a, b or c`.
fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
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

    type Read = (Option<Colour>, Option<u32>, Option<Size>);

    fn read(text: &str) -> Result<Read, String> {
        let read = |text: &str| -> Result<Read, TargetError> {
            let mut options = Options::of("thing", text);
            let colour = options.word("colour")?;
            let number = options.number("number", 1..=9)?;
            let size = options.memory(Size::mib(2))?;
            options.finish()?;
            Ok((colour, number, size))
        };
        read(text).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_in_any_order() {
        assert_eq!(read(""), Ok((None, None, None)));
        assert_eq!(
            read("mem=1G,number=7,colour=blue"),
            Ok((Some(Colour::Blue), Some(7), Some(Size::mib(1024))))
        );
        assert_eq!(read("mem=4096M").unwrap().2, Some(Size::mib(4096)));
    }

    #[test]
    fn errors_name_the_option_and_what_it_takes() {
        const SIZES: &str = "a size in MiB or GiB from 2M to 1024G, such as 64M or 2G";
        const KNOWN: &str = "it takes: colour=red|green|blue, number=N, mem=SIZE";
        let is_not = |what: &str, wanted: &str| {
            format!("the target 'thing' can't have '{what}': want {wanted}")
        };
        for (text, message) in [
            ("colour=pink", is_not("colour=pink", "red, green or blue")),
            ("colour", is_not("colour=", "red, green or blue")),
            (
                "number=1,3",
                format!(
                    "the target 'thing' has no option '3'; {KNOWN}, and a comma inside of a value \
                     is written twice"
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
            assert_eq!(read(text), Err(message), "{text}");
        }
    }

    #[test]
    fn an_option_may_stand_several_times_if_it_is_read_so() {
        let mut options = Options::of("thing", "word=b=c,word=a");
        let words = options.texts("word", "WORD", "a word", |text| Some(text.to_owned()));
        assert_eq!(words.unwrap(), ["b=c", "a"]);
        options.finish().unwrap();
        let mut options = Options::of("thing", "word=b,word=");
        let parse = |text: &str| (!text.is_empty()).then_some(());
        let error = options.texts("word", "WORD", "a word", parse).unwrap_err();
        assert!(
            error.to_string().ends_with("'word=': want a word"),
            "{error}"
        );
    }

    #[test]
    fn the_canonical_form_leaves_defaults_out() {
        let spec = Canonical::new("thing")
            .word("colour", Colour::Green, Colour::Red)
            .word("other", Colour::Red, Colour::Red)
            .option("number", None::<u32>)
            .option("mem", Some(Size::mib(1536)))
            .option("list", Some("1,3"))
            .of_group(Group::Foreign);
        assert_eq!(spec, "thing,colour=green,mem=1536M,list=1,,3");
        assert_eq!(spec.option("list"), Some("1,3"));
        assert_eq!(Size::mib(2048).to_string(), "2G");
    }
}

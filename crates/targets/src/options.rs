//! Reading the options of a target, `key=value`, and writing them back.
//!
//! What is written back is the target's canonical form: options in a fixed order, those that have
//! their default left out. Two texts that mean the same target become the same text, by which
//! cells of a run are compared.

use std::fmt::{self, Display, Write};
use std::ops::RangeInclusive;

use crate::error::TargetError;

/// Is a value that is one of a few words.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// All values.
    const ALL: &'static [Self];

    /// Returns the word for the value.
    fn word(self) -> &'static str;
}

/// Holds the options of a target as they were written.
///
/// Each option is asked for by its key; [`finish`](Self::finish) then refuses those that were not
/// asked for.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    target: &'static str,
    given: Vec<(&'a str, &'a str)>,
    /// Those that were asked for, with their values: `irq=on|off`.
    known: Vec<(&'static str, String)>,
}

impl<'a> Options<'a> {
    /// Splits options at their first `=`.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an option that stands twice.
    pub(crate) fn split(
        target: &'static str,
        options: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, TargetError> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for option in options {
            // One without a value is refused by the one who knows which values there are.
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            if given.iter().any(|(known, _)| *known == key) {
                let option = key.to_owned();
                return Err(TargetError::RepeatedOption { target, option });
            }
            given.push((key, value));
        }
        Ok(Self {
            target,
            given,
            known: Vec::new(),
        })
    }

    /// Reads an option whose value is one of a few words; None if it is not given.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::BadOption`], as do the other readers.
    pub(crate) fn word<T: Word>(&mut self, key: &'static str) -> Result<Option<T>, TargetError> {
        let words: Vec<&str> = T::ALL.iter().map(|value| value.word()).collect();
        self.known.push((key, words.join("|")));
        let parse = |text: &str| T::ALL.iter().find(|value| value.word() == text).copied();
        self.read(key, parse, || alternatives(&words))
    }

    /// Reads an option whose value is a whole number; None if it is not given.
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

    /// Reads an option whose value is a size of memory, in bytes; None if it is not given.
    pub(crate) fn size(
        &mut self,
        key: &'static str,
        range: RangeInclusive<Size>,
    ) -> Result<Option<Size>, TargetError> {
        self.known.push((key, "SIZE".to_owned()));
        let parse = |text: &str| Size::parse(text).filter(|size| range.contains(size));
        self.read(key, parse, || {
            format!(
                "a size in MiB or GiB from {} to {}, such as 64M or 2G",
                range.start(),
                range.end()
            )
        })
    }

    /// Refuses options that were not asked for.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::UnknownOption`] with those that were.
    pub(crate) fn finish(self) -> Result<(), TargetError> {
        let is_known = |key: &str| self.known.iter().any(|(known, _)| *known == key);
        let Some((option, _)) = self.given.iter().find(|(key, _)| !is_known(key)) else {
            return Ok(());
        };
        let known: Vec<String> = self
            .known
            .iter()
            .map(|(key, values)| format!("{key}={values}"))
            .collect();
        Err(TargetError::UnknownOption {
            target: self.target,
            option: (*option).to_owned(),
            known: match &known[..] {
                [] => "none".to_owned(),
                known => known.join(", "),
            },
        })
    }

    fn read<T>(
        &self,
        key: &'static str,
        parse: impl Fn(&str) -> Option<T>,
        wanted: impl Fn() -> String,
    ) -> Result<Option<T>, TargetError> {
        let Some((_, text)) = self.given.iter().find(|(given, _)| *given == key) else {
            return Ok(None);
        };
        match parse(text) {
            Some(value) => Ok(Some(value)),
            None => Err(TargetError::BadOption {
                target: self.target,
                option: key,
                value: (*text).to_owned(),
                wanted: wanted(),
            }),
        }
    }
}

/// Is an amount of memory in MiB, written as `64M` or `2G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size {
    /// The amount.
    pub(crate) mib: u64,
}

impl Size {
    /// Makes a size from MiB.
    pub(crate) const fn mib(mib: u64) -> Self {
        Self { mib }
    }

    fn parse(text: &str) -> Option<Self> {
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

/// Writes a target in canonical form.
#[derive(Debug)]
pub(crate) struct Canonical(String);

impl Canonical {
    /// Begins with the target's name.
    pub(crate) fn new(target: &str) -> Self {
        Self(target.to_owned())
    }

    /// Adds an option unless it has its default.
    pub(crate) fn word<T: Word>(self, key: &str, value: T, default: T) -> Self {
        self.option(key, (value != default).then(|| value.word()))
    }

    /// Adds an option if there is a value.
    pub(crate) fn option(mut self, key: &str, value: Option<impl Display>) -> Self {
        if let Some(value) = value {
            write!(self.0, ",{key}={value}").expect("a String takes everything");
        }
        self
    }

    /// Returns the text.
    pub(crate) fn text(self) -> String {
        self.0
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
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Colour {
        Red,
        Green,
        Blue,
    }

    impl Word for Colour {
        const ALL: &'static [Self] = &[Self::Red, Self::Green, Self::Blue];

        fn word(self) -> &'static str {
            match self {
                Self::Red => "red",
                Self::Green => "green",
                Self::Blue => "blue",
            }
        }
    }

    type Read = (Option<Colour>, Option<u32>, Option<Size>);

    fn read(text: &str) -> Result<Read, String> {
        let read = |text: &str| -> Result<Read, TargetError> {
            let parts = text.split(',').filter(|part| !part.is_empty());
            let mut options = Options::split("thing", parts)?;
            let colour = options.word("colour")?;
            let number = options.number("number", 1..=9)?;
            let size = options.size("mem", Size::mib(2)..=Size::mib(4096))?;
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
        const SIZES: &str = "a size in MiB or GiB from 2M to 4G, such as 64M or 2G";
        const KNOWN: &str = "it takes: colour=red|green|blue, number=N, mem=SIZE";
        let is_not = |what: &str, wanted: &str| {
            format!("the target 'thing' can't have '{what}': want {wanted}")
        };
        for (text, message) in [
            ("colour=pink", is_not("colour=pink", "red, green or blue")),
            ("colour", is_not("colour=", "red, green or blue")),
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
                "the option 'number' of the target 'thing' stands twice".to_owned(),
            ),
        ] {
            assert_eq!(read(text), Err(message), "{text}");
        }
    }

    #[test]
    fn the_canonical_form_leaves_defaults_out() {
        let text = Canonical::new("thing")
            .word("colour", Colour::Green, Colour::Red)
            .word("other", Colour::Red, Colour::Red)
            .option("number", None::<u32>)
            .option("mem", Some(Size::mib(1536)))
            .text();
        assert_eq!(text, "thing,colour=green,mem=1536M");
        assert_eq!(Size::mib(2048).to_string(), "2G");
    }
}

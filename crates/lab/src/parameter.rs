//! The parameters of an experiment, as data: the command line's options, a study's keys, their
//! help, their documentation and their checks are all made of the same table.

use std::collections::BTreeMap;
use std::fmt;

use crate::units::{exact, exact_word, nanoseconds, whole};

/// Describes one parameter of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name: a study's key, and with two hyphens an option.
    pub name: &'static str,
    /// Whether the command takes it without its name.
    pub positional: bool,
    /// The option's short form.
    pub short: Option<char>,
    /// Other long forms of the option.
    pub aliases: &'static [&'static str],
    /// What stands for the value in help.
    pub value: &'static str,
    /// Heading under which help has the option.
    pub heading: &'static str,
    /// The values that it takes.
    pub takes: Takes,
    /// The value of an option without one, if that is allowed.
    pub bare: Option<&'static str>,
    /// Whether it takes several values, each of which makes its own combinations.
    pub many: bool,
    /// The default, in words; empty if it is obvious.
    pub default: &'static str,
    /// The meaning, in a sentence without its full stop.
    pub meaning: &'static str,
    /// Why a study can't give it, if it can't.
    pub command_only: Option<&'static str>,
    /// Whether it decides how often each combination runs, so that a number of runs contradicts it.
    pub fixes_runs: bool,
    /// Returns whether it has an effect, given the other values.
    pub applies: fn(&Self, &Values) -> bool,
}

/// Says which values a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Whole numbers from `least` to `most`.
    Number {
        /// Least value.
        least: u64,
        /// Greatest value.
        most: u64,
    },
    /// Times, kept in ns.
    Time {
        /// Unit of a number without one.
        bare: &'static str,
        /// Least value.
        least_ns: u64,
        /// Greatest value.
        most_ns: u64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A text of a certain form.
    Text {
        /// Describes the form.
        wanted: &'static str,
        /// Says whether a text has it.
        fits: fn(&str) -> bool,
    },
    /// Nothing: it is given or not.
    Flag,
    /// The action of the command when a limit is exceeded. The command knows the forms.
    Action,
}

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, or a time in ns.
    Number(u64),
    /// A word or text.
    Text(String),
}

impl Parameter {
    /// A parameter with nothing set yet.
    pub const NEW: Self = Self {
        name: "",
        positional: false,
        short: None,
        aliases: &[],
        value: "N",
        heading: "Workload",
        takes: Takes::Flag,
        bare: None,
        many: false,
        default: "",
        meaning: "",
        command_only: None,
        fixes_runs: false,
        applies: |_, _| true,
    };

    /// Returns a parameter that takes one time; a bare number is in the unit `bare`.
    pub const fn time(name: &'static str, bare: &'static str, least_ns: u64, most_ns: u64) -> Self {
        Self {
            name,
            value: "TIME",
            takes: Takes::time(bare, [least_ns, most_ns]),
            ..Self::NEW
        }
    }

    /// Reads a value from text.
    ///
    /// # Errors
    ///
    /// Returns what would be right.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let wanted = || format!("want {}", self.takes);
        match self.takes {
            Takes::Number { .. } => self.check(whole(text).ok_or_else(wanted)?),
            Takes::Time { bare, .. } => self.check(nanoseconds(text, Some(bare))?),
            Takes::Word(words) if !words.contains(&text) => Err(wanted()),
            Takes::Text { fits, .. } if !fits(text) => Err(wanted()),
            Takes::Word(_) | Takes::Text { .. } | Takes::Action => Ok(Value::Text(text.to_owned())),
            Takes::Flag => Err(wanted()),
        }
    }

    /// Returns the number that is given to it, else its default.
    ///
    /// # Panics
    ///
    /// Panics if the default is not a number that it takes.
    pub fn number(&self, values: &Values) -> u64 {
        let default = || match self.read(self.default) {
            Ok(Value::Number(number)) => number,
            _ => panic!("'{}' is not a default of {}", self.default, self.name),
        };
        values.number(self.name).unwrap_or_else(default)
    }

    /// Returns the words or texts that are given to it, else its default.
    pub fn texts<'v>(&self, values: &'v Values) -> Vec<&'v str> {
        let given = values.texts(self.name);
        if given.is_empty() {
            vec![self.default]
        } else {
            given
        }
    }

    /// Makes a value of a number, if it is within the bounds.
    ///
    /// # Errors
    ///
    /// Returns what would be right.
    pub fn check(&self, number: u64) -> Result<Value, String> {
        let (least, most) = match self.takes {
            Takes::Number { least, most } => (least, most),
            Takes::Time {
                least_ns, most_ns, ..
            } => (least_ns, most_ns),
            _ => return Err(format!("want {}", self.takes)),
        };
        if (least..=most).contains(&number) {
            return Ok(Value::Number(number));
        }
        let shown = |number: u64| match self.takes {
            Takes::Time { .. } => exact(number),
            _ => number.to_string(),
        };
        Err(format!(
            "{} must be from {} to {}, not {}",
            self.name,
            shown(least),
            shown(most),
            shown(number)
        ))
    }

    /// Writes a value as it is read.
    pub fn show(&self, value: &Value) -> String {
        match (value, self.takes) {
            (Value::Number(ns), Takes::Time { .. }) => exact_word(*ns),
            (Value::Number(_), Takes::Flag) => "true".to_owned(),
            (Value::Number(number), _) => number.to_string(),
            (Value::Text(text), _) => text.clone(),
        }
    }
}

impl Takes {
    /// Takes whole numbers within bounds.
    pub const fn number([least, most]: [u64; 2]) -> Self {
        Self::Number { least, most }
    }

    /// Takes a text of a form.
    pub const fn text(wanted: &'static str, fits: fn(&str) -> bool) -> Self {
        Self::Text { wanted, fits }
    }

    /// Takes times within bounds in ns; a number without a unit is in `bare`.
    pub const fn time(bare: &'static str, [least_ns, most_ns]: [u64; 2]) -> Self {
        Self::Time {
            bare,
            least_ns,
            most_ns,
        }
    }
}

impl fmt::Display for Takes {
    /// Describes what is taken, bounds included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number {
                least,
                most: u64::MAX,
            } => write!(f, "a whole number from {least} on"),
            Self::Number { least, most } => write!(f, "a whole number from {least} to {most}"),
            Self::Time {
                bare,
                least_ns,
                most_ns,
            } => {
                f.write_str("a time")?;
                if *most_ns < u64::MAX {
                    write!(f, " from {} to {}", exact(*least_ns), exact(*most_ns))?;
                }
                write!(f, ", such as \"5{bare}\"")
            }
            Self::Word(words) => write!(f, "one of {}", words.join(", ")),
            Self::Text { wanted, .. } => f.write_str(wanted),
            Self::Flag => f.write_str("true"),
            Self::Action => f.write_str("an action"),
        }
    }
}

/// The values that are given to an experiment, by parameter. Parameters without a value are not in
/// it. A parameter of one value has a list of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<&'static str, Vec<Value>>);

impl Values {
    /// Gives values to a parameter.
    pub fn give(&mut self, name: &'static str, values: Vec<Value>) {
        self.0.insert(name, values);
    }

    /// Returns what was given to a parameter; nothing if it was left out.
    pub fn of(&self, name: &str) -> &[Value] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers given to a parameter; none if it was left out.
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let all = self.of(name).iter();
        all.filter_map(|value| match value {
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        })
        .collect()
    }

    /// Returns the words or texts given to a parameter; none if it was left out.
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let all = self.of(name).iter();
        all.filter_map(|value| match value {
            Value::Number(_) => None,
            Value::Text(text) => Some(text.as_str()),
        })
        .collect()
    }

    /// Returns the number given to a parameter that takes one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.numbers(name).first().copied()
    }

    /// Returns the same for values that are kept in less: what does not fit is out of bounds
    /// anyway.
    pub fn small(&self, name: &str) -> Option<u32> {
        let number = self.number(name)?;
        Some(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Returns the word or text given to a parameter that takes one.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).first().copied()
    }

    /// Returns whether a parameter was given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_within_bounds_and_written_as_it_is_read() {
        let number = Parameter {
            name: "limit",
            takes: Takes::Number { least: 3, most: 9 },
            ..Parameter::NEW
        };
        let time = Parameter {
            name: "interval",
            takes: Takes::Time {
                bare: "us",
                least_ns: 1_000,
                most_ns: 60_000_000_000,
            },
            ..Parameter::NEW
        };
        let word = Parameter {
            takes: Takes::Word(&["a", "b"]),
            ..Parameter::NEW
        };
        for (parameter, text, shown) in [
            (&number, "3", Ok("3")),
            (&number, "2", Err("limit must be from 3 to 9, not 2")),
            (&number, "x", Err("want a whole number from 3 to 9")),
            (&time, "250", Ok("250us")),
            (&time, "2ms", Ok("2ms")),
            (
                &time,
                "0.5",
                Err("interval must be from 1 µs to 60 s, not 500 ns"),
            ),
            (&word, "b", Ok("b")),
            (&word, "c", Err("want one of a, b")),
        ] {
            let read = parameter.read(text).map(|value| parameter.show(&value));
            assert_eq!(read.as_deref().map_err(String::as_str), shown, "{text}");
        }
    }

    #[test]
    fn a_number_that_is_not_given_is_the_default() {
        let reads = Parameter {
            name: "reads",
            takes: Takes::Number { least: 1, most: 9 },
            default: "7",
            ..Parameter::NEW
        };
        let mut values = Values::default();
        assert_eq!(reads.number(&values), 7);
        values.give("reads", vec![Value::Number(3)]);
        assert_eq!(reads.number(&values), 3);
    }
}

//! A value that may be unknown.
//!
//! Most of what this crate reads is missing on some machine: a guest has no
//! cpufreq, a container hides half of `/sys`, an ordinary user may not look into
//! debugfs. An absent value must not look like a good one, and "0" must not stand
//! for "no idea". So every value carries its own excuse.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hold a value, or the reason why there is none.
///
/// In JSON a known value is the bare value; an unknown one is
/// `{"unknown": "there is no /sys/…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Fact<T> {
    /// The value could not be read.
    Unknown {
        /// Why not, in words fit to be shown: which file, what was wrong with it.
        unknown: String,
    },
    /// The value as it was read.
    Known(T),
}

/// A field that is younger than the record.
impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::unknown("not recorded")
    }
}

impl<T> Fact<T> {
    /// Makes an unknown value from the reason why it is unknown.
    pub fn unknown(because: impl Into<String>) -> Self {
        Self::Unknown {
            unknown: because.into(),
        }
    }

    /// Returns the value if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// Returns the reason why the value is unknown, if it is.
    pub fn because(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown { unknown } => Some(unknown),
        }
    }

    /// Turns into an `Option` and drops the reason.
    pub fn into_known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown { .. } => None,
        }
    }

    /// Returns the value, or the reason why it is unknown.
    ///
    /// # Errors
    /// The reason why the value is unknown.
    pub fn get(&self) -> Result<&T, String> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Unknown { unknown } => Err(unknown.clone()),
        }
    }

    /// Returns whether the value is known to be this one.
    pub fn is(&self, value: &T) -> bool
    where
        T: PartialEq,
    {
        self.known() == Some(value)
    }

    /// Borrow the value, keep the reason.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Known(value) => Fact::Known(value),
            Self::Unknown { unknown } => Fact::unknown(unknown.as_str()),
        }
    }

    /// Applies a function to the value; an unknown stays unknown for the same reason.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known(value) => Fact::Known(f(value)),
            Self::Unknown { unknown } => Fact::Unknown { unknown },
        }
    }

    /// Applies a function that may itself not know.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Unknown { unknown } => Fact::Unknown { unknown },
        }
    }

    /// Looks for something in the value; when it is not there, that is why the result is unknown.
    pub fn find<U>(self, because: impl Into<String>, f: impl FnOnce(T) -> Option<U>) -> Fact<U> {
        self.and_then(|value| f(value).map_or_else(|| Fact::unknown(because), Fact::Known))
    }

    /// Tries another source when this one does not know; keeps the first reason when neither does.
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if self.known().is_some() {
            return self;
        }
        let second = other();
        if second.known().is_some() {
            second
        } else {
            self
        }
    }
}

impl<T> From<Result<T, String>> for Fact<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(unknown) => Self::Unknown { unknown },
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown { unknown } => write!(f, "unknown ({unknown})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_the_bare_value_or_the_reason() {
        let known: Fact<u32> = Fact::Known(7);
        let unknown: Fact<u32> = Fact::unknown("there is no /proc/x");
        assert_eq!(serde_json::to_string(&known).unwrap(), "7");
        let text = serde_json::to_string(&unknown).unwrap();
        assert_eq!(text, r#"{"unknown":"there is no /proc/x"}"#);
        assert_eq!(serde_json::from_str::<Fact<u32>>("7").unwrap(), known);
        assert_eq!(serde_json::from_str::<Fact<u32>>(&text).unwrap(), unknown);
    }

    #[test]
    fn null_is_a_known_nothing() {
        let known: Fact<Option<u32>> = Fact::Known(None);
        assert_eq!(serde_json::to_string(&known).unwrap(), "null");
        assert_eq!(
            serde_json::from_str::<Fact<Option<u32>>>("null").unwrap(),
            known
        );
    }

    #[test]
    fn the_first_reason_survives_when_nobody_knows() {
        let fact: Fact<u32> = Fact::unknown("first").or_else(|| Fact::unknown("second"));
        assert_eq!(fact.because(), Some("first"));
        assert_eq!(
            Fact::unknown("first").or_else(|| Fact::Known(1)).known(),
            Some(&1)
        );
    }
}

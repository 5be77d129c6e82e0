//! What all words of plans have in common: `key=value`, each key once.

use thiserror::Error;

/// Says which word of a plan is wrong, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError<'a> {
    /// The word is not of the form `key=value`.
    #[error("plan: '{0}' is not of the form key=value")]
    NotAPair(&'a str),
    /// No such key.
    #[error("plan: no such key '{0}'")]
    UnknownKey(&'a str),
    /// The key is given twice.
    #[error("plan: '{0}' is given twice")]
    Twice(&'a str),
    /// The value is not one that the key takes.
    #[error("plan: '{key}={value}': want {wanted}")]
    BadValue {
        /// The key.
        key: &'a str,
        /// What was given.
        value: &'a str,
        /// What would be right.
        wanted: &'static str,
    },
    /// The key must be given, but is not.
    #[error("plan: '{0}=…' is missing")]
    Missing(&'static str),
}

/// Reads a time with its unit: `500ns`, `100us`, `3ms`, `25s`.
#[must_use]
pub fn parse_ns(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

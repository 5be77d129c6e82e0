//! Words of plans: `key=value`, each key once.

use thiserror::Error;

/// The error for a wrong word of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError<'a> {
    /// The word is not of the form `key=value`.
    #[error("plan: '{0}' is not of the form key=value")]
    NotAPair(&'a str),
    /// An unknown key.
    #[error("plan: no such key '{0}'")]
    UnknownKey(&'a str),
    /// A repeated key.
    #[error("plan: '{0}' is given twice")]
    Twice(&'a str),
    /// An invalid value.
    #[error("plan: '{key}={value}': want {wanted}")]
    BadValue {
        /// The key.
        key: &'a str,
        /// The value.
        value: &'a str,
        /// The description of valid values.
        wanted: &'static str,
    },
    /// A missing key.
    #[error("plan: '{0}=…' is missing")]
    Missing(&'static str),
}

/// Reads a time with its unit: `500ns`, `100us`, `3ms`, `25s`.
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

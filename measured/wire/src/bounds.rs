//! Bounds of the values in a plan.
//!
//! They are part of the protocol: the laboratory checks a plan before anything starts, and the
//! measured code checks it again.

use thiserror::Error;

/// Maximum number of envelope bins.
pub const MAX_BINS: u32 = 100_000;

/// The error for a value that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} must be from {least} to {most}, not {given}")]
pub struct Refusal {
    /// The key of the value.
    pub what: &'static str,
    /// The value.
    pub given: u64,
    /// The least allowed value.
    pub least: u64,
    /// The greatest allowed value.
    pub most: u64,
}

/// Checks that a value is from `least` to `most`.
///
/// # Errors
///
/// Returns the bounds if it is not.
pub fn within(what: &'static str, given: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    Err(Refusal {
        what,
        given,
        least,
        most,
    })
}

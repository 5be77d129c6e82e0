//! What a plan may ask for.
//!
//! The limits are part of the contract: the laboratory refuses a plan by them before anything
//! starts, and the measured code refuses it again.

use thiserror::Error;

/// The greatest number of envelope bins.
pub const MAX_BINS: u32 = 100_000;

/// Names a value of the plan that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what} must be from {least} to {most}, not {given}")]
pub struct Refusal {
    /// Key of the value.
    pub what: &'static str,
    /// What was given.
    pub given: u64,
    /// Least value allowed.
    pub least: u64,
    /// Greatest value allowed.
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

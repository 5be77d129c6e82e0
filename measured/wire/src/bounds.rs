//! What a plan may ask for.
//!
//! The limits are part of the contract: the laboratory refuses a plan by them before anything
//! starts, and the measured code refuses it again.

use core::fmt;

/// Is the greatest number of envelope bins.
pub const MAX_BINS: u32 = 100_000;

/// Names a value of the plan that is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            given,
            least,
            most,
        } = self;
        write!(f, "{what} must be from {least} to {most}, not {given}")
    }
}

impl core::error::Error for Refusal {}

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

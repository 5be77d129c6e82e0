//! The time of day.

use std::time::SystemTime;

use jiff::Timestamp;

use crate::error::ResultsError;

/// Returns the time of day.
///
/// # Errors
///
/// [`ResultsError::Clock`] if no date can be written of what the clock says.
pub fn now() -> Result<Timestamp, ResultsError> {
    at(SystemTime::now())
}

fn at(time: SystemTime) -> Result<Timestamp, ResultsError> {
    Timestamp::try_from(time).map_err(|_| ResultsError::Clock)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_beyond_the_last_date_is_an_error() {
        let time = |seconds| at(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert!(time(253_402_207_200).is_ok());
        // 9999-12-31.
        for late in [253_402_214_400, 253_402_300_800, 1 << 60] {
            let error = time(late).unwrap_err().to_string();
            assert!(error.contains("set the clock"), "{error}");
        }
    }
}

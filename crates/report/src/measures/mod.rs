//! What each experiment measures.

mod noise;
mod wakeup;

use crate::rows::Measure;

/// Returns the measures of an experiment; none of one that is not known.
#[must_use]
pub fn of(experiment: &str) -> &'static [Measure] {
    match experiment {
        "noise" => noise::MEASURES,
        "wakeup" => wakeup::MEASURES,
        _ => &[],
    }
}

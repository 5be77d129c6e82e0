//! How long a cell will take, roughly.
//!
//! The model is coarse on purpose: it must be right within a factor of about three on any x86-64
//! machine of the last ten years, to show whether a study takes a minute or a night. During a run
//! the time left is estimated from the time that cells really took.

use std::time::Duration;

use crate::units::{counted, human};

/// Time to start an agent, take memory, calibrate, and write the results.
pub const OVERHEAD_SECONDS: f64 = 0.3;
/// Time to start a load and to end it.
pub const LOAD_SECONDS: f64 = 2.0;
/// How much longer a workload takes that shares its CPU with a load.
const LOAD_FACTOR: f64 = 2.0;
/// How much longer than its estimate a cell may take.
pub(crate) const LIMIT_FACTOR: f64 = 10.0;

/// Returns the estimated duration of a cell under a load, from that of the same cell without: the
/// load has to be started and ended, and takes a share of the CPU that can't be known before.
pub fn under_load(estimate_seconds: f64) -> f64 {
    LOAD_SECONDS + LOAD_FACTOR * estimate_seconds
}

/// Writes how long something takes by its estimate: `about 8 s`.
pub fn estimated(seconds: f64) -> String {
    let duration = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    format!("about {}", human(duration))
}

/// Returns the estimate for all cells of a run in words: `5 cells, about 8 s in all`.
pub fn in_all(cells: u64, seconds: f64, is_busy: bool) -> String {
    let cells = counted(cells, "cell", "cells");
    let why = if is_busy {
        "; longer if the measured CPU stays busy"
    } else {
        ""
    };
    format!("{cells}, {} in all{why}", estimated(seconds))
}

/// Returns the time in seconds after which a cell counts as hung: ten times what it should take,
/// and half a minute for a machine that is busy with something else.
pub fn limit_seconds(estimate_seconds: f64) -> f64 {
    30.0 + LIMIT_FACTOR * estimate_seconds
}

/// Returns the same for a cell under a load: among the 2,400 processes of hackbench an ordinary
/// task gets a hundredth of its CPU for some time.
pub fn limit_seconds_under_load(estimate_seconds: f64) -> f64 {
    300.0 + 50.0 * estimate_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_cpu_may_make_it_longer() {
        assert_eq!(in_all(1, 8.0, false), "1 cell, about 8 s in all");
        assert_eq!(
            in_all(4, 70.0, true),
            "4 cells, about 1 min 10 s in all; longer if the measured CPU stays busy"
        );
    }
}

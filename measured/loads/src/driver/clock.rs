//! The kernel's CLOCK_MONOTONIC, by which the measured code announces its phases.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Returns the time in ns.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative: the clock starts at 0.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the `Instant` of a time, or now if it has passed; None if it is out of range.
pub(super) fn moment(ns: u64) -> Option<Instant> {
    let left = Duration::from_nanos(ns.saturating_sub(now_ns()));
    Instant::now().checked_add(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_moment() {
        let before = now_ns();
        let soon = moment(before + 50_000_000).unwrap();
        let left = soon.saturating_duration_since(Instant::now());
        assert!(left <= Duration::from_millis(50), "{left:?}");
        while Instant::now() < soon {
            std::hint::spin_loop();
        }
        assert!(now_ns() >= before + 50_000_000);
        assert!(moment(0).unwrap() <= Instant::now());
    }
}

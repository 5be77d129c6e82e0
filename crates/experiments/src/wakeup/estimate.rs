//! How long threads that are woken will take, roughly.

use tare_results::target::{Clock, Kernel};

use tare_lab::estimate::{LOAD_SECONDS, OVERHEAD_SECONDS, limit_seconds, limit_seconds_under_load};

/// How much longer than its own seconds a guest takes that counts instructions: it runs at 500
/// million a second of its clock, an emulator that counts at a tenth of that and less while it is
/// busy. The seven phases of landolfi-2018 of half a second each took 67 s of a CPU.
const COUNTED_FACTOR: f64 = 15.0;

/// Returns the estimated duration in seconds, and the limit after which a cell counts as hung, for
/// threads that are woken for `seconds` of their own clock while `loads` loads run one after the
/// other.
///
/// The loads start and end within their phases, but for the last one, and ending the 2,400
/// processes of hackbench takes an emulated CPU a minute.
#[must_use]
pub fn of(seconds: f64, loads: usize, (kernel, clock): (Kernel, Clock)) -> (f64, f64) {
    let is_guest = kernel == Kernel::Guest;
    let factor = match is_guest && clock == Clock::Instructions {
        true => COUNTED_FACTOR,
        false => 1.0,
    };
    let around = if loads == 0 { 0.0 } else { LOAD_SECONDS };
    let seconds = OVERHEAD_SECONDS + factor * seconds + around;
    let limit = match (loads, is_guest) {
        (0, _) => limit_seconds(OVERHEAD_SECONDS) + 3.0 * seconds,
        (_, false) => limit_seconds_under_load(OVERHEAD_SECONDS) + 3.0 * seconds,
        (_, true) => limit_seconds_under_load(OVERHEAD_SECONDS) + 10.0 * seconds,
    };
    (seconds, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_take_longer_and_limits_leave_room() {
        let all = [
            (Kernel::Host, Clock::Host),
            (Kernel::Guest, Clock::Host),
            (Kernel::Guest, Clock::Instructions),
        ];
        assert!(all.is_sorted_by(|a, b| of(10.0, 1, *a).1 < of(10.0, 1, *b).1));
        for place in all {
            for loads in [0, 1, 7] {
                let (seconds, limit) = of(10.0, loads, place);
                assert!(seconds > 10.0 && limit > 3.0 * seconds);
            }
        }
    }
}

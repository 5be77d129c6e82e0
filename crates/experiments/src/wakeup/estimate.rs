//! How long threads that are woken will take, roughly.

use tare_lab::estimate::{LOAD_SECONDS, OVERHEAD_SECONDS, limit_seconds, limit_seconds_under_load};

/// How much longer than its own seconds a guest takes that counts instructions: it runs at 500 million a
/// second of its clock, an emulator that counts at a tenth of that and less while it is busy. The seven phases of
/// landolfi-2018 of half a second each took 67 s of a CPU.
const COUNTED_FACTOR: f64 = 15.0;

/// Says where threads are woken, as far as it has a bearing on how long a cell takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Under a kernel that runs already.
    Here,
    /// In a guest, which may be emulated.
    Guest,
    /// In a guest whose clock counts instructions: its seconds are as long as the emulator takes for them.
    CountedGuest,
}

/// Says how long a cell is expected to take, and after what time it counts as hung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Estimated duration in seconds.
    pub seconds: f64,
    /// Limit in seconds.
    pub limit_seconds: f64,
}

/// Returns the estimate for threads that are woken for `seconds` of their own clock while `loads` loads
/// run one after the other.
///
/// The loads start and end within their phases, but for the last one, and ending the 2,400 processes of hackbench
/// takes an emulated CPU a minute.
#[must_use]
pub fn of(seconds: f64, loads: usize, place: Where) -> Estimate {
    let factor = match place {
        Where::Here | Where::Guest => 1.0,
        Where::CountedGuest => COUNTED_FACTOR,
    };
    let around = if loads == 0 { 0.0 } else { LOAD_SECONDS };
    let seconds = OVERHEAD_SECONDS + factor * seconds + around;
    let limit_seconds = match (loads, place) {
        (0, _) => limit_seconds(OVERHEAD_SECONDS) + 3.0 * seconds,
        (_, Where::Here) => limit_seconds_under_load(OVERHEAD_SECONDS) + 3.0 * seconds,
        (_, Where::Guest | Where::CountedGuest) => {
            limit_seconds_under_load(OVERHEAD_SECONDS) + 10.0 * seconds
        }
    };
    Estimate {
        seconds,
        limit_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_take_longer_and_limits_leave_room() {
        let of = |loads, place| super::of(10.0, loads, place);
        let all = [Where::Here, Where::Guest, Where::CountedGuest];
        assert!(all.is_sorted_by(|a, b| of(1, *a).limit_seconds < of(1, *b).limit_seconds));
        for place in all {
            for loads in [0, 1, 7] {
                let Estimate {
                    seconds,
                    limit_seconds,
                } = of(loads, place);
                assert!(seconds > 10.0 && limit_seconds > 3.0 * seconds);
            }
        }
    }
}

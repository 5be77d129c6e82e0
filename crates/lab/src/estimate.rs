//! How long a cell will take, roughly.
//!
//! The model is coarse on purpose: it must be right within a factor of about three on any x86-64
//! machine of the last ten years, to tell whether a study takes a minute or a night. During a run
//! the time left is told from what the cells really took.

use tare_services::noise::{Plan, Workload};

/// Is the time to start an agent, take memory, calibrate, and write the results.
const OVERHEAD_SECONDS: f64 = 0.3;
/// Is the time of one 32-bit division with the loop around it.
const DIVISION_NS: f64 = 3.0;
/// Is the time to copy and increment one element.
const ELEMENT_NS: f64 = 0.5;
/// Is the time of the two stamps around a repetition and its store.
const STAMPS_NS: f64 = 45.0;
/// Is the time of one bare timer read.
const READ_NS: f64 = 9.0;
/// Is the time to fold one sample.
const FOLD_NS: f64 = 10.0;

/// Is the time to start a load and to end it.
const LOAD_SECONDS: f64 = 2.0;
/// Is the time that a guest takes to boot, between that of KVM and that of an emulator.
const BOOT_SECONDS: f64 = 4.0;
/// Is how much longer than its own seconds a guest takes that counts instructions: it runs at 500 million a
/// second of its clock, an emulator that counts at a tenth of that and less while it is busy. The seven phases of
/// landolfi-2018 of half a second each took 67 s of a CPU.
const COUNTED_FACTOR: f64 = 15.0;
/// Is how much longer a workload takes that shares its CPU with a load.
const LOAD_FACTOR: f64 = 4.0;

/// Returns the estimated duration of a cell in seconds.
#[must_use]
pub fn seconds(plan: &Plan) -> f64 {
    let repetition_ns = match plan.workload {
        Workload::Prime { limit } => divisions(limit) * DIVISION_NS + STAMPS_NS,
        Workload::Copy { size } => size as f64 * ELEMENT_NS + STAMPS_NS,
        Workload::Gap => READ_NS,
    };
    let fold_ns = match plan.workload {
        Workload::Gap => 0.0,
        Workload::Prime { .. } | Workload::Copy { .. } => plan.repetitions as f64 * FOLD_NS,
    };
    let all = plan.repetitions as f64 + plan.warmup as f64;
    OVERHEAD_SECONDS + (all * repetition_ns + fold_ns) / 1e9
}

/// Returns the estimated duration of a cell under a load, from that of the same cell without: the load has to be started
/// and ended, and takes a share of the CPU that can't be known before.
#[must_use]
pub fn under_load(estimate_seconds: f64) -> f64 {
    LOAD_SECONDS + LOAD_FACTOR * estimate_seconds
}

/// Says where threads are woken, as far as it has a bearing on how long a cell takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Under a kernel that runs already.
    Here,
    /// In a guest, which boots first and may be emulated.
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
pub fn of_wakeups(seconds: f64, loads: usize, place: Where) -> Estimate {
    let (boot, factor) = match place {
        Where::Here => (OVERHEAD_SECONDS, 1.0),
        Where::Guest => (OVERHEAD_SECONDS + BOOT_SECONDS, 1.0),
        Where::CountedGuest => (OVERHEAD_SECONDS + BOOT_SECONDS, COUNTED_FACTOR),
    };
    let around = if loads == 0 { 0.0 } else { LOAD_SECONDS };
    let seconds = boot + factor * seconds + around;
    let limit_seconds = match (loads, place) {
        (0, _) => limit_seconds(boot) + 3.0 * seconds,
        (_, Where::Here) => limit_seconds_under_load(boot) + 3.0 * seconds,
        (_, Where::Guest | Where::CountedGuest) => limit_seconds_under_load(boot) + 10.0 * seconds,
    };
    Estimate {
        seconds,
        limit_seconds,
    }
}

/// Returns the time in seconds after which a cell counts as hung: ten times what it should take,
/// and half a minute for a machine that is busy with something else.
#[must_use]
pub fn limit_seconds(estimate_seconds: f64) -> f64 {
    30.0 + 10.0 * estimate_seconds
}

/// Returns the same for a cell under a load: among the 2,400 processes of hackbench an ordinary task gets a hundredth of its
/// CPU for some time.
#[must_use]
pub fn limit_seconds_under_load(estimate_seconds: f64) -> f64 {
    300.0 + 50.0 * estimate_seconds
}

/// Approximates the number of divisions for `limit` by the prime number theorem: primes dominate,
/// each p costs p − 1 divisions, and the primes below x sum to about x² / (2 ln x).
fn divisions(limit: u32) -> f64 {
    let x = f64::from(limit).max(3.0);
    x * x / (2.0 * x.ln()) + x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_approximation_of_divisions_is_within_a_fifth_of_the_count() {
        // Counted by the workload itself, which this crate can't call: limit 22 takes 84 (the
        // figure of kot-2019), limit 46 takes 310, limit 1000 takes 78 189.
        for (limit, count) in [(22, 84.0), (46, 310.0), (1_000, 78_189.0)] {
            let ratio = divisions(limit) / count;
            assert!((0.8..1.25).contains(&ratio), "limit {limit}: {ratio}");
        }
    }

    #[test]
    fn guests_take_longer_and_limits_leave_room() {
        let of = |loads, place| of_wakeups(10.0, loads, place);
        let all = [Where::Here, Where::Guest, Where::CountedGuest];
        assert!(all.is_sorted_by(|a, b| of(1, *a).seconds < of(1, *b).seconds));
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

    #[test]
    fn a_longer_plan_takes_longer() {
        let plan = |repetitions| Plan::new(Workload::Prime { limit: 22 }, repetitions);
        assert!(seconds(&plan(1_000_000)) < seconds(&plan(2_000_000)));
        assert!(seconds(&plan(1)) >= OVERHEAD_SECONDS);
    }
}

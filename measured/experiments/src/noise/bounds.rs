//! What a plan of one batch may ask for.

use tare_wire::bounds::{MAX_BINS, Refusal, within};

use super::plan::{Plan, Threshold, Workload};

/// The smallest limit of `prime`: below it nothing is divided.
pub const MIN_LIMIT: u32 = 3;

/// The largest limit of `prime`: one repetition then takes about a second.
pub const MAX_LIMIT: u32 = 65_536;

/// The largest number of elements of `copy`: two arrays of 128 MiB.
pub const MAX_ELEMENTS: u64 = 1 << 24;

/// The largest threshold of `gap`, in TSC ticks. The sum of squares below it then fits into 64
/// bits for spins of up to 2^44 ticks, which is more than an hour at 4 GHz.
pub const MAX_GAP_THRESHOLD: u64 = 1 << 20;

/// The greatest number of repetitions of a workload whose every sample is kept: 4 GiB of
/// stamps.
pub const MAX_STAMPED_REPETITIONS: u64 = 1 << 28;

/// The greatest number of timer reads of `gap`: about forty minutes. The sum of squares then
/// stays within 64 bits.
pub const MAX_GAP_READS: u64 = 100_000_000_000;

/// The greatest number of delays that can be listed.
pub const MAX_CAPACITY: u64 = 1 << 26;

/// The greatest number of raw samples in the window.
pub const MAX_WINDOW: u32 = 1_000_000;

/// Checks that every value of a plan is within its bounds.
///
/// # Errors
///
/// Returns the first value that is not.
pub fn check(plan: &Plan) -> Result<(), Refusal> {
    let most = match plan.workload {
        Workload::Prime { limit } => {
            let (least, most) = (MIN_LIMIT.into(), MAX_LIMIT.into());
            within("limit", limit.into(), least, most)?;
            MAX_STAMPED_REPETITIONS
        }
        Workload::Copy { size } => {
            within("size", size, 1, MAX_ELEMENTS)?;
            MAX_STAMPED_REPETITIONS
        }
        Workload::Gap => MAX_GAP_READS,
    };
    within("repetitions", plan.repetitions, 1, most)?;
    within("warmup", plan.warmup, 0, MAX_GAP_READS)?;
    within("capacity", plan.capacity, 1, MAX_CAPACITY)?;
    within("bins", plan.bins.into(), 1, MAX_BINS.into())?;
    within("window", plan.window.into(), 0, MAX_WINDOW.into())?;
    if let (Workload::Gap, Threshold::Cycles(cycles)) = (plan.workload, plan.threshold) {
        within("threshold", cycles, 1, MAX_GAP_THRESHOLD)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(workload: Workload, repetitions: u64) -> Option<&'static str> {
        check(&Plan::new(workload, repetitions))
            .err()
            .map(|refusal| refusal.what)
    }

    #[test]
    fn sizes_out_of_bounds_are_refused_by_name() {
        let prime = |limit| Workload::Prime { limit };
        assert_eq!(refused(prime(0), 1), Some("limit"));
        assert_eq!(refused(prime(MAX_LIMIT + 1), 1), Some("limit"));
        assert_eq!(refused(prime(22), 0), Some("repetitions"));
        assert_eq!(
            refused(prime(22), MAX_STAMPED_REPETITIONS + 1),
            Some("repetitions")
        );
        assert_eq!(refused(prime(22), 10_000_000), None);
        assert_eq!(refused(Workload::Copy { size: 0 }, 1), Some("size"));
        assert_eq!(refused(Workload::Gap, 1_000_000_000), None);
    }
}

//! The bounds of a plan.

use tare_wire::bounds::{MAX_BINS, Refusal, within};

use super::plan::{Plan, Threshold};

/// The largest threshold of gaps, in TSC ticks. Sums of squares below it fit into 64 bits for spins
/// of up to 2^44 ticks, more than an hour at 4 GHz.
pub const MAX_GAP_THRESHOLD: u64 = 1 << 20;

/// The greatest number of repetitions of a workload that stores every sample: 4 GiB of stamps.
pub const MAX_STAMPED_REPETITIONS: u64 = 1 << 28;

/// The greatest number of timer reads: about forty minutes. Sums of squares then fit into 64 bits.
pub const MAX_READS: u64 = 100_000_000_000;

/// The most timer reads in a piece of a spin of a given time: about 10 ms.
pub const MAX_PIECE: u64 = 1 << 20;

/// The longest spin of a given time, in ns. Sums of squares then fit into 64 bits.
pub const MAX_SPIN_NS: u64 = 3_600_000_000_000;

/// The greatest number of delays that can be listed.
pub const MAX_CAPACITY: u64 = 1 << 26;

/// The greatest number of raw samples in the window.
pub const MAX_WINDOW: u32 = 1_000_000;

/// The greatest number of CPUs that are measured at once.
pub const MAX_CPUS: u32 = 1_024;

/// Checks that every value of a plan is within its bounds.
///
/// # Errors
///
/// Returns the first value that is not.
pub fn check(plan: &Plan) -> Result<(), Refusal> {
    if let Some(size) = plan.workload.size {
        within(size.key, plan.size, size.least, size.most)?;
    }
    let is_spin = plan.workload.only_reads_clock();
    if let Some(duration) = plan.duration_ns {
        within("duration in ns", duration, 1, MAX_SPIN_NS)?;
    }
    let most = match is_spin {
        true if plan.duration_ns.is_some() => MAX_PIECE,
        true => MAX_READS,
        false => MAX_STAMPED_REPETITIONS,
    };
    let most_cpus = match is_spin && plan.duration_ns.is_none() {
        true => MAX_CPUS,
        false => 1,
    };
    within("CPUs", plan.threads().into(), 1, most_cpus.into())?;
    within("repetitions", plan.repetitions, 1, most)?;
    within("warmup", plan.warmup, 0, MAX_READS)?;
    within("capacity", plan.capacity, 1, MAX_CAPACITY)?;
    within("bins", plan.bins.into(), 1, MAX_BINS.into())?;
    within("window", plan.window.into(), 0, MAX_WINDOW.into())?;
    if let (true, Threshold::Cycles(cycles)) = (is_spin, plan.threshold) {
        within("threshold", cycles, 1, MAX_GAP_THRESHOLD)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tare_workloads::noise::codes;

    use super::*;

    #[test]
    fn sizes_out_of_bounds_are_refused_by_name() {
        let refused = |code, size, repetitions| {
            let checked = check(&Plan::new(code, size, repetitions));
            checked.err().map(|refusal| refusal.what)
        };
        for code in codes() {
            let (key, least, most) = match code.size {
                Some(size) => (Some(size.key), size.least, size.most),
                None => (None, 0, 0),
            };
            assert_eq!(refused(code, least.wrapping_sub(1), 1), key);
            assert_eq!(refused(code, most + 1, 1), key);
            assert_eq!(refused(code, most, 0), Some("repetitions"));
            assert_eq!(refused(code, most, 10_000_000), None);
            let is_refused = refused(code, most, MAX_STAMPED_REPETITIONS + 1).is_some();
            assert_eq!(is_refused, !code.only_reads_clock());
        }
    }
}

//! The threshold of a plan in ticks of this machine's TSC.

use tare_wire::bounds::within;

use super::bounds::MAX_GAP_THRESHOLD;
use super::plan::{Plan, Threshold};
use crate::session::Stop;

/// The delay above the mean from which repetitions are listed by default: the lower of the two
/// bounds T that kot-2019 uses.
const DEFAULT_DELAY_CYCLES: u64 = 400;

/// The default length from which gaps are listed, unless the timer is too coarse.
const DEFAULT_GAP_NS: u64 = 500;

/// The minimum length of the default gap in steps of the timer, so that its length is known to 5 %.
const DEFAULT_GAP_STEPS: u64 = 20;

/// Converts the plan's threshold to ticks: the shortest gap, or the least delay above the mean.
///
/// # Errors
///
/// Returns [`Stop`] if it is out of bounds, or in ns where the TSC's frequency is unknown.
pub(super) fn threshold_cycles(
    plan: &Plan,
    hz: Option<f64>,
    step_cycles: u64,
) -> Result<u64, Stop> {
    let cycles_of = |ns| match hz {
        Some(hz) => Ok((ns as f64 * hz / 1e9 + 0.5) as u64),
        None => Err(Stop::Place(
            "the TSC's frequency is unknown here: give the threshold in cycles",
        )),
    };
    let is_gap = plan.workload.only_reads_clock();
    let cycles = match plan.threshold {
        Threshold::Cycles(cycles) => cycles,
        Threshold::Ns(ns) => cycles_of(ns)?,
        Threshold::Auto if is_gap => {
            cycles_of(DEFAULT_GAP_NS)?.max(step_cycles * DEFAULT_GAP_STEPS)
        }
        Threshold::Auto => DEFAULT_DELAY_CYCLES,
    };
    if is_gap {
        within("threshold in cycles", cycles, 1, MAX_GAP_THRESHOLD)?;
    }
    Ok(cycles)
}

#[cfg(test)]
mod tests {
    use tare_workloads::noise::codes;

    use super::*;

    fn threshold(
        only_reads_clock: bool,
        threshold: Threshold,
        hz: Option<f64>,
        step_cycles: u64,
    ) -> Option<u64> {
        let code = codes().find(|code| code.only_reads_clock() == only_reads_clock);
        let plan = Plan {
            threshold,
            ..Plan::new(code.unwrap(), 0, 1)
        };
        threshold_cycles(&plan, hz, step_cycles).ok()
    }

    #[test]
    fn thresholds_follow_the_frequency_and_gaps_have_bounds() {
        use Threshold::{Auto, Cycles, Ns};
        let hz = Some(2.6e9);
        for (only_reads_clock, given, hz, step, cycles) in [
            (true, Auto, hz, 1, Some(1_300)),
            (true, Auto, hz, 260, Some(5_200)),
            (true, Ns(2_000), hz, 1, Some(5_200)),
            (true, Ns(10_000_000_000), hz, 1, None),
            (false, Auto, hz, 26, Some(400)),
            (false, Ns(1_000), hz, 26, Some(2_600)),
            // Without a frequency, thresholds must be in cycles.
            (true, Auto, None, 1, None),
            (true, Cycles(1_000), None, 1, Some(1_000)),
        ] {
            assert_eq!(threshold(only_reads_clock, given, hz, step), cycles);
        }
    }
}

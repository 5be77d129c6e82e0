//! Real-time throttling: who stops a SCHED_FIFO task that never sleeps?

use super::{Examination, Finding};
use crate::machine::RtGroup;

/// Linux 6.12 replaced throttling by a server that runs ordinary tasks when they starve.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// Check whether the kernel takes time from real-time tasks.
pub(super) fn throttling(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "rt-throttling",
        "Real-time throttling",
        "By default real-time tasks may use 95 % of each second. A SCHED_FIFO task that never \
         sleeps is then stopped for 50 ms per second, and a measurement that spins under \
         SCHED_FIFO measures this instead of noise.",
    );
    let sysctls = &e.machine.sysctls;
    let (runtime, period) = match (
        sysctls.sched_rt_runtime_us.known(),
        sysctls.sched_rt_period_us.known(),
    ) {
        (Some(&runtime), Some(&period)) => (runtime, period),
        _ => {
            let because = sysctls
                .sched_rt_runtime_us
                .because()
                .or(sysctls.sched_rt_period_us.because());
            return finding.unknown(because.unwrap_or_default());
        }
    };
    if runtime < 0 || runtime >= period {
        return finding.good("off");
    }
    let state = format!("real-time tasks may run {runtime} of every {period} µs");
    let remedy = e.on_kernel(
        "for a SCHED_FIFO task that spins: `echo -1 | sudo tee \
         /proc/sys/kernel/sched_rt_runtime_us`; such a task can then starve everything else on \
         its CPU, so write the old value back afterwards",
    );
    if !may_use_realtime(e) {
        return finding
            .note(format!(
                "{state}; this process may not use real-time policies anyway"
            ))
            .remedy(remedy);
    }
    // A kernel with RT_GROUP_SCHED still throttles.
    let grouped = matches!(
        e.machine.process.rt_group.known(),
        Some(RtGroup::Budget { .. } | RtGroup::NoBudgetPossible)
    );
    let fair_server = e
        .machine
        .kernel
        .release_numbers()
        .is_some_and(|release| release >= FAIR_SERVER_SINCE);
    if fair_server && !grouped {
        return finding
            .note(format!(
                "{state}; from Linux 6.12 on only when ordinary tasks wait for the same CPU, \
                 which then get their share from the fair server"
            ))
            .remedy(e.on_kernel(format!(
                "keep ordinary tasks off the CPU (isolcpus=), or `echo 0 | sudo tee \
                 /sys/kernel/debug/sched/fair_server/cpu{}/runtime`",
                e.cpu_word()
            )));
    }
    finding.warning(state).remedy(remedy)
}

/// Tell whether this process may use SCHED_FIFO as far as privileges go.
pub(super) fn may_use_realtime(e: &Examination<'_>) -> bool {
    let process = &e.machine.process;
    process.may_use_realtime.known() == Some(&true)
        || process
            .realtime_priority_limit
            .known()
            .is_some_and(|limit| *limit != Some(0))
}

//! Real-time throttling: who stops a SCHED_FIFO task that never sleeps?

use super::{Examination, Judgement, Severity::*, advise, good};
use crate::realtime::RtGroup;

/// Linux 6.12 replaced throttling by a server that runs ordinary tasks when they starve.
const FAIR_SERVER_SINCE: (u32, u32) = (6, 12);

/// Returns the command that keeps the fair server off the measured CPU; `None` where there is none, or
/// it is off already.
pub(super) fn without_fair_server(e: &Examination<'_>) -> Option<String> {
    let word = e.cpu_word();
    let file = format!("/sys/kernel/debug/sched/fair_server/cpu{word}/runtime");
    let is_off = e.source.line(&file).is(&"0".to_owned());
    (has_fair_server(e) && !is_off).then(|| format!("`echo 0 | sudo tee {file}`"))
}

fn has_fair_server(e: &Examination<'_>) -> bool {
    let release = e.machine.kernel.release_numbers();
    release.is_some_and(|release| release >= FAIR_SERVER_SINCE)
}

/// Checks whether the kernel takes time from real-time tasks.
pub(super) fn throttling(e: &Examination<'_>) -> Judgement {
    let sysctls = &e.machine.sysctls;
    let runtime = *sysctls.sched_rt_runtime_us.get()?;
    let period = *sysctls.sched_rt_period_us.get()?;
    if runtime < 0 || runtime >= period {
        return good("off");
    }
    let state = format!("real-time tasks may run {runtime} of every {period} µs");
    let remedy = e.on_kernel(
        "for a SCHED_FIFO task that spins: `echo -1 | sudo tee \
         /proc/sys/kernel/sched_rt_runtime_us`; such a task can then starve everything else on \
         its CPU, so write the old value back afterwards",
    );
    if !may_use_realtime(e) {
        let state = format!("{state}; this process may not use real-time policies anyway");
        return advise(Note, state, remedy);
    }
    // A kernel with RT_GROUP_SCHED still throttles.
    let grouped = matches!(
        e.machine.process.rt_group.known(),
        Some(RtGroup::Budget { .. } | RtGroup::NoBudgetPossible)
    );
    if has_fair_server(e) && !grouped {
        let Some(forbid) = without_fair_server(e) else {
            return good("off: the fair server of this CPU has no time");
        };
        let state = format!(
            "{state}; from Linux 6.12 on only when ordinary tasks wait for the same CPU, which then \
             get their share from the fair server"
        );
        let remedy = format!("keep ordinary tasks off the CPU (isolcpus=), or {forbid}");
        return advise(Note, state, e.on_kernel(remedy));
    }
    advise(Warning, state, remedy)
}

/// Returns whether this process may use SCHED_FIFO as far as privileges go.
pub(super) fn may_use_realtime(e: &Examination<'_>) -> bool {
    let process = &e.machine.process;
    let limit = process.realtime_priority_limit.known();
    process.may_use_realtime.is(&true) || limit.is_some_and(|limit| *limit != Some(0))
}

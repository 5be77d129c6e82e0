//! What this process may do: real-time policies, locked memory, performance counters.

use super::realtime::may_use_realtime;
use super::{Examination, Judgement, Severity::*, advise, good, note, unknown};

/// A limit on locked memory from which on it does not matter, in bytes: ten million samples of
/// 8 bytes, their counts, and the program itself.
const ENOUGH_LOCKED_BYTES: u64 = 256 << 20;

/// Checks whether measured code can be run under SCHED_FIFO.
pub(super) fn realtime(e: &Examination<'_>) -> Judgement {
    let process = &e.machine.process;
    if process.may_use_realtime.is(&true) {
        return good("CAP_SYS_NICE");
    }
    if may_use_realtime(e) {
        return good(match process.realtime_priority_limit.known() {
            Some(Some(limit)) => format!("up to priority {limit} (RLIMIT_RTPRIO)"),
            _ => "at any priority (RLIMIT_RTPRIO)".to_owned(),
        });
    }
    if let (Err(because), None) = (
        process.may_use_realtime.get(),
        process.realtime_priority_limit.known(),
    ) {
        return unknown(because);
    }
    let remedy = match e.in_container() {
        true => "start the container with `--cap-add=SYS_NICE` or `--ulimit rtprio=99`",
        false => {
            "run tare with sudo, or put `@realtime - rtprio 99` into /etc/security/limits.d/, join \
             that group and log in again"
        }
    };
    let state = "no: neither CAP_SYS_NICE nor a real-time priority limit above 0";
    advise(Warning, state, remedy)
}

/// Checks whether the memory of measured code can be kept from being taken away.
pub(super) fn locked_memory(e: &Examination<'_>) -> Judgement {
    let process = &e.machine.process;
    if process.may_lock_memory.is(&true) {
        return good("without limit (CAP_IPC_LOCK)");
    }
    let Some(bytes) = *process.locked_memory_limit_bytes.get()? else {
        return good("without limit (RLIMIT_MEMLOCK)");
    };
    if bytes >= ENOUGH_LOCKED_BYTES {
        return good(format!("up to {} MiB", bytes >> 20));
    }
    let remedy = match e.in_container() {
        true => "start the container with `--ulimit memlock=-1` or `--cap-add=IPC_LOCK`",
        false => {
            "run tare with sudo, or put `@realtime - memlock unlimited` into \
             /etc/security/limits.d/, join that group and log in again"
        }
    };
    let state = format!("at most {} KiB (RLIMIT_MEMLOCK)", bytes >> 10);
    advise(Warning, state, remedy)
}

/// Checks whether the processor's performance counters can be used.
pub(super) fn counters(e: &Examination<'_>) -> Judgement {
    if !*e.machine.processor.performance_counters.get()? {
        if !e.is_guest() {
            return note("none: the kernel has no driver for them");
        }
        let remedy = e.on_hardware("give the guest a virtual PMU (QEMU: `-cpu host,pmu=on`)");
        return advise(Note, "none: the hypervisor does not pass them on", remedy);
    }
    if e.machine.process.may_use_counters.is(&true) {
        return good("usable without restriction");
    }
    let level = *e.machine.sysctls.perf_event_paranoid.get()?;
    if level <= 2 {
        return good(format!(
            "usable for own processes (perf_event_paranoid is {level})"
        ));
    }
    let state = format!("forbidden to this process (perf_event_paranoid is {level})");
    let remedy = e.on_kernel("`sudo sysctl kernel.perf_event_paranoid=2`");
    advise(Note, state, remedy)
}

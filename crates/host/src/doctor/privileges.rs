//! What this process may do: real-time policies, locked memory, performance counters.

use super::realtime::may_use_realtime;
use super::{Examination, Finding};

/// A limit on locked memory from which on it does not matter, in bytes: ten million samples of
/// 8 bytes, their counts, and the program itself.
const ENOUGH_LOCKED_BYTES: u64 = 256 << 20;

/// Check whether measured code can be run under SCHED_FIFO.
pub(super) fn realtime(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "realtime",
        "Right to use SCHED_FIFO",
        "Under an ordinary policy every other task on the CPU gets its share while measured code \
         waits; under SCHED_FIFO only the kernel itself and higher real-time priorities interrupt \
         it. Wake-up latency is usually measured that way.",
    );
    let process = &e.machine.process;
    if process.may_use_realtime.known() == Some(&true) {
        return finding.good("CAP_SYS_NICE");
    }
    if may_use_realtime(e) {
        let limit = match process.realtime_priority_limit.known() {
            Some(Some(limit)) => format!("up to priority {limit}"),
            _ => "at any priority".to_owned(),
        };
        return finding.good(format!("{limit} (RLIMIT_RTPRIO)"));
    }
    if process.may_use_realtime.known().is_none()
        && process.realtime_priority_limit.known().is_none()
    {
        return finding.unknown(process.may_use_realtime.because().unwrap_or_default());
    }
    let remedy = if e.in_container() {
        "start the container with `--cap-add=SYS_NICE` or `--ulimit rtprio=99`"
    } else {
        "run tare with sudo, or put `@realtime - rtprio 99` into /etc/security/limits.d/, join \
         that group and log in again"
    };
    finding
        .warning("no: neither CAP_SYS_NICE nor a real-time priority limit above 0")
        .remedy(remedy)
}

/// Check whether the memory of measured code can be kept from being taken away.
pub(super) fn locked_memory(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "locked-memory",
        "Locked memory",
        "Memory that is not locked can be dropped or swapped out while it is measured, and comes \
         back by a page fault that looks like noise. Samples are kept in locked memory too.",
    );
    let process = &e.machine.process;
    if process.may_lock_memory.known() == Some(&true) {
        return finding.good("without limit (CAP_IPC_LOCK)");
    }
    match process.locked_memory_limit_bytes.known() {
        None => finding.unknown(
            process
                .locked_memory_limit_bytes
                .because()
                .unwrap_or_default(),
        ),
        Some(None) => finding.good("without limit (RLIMIT_MEMLOCK)"),
        Some(Some(bytes)) if *bytes >= ENOUGH_LOCKED_BYTES => {
            finding.good(format!("up to {} MiB", bytes >> 20))
        }
        Some(Some(bytes)) => {
            let remedy = if e.in_container() {
                "start the container with `--ulimit memlock=-1` or `--cap-add=IPC_LOCK`"
            } else {
                "run tare with sudo, or put `@realtime - memlock unlimited` into \
                 /etc/security/limits.d/, join that group and log in again"
            };
            finding
                .warning(format!("at most {} KiB (RLIMIT_MEMLOCK)", bytes >> 10))
                .remedy(remedy)
        }
    }
}

/// Check whether the processor's performance counters can be used.
pub(super) fn counters(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "counters",
        "Performance counters",
        "Instructions, cache and TLB misses tell *why* a sample was slow. Without counters \
         durations are as exact, only their causes are harder to find.",
    );
    match e.machine.processor.performance_counters.known() {
        None => {
            return finding.unknown(
                e.machine
                    .processor
                    .performance_counters
                    .because()
                    .unwrap_or_default(),
            );
        }
        Some(false) if e.is_guest() => {
            return finding
                .note("none: the hypervisor does not pass them on")
                .remedy(e.on_hardware("give the guest a virtual PMU (QEMU: `-cpu host,pmu=on`)"));
        }
        Some(false) => return finding.note("none: the kernel has no driver for them"),
        Some(true) => {}
    }
    if e.machine.process.may_use_counters.known() == Some(&true) {
        return finding.good("usable without restriction");
    }
    match e.machine.sysctls.perf_event_paranoid.known() {
        None => finding.unknown(
            e.machine
                .sysctls
                .perf_event_paranoid
                .because()
                .unwrap_or_default(),
        ),
        Some(level) if *level <= 2 => finding.good(format!(
            "usable for own processes (perf_event_paranoid is {level})"
        )),
        Some(level) => finding
            .note(format!(
                "forbidden to this process (perf_event_paranoid is {level})"
            ))
            .remedy(e.on_kernel("`sudo sysctl kernel.perf_event_paranoid=2`")),
    }
}

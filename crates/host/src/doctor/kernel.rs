//! How the kernel was built and what it does in the background.

use super::{Examination, Judgement, Severity::*, advise, good, note};
use crate::machine::{Kernel, PreemptionModel};

/// vm.stat_interval from which on the folding of counters is rare enough, in seconds.
const RARE_STAT_INTERVAL_S: u64 = 10;

/// Checks whether the kernel was built for debugging.
pub(super) fn debug_options(e: &Examination<'_>) -> Judgement {
    let options = e.machine.kernel.debug_options.get()?;
    if options.is_empty() {
        return good("none that slows it down");
    }
    let is_heavy = options.iter().any(|option| Kernel::is_heavy(option));
    let severity = if is_heavy { Warning } else { Note };
    let remedy = e.on_kernel("boot a kernel that was built without these options");
    advise(severity, options.join(", "), remedy)
}

/// Reports the preemption model.
pub(super) fn preemption(e: &Examination<'_>) -> Judgement {
    let preemption = &e.machine.kernel.preemption;
    let model = preemption.model.get()?;
    let state = format!("{model} (from {})", preemption.evidence);
    let remedy = match (model, preemption.dynamic) {
        (PreemptionModel::Lazy | PreemptionModel::Full | PreemptionModel::Rt, _) => {
            return good(state);
        }
        (_, true) => {
            "for lower wake-up latency boot with `preempt=full`, or `echo full | sudo tee \
             /sys/kernel/debug/sched/preempt`"
        }
        (_, false) => "for lower wake-up latency boot a kernel with PREEMPT or PREEMPT_RT",
    };
    advise(Note, state, e.on_kernel(remedy))
}

/// Checks whether the hard-lockup detector interrupts the measured CPU.
pub(super) fn nmi_watchdog(e: &Examination<'_>) -> Judgement {
    let (sysctls, cpu) = (&e.machine.sysctls, e.cpu_name());
    if !*sysctls.nmi_watchdog.get()? {
        return good("off");
    }
    match sysctls.watchdog_cpus.known() {
        Some(watched) if e.cpu.is_some() && !e.cpu_in(watched) => good(format!(
            "on, but {cpu} is not watched (watchdog_cpumask={watched})"
        )),
        _ => {
            let remedy = e.on_kernel("`sudo sysctl kernel.nmi_watchdog=0`");
            advise(Note, format!("on, watches {cpu}"), remedy)
        }
    }
}

/// Checks whether timers of other CPUs may expire on the measured one.
pub(super) fn timer_migration(e: &Examination<'_>) -> Judgement {
    if !*e.machine.sysctls.timer_migration.get()? {
        return good("off");
    }
    if e.online() == 1 {
        return good("on, but there is only one CPU");
    }
    let nohz_full = e.machine.isolation.nohz_full.known();
    if nohz_full.is_some_and(|list| e.cpu_in(list)) {
        return good(format!("on, but {} is one of nohz_full=", e.cpu_name()));
    }
    advise(
        Note,
        "on",
        e.on_kernel("`sudo sysctl kernel.timer_migration=0`"),
    )
}

/// Checks how often per-CPU memory counters are folded.
pub(super) fn stat_interval(e: &Examination<'_>) -> Judgement {
    let seconds = *e.machine.sysctls.vm_stat_interval_s.get()?;
    let state = format!("every {seconds} s");
    if seconds >= RARE_STAT_INTERVAL_S {
        return good(state);
    }
    let remedy = format!("`sudo sysctl vm.stat_interval={RARE_STAT_INTERVAL_S}`");
    advise(Note, state, e.on_kernel(remedy))
}

/// Reports the mitigations of processor flaws, which are part of the price of a system call.
pub(super) fn mitigations(e: &Examination<'_>) -> Judgement {
    let all = e.machine.kernel.vulnerabilities.get()?;
    let mut parts = Vec::new();
    let mut list = |prefix: &str, label: &str| {
        let is_so = |state: &String| state.starts_with(prefix);
        let flaws = all
            .iter()
            .filter(|flaw| flaw.state.known().is_some_and(is_so));
        let names: Vec<&str> = flaws.map(|flaw| flaw.name.as_str()).collect();
        if !names.is_empty() {
            parts.push(format!("{label} for {}", names.join(", ")));
        }
        !names.is_empty()
    };
    let is_mitigated = list("Mitigation", "in force");
    let is_open = list("Vulnerable", "none");
    match (is_mitigated, is_open) {
        (true, _) => note(parts.join("; ")),
        (false, true) => good(parts.join("; ")),
        (false, false) => good("none needed"),
    }
}

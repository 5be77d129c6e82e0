//! How the kernel was built and what it does in the background.

use super::{Examination, Finding, Severity};
use crate::machine::PreemptionModel;

/// Debugging options that slow a kernel by a factor rather than by percents.
const HEAVY: [&str; 11] = [
    "KASAN",
    "KCSAN",
    "KMSAN",
    "LOCKDEP",
    "PROVE_LOCKING",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "SLUB_DEBUG_ON",
];

/// vm.stat_interval from which on the folding of counters is rare enough, in seconds.
const RARE_STAT_INTERVAL_S: u64 = 10;

/// Check whether the kernel was built for debugging.
pub(super) fn debug_options(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "debug-kernel",
        "Debugging options of the kernel",
        "Checkers such as lockdep and KASAN make every system call, fault and interrupt several \
         times slower: results of such a kernel describe the checkers.",
    );
    let Some(options) = e.machine.kernel.debug_options.known() else {
        return finding.unknown(e.machine.kernel.debug_options.because().unwrap_or_default());
    };
    if options.is_empty() {
        return finding.good("none that slows it down");
    }
    let heavy = options
        .iter()
        .any(|option| HEAVY.contains(&option.as_str()));
    let severity = if heavy {
        Severity::Warning
    } else {
        Severity::Note
    };
    finding
        .with(severity, options.join(", "))
        .remedy(e.on_kernel("boot a kernel that was built without these options"))
}

/// Report the preemption model.
pub(super) fn preemption(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "preemption",
        "Preemption model",
        "It decides how long a task that has become ready waits for kernel code on its CPU: until \
         the next return to user space (none), a point on the way (voluntary), or hardly at all \
         (full, PREEMPT_RT).",
    );
    let preemption = &e.machine.kernel.preemption;
    let Some(model) = preemption.model.known() else {
        return finding.unknown(preemption.model.because().unwrap_or_default());
    };
    let state = format!("{model} (from {})", preemption.evidence);
    match model {
        PreemptionModel::None | PreemptionModel::Voluntary if preemption.dynamic => {
            finding.note(state).remedy(e.on_kernel(
                "for lower wake-up latency boot with `preempt=full`, or `echo full | sudo tee \
                 /sys/kernel/debug/sched/preempt`",
            ))
        }
        PreemptionModel::None | PreemptionModel::Voluntary => {
            finding.note(state).remedy(e.on_kernel(
                "for lower wake-up latency boot a kernel with PREEMPT or \
                PREEMPT_RT",
            ))
        }
        PreemptionModel::Lazy | PreemptionModel::Full | PreemptionModel::Rt => finding.good(state),
    }
}

/// Check whether the hard-lockup detector interrupts the measured CPU.
pub(super) fn nmi_watchdog(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "nmi-watchdog",
        "NMI watchdog",
        "The hard-lockup detector occupies one performance counter and interrupts each watched \
         CPU after every watchdog_thresh seconds (10 by default) of running, with an interrupt \
         that nothing can mask.",
    );
    let sysctls = &e.machine.sysctls;
    match sysctls.nmi_watchdog.known() {
        None => finding.unknown(sysctls.nmi_watchdog.because().unwrap_or_default()),
        Some(false) => finding.good("off"),
        Some(true) => match sysctls.watchdog_cpus.known() {
            Some(watched) if e.cpu.is_some() && !e.cpu_in(watched) => finding.good(format!(
                "on, but {} is not watched (watchdog_cpumask={watched})",
                e.cpu_name()
            )),
            _ => finding
                .note(format!("on, watches {}", e.cpu_name()))
                .remedy(e.on_kernel("`sudo sysctl kernel.nmi_watchdog=0`")),
        },
    }
}

/// Check whether timers of other CPUs may expire on the measured one.
pub(super) fn timer_migration(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "timer-migration",
        "Timer migration",
        "To let idle CPUs sleep, the kernel hands their timers to a busy CPU; the one that is \
         being measured is the busy one, so it may serve timers of others. CPUs of nohz_full= are \
         spared.",
    );
    let Some(&on) = e.machine.sysctls.timer_migration.known() else {
        return finding.unknown(
            e.machine
                .sysctls
                .timer_migration
                .because()
                .unwrap_or_default(),
        );
    };
    if !on {
        return finding.good("off");
    }
    if e.machine
        .topology
        .online
        .known()
        .is_some_and(|online| online.len() == 1)
    {
        return finding.good("on, but there is only one CPU");
    }
    if e.machine
        .isolation
        .nohz_full
        .known()
        .is_some_and(|list| e.cpu_in(list))
    {
        return finding.good(format!("on, but {} is one of nohz_full=", e.cpu_name()));
    }
    finding
        .note("on")
        .remedy(e.on_kernel("`sudo sysctl kernel.timer_migration=0`"))
}

/// Check how often per-CPU memory counters are folded.
pub(super) fn stat_interval(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "stat-interval",
        "Folding of memory counters",
        "Every vm.stat_interval seconds a kernel worker runs for some microseconds on each CPU \
         that changed its memory counters.",
    );
    match e.machine.sysctls.vm_stat_interval_s.known() {
        None => finding.unknown(
            e.machine
                .sysctls
                .vm_stat_interval_s
                .because()
                .unwrap_or_default(),
        ),
        Some(&seconds) if seconds >= RARE_STAT_INTERVAL_S => {
            finding.good(format!("every {seconds} s"))
        }
        Some(&seconds) => finding
            .note(format!("every {seconds} s"))
            .remedy(e.on_kernel(format!(
                "`sudo sysctl vm.stat_interval={RARE_STAT_INTERVAL_S}`"
            ))),
    }
}

/// Report the mitigations of processor flaws, which are part of the price of a system call.
pub(super) fn mitigations(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "mitigations",
        "Mitigations of processor flaws",
        "Mitigations make entering the kernel, switching tasks and indirect calls slower, on some \
         processors by a factor; results from machines with different mitigations cannot be \
         compared.",
    );
    let Some(all) = e.machine.kernel.vulnerabilities.known() else {
        return finding.unknown(
            e.machine
                .kernel
                .vulnerabilities
                .because()
                .unwrap_or_default(),
        );
    };
    let starting = |prefix: &str| -> Vec<&str> {
        all.iter()
            .filter(|one| {
                one.state
                    .known()
                    .is_some_and(|state| state.starts_with(prefix))
            })
            .map(|one| one.name.as_str())
            .collect()
    };
    let (mitigated, open) = (starting("Mitigation"), starting("Vulnerable"));
    let mut parts = Vec::new();
    if !mitigated.is_empty() {
        parts.push(format!("in force for {}", mitigated.join(", ")));
    }
    if !open.is_empty() {
        parts.push(format!("none for {}", open.join(", ")));
    }
    if mitigated.is_empty() {
        let state = if open.is_empty() {
            "none needed".to_owned()
        } else {
            parts.join("; ")
        };
        return finding.good(state);
    }
    finding.note(parts.join("; "))
}

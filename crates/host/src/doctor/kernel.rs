//! How the kernel was built and what it does in the background.

use super::{Examination, Judgement, Severity::*, advise, good, note, unknown};
use crate::fact::Fact;
use crate::machine::{Kernel, PreemptionModel};
use crate::switches::settings;

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
    let remedy = e.on_kernel(
        "boot a kernel that was built without these options (`ls /boot/vmlinuz-*` lists those that \
         are installed)",
    );
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
        (_, false) => {
            "for lower wake-up latency boot a kernel with PREEMPT or PREEMPT_RT (Debian: `sudo apt \
             install linux-image-rt-amd64`)"
        }
    };
    advise(Note, state, e.on_kernel(remedy))
}

/// Checks whether the lockup detectors interrupt the measured CPU.
pub(super) fn watchdog(e: &Examination<'_>) -> Judgement {
    let is_off = |name| {
        let path = format!("/proc/sys/kernel/{name}");
        e.source.line(&path).is(&"0".to_owned())
    };
    match is_off("nmi_watchdog") && is_off("soft_watchdog") {
        true => good("off"),
        false => switched(e, "watchdog"),
    }
}

/// Checks the settings of a switch of `--isolate`.
pub(super) fn switched(e: &Examination<'_>, id: &str) -> Judgement {
    let cpu = e.cpu.ok_or("no CPU to measure on")?;
    let (mut states, mut commands) = (Vec::new(), Vec::new());
    for (path, found, wanted) in settings(e.source, cpu, id) {
        match found {
            Fact::Known(value) => states.push(format!("{path} is {value}")),
            Fact::Unknown { .. } if e.lacks(&path) => continue,
            Fact::Unknown { unknown } => return Err(unknown),
        }
        commands.extend(wanted.map(|value| format!("echo {value} | sudo tee {path}")));
    }
    match (states.is_empty(), commands.is_empty()) {
        (true, _) => good("this machine has no such setting"),
        (_, true) => good(states.join(", ")),
        _ => {
            let remedy = format!("`{}`", commands.join(" && "));
            advise(Note, states.join(", "), e.on_kernel(remedy))
        }
    }
}

/// Checks whether the ticks of all CPUs come at the same moment.
pub(super) fn skewed_tick(e: &Examination<'_>) -> Judgement {
    let is_asked = e.machine.kernel.parameter("skew_tick") == Some("1");
    let nohz_full = e.machine.isolation.nohz_full.known();
    if is_asked {
        return good("ticks are spread (skew_tick=1)");
    }
    e.machine.kernel.parameters.get()?;
    match e.online() {
        0 => unknown("the number of CPUs is unknown"),
        1 => good("only one CPU"),
        _ if nohz_full.is_some_and(|list| e.cpu_in(list)) => {
            good(format!("{} is one of nohz_full=", e.cpu_name()))
        }
        _ => {
            let remedy = e.on_kernel("boot with the kernel parameter `skew_tick=1`");
            advise(Note, "at the same moment on all CPUs", remedy)
        }
    }
}

/// Checks whether the kernel writes its messages to a slow line.
pub(super) fn console(e: &Examination<'_>) -> Judgement {
    let active = e
        .source
        .line("/sys/class/tty/console/active")
        .get()?
        .clone();
    let printk = e.source.line("/proc/sys/kernel/printk").get()?.clone();
    let level = printk.split_whitespace().next().unwrap_or_default();
    let serial = active.split(' ').find(|name| {
        let prefixes = ["ttyS", "ttyAMA", "ttyUSB"];
        prefixes.iter().any(|prefix| name.starts_with(prefix))
    });
    match (serial, level) {
        (None, _) => good("no serial line"),
        (Some(name), "0" | "1") => good(format!("{name}, for emergencies only")),
        (Some(name), level) => {
            let state = format!("{name} gets messages of levels below {level}");
            advise(Note, state, e.on_kernel("`sudo dmesg -n 1`"))
        }
    }
}

/// Checks whether a program changes settings while something is measured.
pub(super) fn tuners(e: &Examination<'_>) -> Judgement {
    const TUNERS: [&str; 6] = [
        "tuned",
        "power-profiles-",
        "thermald",
        "auto-cpufreq",
        "ksmtuned",
        "numad",
    ];
    let names = e.visible_names()?;
    let running = TUNERS
        .into_iter()
        .filter(|tuner| names.iter().any(|name| name == tuner));
    let running: Vec<&str> = running.collect();
    if running.is_empty() {
        return good("none is running");
    }
    let running = running
        .join(" ")
        .replace("power-profiles-", "power-profiles-daemon");
    let remedy = e.on_kernel(format!("while measuring: `sudo systemctl stop {running}`"));
    advise(Note, format!("running: {running}"), remedy)
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

//! Clock source and time-stamp counter: can ticks be turned into nanoseconds?

use super::{Examination, Finding};

/// Clock sources of guests that are a scaled time-stamp counter and can be read without a system
/// call.
const SCALED_TSC: [&str; 3] = ["kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// Check which clock the kernel trusts.
pub(super) fn clocksource(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "clocksource",
        "Clock source",
        "With the TSC, clock_gettime is answered in user space within tens of nanoseconds. With \
         hpet or acpi_pm each reading is a system call that talks to a slow device and takes a \
         microsecond or more; and where the kernel has given the TSC up as unstable, differences \
         of it cannot be trusted either.",
    );
    let clock = &e.machine.clock;
    let Some(current) = clock.current.known() else {
        return finding.unknown(clock.current.because().unwrap_or_default());
    };
    if current == "tsc" || current == "arch_sys_counter" {
        return finding.good(current.clone());
    }
    if SCALED_TSC.contains(&current.as_str()) {
        return finding.note(format!("{current}, the hypervisor's scaled TSC"));
    }
    let tsc_offered = clock
        .available
        .known()
        .is_some_and(|available| available.iter().any(|name| name == "tsc"));
    if tsc_offered {
        return finding
            .warning(format!("{current}, although tsc is available"))
            .remedy(e.on_kernel(
                "`echo tsc | sudo tee \
             /sys/devices/system/clocksource/clocksource0/current_clocksource`",
            ));
    }
    finding
        .problem(format!(
            "{current}; the kernel does not offer tsc, so it may have found it \
            unstable"
        ))
        .remedy(e.on_kernel(
            "see why with `sudo dmesg | grep -i -e tsc -e clocksource`; if the counter is sound, \
             boot with `tsc=reliable`",
        ))
}

/// Check whether the time-stamp counter keeps one rate and never stops.
pub(super) fn tsc(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "tsc",
        "Time-stamp counter",
        "All durations are differences of the time-stamp counter. Only a counter that keeps one \
         rate in all frequency and idle states can be turned into nanoseconds.",
    );
    let clock = &e.machine.clock;
    let (Some(&constant), Some(&nonstop)) = (clock.constant_tsc.known(), clock.nonstop_tsc.known())
    else {
        return finding.unknown(clock.constant_tsc.because().unwrap_or_default());
    };
    let mut words = Vec::new();
    for (name, value) in [
        ("constant_tsc", &clock.constant_tsc),
        ("nonstop_tsc", &clock.nonstop_tsc),
        ("tsc_known_freq", &clock.tsc_known_freq),
        ("tsc_reliable", &clock.tsc_reliable),
    ] {
        if value.known() == Some(&true) {
            words.push(name);
        }
    }
    if clock.invariant_tsc.known() == Some(&true) {
        words.push("invariant by CPUID");
    }
    let state = words.join(", ");
    if constant && nonstop {
        return finding.good(state);
    }
    let missing = match (constant, nonstop) {
        (false, false) => "constant_tsc and nonstop_tsc are missing",
        (false, true) => "constant_tsc is missing",
        _ => "nonstop_tsc is missing",
    };
    if e.is_guest() {
        return finding
            .warning(format!(
                "{missing}: the hypervisor does not promise a steady counter"
            ))
            .remedy(e.on_hardware(
                "pass the invariant TSC on to the guest (QEMU: `-cpu \
                host,invtsc=on,migratable=off`)",
            ));
    }
    finding
        .problem(format!(
            "{missing}: the counter follows frequency or idle states"
        ))
        .remedy(
            "fix the frequency and forbid idle states (`idle=poll`), or measure on a newer \
            processor",
        )
}

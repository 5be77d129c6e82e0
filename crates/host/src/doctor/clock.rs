//! Clock source and time-stamp counter: can ticks be turned into nanoseconds?

use super::{Examination, Judgement, Severity::*, advise, good, note};

/// Clock sources of guests that are a scaled time-stamp counter and can be read without a system
/// call.
const SCALED_TSC: [&str; 3] = ["kvm-clock", "hyperv_clocksource_tsc_page", "xen"];

/// Checks which clock the kernel trusts.
pub(super) fn clocksource(e: &Examination<'_>) -> Judgement {
    let clock = &e.machine.clock;
    let current = clock.current.get()?;
    if current == "tsc" || current == "arch_sys_counter" {
        return good(current);
    }
    if SCALED_TSC.contains(&current.as_str()) {
        return note(format!("{current}, the hypervisor's scaled TSC"));
    }
    let available = clock.available.known();
    if available.is_some_and(|names| names.iter().any(|name| name == "tsc")) {
        let remedy = "`echo tsc | sudo tee \
                      /sys/devices/system/clocksource/clocksource0/current_clocksource`";
        let state = format!("{current}, although tsc is available");
        return advise(Warning, state, e.on_kernel(remedy));
    }
    let remedy = "see why with `sudo dmesg | grep -i -e tsc -e clocksource`; if the counter is \
                  sound, boot with `tsc=reliable`";
    let state =
        format!("{current}; the kernel does not offer tsc, so it may have found it unstable");
    advise(Problem, state, e.on_kernel(remedy))
}

/// Checks whether the time-stamp counter keeps one rate and never stops.
pub(super) fn tsc(e: &Examination<'_>) -> Judgement {
    let clock = &e.machine.clock;
    let constant = *clock.constant_tsc.get()?;
    let nonstop = *clock.nonstop_tsc.get()?;
    let missing = match (constant, nonstop) {
        (true, true) => {
            let words = [
                ("constant_tsc", &clock.constant_tsc),
                ("nonstop_tsc", &clock.nonstop_tsc),
                ("tsc_known_freq", &clock.tsc_known_freq),
                ("tsc_reliable", &clock.tsc_reliable),
                ("invariant by CPUID", &clock.invariant_tsc),
            ];
            let words = words.iter().filter(|(_, value)| value.is(&true));
            let words: Vec<&str> = words.map(|(word, _)| *word).collect();
            return good(words.join(", "));
        }
        (false, false) => "constant_tsc and nonstop_tsc are missing",
        (false, true) => "constant_tsc is missing",
        (true, false) => "nonstop_tsc is missing",
    };
    if e.is_guest() {
        let state = format!("{missing}: the hypervisor does not promise a steady counter");
        let remedy = "pass the invariant TSC on to the guest (QEMU: `-cpu \
                      host,invtsc=on,migratable=off`)";
        return advise(Warning, state, e.on_hardware(remedy));
    }
    let state = format!("{missing}: the counter follows frequency or idle states");
    let remedy = "fix the frequency and forbid idle states (`idle=poll`), or measure on a newer \
                  processor";
    advise(Problem, state, remedy)
}

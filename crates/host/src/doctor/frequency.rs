//! Governor and turbo: does the core run at one speed?

use super::{Examination, Finding};
use crate::machine::FrequencyGroup;

/// Check that the measured CPU is kept at one frequency.
pub(super) fn governor(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "governor",
        "Frequency governor",
        "A core that changes its frequency takes a different time for the same work, and speeds \
         up only after some milliseconds of load: the first samples, and those after every pause, \
         come out slow.",
    );
    let command =
        "`echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`";
    let power = &e.machine.power;
    let group = match e.cpu {
        Some(cpu) => power.frequency_of(cpu),
        None => power.frequency.known().and_then(|groups| groups.first()),
    };
    let Some(group) = group else {
        return if e.is_guest() {
            finding
                .note("not visible from inside a guest, where the hypervisor's host decides")
                .remedy(e.on_hardware(command))
        } else {
            let because = power
                .frequency
                .because()
                .unwrap_or("the measured CPU has no cpufreq folder");
            finding.unknown(format!("no frequency scaling is shown ({because})"))
        };
    };
    let Some(governor) = group.governor.known() else {
        return finding.unknown(group.governor.because().unwrap_or_default());
    };
    let state = describe(governor, group);
    if governor == "performance" || is_fixed(group) {
        return finding.good(state);
    }
    finding.warning(state).remedy(e.on_hardware(command))
}

/// Check that the core's top speed does not depend on heat and on what its neighbours do.
pub(super) fn turbo(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "turbo",
        "Turbo frequencies",
        "With turbo, the speed of a core depends on temperature and on how many other cores are \
         awake, while the time-stamp counter ticks on at its own rate: the same work takes a \
         different number of ticks from run to run.",
    );
    let power = &e.machine.power;
    match (power.turbo.known(), power.turbo_switch.as_deref()) {
        (Some(false), _) => finding.good("off"),
        (Some(true), Some(switch)) => {
            let off = if switch.ends_with("no_turbo") { 1 } else { 0 };
            finding
                .warning("on")
                .remedy(e.on_hardware(format!("`echo {off} | sudo tee {switch}`")))
        }
        _ if e.is_guest() => finding
            .note("not visible from inside a guest, where the hypervisor's host decides")
            .remedy(e.on_hardware(
                "`echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo` or \
                 `echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`",
            )),
        _ => finding.unknown(power.turbo.because().unwrap_or_default()),
    }
}

fn is_fixed(group: &FrequencyGroup) -> bool {
    group.minimum_khz.known().is_some() && group.minimum_khz == group.maximum_khz
}

fn describe(governor: &str, group: &FrequencyGroup) -> String {
    let mut words = vec![governor.to_owned()];
    if let Some(driver) = group.driver.known() {
        words.push(format!("driver {driver}"));
    }
    match (group.minimum_khz.known(), group.maximum_khz.known()) {
        (Some(low), Some(high)) if low == high => {
            words.push(format!("fixed at {} MHz", low / 1000))
        }
        (Some(low), Some(high)) => words.push(format!("{}–{} MHz", low / 1000, high / 1000)),
        _ => {}
    }
    words.join(", ")
}

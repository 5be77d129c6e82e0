//! Governor and turbo: does the core run at one speed?

use super::{Examination, Judgement, Severity::*, advise, good, unknown};
use crate::machine::FrequencyGroup;

/// The state of what only the hypervisor's host shows.
pub(super) const INVISIBLE: &str =
    "not visible from inside a guest, where the hypervisor's host decides";

/// Checks that the measured CPU is kept at one frequency.
pub(super) fn governor(e: &Examination<'_>) -> Judgement {
    let power = &e.machine.power;
    let remedy = e.on_hardware(
        "`echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`",
    );
    let group = match e.cpu {
        Some(cpu) => power.frequency_of(cpu),
        None => power.frequency.known().and_then(|groups| groups.first()),
    };
    let Some(group) = group else {
        if e.is_guest() {
            return advise(Note, INVISIBLE, remedy);
        }
        let because = power.frequency.because();
        let because = because.unwrap_or("the measured CPU has no cpufreq folder");
        return unknown(format!("no frequency scaling is shown ({because})"));
    };
    let governor = group.governor.get()?;
    let state = describe(governor, group);
    let is_fixed = group.minimum_khz.known().is_some() && group.minimum_khz == group.maximum_khz;
    if governor == "performance" || is_fixed {
        return good(state);
    }
    advise(Warning, state, remedy)
}

/// Checks that the core's top speed does not depend on heat and on what its neighbours do.
pub(super) fn turbo(e: &Examination<'_>) -> Judgement {
    let power = &e.machine.power;
    match (power.turbo.get(), power.turbo_switch.as_deref()) {
        (Ok(false), _) => good("off"),
        (Ok(true), Some(switch)) => {
            let off = if switch.ends_with("no_turbo") { 1 } else { 0 };
            let remedy = format!("`echo {off} | sudo tee {switch}`");
            advise(Warning, "on", e.on_hardware(remedy))
        }
        _ if e.is_guest() => {
            let remedy = "`echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo` or \
                          `echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost`";
            advise(Note, INVISIBLE, e.on_hardware(remedy))
        }
        (turbo, _) => unknown(turbo.err().unwrap_or_default()),
    }
}

fn describe(governor: &str, group: &FrequencyGroup) -> String {
    let mut words = vec![governor.to_owned()];
    if let Some(driver) = group.driver.known() {
        words.push(format!("driver {driver}"));
    }
    if let (Some(low), Some(high)) = (group.minimum_khz.known(), group.maximum_khz.known()) {
        words.push(match low == high {
            true => format!("fixed at {} MHz", low / 1000),
            false => format!("{}–{} MHz", low / 1000, high / 1000),
        });
    }
    words.join(", ")
}

//! The kernel's clock source and the time-stamp counter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::processor;
use crate::fact::Fact;
use crate::source::Source;

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// What time is taken from. The frequency of the counter is measured elsewhere, with every sample
/// set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// The clock source that the kernel uses now.
    pub current: Fact<String>,
    /// The clock sources that it could use; one that was found unstable is gone from the list.
    pub available: Fact<Vec<String>>,
    /// The counter's rate does not follow the core's frequency (cpuinfo flag `constant_tsc`).
    pub constant_tsc: Fact<bool>,
    /// The counter does not stop in deep idle states (cpuinfo flag `nonstop_tsc`).
    pub nonstop_tsc: Fact<bool>,
    /// The kernel got the counter's frequency from the processor and did not measure it (cpuinfo
    /// flag `tsc_known_freq`).
    pub tsc_known_freq: Fact<bool>,
    /// The kernel does not watch the counter against another clock (cpuinfo flag `tsc_reliable`).
    pub tsc_reliable: Fact<bool>,
    /// The processor, or the hypervisor in its name, promises all of this (CPUID 0x8000_0007, EDX
    /// bit 8).
    pub invariant_tsc: Fact<bool>,
}

impl Clock {
    pub(super) fn collect(source: &Source) -> Self {
        let flags = processor::flags(source);
        let flag = |name: &str| {
            flags
                .as_ref()
                .map(|flags| flags.iter().any(|flag| flag == name))
        };
        Self {
            current: source.words(&format!("{CLOCKSOURCE}/current_clocksource")),
            available: source
                .words(&format!("{CLOCKSOURCE}/available_clocksource"))
                .map(|line| line.split_ascii_whitespace().map(str::to_owned).collect()),
            constant_tsc: flag("constant_tsc"),
            nonstop_tsc: flag("nonstop_tsc"),
            tsc_known_freq: flag("tsc_known_freq"),
            tsc_reliable: flag("tsc_reliable"),
            invariant_tsc: source.cpuid().clone().map(|cpuid| cpuid.invariant_tsc),
        }
    }
}

//! Kernel settings that can be changed at run time and that matter to timing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::switch;
use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// Values below `/proc/sys`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sysctls {
    /// kernel.sched_rt_runtime_us: how long real-time tasks may run per period, in microseconds; -1
    /// is without limit.
    pub sched_rt_runtime_us: Fact<i64>,
    /// kernel.sched_rt_period_us: that period in microseconds.
    pub sched_rt_period_us: Fact<i64>,
    /// kernel.sched_autogroup_enabled: each session is scheduled as one group.
    pub sched_autogroup: Fact<bool>,
    /// kernel.timer_migration: timers of idle CPUs may be moved to busy ones.
    pub timer_migration: Fact<bool>,
    /// kernel.nmi_watchdog: the hard-lockup detector runs.
    pub nmi_watchdog: Fact<bool>,
    /// kernel.watchdog_cpumask: the CPUs that the lockup detectors watch.
    pub watchdog_cpus: Fact<Cpus>,
    /// vm.stat_interval: how often per-CPU memory counters are folded, in seconds.
    pub vm_stat_interval_s: Fact<u64>,
    /// kernel.perf_event_paranoid: 2 and less lets a process count its own events; -1 allows all.
    pub perf_event_paranoid: Fact<i64>,
}

impl Sysctls {
    pub(super) fn collect(source: &Source) -> Self {
        let kernel = |name: &str| format!("/proc/sys/kernel/{name}");
        Self {
            sched_rt_runtime_us: source.value(&kernel("sched_rt_runtime_us")),
            sched_rt_period_us: source.value(&kernel("sched_rt_period_us")),
            sched_autogroup: switch(source, &kernel("sched_autogroup_enabled")),
            timer_migration: switch(source, &kernel("timer_migration")),
            nmi_watchdog: switch(source, &kernel("nmi_watchdog")),
            watchdog_cpus: source.value(&kernel("watchdog_cpumask")),
            vm_stat_interval_s: source.value("/proc/sys/vm/stat_interval"),
            perf_event_paranoid: source.value(&kernel("perf_event_paranoid")),
        }
    }
}

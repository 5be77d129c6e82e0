//! Frequency scaling and idle states.
//!
//! Both exist once per CPU and are almost always the same for all, so equal
//! settings are put together: a machine with 256 CPUs has one group, not 256 lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::topology::Topology;
use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

const CPUS: &str = "/sys/devices/system/cpu";

/// How fast the cores run and how deep they sleep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Power {
    /// The frequency settings, one entry per group of CPUs that have the same.
    pub frequency: Fact<Vec<FrequencyGroup>>,
    /// Whether cores may run above their base frequency (turbo, boost).
    pub turbo: Fact<bool>,
    /// The file that switches turbo.
    pub turbo_switch: Option<String>,
    /// The driver of the idle states.
    pub idle_driver: Fact<String>,
    /// The governor that chooses among them.
    pub idle_governor: Fact<String>,
    /// The idle states, lightest first.
    pub idle_states: Fact<Vec<IdleState>>,
}

/// CPUs with the same frequency settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FrequencyGroup {
    /// The CPUs.
    pub cpus: Cpus,
    /// The driver, such as intel_pstate, amd-pstate-epp, acpi-cpufreq.
    pub driver: Fact<String>,
    /// The governor, such as performance, powersave, schedutil.
    pub governor: Fact<String>,
    /// The lowest frequency allowed now, in kHz.
    pub minimum_khz: Fact<u64>,
    /// The highest frequency allowed now, in kHz.
    pub maximum_khz: Fact<u64>,
    /// The lowest frequency that the hardware has, in kHz.
    pub hardware_minimum_khz: Fact<u64>,
    /// The highest frequency that the hardware has, in kHz, turbo included.
    pub hardware_maximum_khz: Fact<u64>,
    /// The hint that the hardware gets when it chooses by itself, such as performance or
    /// balance_power.
    pub energy_preference: Fact<String>,
}

/// One idle state (C-state).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleState {
    /// Its name, such as C6.
    pub name: String,
    /// How long it takes to leave it, in microseconds, as the driver claims.
    pub exit_latency_us: u64,
    /// How long it must last to be worth it, in microseconds, as the driver claims.
    pub target_residency_us: Fact<u64>,
    /// The CPUs that may enter it.
    pub enabled_on: Cpus,
    /// The CPUs on which it is disabled.
    pub disabled_on: Cpus,
}

impl Power {
    pub(super) fn collect(source: &Source, topology: &Topology) -> Self {
        let online = topology.online.as_ref();
        let (turbo, turbo_switch) = turbo(source);
        Self {
            frequency: online.clone().and_then(|online| frequency(source, online)),
            turbo,
            turbo_switch,
            idle_driver: source.words(&format!("{CPUS}/cpuidle/current_driver")),
            idle_governor: source
                .words(&format!("{CPUS}/cpuidle/current_governor_ro"))
                .or_else(|| source.words(&format!("{CPUS}/cpuidle/current_governor"))),
            idle_states: online.and_then(|online| idle_states(source, online)),
        }
    }

    /// Returns the frequency settings of one CPU.
    pub fn frequency_of(&self, cpu: u32) -> Option<&FrequencyGroup> {
        self.frequency
            .known()?
            .iter()
            .find(|group| group.cpus.contains(cpu))
    }

    /// Returns the state with the longest exit latency that one CPU may enter.
    pub fn deepest_idle_state(&self, cpu: u32) -> Option<&IdleState> {
        self.idle_states
            .known()?
            .iter()
            .filter(|state| state.enabled_on.contains(cpu))
            .max_by_key(|state| state.exit_latency_us)
    }
}

fn frequency(source: &Source, online: &Cpus) -> Fact<Vec<FrequencyGroup>> {
    let mut groups: Vec<FrequencyGroup> = Vec::new();
    for cpu in online.iter() {
        if !source.exists(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_driver"))
            && !source.exists(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"))
        {
            continue;
        }
        let one = frequency_of_cpu(source, cpu);
        match groups.iter_mut().find(|group| same_settings(group, &one)) {
            Some(group) => group.cpus.insert(cpu),
            None => groups.push(one),
        }
    }
    if groups.is_empty() {
        let first = online.iter().next().unwrap_or(0);
        return Fact::unknown(format!("there is no {CPUS}/cpu{first}/cpufreq"));
    }
    Fact::Known(groups)
}

fn frequency_of_cpu(source: &Source, cpu: u32) -> FrequencyGroup {
    let file = |name: &str| format!("{CPUS}/cpu{cpu}/cpufreq/{name}");
    FrequencyGroup {
        cpus: Cpus::from_iter([cpu]),
        driver: source.words(&file("scaling_driver")),
        governor: source.words(&file("scaling_governor")),
        minimum_khz: source.value(&file("scaling_min_freq")),
        maximum_khz: source.value(&file("scaling_max_freq")),
        hardware_minimum_khz: source.value(&file("cpuinfo_min_freq")),
        hardware_maximum_khz: source.value(&file("cpuinfo_max_freq")),
        energy_preference: source.words(&file("energy_performance_preference")),
    }
}

/// Compares the settings of two groups; the reasons of unknown values name a CPU and so always
/// differ.
fn same_settings(a: &FrequencyGroup, b: &FrequencyGroup) -> bool {
    fn known(group: &FrequencyGroup) -> impl PartialEq + '_ {
        (
            group.driver.known(),
            group.governor.known(),
            group.minimum_khz.known(),
            group.maximum_khz.known(),
            group.hardware_minimum_khz.known(),
            group.hardware_maximum_khz.known(),
            group.energy_preference.known(),
        )
    }
    known(a) == known(b)
}

/// Reads the switch of intel_pstate (1 forbids turbo) or the general one (1 allows it).
fn turbo(source: &Source) -> (Fact<bool>, Option<String>) {
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    if source.exists(&no_turbo) {
        let forbidden = super::switch(source, &no_turbo);
        return (forbidden.map(|no| !no), Some(no_turbo));
    }
    let boost = format!("{CPUS}/cpufreq/boost");
    if source.exists(&boost) {
        return (super::switch(source, &boost), Some(boost));
    }
    let why = format!("there is neither {no_turbo} nor {boost}");
    (Fact::unknown(why), None)
}

fn idle_states(source: &Source, online: &Cpus) -> Fact<Vec<IdleState>> {
    let mut states: Vec<IdleState> = Vec::new();
    for cpu in online.iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for index in source.numbered(&folder, "state") {
            let file = |name: &str| format!("{folder}/state{index}/{name}");
            let (Fact::Known(name), Fact::Known(exit_latency_us)) =
                (source.words(&file("name")), source.value(&file("latency")))
            else {
                continue;
            };
            let disabled = super::switch(source, &file("disable")).is(&true);
            let is_same =
                |state: &IdleState| state.name == name && state.exit_latency_us == exit_latency_us;
            let position = states.iter().position(is_same).unwrap_or(states.len());
            if position == states.len() {
                states.push(IdleState {
                    name,
                    exit_latency_us,
                    target_residency_us: source.value(&file("residency")),
                    enabled_on: Cpus::default(),
                    disabled_on: Cpus::default(),
                });
            }
            let state = &mut states[position];
            match disabled {
                true => state.disabled_on.insert(cpu),
                false => state.enabled_on.insert(cpu),
            }
        }
    }
    if states.is_empty() {
        let first = online.iter().next().unwrap_or(0);
        return Fact::unknown(format!("there are no states in {CPUS}/cpu{first}/cpuidle"));
    }
    Fact::Known(states)
}

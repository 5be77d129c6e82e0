//! What disturbs measuring on this machine: state, why, what to do.
//!
//! Each check is one function from an [`Examination`] to a [`Finding`], in a file by
//! topic. A severity says what the thing does to a measurement of noise or
//! latency, not whether it is good administration: a default kernel in a guest is not a
//! problem, it is what many people measure. A *problem* makes figures wrong, a
//! *warning* makes them worse or less repeatable than the machine can do, a *note*
//! explains what will be seen.

mod clock;
mod finding;
mod frequency;
mod idle;
mod interrupts;
mod isolation;
mod kernel;
mod load;
mod memory;
mod privileges;
mod quota;
mod realtime;
mod rt_group;
mod topology;
mod virtualisation;

pub use finding::{Finding, Severity};

use crate::choose::{CpuChoice, choose_cpu_with};
use crate::cpulist::CpuList;
use crate::error::HostError;
use crate::machine::Machine;
use crate::sample::Sample;
use crate::source::Source;

/// All checks, in the order in which equals are listed.
const CHECKS: &[fn(&Examination<'_>) -> Finding] = &[
    topology::measured_cpu,
    load::load,
    virtualisation::steal,
    quota::cpu_quota,
    clock::tsc,
    clock::clocksource,
    frequency::governor,
    frequency::turbo,
    idle::idle_states,
    topology::smt,
    topology::core_type,
    isolation::scheduler,
    isolation::tick,
    isolation::rcu_callbacks,
    interrupts::affinity,
    interrupts::irqbalance,
    realtime::throttling,
    rt_group::budget,
    privileges::realtime,
    privileges::locked_memory,
    memory::transparent_hugepages,
    memory::swap,
    memory::numa_balancing,
    kernel::debug_options,
    kernel::preemption,
    kernel::nmi_watchdog,
    kernel::timer_migration,
    kernel::stat_interval,
    kernel::mitigations,
    virtualisation::hypervisor,
    virtualisation::container,
    privileges::counters,
];

/// Examine the machine, worst findings first. Takes [`SAMPLE_INTERVAL`](crate::SAMPLE_INTERVAL) to
/// watch what runs. Without a CPU, the one that [`choose_cpu`](crate::choose_cpu) would take is
/// examined.
pub fn doctor(source: &Source, cpu: Option<u32>) -> Vec<Finding> {
    doctor_with(
        source,
        &Machine::collect(source),
        &Sample::take(source),
        cpu,
    )
}

/// Examine the machine with a description and a sample that were taken before.
pub fn doctor_with(
    source: &Source,
    machine: &Machine,
    sample: &Sample,
    cpu: Option<u32>,
) -> Vec<Finding> {
    let examination = Examination::new(source, machine, sample, cpu);
    let mut findings: Vec<Finding> = CHECKS.iter().map(|check| check(&examination)).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Say in one paragraph how many findings there are of each severity, and the worst three.
pub fn summary(findings: &[Finding]) -> String {
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let plural = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let counts = [
        plural(count(Severity::Problem), "problem", "problems"),
        plural(count(Severity::Warning), "warning", "warnings"),
        format!("{} unknown", count(Severity::Unknown)),
        plural(count(Severity::Note), "note", "notes"),
        format!("{} good", count(Severity::Good)),
    ]
    .join(", ");
    let checks = plural(findings.len(), "check", "checks");
    let mut worst: Vec<&Finding> = findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Warning)
        .collect();
    worst.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if worst.is_empty() {
        return format!(
            "{checks}: {counts}. None of the things that could be checked stands in the way of \
             measuring."
        );
    }
    let named = worst
        .iter()
        .take(3)
        .map(|finding| format!("{}: {}", finding.title, finding.state))
        .collect::<Vec<_>>()
        .join("; ");
    format!("{checks}: {counts}. First to look at: {named}.")
}

/// What the checks look at.
struct Examination<'a> {
    source: &'a Source,
    machine: &'a Machine,
    sample: &'a Sample,
    choice: Result<CpuChoice, HostError>,
    /// The CPU that is going to be measured, if one can be.
    cpu: Option<u32>,
}

impl<'a> Examination<'a> {
    fn new(source: &'a Source, machine: &'a Machine, sample: &'a Sample, cpu: Option<u32>) -> Self {
        let choice = choose_cpu_with(machine, sample, cpu);
        Self {
            cpu: choice.as_ref().ok().map(|choice| choice.cpu),
            source,
            machine,
            sample,
            choice,
        }
    }

    fn is_guest(&self) -> bool {
        self.machine.virtualisation.guest_of().is_some()
    }

    fn in_container(&self) -> bool {
        self.machine.virtualisation.container.inside
    }

    /// Tell whether the measured CPU is in a list that may be unknown.
    fn cpu_in(&self, list: &CpuList) -> bool {
        self.cpu.is_some_and(|cpu| list.contains(cpu))
    }

    /// Name the measured CPU in a sentence.
    fn cpu_name(&self) -> String {
        self.cpu
            .map_or_else(|| "the measured CPU".to_owned(), |cpu| format!("CPU {cpu}"))
    }

    /// The measured CPU as it is written into a command.
    fn cpu_word(&self) -> String {
        self.cpu
            .map_or_else(|| "N".to_owned(), |cpu| cpu.to_string())
    }

    /// The online CPUs other than the measured one, without isolated ones when others remain.
    fn other_cpus(&self) -> CpuList {
        let online = self
            .machine
            .topology
            .online
            .known()
            .cloned()
            .unwrap_or_default();
        let others = self
            .cpu
            .map_or_else(|| online.clone(), |cpu| online.without_cpu(cpu));
        let shared = others.without(&self.machine.isolation.set_apart());
        if shared.is_empty() { others } else { shared }
    }

    /// Word a remedy that concerns the hardware: in a guest it must be done below.
    fn on_hardware(&self, remedy: impl Into<String>) -> String {
        let remedy = remedy.into();
        if self.is_guest() {
            format!("on the hypervisor's host: {remedy}")
        } else {
            self.on_kernel(remedy)
        }
    }

    /// Word a remedy that concerns the kernel: from a container it must be done outside.
    fn on_kernel(&self, remedy: impl Into<String>) -> String {
        let remedy = remedy.into();
        if self.in_container() {
            format!("outside the container: {remedy}")
        } else {
            remedy
        }
    }
}

/// Write a share as a percentage with as many digits as it deserves.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent >= 0.95 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        "under 0.1 %".to_owned()
    }
}

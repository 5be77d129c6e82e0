//! What disturbs measuring on this machine: state, why, what to do.
//!
//! Each check is a row of [`CHECKS`], and a function that judges an [`Examination`], in a file by
//! topic. A severity says what the thing does to a measurement of noise or
//! latency, not whether it is good administration: a default kernel in a guest is not a
//! problem, it is what many people measure. A *problem* makes figures wrong, a
//! *warning* makes them worse or less repeatable than the machine can do, a *note*
//! explains what will be seen.

mod checks;
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

use checks::CHECKS;
pub use finding::{Finding, Severity};
use finding::{Judgement, Verdict, advise, good, note, unknown};

use std::fmt::Display;

use crate::choose::{CpuChoice, choose_cpu};
use crate::error::HostError;
use crate::machine::Machine;
use crate::sample::Sample;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// The remedy where nothing can be kept off the only CPU.
const SECOND_CPU: &str = "give the machine a second CPU, for everything else (QEMU: `-smp 2`)";

/// One check: its id, its title, what the thing looked at does to a measurement, and who judges it.
struct Check(
    &'static str,
    &'static str,
    &'static str,
    fn(&Examination<'_>) -> Judgement,
);

impl Check {
    fn examine(&self, examination: &Examination<'_>) -> Finding {
        let Check(id, title, why, judge) = *self;
        let unknown = |because| Verdict::new(Severity::Unknown, because);
        let verdict = judge(examination).unwrap_or_else(unknown);
        Finding {
            id: id.into(),
            title: title.into(),
            state: verdict.state,
            severity: verdict.severity,
            why: why.to_owned(),
            remedy: verdict.remedy,
        }
    }
}

/// Examines the machine, worst findings first. Without a CPU, the one that
/// [`choose_cpu`](crate::choose_cpu()) would take is examined.
pub fn doctor(
    source: &Source,
    machine: &Machine,
    sample: &Sample,
    cpu: Option<u32>,
) -> Vec<Finding> {
    let examination = Examination::new(source, machine, sample, cpu);
    let findings = CHECKS.iter().map(|check| check.examine(&examination));
    let mut findings: Vec<Finding> = findings.collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Judges the load of the machine for measurements that are pinned to no CPU: that of all CPUs.
pub fn load_of_all_cpus(source: &Source, machine: &Machine, sample: &Sample) -> Option<Finding> {
    let examination = Examination {
        is_pinned: false,
        ..Examination::new(source, machine, sample, None)
    };
    let check = CHECKS.iter().find(|check| check.0 == "load")?;
    Some(check.examine(&examination))
}

/// Says in one paragraph how many findings there are of each severity, and the worst three.
pub fn summary(findings: &[Finding]) -> String {
    let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
    let plural = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        _ => format!("{count} {word}s"),
    };
    let counts = [
        plural(count(Severity::Problem), "problem"),
        plural(count(Severity::Warning), "warning"),
        format!("{} unknown", count(Severity::Unknown)),
        plural(count(Severity::Note), "note"),
        format!("{} good", count(Severity::Good)),
    ]
    .join(", ");
    let checks = plural(findings.len(), "check");
    let worst = findings
        .iter()
        .filter(|it| it.severity >= Severity::Warning);
    let mut worst: Vec<&Finding> = worst.collect();
    worst.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if worst.is_empty() {
        return format!(
            "{checks}: {counts}. None of the checks that were possible found an obstacle to \
             measuring."
        );
    }
    let name = |finding: &&Finding| format!("{}: {}", finding.title, finding.state);
    let named: Vec<String> = worst.iter().take(3).map(name).collect();
    format!(
        "{checks}: {counts}. First to look at: {}.",
        named.join("; ")
    )
}

/// The facts that the checks read.
struct Examination<'a> {
    source: &'a Source,
    machine: &'a Machine,
    sample: &'a Sample,
    choice: Result<CpuChoice, HostError>,
    /// The CPU that is going to be measured, if one can be.
    cpu: Option<u32>,
    /// Whether the measured code is pinned to that CPU.
    is_pinned: bool,
}

impl<'a> Examination<'a> {
    fn new(source: &'a Source, machine: &'a Machine, sample: &'a Sample, cpu: Option<u32>) -> Self {
        let choice = choose_cpu(machine, sample, cpu);
        Self {
            cpu: choice.as_ref().ok().map(|choice| choice.cpu),
            is_pinned: true,
            source,
            machine,
            sample,
            choice,
        }
    }

    /// Returns the names of all processes of the machine.
    fn visible_names(&self) -> Result<&[String], String> {
        let container = &self.machine.virtualisation.container;
        let namespaces = container.separate_namespaces.known();
        if namespaces.is_some_and(|apart| apart.iter().any(|kind| kind == "pid")) {
            let because = "the processes of the host cannot be seen from this PID namespace";
            return Err(because.to_owned());
        }
        Ok(self.sample.names.get()?)
    }

    /// Returns whether the kernel has no such setting, and not just hides it.
    fn lacks(&self, path: &str) -> bool {
        let shown = match path.starts_with("/proc") {
            true => "/proc/sys/kernel/osrelease",
            false => "/sys/devices/system/cpu/online",
        };
        self.source.exists(shown) && !self.source.exists(path)
    }

    fn is_guest(&self) -> bool {
        self.machine.virtualisation.guest_of().is_some()
    }

    fn in_container(&self) -> bool {
        self.machine.virtualisation.container.inside
    }

    /// Returns whether the measured CPU is in a list that may be unknown.
    fn cpu_in(&self, list: &Cpus) -> bool {
        self.cpu.is_some_and(|cpu| list.contains(cpu))
    }

    /// Names the measured CPU in a sentence.
    fn cpu_name(&self) -> String {
        let name = self.cpu.map(|cpu| format!("CPU {cpu}"));
        name.unwrap_or_else(|| "the measured CPU".to_owned())
    }

    /// The measured CPU as it is written into a command.
    fn cpu_word(&self) -> String {
        self.cpu.map_or("N".to_owned(), |cpu| cpu.to_string())
    }

    /// The number of CPUs that are online; 0 if it is unknown.
    fn online(&self) -> u32 {
        self.machine.topology.online.known().map_or(0, Cpus::count)
    }

    /// The online CPUs other than the measured one, without isolated ones when others remain.
    fn other_cpus(&self) -> Cpus {
        let online = self.machine.topology.online.known();
        let online = online.copied().unwrap_or_default();
        let others: Cpus = online.iter().filter(|cpu| Some(*cpu) != self.cpu).collect();
        let shared = others.without(&self.machine.isolation.set_apart());
        if shared.is_empty() { others } else { shared }
    }

    /// Word a remedy that concerns the hardware: in a guest it must be done below.
    fn on_hardware(&self, remedy: impl Display) -> String {
        match self.is_guest() {
            true => format!("on the hypervisor's host: {remedy}"),
            false => self.on_kernel(remedy),
        }
    }

    /// Word a remedy that concerns the kernel: from a container it must be done outside.
    fn on_kernel(&self, remedy: impl Display) -> String {
        match self.in_container() {
            true => format!("outside the container: {remedy}"),
            false => remedy.to_string(),
        }
    }
}

/// Writes a share as a percentage with as many digits as it deserves.
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

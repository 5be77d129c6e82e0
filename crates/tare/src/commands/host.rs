//! What is known of the machine before a run.

use std::cmp::Reverse;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tare_host::{
    CpuChoice, Finding, HostError, Machine, Rule, Sample, Severity, Source, choose_cpu,
    choose_cpu_beside, doctor, exclusive_cpuset, load_of_all_cpus,
};
use tare_loads::cpus::current;
use tare_results::MachineRecord;
use tare_results::model::Plan;
use tare_wire::cpus::Cpus;

use crate::error::CommandError;
use crate::terminal::Terminal;

/// The share of the measured CPU's time from which on other work makes a run longer than estimated.
const BUSY: f64 = 0.2;

/// The machine as it is before the run.
pub struct Host {
    /// The record for the run folder.
    pub record: MachineRecord,
    /// CPU to measure on; the first of several.
    pub cpu: u32,
    /// Why that CPU; begins with its number.
    pub cpu_reason: String,
    /// Warnings about that CPU.
    pub cpu_warnings: Vec<String>,
    /// The load of all CPUs, for plans that measure none in particular.
    load_of_all: Option<Finding>,
    /// Whether the CPU has other work, so that it may all take longer.
    pub is_busy: bool,
    /// CPUs on which tare itself runs.
    controller: Cpus,
}

impl Host {
    /// Describes the machine and chooses a CPU that no other run measures on, unless some are
    /// requested. The first of several CPUs represents all of them.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if a CPU asked for can't be measured.
    pub fn look(requested: &[u32], taken: &Cpus) -> Result<Self, CommandError> {
        let source = Source::system();
        let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
        let held = |error| match error {
            HostError::CpuNotAllowed { cpu, .. } => held_by_others(&source, cpu, error),
            _ => error.into(),
        };
        let choice = match requested {
            [] => choose_cpu_beside(taken, &machine, &sample)?,
            [cpu] => choose_cpu(&machine, &sample, Some(*cpu)).map_err(held)?,
            several => together(
                several
                    .iter()
                    .map(|cpu| choose_cpu(&machine, &sample, Some(*cpu)).map_err(held))
                    .collect::<Result<_, CommandError>>()?,
            ),
        };
        let findings = doctor(&source, &machine, &sample, Some(choice.cpu));
        Ok(Self {
            load_of_all: load_of_all_cpus(&source, &machine, &sample),
            is_busy: has_other_work(&sample, choice.cpu),
            record: MachineRecord::new(machine, findings),
            cpu: choice.cpu,
            cpu_reason: choice.reason,
            cpu_warnings: choice.warnings,
            controller: choice.controller_cpus,
        })
    }

    /// Takes the findings for a plan, and warns of problems. Instances that run on any CPU have no
    /// measured one.
    pub fn is_for(&mut self, plan: &Plan, terminal: &Terminal) {
        self.is_busy &= plan.measured_cpu().is_some();
        let findings = &mut self.record.findings;
        if let Some(load) = self.load_of_all.take()
            && plan.measured_cpu().is_none()
            && let Some(known) = findings.iter_mut().find(|known| known.id == load.id)
        {
            *known = load;
            findings.sort_by_key(|finding| Reverse(finding.severity));
        }
        for finding in findings.iter().filter(|f| f.severity == Severity::Problem) {
            let remedy = finding.remedy.as_deref().unwrap_or("see `tare doctor`");
            terminal.warn(&format!("{}: {}; {remedy}", finding.title, finding.state));
        }
    }

    /// Keeps tare itself off the measured CPUs for as long as what is returned lives: a study that
    /// is run after this one chooses among all CPUs again.
    pub fn step_aside(&self, terminal: &Terminal) -> Aside {
        let before = sched_getaffinity(None).ok();
        let mut set = CpuSet::new();
        let cpus = self.controller.iter();
        for cpu in cpus.filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU) {
            set.set(cpu as usize);
        }
        if let Err(error) = sched_setaffinity(None, &set) {
            terminal.warn(&format!(
                "tare itself can't be kept off the measured CPU ({error}): it may disturb it"
            ));
        }
        Aside { before }
    }
}

/// The CPUs that tare itself was allowed, which it gets back.
pub struct Aside {
    before: Option<CpuSet>,
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // Fails if the CPUs were removed from the cpuset; there is nothing to do then.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Says whether the CPU that would be measured has other work. One that can't be measured here has
/// none.
pub fn is_busy(requested: Option<u32>) -> bool {
    let source = Source::system();
    let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
    let choice = choose_cpu(&machine, &sample, requested);
    choice.is_ok_and(|choice| has_other_work(&sample, choice.cpu))
}

fn has_other_work(sample: &Sample, cpu: u32) -> bool {
    sample.busy(cpu).is_some_and(|share| share > BUSY)
}

/// Returns the CPUs that this process may use.
///
/// # Errors
///
/// Returns [`CommandError`] if the system does not tell.
pub fn allowed_cpus() -> Result<Cpus, CommandError> {
    current().map_err(|errno| {
        CommandError::Usage(format!(
            "which CPUs may be used can't be found out: {errno}"
        ))
    })
}

/// Says which cpuset holds a CPU that can't be had for itself; if none does, what was wrong.
fn held_by_others(source: &Source, cpu: u32, error: HostError) -> CommandError {
    match exclusive_cpuset(source, &Cpus::one(cpu)) {
        Some((name, held)) => CommandError::Unavailable {
            what: format!("CPU {cpu}"),
            why: format!("the cpuset '{name}' holds CPU {held} for itself"),
            remedy: "measure on another CPU (--cpu), or end what has that cpuset".to_owned(),
        },
        None => error.into(),
    }
}

/// Makes one choice of several CPUs that were asked for, of which the first stands for all.
fn together(choices: Vec<CpuChoice>) -> CpuChoice {
    let measured: Cpus = choices.iter().map(|choice| choice.cpu).collect();
    let all = choices.iter().map(|choice| choice.controller_cpus);
    let all = all.reduce(|all, cpus| all.union(&cpus)).unwrap_or_default();
    let left = all.without(&measured);
    let mut warnings: Vec<String> = Vec::new();
    if left.is_empty() {
        warnings.push(
            "every CPU that tare may use is measured, so that its own work shows in the measurement"
                .to_owned(),
        );
    }
    for warning in choices.iter().flat_map(|choice| &choice.warnings) {
        // A warning about one CPU repeats the one about all.
        if !warning.starts_with("tare itself") && !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    CpuChoice {
        cpu: measured.iter().next().unwrap_or_default(),
        rule: Rule::Requested,
        reason: format!("CPUs {measured} as requested"),
        warnings,
        controller_cpus: if left.is_empty() { all } else { left },
    }
}

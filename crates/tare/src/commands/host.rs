//! What is known of the machine before a run.

use rustix::thread::{CpuSet, sched_setaffinity};
use tare_host::{CpuList, Machine, Sample, Severity, Source, choose_cpu_with, doctor_with};
use tare_results::MachineRecord;

use crate::error::CommandError;
use crate::terminal::Terminal;

/// Is what is known of the machine before the run.
pub struct Host {
    /// What goes into the run folder.
    pub record: MachineRecord,
    /// CPU to measure on.
    pub cpu: u32,
    /// Why that CPU; begins with its number.
    pub cpu_reason: String,
    /// What speaks against it.
    pub cpu_warnings: Vec<String>,
    /// CPUs on which tare itself runs.
    controller: CpuList,
}

impl Host {
    /// Describes the machine, chooses a CPU unless one is asked for, and warns of what makes
    /// measuring there pointless.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError`] if the CPU asked for can't be measured.
    pub fn look(requested: Option<u32>, terminal: &Terminal) -> Result<Self, CommandError> {
        let source = Source::system();
        let (machine, sample) = (Machine::collect(&source), Sample::take(&source));
        let choice = choose_cpu_with(&machine, &sample, requested)?;
        let findings = doctor_with(&source, &machine, &sample, Some(choice.cpu));
        for finding in findings.iter().filter(|f| f.severity == Severity::Problem) {
            let remedy = finding.remedy.as_deref().unwrap_or("see `tare doctor`");
            terminal.warn(&format!("{}: {}; {remedy}", finding.title, finding.state));
        }
        Ok(Self {
            record: MachineRecord::new(machine, findings),
            cpu: choice.cpu,
            cpu_reason: choice.reason,
            cpu_warnings: choice.warnings,
            controller: choice.controller_cpus,
        })
    }

    /// Keeps tare itself off the measured CPU.
    pub fn step_aside(&self, terminal: &Terminal) {
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
    }
}

//! Finds what bears on the figures of every experiment.

use tare_results::TscFrequency;
use tare_results::model::{Cell, CellPlan, Cpus, LoadCpus, Plan, Program, Record, Unit};
use tare_results::target::{Group, Kernel};

use crate::format::Numbers;
use crate::notices::{Notice, name_cells};
use crate::run::{Run, tsc};
use crate::words;

/// A cell that was measured, whatever it measured.
struct Measured<'a> {
    id: u32,
    target: &'a str,
    group: Group,
    counts_instructions: bool,
    record: &'a Record,
    program: &'a Program,
    frequency: Option<TscFrequency>,
}

/// Finds what bears on the figures of all cells.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let measured: Vec<Measured<'_>> = run.cells.iter().filter_map(Measured::of).collect();
    let which = |is: &dyn Fn(&Measured<'_>) -> bool| -> Vec<u32> {
        let found = measured.iter().filter(|m| is(m));
        found.map(|m| m.id).collect()
    };
    let targets = |is: &dyn Fn(&Measured<'_>) -> bool| -> Vec<String> {
        let found = measured.iter().filter(|m| is(m));
        let mut names: Vec<String> = found.map(|m| m.target.to_owned()).collect();
        names.sort();
        names.dedup();
        names
    };
    let mut notices = Vec::new();
    let cut: Vec<&Cell> = run.cut_short().collect();
    if let Some(first) = cut.first() {
        let ids: Vec<u32> = cut.iter().map(|cell| cell.plan.id).collect();
        notices.push(Notice::warning(
            "cut-short",
            format!(
                "Cut short: {} ({}). The figures cover the samples until then; `--resume` repeats the whole cell.",
                name_cells(&ids),
                first.outcome.cut_short().unwrap_or_default()
            ),
        ));
    }
    let backwards = which(&|m| m.backwards() > 0);
    if !backwards.is_empty() {
        let samples = measured.iter().map(Measured::backwards).sum();
        notices.push(Notice::error(
            "tsc-backwards",
            format!(
                "In {} the TSC ran backwards in {} samples, which are in no figure: the counters of the CPUs differ, or a \
                 hypervisor changed the offset. Check that the kernel's clock source is tsc, and do not rely on durations \
                 across CPUs.",
                name_cells(&backwards),
                Numbers::PLAIN.count(samples)
            ),
        ));
    }
    let emulated = targets(&|m| m.program.agent.emulated && !m.counts_instructions);
    if !emulated.is_empty() {
        // Sentences are of what a machine executed, if there is any; claims of a study may not be.
        let is_native = |m: &Measured<'_>| !m.program.agent.emulated;
        let is_left_out = measured.iter().any(is_native) && run.plan.study.is_none();
        let verdict = match is_left_out {
            true => ", and the verdict leaves them out",
            false => "",
        };
        notices.push(Notice::error(
            "emulated",
            format!(
                "An emulator (QEMU's TCG) executed the measured code of {}: these figures say nothing of a machine's \
                 speed{verdict}. Measure where KVM works.",
                words::list(&emulated)
            ),
        ));
    }
    let counted = targets(&|m| m.counts_instructions);
    if !counted.is_empty() {
        notices.push(Notice::warning(
            "instruction-time",
            format!(
                "Times on {} are instructions that an emulator counted, as if each took the same time: they repeat exactly and \
                 compare kernels by their code, and say nothing of how long a processor takes. For that, measure with the \
                 machine's clock where KVM works.",
                words::list(&counted)
            ),
        ));
    }
    // Measurements in ns need no frequency.
    let unknown = which(&|m| {
        let mut sets = m.record.sets.iter();
        let mut values = m.record.values.iter();
        let in_cycles = sets.any(|head| head.unit == Unit::Cycles)
            || values.any(|value| value.unit == "cycles");
        in_cycles && m.frequency.is_none()
    });
    if !unknown.is_empty() {
        let cells = name_cells(&unknown);
        notices.push(Notice::warning(
            "tsc-frequency-unknown",
            format!(
                "Nothing told the TSC's frequency precisely enough in {cells}: durations there are in cycles, and left out \
                 where other runs have ns. Shares of time and counts of delays are of all runs."
            ),
        ));
    }
    let mut contradictions = measured.iter().filter_map(Measured::contradiction);
    if let Some(note) = contradictions.next() {
        let cells = name_cells(&which(&|m| m.contradiction().is_some()));
        notices.push(Notice::warning(
            "tsc-frequency-contradicted",
            format!("TSC frequency in {cells}: {note}."),
        ));
    }
    if let Some(text) = shared_cpu(&run.plan).filter(|_| !measured.is_empty()) {
        notices.push(Notice::warning(
            "shared-cpu",
            format!("{}.", words::capital(&text)),
        ));
    }
    // A limit of this kind is none of a guest.
    let not_locked = which(&|m| {
        let kernel = m.group.capabilities().kernel;
        m.program.is_reported()
            && !m.program.preparation.locked
            && matches!(kernel, Kernel::Host | Kernel::Remote)
    });
    if !not_locked.is_empty() {
        notices.push(Notice::note(
            "not-locked",
            format!(
                "The buffers of {} were not locked in memory; the kernel could have taken pages away and delayed their next \
                 use. Raise RLIMIT_MEMLOCK (`ulimit -l`) or run as root.",
                name_cells(&not_locked)
            ),
        ));
    }
    notices
}

/// Returns a warning if a workload shares its CPU with a load, except for threads of real-time
/// priority, which precede the load's tasks.
#[must_use]
pub fn shared_cpu(plan: &Plan) -> Option<String> {
    let mut shared = Cpus::default();
    let is_ordinary =
        |cell: &&CellPlan| cell.has_its_cpus() && cell.work.rights.real_time.is_none();
    for cell in plan.cells.iter().filter(is_ordinary) {
        let own = cell.measured_cpus();
        let measured = if own.is_empty() {
            Cpus::one(plan.cpu)
        } else {
            own
        };
        for load in cell.load.loads().iter().filter(|load| !load.is_idle()) {
            shared = shared.union(&match load.cpus() {
                LoadCpus::All => measured,
                LoadCpus::Others => Cpus::default(),
                LoadCpus::These(cpus) => cpus.intersection(&measured),
            });
        }
    }
    let (each, that) = match shared.count() {
        0 => return None,
        1 => ("CPU", "that CPU"),
        _ => ("CPUs", "those CPUs"),
    };
    Some(format!(
        "the load runs on the measured {each} {shared}, too, and the workload is an ordinary (SCHED_OTHER) \
         task: its times include the turns that the load takes; --load-cpus can keep the load \
         off {that}"
    ))
}

impl<'a> Measured<'a> {
    fn of(cell: &'a Cell) -> Option<Self> {
        let record = cell.outcome.record()?;
        Some(Self {
            id: cell.plan.id,
            target: &cell.plan.target.text,
            group: cell.plan.target.group,
            counts_instructions: cell.plan.counts_instructions(),
            record,
            program: record.program()?,
            frequency: tsc(cell),
        })
    }

    fn backwards(&self) -> u64 {
        self.record.sets.iter().map(|head| head.backwards).sum()
    }

    fn contradiction(&self) -> Option<String> {
        let frequency = self.frequency.as_ref()?;
        let text = frequency.contradiction.as_ref()?;
        Some(format!("{text}; {}", frequency.note))
    }
}

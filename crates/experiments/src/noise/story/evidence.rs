//! What a run offers to answer claims from.

use std::collections::HashMap;

use tare_results::model::Cell;

use crate::analysis::{Combination, CombinedFigures, CombinedTimed, Summary};
use crate::wakeup::WakeupCombination;
use crate::wakeup::words::name_among;

/// Holds the combinations of a run by the kind of system that they were measured on.
#[derive(Debug)]
pub struct Evidence<'a> {
    measured: Vec<Measured<'a>>,
    woken: Vec<Kernel<'a>>,
}

/// Is a kernel under which wake-ups were measured, undisturbed by tracing.
#[derive(Clone, Debug)]
pub(super) struct Kernel<'a> {
    pub combination: &'a WakeupCombination,
    /// Its preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`.
    pub model: &'a str,
    /// Its name in a sentence.
    pub name: String,
}

/// Is a combination with what is known of the place that it was measured on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured<'a> {
    pub combination: &'a Combination,
    pub system: System,
    /// Whether the place was a guest on this machine.
    pub is_guest: bool,
}

/// Is a kind of system, as kot-2019 compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Linux,
    Unikernel,
    UnikernelWithoutInterrupts,
}

impl<'a> Evidence<'a> {
    /// Takes the combinations of a run: those of noise that ran undisturbed, and those of wake-ups under any load.
    pub(super) fn of(summary: &'a Summary, cells: &'a [Cell]) -> Self {
        let cells: HashMap<u32, &Cell> = cells.iter().map(|cell| (cell.plan.id, cell)).collect();
        let idle = summary.combinations.iter().filter(|c| c.load == "idle");
        let measured = idle.filter_map(|combination| {
            let cell = cells.get(combination.cells.first()?)?;
            let agent = &cell.outcome.record()?.program()?.agent;
            let without = || combination.spec.option("irq") == Some("off");
            let system = match agent.environment.as_str() {
                "linux" => System::Linux,
                "unikernel" if without() => System::UnikernelWithoutInterrupts,
                "unikernel" => System::Unikernel,
                _ => return None,
            };
            Some(Measured {
                combination,
                system,
                is_guest: agent.accelerator.is_some(),
            })
        });
        let plain: Vec<&WakeupCombination> = summary.wakeups.iter().filter(|c| !c.traced).collect();
        let woken = plain.iter().filter_map(|combination| {
            Some(Kernel {
                combination,
                model: combination.preemption.as_deref()?,
                name: name_among(combination, &plain),
            })
        });
        Self {
            measured: measured.collect(),
            woken: woken.collect(),
        }
    }

    /// Returns the kernels under which wake-ups were measured, and whose preemption model is known.
    pub(super) fn kernels(&self) -> Vec<Kernel<'a>> {
        self.woken.clone()
    }

    /// Returns what was measured on systems of these kinds.
    pub(super) fn on(&self, systems: &[System]) -> Vec<Measured<'a>> {
        let measured = self.measured.iter();
        measured
            .filter(|measured| systems.contains(&measured.system))
            .copied()
            .collect()
    }
}

impl<'a> Measured<'a> {
    /// Returns its figures if every repetition was timed.
    pub fn timed(&self) -> Option<&'a CombinedTimed> {
        match &self.combination.figures {
            CombinedFigures::Timed(timed) => Some(timed),
            CombinedFigures::Gap(_) => None,
        }
    }

    /// Says whether it is this workload of this size.
    pub fn is(&self, workload: &str, size: u64) -> bool {
        self.combination.workload == workload && self.combination.size == Some(size)
    }

    /// Returns how much stands behind its figures, to choose between several of one kind: timed as
    /// published first, then by the number of repetitions.
    pub fn weight(&self) -> (bool, u64) {
        let published = self.combination.timing == "published";
        (published, self.timed().map_or(0, |timed| timed.repetitions))
    }
}

impl System {
    /// Names it in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Unikernel => "the unikernel with interrupts",
            Self::UnikernelWithoutInterrupts => "the unikernel without interrupts",
        }
    }

    /// Finds the kind by its name in the study's table.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "linux" => Some(Self::Linux),
            "unikernel" => Some(Self::Unikernel),
            "unikernel-irq-off" => Some(Self::UnikernelWithoutInterrupts),
            _ => None,
        }
    }
}

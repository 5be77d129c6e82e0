//! A run: what was asked for, and what was measured of it.

use tare_results::model::{Cell, Plan};
use tare_results::target::Kernel;
use tare_results::{MachineRecord, TscFrequency, frequency};

use crate::rows::Rows;

/// A plan, and the cells that were measured of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub machine: Option<MachineRecord>,
    /// The records of the cells that have figures, in running order.
    pub cells: Vec<Cell>,
    /// Every figure.
    pub rows: Rows,
    /// The limits that gates set for times, which pictures show.
    pub limits: Vec<TimeLimit>,
}

/// A limit of a time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLimit {
    /// The experiment; any if `None`.
    pub experiment: Option<String>,
    /// The measure.
    pub measure: String,
    /// The limit, in ns.
    pub ns: f64,
    /// The gate as it was written.
    pub text: String,
}

impl Run {
    /// Returns the limits in ns that gates set for some measures of an experiment, as they were
    /// written.
    #[must_use]
    pub fn limits(&self, experiment: &str, measures: &[&str]) -> Vec<(f64, String)> {
        let is_of = |limit: &&TimeLimit| {
            let of = limit.experiment.as_ref();
            of.is_none_or(|of| of == experiment) && measures.contains(&&*limit.measure)
        };
        let limits = self.limits.iter().filter(is_of);
        limits.map(|limit| (limit.ns, limit.text.clone())).collect()
    }

    /// Returns the cells that ended before their plan was done.
    pub fn cut_short(&self) -> impl Iterator<Item = &Cell> {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.outcome.cut_short().is_some())
    }

    /// Returns whether it was imported from another tool's file: of the machine nothing is known.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        let mut cells = self.plan.cells.iter();
        cells.all(|cell| cell.target.kernel() == Kernel::Unknown)
    }

    /// Returns whether an emulator executed measured code.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        let records = self.cells.iter().filter_map(|cell| cell.outcome.record());
        let mut programs = records.flat_map(|record| &record.programs);
        programs.any(|program| program.agent.emulated)
    }
}

/// Returns the frequency of the TSC of a cell; `None` if it is unknown.
#[must_use]
pub fn tsc(cell: &Cell) -> Option<TscFrequency> {
    frequency::choose(&cell.outcome.record()?.program()?.frequencies)
}

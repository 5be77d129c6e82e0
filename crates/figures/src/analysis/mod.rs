//! From facts to figures.
//!
//! Cells are taken one after the other: their figures are derived, their samples are reduced to
//! what stories need of them, and then let go. Figures are derived when a run is read, not when it
//! is measured, so that an old run gets a new method by `tare report`.

mod analyser;
mod checks;
mod loads;
mod other_work;
mod summary;

use serde_json::Value;
use tare_results::model::{CellPlan, Plan, Samples};
use tare_results::{CellState, MachineRecord};

pub use analyser::empty;
pub use checks::shared_cpu;
pub(crate) use loads::Disturbances;
pub use loads::{Daemon, LoadFigure, LoadRate};
pub use other_work::{much as much_other_work, other_work};
pub use summary::{SCHEMA, Summary};

use crate::claims::Published;
use crate::error::ReportError;
use crate::notices::Notice;
use crate::rows::{CellData, Measure, Rows};
use crate::run::{Run, TimeLimit};
use crate::verdict::Verdict;
use analyser::Analyser;

/// The figures of a run, and what they say.
#[derive(Clone, Debug)]
pub struct Analysis {
    run: Run,
    summary: Summary,
}

/// The experiments and the published studies that are known.
pub trait Experiments {
    /// Returns what an experiment measures, the most important first; `None` for an unknown one.
    fn measures(&self, experiment: &str) -> Option<&'static [Measure]>;

    /// Returns how many samples of a measure a run of a cell has for certain; `None` if only running
    /// it shows that.
    fn samples(&self, cell: &CellPlan, measure: &str) -> Option<u64>;

    /// Says which other runs have a label that no figure of a cell has; `None` if its figures may
    /// have it, or none ever has.
    fn elsewhere(&self, cell: &CellPlan, label: &str) -> Option<&'static str>;

    /// Finds a published study by its short name.
    fn study(&self, name: &str) -> Option<&'static Published>;
}

/// The stories of a run's experiments, which derive more from its cells than rows.
pub trait Stories {
    /// Takes a cell that ran to its end.
    ///
    /// # Errors
    ///
    /// The problem with the cell. Then it has no rows either.
    fn take(&mut self, plan: &Plan, data: &CellData<'_>) -> Result<(), String>;

    /// Returns what each experiment reports, in the order of the report; the run is complete.
    fn finish(&mut self, run: &Run) -> Vec<Account>;
}

/// What only an experiment knows to report of a run.
#[derive(Clone, Debug)]
pub struct Account {
    /// The experiment.
    pub experiment: &'static str,
    /// Its part of `stories` in `summary.json`.
    pub json: Value,
    /// What bears on whether its figures may be believed.
    pub notices: Vec<Notice>,
    /// The conclusion; `None` if nothing was measured.
    pub verdict: Option<Verdict>,
}

impl Analysis {
    /// Returns the figures.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Lets pictures show limits.
    pub fn show_limits(&mut self, limits: Vec<TimeLimit>) {
        self.run.limits = limits;
    }

    /// Returns what was asked for and measured.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns every figure as a row.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.run.rows
    }
}

/// Derives all figures of a run whose cells are read one at a time, in the order of the plan.
///
/// The samples of a cell that is not done are not looked at. Cells that failed, are missing or
/// damaged are skipped and named in the summary.
///
/// # Errors
///
/// Those of `read`, and [`ReportError::Experiment`] if the plan has an experiment that is not
/// known.
pub fn analyse(
    plan: Plan,
    machine: Option<MachineRecord>,
    known: &dyn Experiments,
    stories: &mut dyn Stories,
    mut read: impl FnMut(&CellPlan) -> Result<(CellState, Samples), ReportError>,
) -> Result<Analysis, ReportError> {
    let cells = plan.cells.clone();
    let mut analyser = Analyser::new(plan, machine, known, stories)?;
    for cell in &cells {
        let (state, samples) = read(cell)?;
        analyser.take(cell, state, &samples);
    }
    Ok(analyser.finish())
}

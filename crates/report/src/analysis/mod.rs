//! From facts to figures.
//!
//! Cells are taken one after the other: their figures are derived, their samples are reduced to what stories need of them,
//! and then let go.

mod alarm;
mod analyser;
mod checks;
mod interval;
mod loads;
mod other_work;
mod places;
mod summary;

use tare_results::frequency;
use tare_results::model::{Cell, CellPlan, Plan, Samples};
use tare_results::{CellState, MachineRecord, RunFolder, TscFrequency};

pub use alarm::{Alarm, Severity, name_cells, name_some};
pub use interval::{Interval, Over, Spread, Time};
pub use loads::{Daemon, LoadFigure, LoadRate};
pub use other_work::{had_other_work, other_work};
pub use places::{FactValue, Place, PlaceFact, Placement};
pub use summary::{NotMeasured, Notice, SCHEMA, State, Summary};

use crate::error::ReportError;
use crate::rows::Rows;
use crate::view::{Catalogue, Story};
use analyser::Analyser;

/// What was asked for, and what was measured of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it was asked to do.
    pub plan: Plan,
    /// What it was made on.
    pub machine: Option<MachineRecord>,
    /// The records of the cells that have figures, in running order.
    pub cells: Vec<Cell>,
    /// Every figure.
    pub rows: Rows,
}

/// Everything that a report says and shows.
#[derive(Debug)]
pub struct Analysis {
    run: Run,
    summary: Summary,
    stories: Vec<Box<dyn Story>>,
}

/// A run in memory.
#[derive(Clone, Debug)]
pub struct RunData {
    /// What it was asked to do.
    pub plan: Plan,
    /// What it was made on.
    pub machine: Option<MachineRecord>,
    /// The cells of the plan with their samples, in its order; those that it lacks at the end are
    /// missing.
    pub cells: Vec<(CellState, Samples)>,
}

impl Analysis {
    /// Returns the figures.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
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

    /// Returns what each experiment tells, in the order of the report.
    pub fn stories(&self) -> impl Iterator<Item = &dyn Story> {
        self.stories.iter().map(|story| &**story)
    }
}

impl Run {
    /// Returns the cells that ended before their plan was done.
    pub fn cut_short(&self) -> impl Iterator<Item = &Cell> {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.outcome.cut_short().is_some())
    }

    /// Returns whether an emulator executed measured code.
    #[must_use]
    pub fn is_emulated(&self) -> bool {
        let records = self.cells.iter().filter_map(|cell| cell.outcome.record());
        let mut programs = records.flat_map(|record| &record.programs);
        programs.any(|program| program.agent.emulated)
    }
}

/// Returns how fast the TSC of a cell ticks; `None` if nothing tells it.
#[must_use]
pub fn tsc(cell: &Cell) -> Option<TscFrequency> {
    frequency::choose(&cell.outcome.record()?.program()?.frequencies)
}

/// Derives all figures of a run folder. Holds the samples of one cell at a time.
///
/// Cells that failed, are missing or damaged are left out and named in the summary.
///
/// # Errors
///
/// [`ReportError::Results`] if the samples of a cell cannot be read for a reason other than damage;
/// [`ReportError::Experiment`] if the plan has an experiment that is not in the catalogue.
pub fn analyse(run: &RunFolder, catalogue: &Catalogue) -> Result<Analysis, ReportError> {
    let machine = Some(run.machine().clone());
    analyse_with(run.plan().clone(), machine, catalogue, |plan| {
        Ok(run.read(plan.id))
    })
}

/// Derives all figures of a run whose cells are read one at a time, in the order of the plan.
///
/// The samples of a cell that is not done are not looked at.
///
/// # Errors
///
/// Those of `read`, and [`ReportError::Experiment`] if the plan has an experiment that is not in the catalogue.
pub fn analyse_with(
    plan: Plan,
    machine: Option<MachineRecord>,
    catalogue: &Catalogue,
    mut read: impl FnMut(&CellPlan) -> Result<(CellState, Samples), ReportError>,
) -> Result<Analysis, ReportError> {
    let cells = plan.cells.clone();
    let mut analyser = Analyser::new(plan, machine, catalogue)?;
    for cell in &cells {
        let (state, samples) = read(cell)?;
        analyser.take(cell, state, &samples);
    }
    Ok(analyser.finish(catalogue))
}

impl RunData {
    /// Derives all figures.
    ///
    /// # Errors
    ///
    /// [`ReportError::Experiment`] if the plan has an experiment that is not in the catalogue.
    pub fn analyse(self, catalogue: &Catalogue) -> Result<Analysis, ReportError> {
        let mut cells = self.cells.into_iter();
        analyse_with(self.plan, self.machine, catalogue, |_| {
            let missing = (CellState::Missing, Samples::default());
            Ok(cells.next().unwrap_or(missing))
        })
    }
}

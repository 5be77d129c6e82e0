//! From facts to figures.
//!
//! Cells are taken one after the other: the figures of a cell are derived, its samples are reduced
//! to what pictures can show, and then they are let go. Only what adds up over runs (exact counts
//! per value) is kept as it is.

mod alarm;
mod analyser;
mod attribution;
mod checks;
mod combine;
mod counters;
mod figures;
mod gap;
mod instance;
mod loads;
mod notices;
mod picture;
mod places;
mod summary;
mod timed;

use tare_results::frequency;
use tare_results::model::{Cell, CellPlan, Delay, Outcome, Plan, Samples};
use tare_results::{CellState, MachineRecord, ResultsError, RunFolder};
use tare_stats::Counts;

pub(crate) use alarm::name_cells;
pub use alarm::{Alarm, AlarmFigure, Coarse, LatePhase, Severity};
pub use attribution::{Attribution, Finding, Part, Quantity, Refusal, Refused, Split};
pub use combine::{
    CombinedDurations, CombinedFigures, CombinedGap, CombinedPeriod, CombinedShare, CombinedTimed,
    Spread,
};
pub use counters::CounterFigure;
pub use figures::{
    ClassFigure, DelayList, Interval, Observed, Over, QuantileFigure, SHARE_LIMITS, ShareFigure,
    Time,
};
pub use gap::{GapFigures, InterArrivals, PeriodFigure};
pub(crate) use instance::Instance;
pub use loads::{Daemon, LoadFigure, LoadRate};
pub use picture::{Band, Mark, PEAKS, Peak, TimePicture};
pub use places::{FactValue, Place, PlaceFact, Placement};
pub use summary::{
    CellFigures, CellSummary, Combination, NotMeasured, Notice, SCHEMA, State, Summary, Tsc,
};
pub use timed::{BLOCKS, Durations, TimedFigures};

use crate::error::ReportError;
use crate::wakeup::WakeupPictures;
use analyser::{Analyser, contribution};

const NO_SAMPLES: &str = "it holds no samples; measure it with at least one repetition";

/// Holds everything that a report says and shows.
#[derive(Clone, Debug)]
pub struct Analysis {
    summary: Summary,
    plan: Plan,
    machine: Option<MachineRecord>,
    cells: Vec<Cell>,
    woken: Vec<Cell>,
    alarms: Vec<Alarm>,
    pictures: Vec<Pictures>,
    wakeup_pictures: Vec<WakeupPictures>,
}

/// Holds what the pictures of one combination are drawn from.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Every run over time, in the order of the runs.
    pub runs: Vec<TimePicture>,
    /// Raw samples from the middle of the first run, as it was measured; empty for `gap`.
    pub window: Vec<Delay>,
    /// All samples of all runs; for `gap`, all listed gaps.
    pub counts: Counts,
    /// Times from gap to gap in bins of equal ratio, `gap` only.
    pub inter_arrivals: InterArrivals,
}

/// Holds a run in memory.
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

    /// Returns what the run was asked to do.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what the run was made on.
    #[must_use]
    pub fn machine(&self) -> Option<&MachineRecord> {
        self.machine.as_ref()
    }

    /// Returns the records of the cells whose figures are in the summary's `cells`, in running order: all that
    /// measured noise.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the records of the cells that measured wake-ups and have figures, in running order.
    #[must_use]
    pub fn woken(&self) -> &[Cell] {
        &self.woken
    }

    /// Returns the records of all cells that have figures.
    pub fn measured(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.woken)
    }

    /// Returns what bears on whether the figures may be believed, worst first.
    #[must_use]
    pub fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// Returns what the pictures of the summary's combinations are drawn from, in the same order.
    #[must_use]
    pub fn pictures(&self) -> &[Pictures] {
        &self.pictures
    }

    /// Returns what the pictures of the summary's wake-up combinations are drawn from, in the same order.
    #[must_use]
    pub fn wakeup_pictures(&self) -> &[WakeupPictures] {
        &self.wakeup_pictures
    }
}

/// Derives all figures of a run folder. Holds the samples of one cell at a time.
///
/// Cells that failed, are missing or damaged are left out and named in the summary.
///
/// # Errors
///
/// [`ReportError::Results`] if the samples of a cell cannot be read for a reason other than damage.
pub fn analyse(run: &RunFolder) -> Result<Analysis, ReportError> {
    analyse_with(run.plan().clone(), Some(run.machine().clone()), |plan| {
        let state = run.state(plan.id);
        if !matches!(state, CellState::Done(_)) {
            return Ok((state, Samples::default()));
        }
        match run.samples(plan.id) {
            Ok(samples) => Ok((state, samples)),
            // Files that are as they were written may still contradict each other.
            Err(ResultsError::Damaged { path, reason, .. }) => {
                Ok((CellState::Damaged { path, reason }, Samples::default()))
            }
            Err(error) => Err(error.into()),
        }
    })
}

/// Derives all figures of a run whose cells are read one at a time, in the order of the plan.
///
/// The samples of a cell that is not done are not looked at.
///
/// # Errors
///
/// Those of `read`.
pub fn analyse_with(
    plan: Plan,
    machine: Option<MachineRecord>,
    mut read: impl FnMut(&CellPlan) -> Result<(CellState, Samples), ReportError>,
) -> Result<Analysis, ReportError> {
    let mut analyser = Analyser::new(plan.clone(), machine);
    for cell in &plan.cells {
        let (state, samples) = read(cell)?;
        analyser.take(cell, state, &samples);
    }
    Ok(analyser.finish())
}

/// Derives the figures of one cell by itself, with the step of its timer; says why if it cannot.
pub(crate) fn figures_of(cell: &Cell, samples: &Samples) -> Result<(CellFigures, Time), String> {
    let Outcome::Done(measured) = &cell.outcome else {
        return Err("it failed".to_owned());
    };
    let hz = frequency::choose(&measured.frequencies).map(|frequency| frequency.hz);
    let contribution = contribution(&cell.plan, measured, samples, hz)
        .map_err(|error| error.to_string())?
        .ok_or(NO_SAMPLES)?;
    let step = Time::new(measured.calibration.step_cycles as f64, hz);
    Ok((contribution.figures, step))
}

impl RunData {
    /// Derives all figures.
    #[must_use]
    pub fn analyse(self) -> Analysis {
        let mut cells = self.cells.into_iter();
        let mut analyser = Analyser::new(self.plan.clone(), self.machine);
        for plan in &self.plan.cells {
            let missing = (CellState::Missing, Samples::default());
            let (state, samples) = cells.next().unwrap_or(missing);
            analyser.take(plan, state, &samples);
        }
        analyser.finish()
    }
}

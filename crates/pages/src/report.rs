//! The report of a run: its figures, and the story of each experiment.

use std::ops::Deref;

use tare_figures::analysis::{self, Account, Analysis, Experiments, Stories};
use tare_figures::claims::Published;
use tare_figures::gates::Gate;
use tare_figures::rows::{CellData, Measure};
use tare_figures::{ReportError, Run};
use tare_results::model::{CellPlan, Plan, Samples};
use tare_results::{CellState, MachineRecord, RunFolder};

use crate::view::{Catalogue, Story, View};

/// Everything that is shown of a run.
#[derive(Debug)]
pub struct Report {
    analysis: Analysis,
    stories: Vec<Box<dyn Story>>,
}

/// A run in memory.
#[derive(Clone, Debug)]
pub struct RunData {
    /// The plan.
    pub plan: Plan,
    /// The machine.
    pub machine: Option<MachineRecord>,
    /// The cells of the plan with their samples, in its order; those that it lacks at the end are
    /// missing.
    pub cells: Vec<(CellState, Samples)>,
}

/// The stories of a run's experiments, in the order of the report.
struct OfRun(Vec<Box<dyn Story>>);

impl Report {
    /// Lets pictures show the gates that judge the run.
    #[must_use]
    pub fn with_gates(mut self, gates: &[Gate]) -> Self {
        let limits = gates.iter().filter_map(Gate::time_limit);
        self.analysis.show_limits(limits.collect());
        self
    }

    /// Returns the stories of the experiments, in the order of the report.
    pub fn stories(&self) -> impl Iterator<Item = &dyn Story> {
        self.stories.iter().map(|story| &**story)
    }
}

impl Deref for Report {
    type Target = Analysis;

    fn deref(&self) -> &Analysis {
        &self.analysis
    }
}

impl Experiments for Catalogue {
    fn measures(&self, experiment: &str) -> Option<&'static [Measure]> {
        self.view(experiment).map(View::measures)
    }

    fn samples(&self, cell: &CellPlan, measure: &str) -> Option<u64> {
        self.view(&cell.experiment)?.samples(cell, measure)
    }

    fn elsewhere(&self, cell: &CellPlan, label: &str) -> Option<&'static str> {
        self.view(&cell.experiment)?.elsewhere(cell, label)
    }

    fn study(&self, name: &str) -> Option<&'static Published> {
        Catalogue::study(self, name)
    }
}

impl Stories for OfRun {
    fn take(&mut self, plan: &Plan, data: &CellData<'_>) -> Result<(), String> {
        let of = &data.plan().experiment;
        let story = self.0.iter_mut().find(|story| story.experiment() == of);
        story.map_or(Ok(()), |story| story.take(plan, data))
    }

    fn finish(&mut self, run: &Run) -> Vec<Account> {
        let accounts = self.0.iter_mut().map(|story| {
            story.complete(run);
            Account {
                experiment: story.experiment(),
                json: story.json(),
                notices: story.notices(run),
                verdict: story.verdict(run),
            }
        });
        accounts.collect()
    }
}

/// Derives all figures of a run folder. Holds the samples of one cell at a time.
///
/// Cells that failed, are missing or damaged are skipped and named in the summary.
///
/// # Errors
///
/// [`ReportError::Results`] if the samples of a cell cannot be read for a reason other than damage;
/// [`ReportError::Experiment`] if the plan has an experiment that is not in the catalogue.
pub fn analyse(run: &RunFolder, catalogue: &Catalogue) -> Result<Report, ReportError> {
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
/// Those of `read`, and [`ReportError::Experiment`] if the plan has an experiment that is not in
/// the catalogue.
pub fn analyse_with(
    plan: Plan,
    machine: Option<MachineRecord>,
    catalogue: &Catalogue,
    read: impl FnMut(&CellPlan) -> Result<(CellState, Samples), ReportError>,
) -> Result<Report, ReportError> {
    let is_planned = |view: &&&'static dyn View| {
        let mut cells = plan.cells.iter();
        cells.any(|cell| cell.experiment == view.experiment())
    };
    let views = catalogue.views.iter().filter(is_planned);
    let mut stories = OfRun(views.map(|view| view.begin()).collect());
    let analysis = analysis::analyse(plan, machine, catalogue, &mut stories, read)?;
    Ok(Report {
        analysis,
        stories: stories.0,
    })
}

impl RunData {
    /// Derives all figures.
    ///
    /// # Errors
    ///
    /// [`ReportError::Experiment`] if the plan has an experiment that is not in the catalogue.
    pub fn analyse(self, catalogue: &Catalogue) -> Result<Report, ReportError> {
        let mut cells = self.cells.into_iter();
        analyse_with(self.plan, self.machine, catalogue, |_| {
            let missing = (CellState::Missing, Samples::default());
            Ok(cells.next().unwrap_or(missing))
        })
    }
}

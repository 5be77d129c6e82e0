//! The seam between this kit and the experiments.
//!
//! An experiment is a [`View`]: its measures, from which all its rows follow, and the way to its
//! [`Story`]: the verdict, the special pictures, the checks. While the cells of a run are taken one
//! by one, a story keeps of their samples what rows can't hold: reduced for pictures, the worst
//! moments of traces. Tables are data: from lists of columns the kit makes those of terminal, page
//! and every run. An experiment begins with a list of measures and the plain story, which is made
//! of rows alone.

use std::fmt::Debug;

use maud::{Markup, html};
use serde_json::Value;
use tare_figures::Run;
use tare_figures::claims::Published;
use tare_figures::notices::Notice;
use tare_figures::rows::{self, CellData, Collector, Measure, behind};
use tare_figures::verdict::Verdict;
use tare_results::model::{Cell, CellPlan, Outcome, Plan, Samples};

use crate::html::{Detail, Section};
use crate::table::Titled;
use crate::tables::{Line, Tabled};

/// What can be shown: experiments in the order of a report, and published studies.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// The experiments.
    pub views: Vec<&'static dyn View>,
    /// The studies.
    pub studies: Vec<&'static Published>,
}

/// An experiment, as far as its figures are derived and shown.
pub trait View: Debug + Sync {
    /// Returns the name of the experiment.
    fn experiment(&self) -> &'static str;

    /// Lists what it measures, the most important first.
    fn measures(&self) -> &'static [Measure];

    /// Lists the published studies whose claims take this experiment.
    fn studies(&self) -> &'static [&'static Published] {
        &[]
    }

    /// Begins its story: [`Plain`](crate::plain::Plain) is made of rows alone.
    fn begin(&self) -> Box<dyn Story>;

    /// Returns how many samples of a measure a run of a cell has for certain; None if only running
    /// it shows that.
    fn samples(&self, _cell: &CellPlan, _measure: &str) -> Option<u64> {
        None
    }

    /// Says which other runs have a label that no figure of a cell has; None if its figures may
    /// have it, or none ever has.
    fn elsewhere(&self, _cell: &CellPlan, _label: &str) -> Option<&'static str> {
        None
    }

    /// Says in one short line what a cell has shown.
    ///
    /// # Errors
    ///
    /// Why the cell shows nothing.
    fn live(&self, data: &CellData<'_>) -> Result<String, String> {
        rows::live(self.measures(), data)
    }
}

/// The part of a report that only this experiment knows.
pub trait Story: Debug {
    /// Returns the name of the experiment.
    fn experiment(&self) -> &'static str;

    /// Takes what it needs of a cell of the experiment that ran to its end.
    ///
    /// # Errors
    ///
    /// The problem with the cell. Then it has no rows either.
    fn take(&mut self, _run: &Plan, _data: &CellData<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Takes what it needs of the complete run, before anything is shown.
    fn complete(&mut self, _run: &Run) {}

    /// Returns its tables of figures.
    fn tables(&self, run: &Run) -> Vec<Tabled>;

    /// Returns the heading and the name of a line of its tables.
    fn name(&self, _run: &Run, line: &Line<'_>) -> (Option<String>, String) {
        let name = line.target() + &behind(&line.labels, &[]);
        let heading = (!line.of.load.is_idle()).then(|| format!("under {}", line.of.load));
        (heading, name)
    }

    /// Puts the lines of one of its tables in order; those that don't belong into it are taken
    /// away.
    fn arrange(&self, _run: &Run, _tabled: &Tabled, _lines: &mut Vec<Line<'_>>) {}

    /// Returns its part of `stories` in `summary.json`: what programs may read besides rows.
    fn json(&self) -> Value {
        Value::Null
    }

    /// Returns what bears on whether its figures may be believed.
    fn notices(&self, _run: &Run) -> Vec<Notice> {
        Vec::new()
    }

    /// Says what the run says; `None` if nothing was measured. Cautions are the whole run's.
    fn verdict(&self, run: &Run) -> Option<Verdict>;

    /// Returns tables that a terminal shows after those of rows; a page has them in its sections.
    fn more(&self, _run: &Run) -> Vec<Titled> {
        Vec::new()
    }

    /// Renders the picture that goes with the verdict.
    fn first_picture(&self, _run: &Run, _detail: &Detail) -> Option<Markup> {
        None
    }

    /// Returns its sections of the page, besides its tables.
    fn sections(&self, _run: &Run, _detail: &Detail) -> Vec<Section> {
        Vec::new()
    }

    /// Renders how it measures, a paragraph each.
    fn method(&self) -> Markup {
        html! {}
    }

    /// Says what its method can't see.
    fn limits(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns CSV files with the columns of a study, each with its name.
    fn csv(&self, _run: &Run) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl Catalogue {
    /// Finds an experiment by its name.
    #[must_use]
    pub fn view(&self, experiment: &str) -> Option<&'static dyn View> {
        let mut views = self.views.iter();
        views.find(|view| view.experiment() == experiment).copied()
    }

    /// Finds a published study by its short name.
    #[must_use]
    pub fn study(&self, name: &str) -> Option<&'static Published> {
        let mut studies = self.studies.iter();
        studies.find(|study| study.name == name).copied()
    }

    /// Checks what a cell has measured, as its report will.
    ///
    /// # Errors
    ///
    /// The problem with the cell.
    pub fn check(&self, plan: &Plan, cell: &Cell, samples: &Samples) -> Result<(), String> {
        let view = self.view(&cell.plan.experiment);
        let Some((view, data)) = view.zip(CellData::new(cell, samples)) else {
            return Ok(());
        };
        Collector::default().take(view.measures(), &data)?;
        view.begin().take(plan, &data)
    }

    /// Says in one short line what a cell has shown, or why it has shown nothing.
    #[must_use]
    pub fn live(&self, cell: &Cell, samples: &Samples) -> String {
        let told = match &cell.outcome {
            Outcome::Failed { reason } => format!("failed: {reason}"),
            Outcome::LeftOut { reason } => format!("left out: {reason}"),
            Outcome::NotTried { reason } => format!("not tried: {reason}"),
            Outcome::Done { .. } => {
                let view = self.view(&cell.plan.experiment);
                let data = CellData::new(cell, samples);
                let told = view.zip(data).map(|(view, data)| view.live(&data));
                let told = told.unwrap_or_else(|| Err("nothing is known of its experiment".into()));
                told.unwrap_or_else(|reason| reason)
            }
        };
        let cut_short = cell.outcome.cut_short();
        let cut_short = cut_short.map_or_else(String::new, |why| format!(" (cut short: {why})"));
        format!("{}: {told}{cut_short}", cell.plan.label())
    }
}

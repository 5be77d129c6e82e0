//! Takes the cells of a run one by one and puts their figures together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tare_results::model::{Cell, CellPlan, Outcome, Plan, Samples};
use tare_results::{CellState, MachineRecord};

use super::loads::Disturbances;
use super::summary::{NotMeasured, Notice, SCHEMA, State, Summary};
use super::{Analysis, Run, checks, other_work, places};
use crate::claims;
use crate::error::ReportError;
use crate::rows::flat::Origin;
use crate::rows::{self, CellData};
use crate::verdict;
use crate::view::{Catalogue, Collect, View};

/// Collects the figures of a run cell by cell.
pub(super) struct Analyser {
    plan: Plan,
    machine: Option<MachineRecord>,
    cells: Vec<Cell>,
    experiments: Vec<(&'static dyn View, Box<dyn Collect>)>,
    rows: rows::Collector,
    not_measured: Vec<NotMeasured>,
    notices: Vec<Notice>,
    disturbances: Disturbances,
}

impl Analyser {
    pub(super) fn new(
        plan: Plan,
        machine: Option<MachineRecord>,
        catalogue: &Catalogue,
    ) -> Result<Self, ReportError> {
        let unknown = |cell: &&CellPlan| catalogue.view(&cell.experiment).is_none();
        if let Some(cell) = plan.cells.iter().find(unknown) {
            return Err(ReportError::Experiment(cell.experiment.clone()));
        }
        let is_planned = |view: &&&'static dyn View| {
            let mut cells = plan.cells.iter();
            cells.any(|cell| cell.experiment == view.experiment())
        };
        let views = catalogue.views.iter().filter(is_planned);
        Ok(Self {
            experiments: views.map(|view| (*view, view.begin(&plan))).collect(),
            plan,
            machine,
            cells: Vec::new(),
            rows: rows::Collector::default(),
            not_measured: Vec::new(),
            notices: Vec::new(),
            disturbances: Disturbances::default(),
        })
    }

    /// Takes one cell of the plan; the samples are looked at only if it is done.
    pub(super) fn take(&mut self, plan: &CellPlan, state: CellState, samples: &Samples) {
        let (state, reason) = match state {
            CellState::Done(cell) | CellState::Failed(cell) => {
                for text in &cell.notices {
                    Notice::add(&mut self.notices, text, cell.plan.id);
                }
                self.disturbances.take(&cell);
                match cell.outcome {
                    Outcome::Done { .. } => match self.take_done(*cell, samples) {
                        Ok(()) => return,
                        Err(reason) => (State::Contradictory, reason),
                    },
                    Outcome::LeftOut { reason } => (State::LeftOut, reason),
                    Outcome::Failed { reason } => (State::Failed, reason),
                }
            }
            CellState::Missing => {
                let reason = "not measured yet; `--resume` with this run folder does it";
                (State::Missing, reason.to_owned())
            }
            CellState::Damaged { path, reason } => {
                let file = path.file_name().unwrap_or(path.as_os_str());
                let reason = format!(
                    "{} {reason}; `--resume` with this run folder measures the cell again",
                    file.to_string_lossy()
                );
                (State::Damaged, reason)
            }
        };
        self.not_measured.push(NotMeasured {
            id: plan.id,
            block: plan.block,
            label: plan.label(),
            state,
            reason,
        });
    }

    /// Takes a cell that ran to its end; says what is wrong with it if it cannot be used.
    fn take_done(&mut self, cell: Cell, samples: &Samples) -> Result<(), String> {
        let data =
            CellData::new(&cell, samples).ok_or("its record says that it was not measured")?;
        let mut experiments = self.experiments.iter_mut();
        let (view, collect) = experiments
            .find(|(view, _)| view.experiment() == cell.plan.experiment)
            .ok_or("the plan does not have its experiment")?;
        let rows = self.rows.derive(view.measures(), &data)?;
        collect.take(&self.plan, &data)?;
        self.rows.add_all(rows, &data);
        self.cells.push(cell);
        Ok(())
    }

    pub(super) fn finish(self, catalogue: &Catalogue) -> Analysis {
        let run = Run {
            plan: self.plan,
            machine: self.machine,
            cells: self.cells,
            rows: self.rows.finish(),
        };
        let experiments = self.experiments.into_iter();
        let (names, stories): (Vec<_>, Vec<_>) = experiments
            .map(|(view, collect)| (view.experiment(), collect.finish(&run)))
            .unzip();
        let mut alarms = other_work::find(&run);
        alarms.extend(checks::find(&run));
        alarms.extend(stories.iter().flat_map(|story| story.alarms(&run)));
        alarms.sort_by_key(|alarm| Reverse(alarm.severity));
        let (loads, daemons) = self.disturbances.finish();
        let reproduction = claims::reproduction(&run, catalogue);
        let told = names
            .into_iter()
            .zip(stories.iter().map(|story| story.json()));
        let summary = Summary {
            schema: SCHEMA,
            tare_version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: run.plan.experiment.clone(),
            created: run.plan.created,
            cpu: run.plan.cpu,
            planned: run.plan.cells.len() as u64,
            done: run.cells.len() as u64,
            verdict: verdict::of(
                &run,
                &stories,
                reproduction.as_ref(),
                &alarms,
                &self.not_measured,
            ),
            alarms,
            loads,
            daemons,
            places: places::collect(&run.cells),
            not_measured: self.not_measured,
            notices: self.notices,
            reproduction,
            figures: run.rows.over_blocks(&Origin::of(&run.plan)),
            stories: told
                .map(|(name, json)| (name.to_owned(), json))
                .collect::<BTreeMap<_, _>>(),
        };
        Analysis {
            run,
            summary,
            stories,
        }
    }
}

//! Takes the cells of a run one by one and puts their figures together.

use std::cmp::Reverse;

use tare_results::model::{Cell, CellPlan, Outcome, Plan, Record, Samples};
use tare_results::target::Kernel;
use tare_results::{CellState, MachineRecord};

use super::loads::Disturbances;
use super::{Analysis, Experiments, SCHEMA, Stories, Summary, checks, other_work};
use crate::error::ReportError;
use crate::notices::{AgentNotice, NotMeasured, State};
use crate::rows::flat::Origin;
use crate::rows::{self, CellData};
use crate::run::Run;
use crate::{places, verdict};

/// Returns the reason why a record has no figure, with some of its reports; `None` if it has one.
#[must_use]
pub fn empty(record: &Record) -> Option<String> {
    /// The number of reports that a reason quotes.
    const QUOTED: usize = 3;
    // Stolen time is no measurement.
    let mut values = record.values.iter();
    let has_value = values.any(|value| value.measure != "stolen");
    let is_empty = record.sets.is_empty() && !has_value && record.arrived.is_none();
    let facts = record.programs.iter().flat_map(|program| &program.facts);
    let reports = facts.filter(|fact| !fact.labels.is_empty()).take(QUOTED);
    let reports = reports.map(|fact| format!("; {}: {}", fact.labels, fact.value));
    is_empty.then(|| format!("it ended without a figure{}", reports.collect::<String>()))
}

/// Collects the figures of a run cell by cell.
pub(super) struct Analyser<'a> {
    known: &'a dyn Experiments,
    stories: &'a mut dyn Stories,
    plan: Plan,
    machine: Option<MachineRecord>,
    cells: Vec<Cell>,
    rows: rows::Collector,
    not_measured: Vec<NotMeasured>,
    notices: Vec<AgentNotice>,
    disturbances: Disturbances,
}

impl<'a> Analyser<'a> {
    pub(super) fn new(
        plan: Plan,
        machine: Option<MachineRecord>,
        known: &'a dyn Experiments,
        stories: &'a mut dyn Stories,
    ) -> Result<Self, ReportError> {
        let unknown = |cell: &&CellPlan| known.measures(&cell.experiment).is_none();
        if let Some(cell) = plan.cells.iter().find(unknown) {
            return Err(ReportError::Experiment(cell.experiment.clone()));
        }
        Ok(Self {
            known,
            stories,
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
                    AgentNotice::add(&mut self.notices, text, cell.plan.id);
                }
                match cell.outcome {
                    Outcome::Done { .. } => match self.take_done(*cell, samples) {
                        Ok(()) => return,
                        Err(reason) => (State::Contradictory, reason),
                    },
                    Outcome::LeftOut { reason } => (State::LeftOut, reason),
                    Outcome::Failed { reason } => (State::Failed, reason),
                    Outcome::NotTried { reason } => (State::NotTried, reason),
                }
            }
            CellState::Missing => {
                let reason = "not measured yet; `--resume` with this run folder does it";
                (State::Missing, reason.to_owned())
            }
            CellState::Damaged { path, reason } => {
                let file = path.file_name().unwrap_or(path.as_os_str());
                let remedy = match plan.target.kernel() {
                    Kernel::Unknown => "import the file again",
                    _ => "`--resume` with this run folder measures the cell again",
                };
                let reason = format!("{}: {reason}; {remedy}", file.to_string_lossy());
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
        let measures = self.known.measures(&cell.plan.experiment);
        let measures = measures.ok_or("the plan does not have its experiment")?;
        let rows = self.rows.derive(measures, &data)?;
        self.stories.take(&self.plan, &data)?;
        self.rows.add_all(rows, &data);
        self.disturbances.take(&cell);
        self.cells.push(cell);
        Ok(())
    }

    /// Lists all cells as not measured, with their reports, if none has a single figure.
    fn drop_empty(&mut self) {
        let reasons = self.cells.iter();
        let reasons = reasons.map(|cell| empty(cell.outcome.record()?));
        let Some(reasons) = reasons.collect::<Option<Vec<String>>>() else {
            return;
        };
        for (cell, reason) in self.cells.drain(..).zip(reasons) {
            self.not_measured.push(NotMeasured {
                id: cell.plan.id,
                block: cell.plan.block,
                label: cell.plan.label(),
                state: State::Empty,
                reason,
            });
        }
        self.not_measured.sort_by_key(|cell| cell.id);
        self.rows = rows::Collector::default();
        self.disturbances = Disturbances::default();
    }

    pub(super) fn finish(mut self) -> Analysis {
        self.drop_empty();
        let run = Run {
            plan: self.plan,
            machine: self.machine,
            cells: self.cells,
            rows: self.rows.finish(),
            limits: Vec::new(),
        };
        let mut accounts = self.stories.finish(&run);
        let mut alarms = other_work::find(&run);
        alarms.extend(checks::find(&run));
        alarms.extend(
            accounts
                .iter_mut()
                .flat_map(|account| account.notices.drain(..)),
        );
        alarms.sort_by_key(|alarm| Reverse(alarm.severity));
        let (loads, daemons) = self.disturbances.finish();
        let study = run.plan.study.as_ref();
        let study = study.and_then(|study| self.known.study(study.reproduces.as_deref()?));
        let reproduction = study.map(|study| study.of(&run));
        let told = accounts
            .iter_mut()
            .filter_map(|account| account.verdict.take());
        let summary = Summary {
            schema: SCHEMA,
            tare_version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: run.plan.experiment.clone(),
            created: run.plan.created,
            cpu: run.plan.measured_cpu().filter(|_| !run.is_imported()),
            planned: run.plan.cells.len() as u64,
            done: run.cells.len() as u64,
            verdict: verdict::of(
                &run,
                told,
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
            stories: accounts
                .into_iter()
                .map(|account| (account.experiment.to_owned(), account.json))
                .collect(),
        };
        Analysis { run, summary }
    }
}

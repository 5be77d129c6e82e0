//! Takes the cells of a run one by one and puts their figures together.

use tare_results::model::{Cell, CellPlan, Outcome, Plan, Record, Samples, SetSamples};
use tare_results::{CellState, MachineRecord, TscFrequency, frequency};
use tare_stats::{ClassTable, Counts, StatsError};

use super::alarm::Alarm;
use super::combine::{self, CombinedFigures};
use super::counters::{self, Counted};
use super::figures::Time;
use super::gap::{self, GapFigures, InterArrivals};
use super::loads::Disturbances;
use super::notices;
use super::picture::{self, TimePicture};
use super::places::{self, Placement};
use super::summary::{
    CellFigures, CellSummary, Combination, NotMeasured, Notice, SCHEMA, State, Summary, Tsc,
};
use super::timed::{self, TimedFigures};
use super::{Analysis, Batch, NO_SAMPLES, Pictures, attribution, batch_of, checks};
use crate::rows::flat::Origin;
use crate::rows::{self, CellData};
use crate::{measures, published, verdict, wakeup};

/// Collects the figures of a run cell by cell.
pub(super) struct Analyser {
    plan: Plan,
    machine: Option<MachineRecord>,
    cells: Vec<(Cell, Option<TscFrequency>)>,
    summaries: Vec<CellSummary>,
    groups: Vec<Repeated>,
    not_measured: Vec<NotMeasured>,
    notices: Vec<Notice>,
    disturbances: Disturbances,
    wakeups: wakeup::Collector,
    woken: Vec<(Cell, Option<TscFrequency>)>,
    rows: rows::Collector,
}

/// Collects the cells that repeat each other.
struct Repeated {
    plan: CellPlan,
    planned_runs: u64,
    /// Places in the list of cells with figures.
    members: Vec<usize>,
    classes: Option<ClassTable>,
    pictures: Pictures,
}

/// Is what one cell adds to its combination.
pub(super) struct Contribution {
    pub figures: CellFigures,
    counts: Counts,
    classes: ClassTable,
    inter_arrivals: InterArrivals,
    mean_cycles: f64,
}

impl Analyser {
    pub(super) fn new(plan: Plan, machine: Option<MachineRecord>) -> Self {
        let mut groups: Vec<Repeated> = Vec::new();
        for cell in plan.cells.iter().filter(|cell| !wakeup::is_wakeup(cell)) {
            match groups.iter_mut().find(|group| group.plan.repeats(cell)) {
                Some(group) => group.planned_runs += 1,
                None => groups.push(Repeated {
                    plan: cell.clone(),
                    planned_runs: 1,
                    members: Vec::new(),
                    classes: None,
                    pictures: Pictures::default(),
                }),
            }
        }
        Self {
            wakeups: wakeup::Collector::new(&plan),
            rows: rows::Collector::default(),
            woken: Vec::new(),
            plan,
            machine,
            cells: Vec::new(),
            summaries: Vec::new(),
            groups,
            not_measured: Vec::new(),
            notices: Vec::new(),
            disturbances: Disturbances::default(),
        }
    }

    /// Takes one cell of the plan; the samples are looked at only if it is done.
    pub(super) fn take(&mut self, plan: &CellPlan, state: CellState, samples: &Samples) {
        let (state, reason) = match state {
            CellState::Done(cell) | CellState::Failed(cell) => {
                self.remark(&cell);
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

    fn remark(&mut self, cell: &Cell) {
        for text in &cell.notices {
            Notice::add(&mut self.notices, text, cell.plan.id);
        }
        self.disturbances.take(cell);
    }

    /// Takes a cell that ran to its end; says what is wrong with it if it cannot be used.
    fn take_done(&mut self, cell: Cell, samples: &Samples) -> Result<(), String> {
        let data =
            CellData::new(&cell, samples).ok_or("its record says that it was not measured")?;
        let measures = measures::of(&cell.plan.experiment);
        let program = data.program();
        let frequency = program.and_then(|program| frequency::choose(&program.frequencies));
        if wakeup::is_wakeup(&cell.plan) {
            self.wakeups.take(&self.plan, &cell, samples)?;
            self.rows.take(measures, &data)?;
            self.woken.push((cell, frequency));
            return Ok(());
        }
        let rows = self.rows.derive(measures, &data)?;
        let (batch, samples) = batch_of(&cell, samples)?;
        let hz = frequency.as_ref().map(|frequency| frequency.hz);
        let contribution = contribution(&cell.plan, &batch, samples, hz)
            .map_err(|error| error.to_string())?
            .ok_or(NO_SAMPLES)?;
        // Every cell of the plan has its group.
        let Some(group) = self.groups.iter_mut().find(|g| g.plan.repeats(&cell.plan)) else {
            return Err("the plan does not have it".to_owned());
        };
        self.rows.add_all(rows, &data);
        let columns = picture::columns_for(group.planned_runs as usize);
        group
            .add(cell.plan.block, columns, &batch, samples, &contribution)
            .map_err(|error| error.to_string())?;
        group.members.push(self.summaries.len());
        self.summaries.push(CellSummary {
            id: cell.plan.id,
            block: cell.plan.block,
            label: cell.plan.label(),
            tsc: frequency.as_ref().map(|frequency| Tsc {
                hz: frequency.hz,
                source: frequency.source,
                uncertainty_ppm: frequency.uncertainty_ppm,
                confirmed_by: frequency.confirmed_by,
                note: frequency.note.clone(),
                contradiction: frequency.contradiction.clone(),
            }),
            figures: contribution.figures,
        });
        self.cells.push((cell, frequency));
        Ok(())
    }

    pub(super) fn finish(self) -> Analysis {
        let Self {
            plan,
            machine,
            cells,
            summaries,
            groups,
            not_measured,
            notices,
            disturbances,
            wakeups,
            woken,
            rows,
        } = self;
        let rows = rows.finish();
        let (loads, daemons) = disturbances.finish();
        let (combinations, pictures): (Vec<Combination>, Vec<Pictures>) = groups
            .into_iter()
            .filter_map(|group| group.combine(&plan, &cells, &summaries))
            .unzip();
        let (wakeups, wakeup_pictures) = wakeups.finish();
        let mut alarms = checks::find(&cells, &woken, &combinations, machine.as_ref());
        alarms.extend(wakeup::checks::find(&wakeups, &woken));
        alarms.sort_by_key(|alarm| std::cmp::Reverse(alarm.severity()));
        let attribution = attribution::find(&attribution::Source {
            plan: &plan,
            cells: &cells,
            summaries: &summaries,
            combinations: &combinations,
        });
        let verdict = verdict::of(&verdict::Evidence {
            cpu: plan.cpu,
            planned: plan.cells.len(),
            combinations: &combinations,
            wakeups: &wakeups,
            alarms: &alarms,
            attribution: &attribution,
            not_measured: &not_measured,
            machine: machine.as_ref(),
        });
        let summary = Summary {
            schema: SCHEMA,
            tare_version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: plan.experiment.clone(),
            created: plan.created,
            cpu: plan.cpu,
            planned: plan.cells.len() as u64,
            done: (summaries.len() + woken.len()) as u64,
            verdict,
            alarms: alarms.iter().map(Alarm::figure).collect(),
            attribution,
            combinations,
            wakeups,
            loads,
            daemons,
            places: places::collect(cells.iter().chain(&woken).map(|(cell, _)| cell)),
            cells: summaries,
            not_measured,
            notices: notices::join(notices),
            reproduction: None,
            figures: rows.over_blocks(&Origin::of(&plan)),
        };
        let mut analysis = Analysis {
            summary,
            plan,
            machine,
            cells: cells.into_iter().map(|(cell, _)| cell).collect(),
            woken: woken.into_iter().map(|(cell, _)| cell).collect(),
            alarms,
            rows,
            pictures,
            wakeup_pictures,
        };
        analysis.summary.reproduction = published::reproduction(&analysis);
        analysis
    }
}

impl Repeated {
    fn add(
        &mut self,
        block: u32,
        columns: usize,
        batch: &Batch<'_>,
        samples: &SetSamples,
        contribution: &Contribution,
    ) -> Result<(), StatsError> {
        let pictures = &mut self.pictures;
        let classes = match &self.classes {
            Some(classes) => classes.add(&contribution.classes)?,
            None => contribution.classes.clone(),
        };
        let counts = pictures.counts.merge(&contribution.counts)?;
        pictures.inter_arrivals.add(&contribution.inter_arrivals);
        pictures.counts = counts;
        self.classes = Some(classes);
        if pictures.runs.is_empty() {
            pictures.window.clone_from(&samples.raw);
        }
        pictures.runs.push(TimePicture::new(
            block,
            columns,
            batch,
            samples,
            contribution.mean_cycles,
        ));
        Ok(())
    }

    /// Puts the runs together; `None` if there are none.
    fn combine(
        self,
        run: &Plan,
        cells: &[(Cell, Option<TscFrequency>)],
        summaries: &[CellSummary],
    ) -> Option<(Combination, Pictures)> {
        let classes = self.classes?;
        let runs: Vec<&CellSummary> = self.members.iter().map(|&i| &summaries[i]).collect();
        let members = self.members.iter();
        let records: Vec<&Record> = members
            .filter_map(|&i| cells[i].0.outcome.record())
            .collect();
        let programs = || records.iter().filter_map(|record| record.program());
        let mut placements: Vec<Placement> = Vec::new();
        for program in programs() {
            let placement = Placement::of(run, &self.plan.target, program);
            if !placements.contains(&placement) {
                placements.push(placement);
            }
        }
        let tsc_hz = runs.first()?.tsc.as_ref().map(|tsc| tsc.hz);
        let timed: Vec<&TimedFigures> = runs.iter().filter_map(|r| r.figures.timed()).collect();
        let gaps: Vec<&GapFigures> = runs.iter().filter_map(|r| r.figures.gap()).collect();
        let figures = if gaps.is_empty() {
            CombinedFigures::Timed(Box::new(combine::timed(&timed, &classes, tsc_hz)?))
        } else {
            CombinedFigures::Gap(Box::new(combine::gap(&gaps, &classes, tsc_hz)?))
        };
        let step = programs().map(|p| p.calibration.step_cycles).max()?;
        let counted: Vec<Counted> = records.iter().map(|r| Counted::of(r, tsc_hz)).collect();
        let plan = self.plan;
        let combination = Combination {
            label: plan.label(),
            target: plan.target.text.clone(),
            group: plan.target.group,
            spec: plan.target,
            placements,
            load: plan.load,
            workload: plan.workload,
            size: plan.size,
            timing: plan.timing,
            emulated: programs().any(|program| program.agent.emulated),
            repetitions: plan.repetitions,
            planned_runs: self.planned_runs,
            runs: runs.len() as u64,
            cells: runs.iter().map(|run| run.id).collect(),
            tsc_hz,
            timer_step: Time::new(step as f64, tsc_hz),
            counters: counters::combine(&counted),
            figures,
        };
        Some((combination, self.pictures))
    }
}

/// Derives the figures of one cell by the kind of its workload; `Ok(None)` without samples.
pub(super) fn contribution(
    plan: &CellPlan,
    batch: &Batch<'_>,
    samples: &SetSamples,
    hz: Option<f64>,
) -> Result<Option<Contribution>, StatsError> {
    if batch.is_gap() {
        let gaps = gap::analyse(batch, samples, hz)?;
        return Ok(gaps.map(|gaps| Contribution {
            mean_cycles: gaps.figures.mean.cycles,
            counts: gaps.counts,
            classes: gaps.classes,
            inter_arrivals: gaps.inter_arrivals,
            figures: CellFigures::Gap(Box::new(gaps.figures)),
        }));
    }
    let timed = timed::analyse(plan, batch, samples, hz)?;
    Ok(timed.map(|timed| Contribution {
        mean_cycles: timed.figures.raw.mean.cycles,
        counts: timed.counts,
        classes: timed.classes,
        inter_arrivals: InterArrivals::default(),
        figures: CellFigures::Timed(Box::new(timed.figures)),
    }))
}

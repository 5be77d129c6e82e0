//! From a plan to a filled run folder.
//!
//! Cells run one after the other, in the plan's order, those that the folder already has left out.
//! A cell that fails is recorded with its reason, and the next one runs; only a folder that can't
//! be written ends the run. The first request to end (Ctrl-C) ends a cell that reports what it has,
//! and lets any other one finish; the second one kills it.

use std::cell::RefCell;
use std::collections::HashMap;

use jiff::Timestamp;
use tare_guard::{Guard, Interrupt};
use tare_results::model::{Cell, CellPlan, Fact, Outcome, Plan, SCHEMA, Samples};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_results::{ResultsError, RunFolder};
use tare_targets::{Availability, Program, Target, spec, start};

use crate::check::network;
use crate::engines::Engines;
use crate::error::ExperimentError;
use crate::ladder::Ladders;
use crate::settings::Switches;
use crate::stage::{Driven, Event, Observer, Reported, Stage};

/// Counts what came of a run's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cells that failed, now.
    pub failed: usize,
    /// Cells that were not tried, now, because what must work before them failed.
    pub not_tried: usize,
    /// Cells that were cut short, now, because the user asked to end: 0 or 1.
    pub cut_short: usize,
    /// Cells that did not run, because the user asked to end.
    pub left: usize,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            _ if outcome.cut_short().is_some() => self.cut_short += 1,
            Outcome::Failed { .. } => self.failed += 1,
            Outcome::NotTried { .. } => self.not_tried += 1,
            Outcome::Done { .. } | Outcome::LeftOut { .. } => {}
        }
    }
}

/// Runs the cells that are missing from `folder`. A cell that ran to its end and that `check`
/// rejects has failed.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a target of the plan does not exist or the folder can't be
/// written. Cells written so far are kept.
pub fn execute(
    folder: &RunFolder,
    drive: impl Fn(&mut Stage<'_>) -> Driven,
    check: impl Fn(&Plan, &Cell, &Samples) -> Result<(), String>,
    guard: &Guard,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Tally, ExperimentError> {
    let missing: Vec<CellPlan> = folder.missing().into_iter().cloned().collect();
    let targets = Targets::of(&missing)?;
    let mut engines = Engines::new(folder.plan().start_engine);
    let mut tally = Tally::default();
    let mut starts = HashMap::new();
    let mut ladders = Ladders::of(folder);
    for (number, plan) in (1..).zip(&missing) {
        if interrupt.finish_requested() {
            tally.left = missing.len() + 1 - number;
            break;
        }
        let of = missing.len();
        observer.on_event(Event::CellBegan { plan, number, of });
        let left_out = || match network(plan) {
            Availability::Unusable { why: reason, .. } => Some(Outcome::LeftOut { reason }),
            Availability::Usable => None,
        };
        if let Some(outcome) = ladders.above(plan).or_else(left_out) {
            let cell = &targets.cell(plan, outcome);
            folder.write_cell(cell, None)?;
            tally.count(&cell.outcome);
            let samples = None;
            observer.on_event(Event::Ended { cell, samples });
            continue;
        }
        let continued = interrupt.continued();
        let not_yet = Outcome::Failed {
            reason: String::new(),
        };
        let cell = targets.cell(plan, not_yet);
        let target = &targets.by_spec[&plan.target];
        let switches = Switches::change(plan, guard);
        let group = switches.partition.as_ref();
        let mut stage = Stage::begin(plan, cell, (target, group), guard, interrupt, observer);
        let engine = engines.prepare(&targets, plan, guard);
        let driven = stage.with_engine(engine).and_then(|()| drive(&mut stage));
        let Some((cell, samples)) = stage.finish(driven) else {
            tally.left = missing.len() + 1 - number;
            break;
        };
        let mut cell = engines.judge(cell);
        cell.unswitched = switches.restore();
        if let (
            Outcome::Done {
                cut_short: None, ..
            },
            Some(samples),
        ) = (&cell.outcome, &samples)
            && let Err(reason) = check(folder.plan(), &cell, samples)
        {
            cell.outcome = Outcome::Failed { reason };
        }
        let samples = samples.filter(|_| cell.outcome.record().is_some());
        let (cell, samples) = write(folder, cell, samples)?;
        // A start during which the run was suspended says nothing about the next one.
        if interrupt.continued() == continued
            && let Some(seconds) = samples.as_ref().and_then(start_of)
        {
            let longest = starts.entry(&plan.target).or_insert(0.0);
            *longest = f64::max(*longest, seconds);
        }
        ladders.take(&cell);
        tally.count(&cell.outcome);
        let (cell, samples) = (&cell, samples.as_ref());
        observer.on_event(Event::Ended { cell, samples });
    }
    start::remember(
        starts
            .into_iter()
            .map(|(spec, seconds)| (targets.by_spec[spec].target.as_ref(), seconds)),
    );
    match engines.stop(&targets) {
        // Who can't wait leaves it to the guard.
        Err(_) if interrupt.kill_requested() => {}
        stopped => stopped?,
    }
    Ok(tally)
}

/// Returns how many seconds it took until the measured code of a cell was ready.
fn start_of(samples: &Samples) -> Option<f64> {
    let instance = samples.instances.first()?;
    let ns = instance.ready_ns.checked_sub(instance.started_ns)?;
    Some(ns as f64 / 1e9)
}

/// Writes a cell; one whose facts contradict each other is written as failed.
fn write(
    folder: &RunFolder,
    cell: Cell,
    samples: Option<Samples>,
) -> Result<(Cell, Option<Samples>), ResultsError> {
    match folder.write_cell(&cell, samples.as_ref()) {
        Ok(()) => Ok((cell, samples)),
        Err(error @ ResultsError::Inconsistent { .. }) => {
            let reason = error.to_string();
            let failed = Cell {
                outcome: Outcome::Failed { reason },
                ..cell
            };
            folder.write_cell(&failed, None)?;
            Ok((failed, None))
        }
        Err(error) => Err(error),
    }
}

/// The targets of a plan, with what executes the measured code there.
pub(crate) struct Targets {
    by_spec: HashMap<TargetSpec, Prepared>,
    /// When this invocation began.
    invocation: Timestamp,
}

/// A target, and what executes the measured code there.
pub(crate) struct Prepared {
    pub(crate) target: Box<dyn Target>,
    pub(crate) program: Program,
    /// Its reports, by the work for which it made them.
    pub(crate) reported: RefCell<HashMap<Work, Reported>>,
    /// The block in which it reported nothing, what it was asked, and why: other cells of the block
    /// are not kept waiting for as long again.
    pub(crate) silent: RefCell<Option<(u32, Work, String)>>,
}

impl Prepared {
    /// Asks the target whether it looks from inside as it was asked for.
    pub(crate) fn verify(&self, facts: &[Fact]) -> Result<(), String> {
        self.target.verify(&|name| {
            let mut named = facts.iter().filter(|fact| fact.name == name);
            named.next().map(|fact| fact.value.as_str())
        })
    }
}

impl Targets {
    /// Lists all targets.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &dyn Target> {
        self.by_spec.values().map(|one| one.target.as_ref())
    }

    fn of(cells: &[CellPlan]) -> Result<Self, ExperimentError> {
        let mut by_spec = HashMap::new();
        for cell in cells {
            if !by_spec.contains_key(&cell.target) {
                let target = spec::of(&cell.target)?;
                let program = target.program()?;
                let prepared = Prepared {
                    target,
                    program,
                    reported: RefCell::default(),
                    silent: RefCell::default(),
                };
                by_spec.insert(cell.target.clone(), prepared);
            }
        }
        Ok(Self {
            by_spec,
            invocation: tare_results::now()?,
        })
    }

    /// Makes the cell of a plan, as far as it is known before it runs.
    fn cell(&self, plan: &CellPlan, outcome: Outcome) -> Cell {
        Cell {
            schema: SCHEMA,
            plan: plan.clone(),
            invocation: self.invocation,
            // The clock was read before; if it is set to an invalid date since, that time stands.
            started_at: tare_results::now().unwrap_or(self.invocation),
            outcome,
            notices: Vec::new(),
            load: None,
            daemons: Vec::new(),
            other_work: None,
            guest_work: None,
            unswitched: Vec::new(),
        }
    }
}

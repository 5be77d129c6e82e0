//! From a plan to a filled run folder.
//!
//! Cells run one after the other, in the plan's order, those that the folder already has left out.
//! A cell that fails is recorded with its reason, and the next one runs; only a folder that can't
//! be written ends the run. The first request to end (Ctrl-C) lets the running cell finish, the
//! second one kills it.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use tare_guard::{Guard, Interrupt};
use tare_results::model::{Agent, Cell, CellPlan, Events, Measurement, Outcome, SCHEMA, Samples};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_results::{ResultsError, RunFolder};
use tare_targets::instance::{Ended, Ending, Watcher, now_ns};
use tare_targets::{Program, Target, TargetError, spec};

use crate::error::ExperimentError;

/// Is told what happens during a run.
pub trait Observer {
    /// Is told that a cell starts: the `number`th of `of` that run now.
    fn started(&mut self, plan: &CellPlan, number: usize, of: usize);

    /// May redraw a progress display. Returns after how long again, or None if nobody looks.
    fn tick(&mut self) -> Option<Duration>;

    /// Is told what came of a cell, after it was written.
    fn finished(&mut self, cell: &Cell, samples: Option<&Samples>);
}

/// Counts what came of a run's cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cells that ran to their end, now.
    pub done: usize,
    /// Cells that failed, now.
    pub failed: usize,
    /// Cells that did not run, because the user asked to end.
    pub left: usize,
}

/// Runs the cells that are missing from `folder`.
///
/// Changed settings are put back before this returns.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a target of the plan does not exist, a setting can't be changed
/// or the folder can't be written. Cells written so far are kept.
pub fn execute(
    folder: &RunFolder,
    guard: &Guard,
    interrupt: &Interrupt,
    observer: &mut impl Observer,
) -> Result<Tally, ExperimentError> {
    let missing: Vec<CellPlan> = folder.missing().into_iter().cloned().collect();
    let places = Places::of(&missing)?;
    let mut settings = Vec::new();
    for setting in &folder.plan().settings {
        settings.push(guard.set(Path::new(&setting.path), &setting.value)?);
    }
    let mut tally = Tally::default();
    for (number, plan) in (1..).zip(&missing) {
        if interrupt.finish_requested() {
            tally.left = missing.len() + 1 - number;
            break;
        }
        observer.started(plan, number, missing.len());
        let Some((cell, samples)) = places.run(plan, guard, interrupt, observer) else {
            tally.left = missing.len() + 1 - number;
            break;
        };
        let (cell, samples) = write(folder, cell, samples)?;
        match cell.outcome {
            Outcome::Done(_) => tally.done += 1,
            Outcome::Failed { .. } => tally.failed += 1,
        }
        observer.finished(&cell, samples.as_ref());
    }
    // In reverse order: the last change is the first to be undone.
    while let Some(setting) = settings.pop() {
        setting.restore()?;
    }
    Ok(tally)
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

/// Holds the targets of a plan by their spec, with what executes the measured code there.
struct Places(HashMap<String, Place>);

struct Place {
    target: Box<dyn Target>,
    program: Program,
}

impl Places {
    fn of(cells: &[CellPlan]) -> Result<Self, ExperimentError> {
        let mut places = HashMap::new();
        for cell in cells {
            if !places.contains_key(&cell.target) {
                let target = spec::parse(&cell.target)?;
                let program = target.program()?;
                places.insert(cell.target.clone(), Place { target, program });
            }
        }
        Ok(Self(places))
    }

    /// Runs one cell. Returns None if the user asked to stop before it was done.
    fn run(
        &self,
        plan: &CellPlan,
        guard: &Guard,
        interrupt: &Interrupt,
        observer: &mut impl Observer,
    ) -> Option<(Cell, Option<Samples>)> {
        let place = &self.0[&plan.target];
        let started_at = Timestamp::now();
        let mut events = Events {
            planned_ns: now_ns(),
            ..Events::default()
        };
        let mut listener = Listener {
            receiver: Receiver::default(),
            ready_ns: None,
            observer,
        };
        let ended = place
            .target
            .launch(&plan.words, guard)
            .and_then(|instance| {
                events.started_ns = instance.started_ns;
                let limit = Duration::try_from_secs_f64(plan.limit_seconds)
                    .unwrap_or(Duration::MAX)
                    .min(LONGEST);
                instance.watch(limit, interrupt, &mut listener)
            });
        if matches!(&ended, Ok(ended) if ended.how == Ending::Stopped) {
            return None;
        }
        events.ready_ns = listener.ready_ns;
        events.exited_ns = ended.as_ref().ok().map(|ended| ended.exited_ns);
        let (outcome, samples, notices) =
            match judge(plan, ended, listener.receiver, &place.program) {
                Ok((measurement, samples, notices)) => {
                    (Outcome::Done(Box::new(measurement)), Some(samples), notices)
                }
                Err(reason) => (Outcome::Failed { reason }, None, Vec::new()),
            };
        let cell = Cell {
            schema: SCHEMA,
            plan: plan.clone(),
            started_at,
            events,
            outcome,
            notices,
        };
        Some((cell, samples))
    }
}

/// Is the longest limit of a cell: a year. A deadline further away than the clock reaches would
/// overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Passes lines to the receiver, and ticks to the observer.
struct Listener<'a, O> {
    receiver: Receiver,
    ready_ns: Option<u64>,
    observer: &'a mut O,
}

impl<O: Observer> Watcher for Listener<'_, O> {
    fn line(&mut self, line: &[u8], at_ns: u64) {
        if self.receiver.line(line) == Seen::Ready {
            self.ready_ns.get_or_insert(at_ns);
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        self.observer.tick()
    }
}

/// Decides whether a cell is done, and if not, why.
fn judge(
    plan: &CellPlan,
    ended: Result<Ended, TargetError>,
    receiver: Receiver,
    program: &Program,
) -> Result<(Measurement, Samples, Vec<String>), String> {
    let ended = ended.map_err(|error| error.to_string())?;
    let received = receiver.finish();
    match ended.how {
        Ending::Done => {
            let received = received.map_err(|incomplete| incomplete.to_string())?;
            Ok(measurement(received, program))
        }
        Ending::Failed { why } => Err(match received {
            Err(Incomplete::Failed { text }) => text,
            _ => why,
        }),
        Ending::TimedOut { doing } => Err(format!(
            "nothing came for too long: it was ended after its limit of {:.0} s, while {}{}. Is the \
             CPU taken by a SCHED_FIFO task or a stopped process? `--cell-limit` changes the limit",
            plan.limit_seconds,
            match received {
                Err(incomplete) => incomplete.to_string(),
                Ok(_) => "all records had come".to_owned(),
            },
            doing.map(|doing| format!("; {doing}")).unwrap_or_default()
        )),
        Ending::Stopped => Err("stopped by the user".to_owned()),
    }
}

fn measurement(received: Received, program: &Program) -> (Measurement, Samples, Vec<String>) {
    let notices = received.notices.into_iter().chain(program.notice.clone());
    let measurement = Measurement {
        agent: Agent {
            version: received.version,
            environment: received.environment,
            sha256: program.sha256.clone(),
            emulated: program.emulated,
            accelerator: program.accelerator.clone(),
        },
        preparation: received.preparation,
        calibration: received.calibration,
        frequencies: received.frequencies,
        batch: received.batch,
        counters: received.counters,
    };
    (measurement, received.samples, notices.collect())
}

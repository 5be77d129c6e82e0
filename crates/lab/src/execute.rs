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
use tare_loads::LoadError;
use tare_results::model::{
    Agent, Cell, CellPlan, Exceeded, Fact, Instance, Outcome, SCHEMA, Samples,
};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_results::target::TargetSpec;
use tare_results::{ResultsError, RunFolder};
use tare_targets::instance::{Ended, Ending, Watcher, now_ns};
use tare_targets::{Job, Program, Target, TargetError, engine, spec};
use tare_wire::record::Live;

use crate::engines::Engines;
use crate::error::ExperimentError;
use crate::loaded::Loaded;

/// Takes note of what happens during a run.
pub trait Observer {
    /// Takes note that a cell starts: the `number`th of `of` that run now.
    fn started(&mut self, plan: &CellPlan, number: usize, of: usize);

    /// May redraw a progress display. Returns after how long again, or None if nobody looks.
    fn tick(&mut self) -> Option<Duration>;

    /// Takes note of how far a measuring thread is, if the cell's plan asks for it.
    fn live(&mut self, _plan: &CellPlan, _live: &Live) {}

    /// Takes note, at once, that a value above the limit of the cell's plan was seen.
    fn exceeded(&mut self, _plan: &CellPlan, _exceeded: &Exceeded) {}

    /// Takes note of what came of a cell, after it was written.
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
    let mut engines = Engines::new(folder.plan().start_engine);
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
        let ready = engines.prepare(&places, plan, guard);
        let Some((cell, samples)) = places.run(plan, ready, guard, interrupt, observer) else {
            tally.left = missing.len() + 1 - number;
            break;
        };
        let (cell, samples) = write(folder, cell, samples)?;
        match cell.outcome {
            Outcome::Done { .. } | Outcome::LeftOut { .. } => tally.done += 1,
            Outcome::Failed { .. } => tally.failed += 1,
        }
        observer.finished(&cell, samples.as_ref());
    }
    engines.stop(&places)?;
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

/// The targets of a plan, with what executes the measured code there.
pub(crate) struct Places {
    targets: HashMap<TargetSpec, Place>,
    /// When this invocation began.
    invocation: Timestamp,
}

struct Place {
    target: Box<dyn Target>,
    program: Program,
}

impl Place {
    /// Asks the target whether the place looks from inside as it was asked for.
    fn verify(&self, facts: &[Fact]) -> Result<(), String> {
        self.target.verify(&|name| {
            let mut named = facts.iter().filter(|fact| fact.name == name);
            named.next().map(|fact| fact.value.as_str())
        })
    }
}

impl Places {
    /// Returns the target of a cell.
    pub(crate) fn target(&self, plan: &CellPlan) -> &dyn Target {
        self.targets[&plan.target].target.as_ref()
    }

    /// Lists all targets.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &dyn Target> {
        self.targets.values().map(|place| place.target.as_ref())
    }

    fn of(cells: &[CellPlan]) -> Result<Self, ExperimentError> {
        let mut places = HashMap::new();
        for cell in cells {
            if !places.contains_key(&cell.target) {
                let target = spec::of(&cell.target)?;
                let program = target.program()?;
                places.insert(cell.target.clone(), Place { target, program });
            }
        }
        Ok(Self {
            targets: places,
            invocation: Timestamp::now(),
        })
    }

    /// Runs one cell. Returns None if the user asked to stop before it was done.
    fn run(
        &self,
        plan: &CellPlan,
        ready: Result<(), TargetError>,
        guard: &Guard,
        interrupt: &Interrupt,
        observer: &mut impl Observer,
    ) -> Option<(Cell, Option<Samples>)> {
        let place = &self.targets[&plan.target];
        let daemons = engine::daemons();
        let target = place.target.as_ref();
        let started_at = Timestamp::now();
        let cell = |outcome, notices, load| Cell {
            schema: SCHEMA,
            plan: plan.clone(),
            invocation: self.invocation,
            started_at,
            outcome,
            notices,
            load,
            daemons,
        };
        let mut loaded = match Loaded::start(plan, target, guard, interrupt) {
            Ok(loaded) => loaded,
            Err(LoadError::Stopped) => return None,
            Err(error) => return Some((cell(failed(&error), Vec::new(), None), None)),
        };
        let mut times = Instance {
            planned_ns: now_ns(),
            ..Instance::default()
        };
        let load = loaded.inside().map(str::to_owned);
        let job = Job {
            work: &plan.work,
            load: load.as_deref(),
        };
        let mut listener = Listener {
            plan,
            receiver: Receiver::default(),
            ready_ns: None,
            loaded: &mut loaded,
            observer,
        };
        let ended = ready
            .and_then(|()| target.launch(&job, guard))
            .and_then(|instance| {
                times.started_ns = instance.started_ns;
                let limit = Duration::try_from_secs_f64(plan.limit_seconds)
                    .unwrap_or(Duration::MAX)
                    .min(LONGEST);
                instance.watch(limit, interrupt, &mut listener)
            });
        if matches!(&ended, Ok(ended) if ended.how == Ending::Stopped) {
            return None;
        }
        let (receiver, ready_ns) = (listener.receiver, listener.ready_ns);
        let load = loaded.stop();
        times.ready_ns = ready_ns.unwrap_or(0);
        times.exited_ns = ended.as_ref().map_or(0, |ended| ended.exited_ns);
        let (outcome, samples, notices) = match (judge(plan, ended, receiver, place), &load) {
            // Its figures would be those of a load that was not there.
            (Ok(_), Err(error)) => (failed(error), None, Vec::new()),
            (Ok((received, of_instance)), Ok(load)) => {
                let phases = load
                    .as_ref()
                    .map_or_else(Vec::new, |load| load.phases_of(plan));
                let program = place.program.clone();
                let agent = Agent {
                    sha256: program.sha256,
                    emulated: program.emulated,
                    accelerator: program.accelerator,
                    kernel: program.kernel,
                    ..Agent::default()
                };
                let (record, samples, mut notices) = received.into_record(agent, times, &phases);
                notices.extend(of_instance);
                notices.extend(program.notice);
                (Outcome::done(record), Some(samples), notices)
            }
            (Err(reason), _) => (Outcome::Failed { reason }, None, Vec::new()),
        };
        Some((cell(outcome, notices, load.ok().flatten()), samples))
    }
}

fn failed(error: &LoadError) -> Outcome {
    Outcome::Failed {
        reason: error.to_string(),
    }
}

/// The longest limit of a cell: a year. A deadline further away than the clock reaches would
/// overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Passes lines to the receiver, and ticks to the observer.
struct Listener<'a, O> {
    plan: &'a CellPlan,
    receiver: Receiver,
    ready_ns: Option<u64>,
    loaded: &'a mut Loaded,
    observer: &'a mut O,
}

impl<O: Observer> Watcher for Listener<'_, O> {
    fn line(&mut self, line: &[u8], at_ns: u64) {
        self.loaded.line(line);
        match self.receiver.line(line) {
            Seen::Ready => {
                self.ready_ns.get_or_insert(at_ns);
            }
            Seen::Live(live) => self.observer.live(self.plan, &live),
            Seen::Exceeded(exceeded) => self.observer.exceeded(self.plan, &exceeded),
            Seen::Begins { origin_ns } => self.loaded.begins(origin_ns, at_ns),
            Seen::Record | Seen::Last | Seen::Other => {}
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
    place: &Place,
) -> Result<(Received, Vec<String>), String> {
    let ended = ended.map_err(|error| error.to_string())?;
    let received = receiver.finish();
    match ended.how {
        Ending::Done => {
            let mut received = received.map_err(|incomplete| incomplete.to_string())?;
            place.verify(&received.program.facts)?;
            received.program.preparation.locked &= place.target.keeps_memory();
            Ok((received, ended.notices))
        }
        Ending::Failed { why } => Err(match received {
            Err(Incomplete::Failed { text }) => text,
            _ => why,
        }),
        Ending::TimedOut { doing } => Err(format!(
            "timed out after {:.0} s: {}{}. Is the CPU taken by a SCHED_FIFO task or a stopped process? \
             `--cell-limit` changes the limit",
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

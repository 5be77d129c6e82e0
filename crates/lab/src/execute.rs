//! From a plan to a filled run folder.
//!
//! Cells run one after the other, in the plan's order, those that the folder already has left out.
//! A cell that fails is recorded with its reason, and the next one runs; only a folder that can't
//! be written ends the run. The first request to end (Ctrl-C) ends a cell that reports what it has, and lets any other
//! one finish; the second one kills it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tare_guard::{Guard, Interrupt};
use tare_host::Source;
use tare_loads::LoadError;
use tare_results::frequency;
use tare_results::model::{
    self, Arrivals, Cell, CellPlan, Exceeded, Fact, Instance, OtherWork, Outcome, Record, SCHEMA,
    Samples,
};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_results::{ResultsError, RunFolder};
use tare_targets::instance::{Ended, Ending, Finish, Watcher, now_ns};
use tare_targets::starter::Order;
use tare_targets::{Job, Program, Target, TargetError, engine, spec, start};
use tare_wire::phases::LEAD_NS;
use tare_wire::record::Live;

use crate::engines::Engines;
use crate::error::ExperimentError;
use crate::ladder::Ladders;
use crate::loaded::Loaded;
use crate::many;
use crate::other_work::{self, OtherWorkWatch};
use crate::stolen::Stolen;

/// Takes note of what happens during a run.
pub trait Observer {
    /// Takes note that a cell starts: the `number`th of `of` that run now.
    fn started(&mut self, plan: &CellPlan, number: usize, of: usize);

    /// Takes note that the cell's guest boots.
    fn booting(&mut self, _plan: &CellPlan) {}

    /// Takes note that all is prepared and the measured code starts, with idle states held off or
    /// not (/dev/cpu_dma_latency).
    fn ready(&mut self, _plan: &CellPlan, _latency_held: bool) {}

    /// May redraw a progress display. Returns after how long again, or None if nobody looks.
    fn tick(&mut self) -> Option<Duration>;

    /// Takes note of how far a measuring thread is, if the cell's plan asks for it.
    fn live(&mut self, _plan: &CellPlan, _live: &Live) {}

    /// Takes note, at once, that a value above the limit of the cell's plan was seen.
    fn exceeded(&mut self, _plan: &CellPlan, _exceeded: &Exceeded) {}

    /// Takes note that the user asked to finish while the cell ran, and what becomes of it.
    fn finishing(&mut self, _plan: &CellPlan, _finish: Finish) {}

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
    /// Cells that were cut short, now, because the user asked to end: 0 or 1.
    pub cut_short: usize,
    /// Cells that did not run, because the user asked to end.
    pub left: usize,
}

/// Runs the cells that are missing from `folder`.
///
/// # Errors
///
/// Returns [`ExperimentError`] if a target of the plan does not exist or the folder can't be written. Cells written
/// so far are kept.
pub fn execute(
    folder: &RunFolder,
    guard: &Guard,
    interrupt: &Interrupt,
    observer: &mut impl Observer,
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
        observer.started(plan, number, missing.len());
        if let Some(reason) = ladders.leave_out(plan) {
            let cell = targets.left_out(plan, reason);
            folder.write_cell(&cell, None)?;
            tally.done += 1;
            observer.finished(&cell, None);
            continue;
        }
        let continued = interrupt.continued();
        let stage = Stage::begin(plan, interrupt);
        let ready = engines.prepare(&targets, plan, guard);
        let ran = targets.run(plan, ready, guard, &stage, observer);
        drop(stage);
        let Some((cell, samples)) = ran else {
            tally.left = missing.len() + 1 - number;
            break;
        };
        let cell = engines.judge(cell);
        let samples = samples.filter(|_| cell.outcome.record().is_some());
        let (cell, samples) = write(folder, cell, samples)?;
        // One that stood still meanwhile tells nothing of the next.
        if interrupt.continued() == continued
            && let Some(seconds) = samples.as_ref().and_then(start_of)
        {
            let longest = starts.entry(&plan.target).or_insert(0.0);
            *longest = f64::max(*longest, seconds);
        }
        ladders.take(&cell);
        match cell.outcome {
            _ if cell.outcome.cut_short().is_some() => tally.cut_short += 1,
            Outcome::Done { .. } | Outcome::LeftOut { .. } => tally.done += 1,
            Outcome::Failed { .. } => tally.failed += 1,
        }
        observer.finished(&cell, samples.as_ref());
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

/// The limit of a cell, for each of its three parts: it is prepared, measured, ended.
struct Stage<'a> {
    interrupt: &'a Interrupt,
    limit: Duration,
}

impl<'a> Stage<'a> {
    /// Begins to prepare a cell: there is nothing to be finished yet.
    fn begin(plan: &CellPlan, interrupt: &'a Interrupt) -> Self {
        let limit = Duration::try_from_secs_f64(plan.limit_seconds).unwrap_or(LONGEST);
        let stage = Self {
            interrupt,
            limit: limit.min(LONGEST),
        };
        interrupt.prepare(true);
        stage.bound();
        stage
    }

    /// Lets the limit count from now on.
    fn bound(&self) {
        self.interrupt.bound(Some(self.limit));
    }

    /// Begins to measure, under a limit of its own.
    fn measures(&self) {
        self.interrupt.prepare(false);
        self.interrupt.bound(None);
    }

    /// Says that the limit was reached, if it was, instead of what came of that.
    fn explain(&self, doing: &str, error: &dyn Display) -> String {
        match self.interrupt.left() {
            Some(Duration::ZERO) => format!(
                "timed out after {:.0} s while {doing}. `--cell-limit` changes the limit",
                self.limit.as_secs_f64()
            ),
            _ => error.to_string(),
        }
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        self.measures();
    }
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
struct Prepared {
    target: Box<dyn Target>,
    program: Program,
    /// What it told, by what it was asked.
    told: RefCell<HashMap<Work, Told>>,
    /// The block in which it told nothing, what it was asked, and why: others of the block are not kept waiting for as long again.
    silent: RefCell<Option<(u32, Work, String)>>,
}

impl Prepared {
    /// Asks the target whether it looks from inside as it was asked for.
    fn verify(&self, facts: &[Fact]) -> Result<(), String> {
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
                    told: RefCell::default(),
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

    /// Makes the cell of a rung that is not worth running.
    fn left_out(&self, plan: &CellPlan, reason: String) -> Cell {
        Cell {
            schema: SCHEMA,
            plan: plan.clone(),
            invocation: self.invocation,
            started_at: tare_results::now().unwrap_or(self.invocation),
            outcome: Outcome::LeftOut { reason },
            notices: Vec::new(),
            load: None,
            daemons: Vec::new(),
            other_work: None,
        }
    }

    /// Runs one cell. Returns None if the user asked to stop before there was anything to keep.
    fn run(
        &self,
        plan: &CellPlan,
        ready: Result<(), TargetError>,
        guard: &Guard,
        stage: &Stage<'_>,
        observer: &mut impl Observer,
    ) -> Option<(Cell, Option<Samples>)> {
        let interrupt = stage.interrupt;
        let prepared = &self.by_spec[&plan.target];
        let daemons = engine::daemons();
        let target = prepared.target.as_ref();
        // The clock was read before; whoever sets it to no date meanwhile gets that time.
        let started_at = tare_results::now().unwrap_or(self.invocation);
        let cell = |outcome, notices, load, other_work| Cell {
            schema: SCHEMA,
            plan: plan.clone(),
            invocation: self.invocation,
            started_at,
            outcome,
            notices,
            load,
            daemons,
            other_work,
        };
        let failed = |error: &dyn Display| {
            let reason = stage.explain(PREPARING, error);
            Outcome::Failed { reason }
        };
        if let Some(arrivals) = &plan.arrivals {
            let ran = self.run_many(plan, arrivals, ready, guard, stage, observer)?;
            let (outcome, samples, notices, load) = match ran {
                Ok(ran) => ran,
                Err(reason) => (Outcome::Failed { reason }, None, Vec::new(), None),
            };
            return Some((cell(outcome, notices, load, None), samples));
        }
        let mut loaded = match Loaded::start(plan, guard, interrupt) {
            Ok(loaded) => loaded,
            Err(_) if interrupt.stop_requested() => return None,
            Err(error) => return Some((cell(failed(&error), Vec::new(), None, None), None)),
        };
        let mut times = Instance {
            planned_ns: now_ns(),
            ..Instance::default()
        };
        if plan.target.kernel().is_guest() {
            observer.booting(plan);
        }
        let load = loaded.inside().map(str::to_owned);
        let job = Job {
            work: &plan.work,
            load: load.as_deref(),
        };
        let instance = match ready.and_then(|()| target.launch(&job, guard)) {
            Ok(instance) => instance,
            Err(_) if interrupt.stop_requested() => return None,
            Err(error) => {
                let load = loaded.stop().ok().flatten();
                return Some((cell(failed(&error), Vec::new(), load, None), None));
            }
        };
        stage.measures();
        times.started_ns = instance.started_ns;
        let mut listener = Listener {
            plan,
            receiver: Receiver::default(),
            ready_ns: None,
            begun: None,
            asked: None,
            loaded: &mut loaded,
            other_work: match plan.target.kernel().is_remote() {
                true => None,
                false => OtherWorkWatch::of(plan.work.measured_cpus(), instance.pid(), guard),
            },
            interrupt,
            observer,
        };
        let stolen = Stolen::begin(plan, Source::system());
        let ended = instance.watch(stage.limit, interrupt, &mut listener);
        let stolen = stolen.and_then(Stolen::end);
        let Listener {
            receiver,
            ready_ns,
            begun,
            asked,
            other_work,
            ..
        } = listener;
        let is_stopped = match &ended {
            Ok(ended) => ended.how == Ending::Stopped,
            Err(_) => interrupt.kill_requested(),
        };
        if is_stopped {
            return None;
        }
        let other_work = other_work.map(OtherWorkWatch::finish);
        stage.bound();
        let load = loaded.stop();
        times.ready_ns = ready_ns.unwrap_or(0);
        times.exited_ns = ended.as_ref().map_or(0, |ended| ended.exited_ns);
        let after = begun.map_or(Duration::ZERO, |begun| {
            let until = asked.unwrap_or_else(Instant::now);
            until.saturating_duration_since(begun + LEAD)
        });
        let judged = judge(plan, ended, receiver, prepared, other_work.as_ref());
        let (outcome, samples, notices) = match (judged, &load) {
            // Its figures would be those of a load that was not there, or of phases that nobody knows.
            (Ok(_), Err(error))
                if plan.phase_ns().is_some() || !matches!(error, LoadError::NotEnded { .. }) =>
            {
                let reason = stage.explain("ending its load", error);
                (Outcome::Failed { reason }, None, Vec::new())
            }
            (Ok((received, _)), _) if received.cut_short && asked.is_none() => {
                let reason = format!(
                    "something other than tare asked it to end after {:.1} s (`kill`, `docker stop`, a shutdown)",
                    after.as_secs_f64()
                );
                (Outcome::Failed { reason }, None, Vec::new())
            }
            (Ok((received, of_instance)), load) => {
                let is_cut_short = received.cut_short;
                let phases = match load {
                    Ok(Some(load)) => load.phases_of(plan),
                    _ => Vec::new(),
                };
                let agent = prepared.program.agent();
                let (mut record, samples, mut notices) =
                    received.into_record(agent, times, &phases);
                record.values.extend(stolen);
                if is_cut_short && record.sets.iter().all(|head| head.n == 0) {
                    return None;
                }
                notices.extend(of_instance);
                notices.extend(prepared.program.notice.clone());
                let not_ended = load.as_ref().err();
                notices.extend(not_ended.map(|error| stage.explain("ending its load", error)));
                let outcome = Outcome::Done {
                    record: Box::new(record),
                    cut_short: is_cut_short
                        .then(|| format!("interrupted after {:.1} s", after.as_secs_f64())),
                };
                (outcome, Some(samples), notices)
            }
            (Err(reason), _) => (Outcome::Failed { reason }, None, Vec::new()),
        };
        let cell = cell(outcome, notices, load.ok().flatten(), other_work);
        Some((cell, samples))
    }
}

/// What came of a cell: outcome, samples, notices, and what its load did.
type Parts = (Outcome, Option<Samples>, Vec<String>, Option<model::Load>);

impl Targets {
    /// Runs a cell with many instances: first one that tells of its program and its place, then all others. Returns None
    /// if the user asked to stop before there was anything to keep.
    fn run_many(
        &self,
        plan: &CellPlan,
        arrivals: &Arrivals,
        ready: Result<(), TargetError>,
        guard: &Guard,
        stage: &Stage<'_>,
        observer: &mut impl Observer,
    ) -> Option<Result<Parts, String>> {
        let interrupt = stage.interrupt;
        let prepared = &self.by_spec[&plan.target];
        let target = prepared.target.as_ref();
        let order = Order {
            work: &plan.work,
            command: arrivals.command.as_deref(),
            most_live: arrivals.most_live,
        };
        let preparing = |error: &dyn Display| Err(stage.explain(PREPARING, error));
        let told = match ready
            .map_err(|error| error.to_string())
            .and_then(|()| self.told(plan, arrivals, guard, stage, observer))
        {
            _ if interrupt.stop_requested() => return None,
            Ok(told) => told,
            Err(why) => return Some(Err(why)),
        };
        let starter = match target.starter(&order, guard) {
            _ if interrupt.stop_requested() => return None,
            Ok(starter) => starter,
            Err(error) => return Some(preparing(&error)),
        };
        let loaded = match Loaded::start(plan, guard, interrupt) {
            _ if interrupt.stop_requested() => return None,
            Ok(loaded) => loaded,
            Err(error) => return Some(preparing(&error)),
        };
        observer.ready(plan, false);
        stage.measures();
        let hz = frequency::choose(&told.program.frequencies).map(|tsc| tsc.hz);
        let mut tick = || observer.tick();
        let ran = many::run(
            arrivals,
            &starter,
            hz,
            stage.limit,
            guard,
            interrupt,
            &mut tick,
        );
        stage.bound();
        drop(starter);
        let load = loaded.stop();
        let ran = match ran {
            Ok(ran) => ran?,
            Err(why) => return Some(Err(why)),
        };
        let mut notices = told.notices;
        notices.extend(ran.notices);
        notices.extend(prepared.program.notice.clone());
        if let Err(error) = &load {
            notices.push(stage.explain("ending its load", error));
        }
        if ran.cut_short.is_some() && ran.instances.iter().all(|one| one.counts == 0) {
            return None;
        }
        let record = Record {
            programs: vec![told.program],
            values: ran.values,
            arrived: Some(ran.arrived),
            ..Record::default()
        };
        let outcome = Outcome::Done {
            record: Box::new(record),
            cut_short: ran
                .cut_short
                .map(|after| format!("interrupted after {:.1} s", after.as_secs_f64())),
        };
        let samples = Samples {
            instances: ran.instances,
            sets: Vec::new(),
        };
        Some(Ok((outcome, Some(samples), notices, load.ok().flatten())))
    }

    /// Asks a target once what it is, seen from inside; what it told before in this invocation is not asked again.
    ///
    /// # Errors
    ///
    /// Returns why it told nothing, or how it differs from what was asked for.
    fn told(
        &self,
        plan: &CellPlan,
        arrivals: &Arrivals,
        guard: &Guard,
        stage: &Stage<'_>,
        observer: &mut impl Observer,
    ) -> Result<Told, String> {
        let prepared = &self.by_spec[&plan.target];
        let agent = prepared.program.agent();
        let Some(work) = &arrivals.report else {
            return Ok(Told {
                program: model::Program {
                    agent,
                    ..model::Program::default()
                },
                notices: Vec::new(),
            });
        };
        let known = prepared.told.borrow().get(work.as_ref()).cloned();
        if let Some(told) = known {
            return Ok(told);
        }
        let silent = prepared.silent.borrow().clone();
        let is_same = |(block, asked, _): &(u32, Work, String)| {
            *block == plan.block && asked == work.as_ref()
        };
        if let Some((.., why)) = silent.filter(is_same) {
            return Err(format!("as before in this block: {why}"));
        }
        let told = ask(plan, prepared, work, guard, stage, observer);
        match &told {
            Ok(told) => {
                let mut known = prepared.told.borrow_mut();
                known.insert(work.as_ref().clone(), told.clone());
            }
            Err(_) if stage.interrupt.finish_requested() => {}
            Err(why) => {
                let silent = (plan.block, work.as_ref().clone(), why.clone());
                *prepared.silent.borrow_mut() = Some(silent);
            }
        }
        told
    }
}

/// Starts an instance by itself, and returns what it tells.
fn ask(
    plan: &CellPlan,
    prepared: &Prepared,
    work: &Work,
    guard: &Guard,
    stage: &Stage<'_>,
    observer: &mut impl Observer,
) -> Result<Told, String> {
    if plan.target.kernel().is_guest() {
        observer.booting(plan);
    }
    let told = |error: TargetError| stage.explain(PREPARING, &error);
    let instance = prepared.target.launch(&Job::idle(work), guard);
    let instance = instance.map_err(told)?;
    let mut asked = Asked {
        receiver: Receiver::default(),
        observer,
    };
    let ended = instance.watch(stage.limit, stage.interrupt, &mut asked);
    stage.bound();
    let (received, notices) = judge(plan, ended, asked.receiver, prepared, None)?;
    let (record, _, more) =
        received.into_record(prepared.program.agent(), Instance::default(), &[]);
    Ok(Told {
        program: record.programs.into_iter().next().unwrap_or_default(),
        notices: notices.into_iter().chain(more).collect(),
    })
}

/// What a target told of its program and itself.
#[derive(Clone, Debug)]
struct Told {
    program: model::Program,
    notices: Vec<String>,
}

/// Passes what a target tells to the receiver.
struct Asked<'a, O> {
    receiver: Receiver,
    observer: &'a mut O,
}

impl<O: Observer> Watcher for Asked<'_, O> {
    fn line(&mut self, line: &[u8], _at_ns: u64) {
        self.receiver.line(line);
    }

    fn tick(&mut self) -> Option<Duration> {
        self.observer.tick()
    }
}

/// How long after it was told the first sample is due.
const LEAD: Duration = Duration::from_nanos(LEAD_NS);

/// What is done before a cell is measured.
const PREPARING: &str = "preparing its target and its load";

/// The longest limit of a cell: a year. A deadline further away than the clock reaches would
/// overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Passes lines to the receiver, and ticks to the observer.
struct Listener<'a, O> {
    plan: &'a CellPlan,
    receiver: Receiver,
    ready_ns: Option<u64>,
    /// When it told the time of its first sample, and when it was asked to end.
    begun: Option<Instant>,
    asked: Option<Instant>,
    loaded: &'a mut Loaded,
    other_work: Option<OtherWorkWatch<'a>>,
    interrupt: &'a Interrupt,
    observer: &'a mut O,
}

impl<O: Observer> Watcher for Listener<'_, O> {
    fn line(&mut self, line: &[u8], at_ns: u64) {
        self.loaded.line(line);
        match self.receiver.line(line) {
            Seen::Ready => {
                self.ready_ns.get_or_insert(at_ns);
                let preparation = self.receiver.preparation();
                let latency_held = preparation.is_some_and(|done| done.latency_held);
                self.observer.ready(self.plan, latency_held);
                // Others say when they begin.
                if !self.plan.work.ends_early {
                    self.begins();
                }
            }
            Seen::Live(live) => self.observer.live(self.plan, &live),
            Seen::Exceeded(exceeded) => self.observer.exceeded(self.plan, &exceeded),
            Seen::Begins { origin_ns } => {
                self.begun = Some(Instant::now());
                self.loaded.begins(origin_ns, at_ns);
                self.begins();
            }
            Seen::Record | Seen::Last => {
                if let Some(watch) = &mut self.other_work {
                    watch.is_over();
                }
            }
            Seen::Remark | Seen::Other => {}
        }
    }

    fn finishing(&mut self) -> Finish {
        match (self.plan.work.ends_early, self.begun) {
            (false, _) if self.interrupt.stop_requested() => Finish::AtOnce,
            (false, _) => Finish::ByItself,
            (true, Some(_)) => Finish::Early,
            (true, None) => Finish::AtOnce,
        }
    }

    fn finishes(&mut self, finish: Finish) {
        self.asked = Some(Instant::now());
        self.observer.finishing(self.plan, finish);
    }

    fn tick(&mut self) -> Option<Duration> {
        let look = self.other_work.as_mut();
        let look = look.and_then(OtherWorkWatch::tick);
        let draw = self.observer.tick();
        look.into_iter().chain(draw).min()
    }
}

impl<O> Listener<'_, O> {
    fn begins(&mut self) {
        if let Some(watch) = &mut self.other_work {
            watch.begins();
        }
    }
}

/// Decides whether a cell is done, and if not, why, and who had its CPU meanwhile.
fn judge(
    plan: &CellPlan,
    ended: Result<Ended, TargetError>,
    receiver: Receiver,
    prepared: &Prepared,
    other_work: Option<&OtherWork>,
) -> Result<(Received, Vec<String>), String> {
    let blamed = other_work.and_then(other_work::blamed);
    let with_blamed = |why: String| match &blamed {
        Some(blamed) => format!("{why}. {blamed}"),
        None => why,
    };
    let ended = ended.map_err(|error| error.to_string())?;
    let received = receiver.finish();
    match ended.how {
        Ending::Done => {
            let mut received = received.map_err(|incomplete| incomplete.to_string())?;
            prepared.verify(&received.program.facts)?;
            received.program.preparation.locked &= prepared.target.keeps_memory();
            Ok((received, ended.notices))
        }
        Ending::Failed { why } => Err(match received {
            Err(Incomplete::Failed { text }) => with_blamed(text),
            _ => with_blamed(why),
        }),
        Ending::TimedOut { doing } => Err(format!(
            "timed out after {:.0} s: {}{}. `--cell-limit` changes the limit. {}",
            plan.limit_seconds,
            match received {
                Err(incomplete) => incomplete.to_string(),
                Ok(_) => "all records had come".to_owned(),
            },
            doing.map(|doing| format!("; {doing}")).unwrap_or_default(),
            blamed
                .as_deref()
                .unwrap_or("Is the CPU taken by a SCHED_FIFO task or a stopped process?")
        )),
        Ending::Stopped => Err("stopped by the user".to_owned()),
    }
}

//! The stage of one cell: where an experiment drives the instances of a target.
//!
//! An experiment decides how a cell is played ([`Experiment::drive`](crate::Experiment::drive)): by
//! one instance that measures ([`Stage::one`]) or by many that arrive ([`Stage::arrivals`]). The
//! stage starts the load, starts instances and watches them, and collects what the cell has besides
//! its outcome: notices, load, other work, samples. So nothing of it depends on how the cell is
//! played. Finer steps (start one, wait, ask) have no caller yet: a seam comes with its first one.
//!
//! Both ways take the same `Launch` and the same receiver of records. What waits differs, because
//! the tasks do: a single instance has a dialogue, with limits and samples of other work, for which
//! one thread polls; thousands of arrivals have launchers and an epoll set, so that no thread wakes
//! before something happens while start-up is measured.
//!
//! The limit of a cell holds for each of its three parts: it is prepared, measured, ended.

use std::fmt::Display;
use std::mem;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt};
use tare_host::Source;
use tare_loads::LoadError;
use tare_results::frequency;
use tare_results::model::{
    self, Arrivals, Cell, CellPlan, Exceeded, Instance, Labels, OtherWork, Outcome, Record,
    Samples, Value,
};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_results::target::{TargetOption, TargetSpec};
use tare_results::work::Work;
use tare_targets::instance::{Ended, Ending, Finish, OutputEvent, Watcher, now_ns};
use tare_targets::{Job, TargetError, engine, spec};
use tare_wire::cpus::Cpus;
use tare_wire::phases::LEAD_NS;
use tare_wire::record::Live;

use crate::execute::Prepared;
use crate::loaded::Loaded;
use crate::many;
use crate::other_work::{self, OtherWorkWatch};
use crate::served::Server;
use crate::stolen::Stolen;
use crate::units;

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A cell begins: the `number`th of `of` that run now.
    CellBegan {
        /// Its plan.
        plan: &'a CellPlan,
        /// Its number among them, from 1.
        number: usize,
        /// How many run now.
        of: usize,
    },
    /// A guest boots.
    Booting,
    /// All is prepared and the measured code starts.
    Ready {
        /// Whether idle states are held off (/dev/cpu_dma_latency).
        latency_held: bool,
    },
    /// A measuring thread reports how far it is, if the cell's plan asks for it.
    Live(Live),
    /// A value above the limit of the cell's plan was seen, just now.
    Exceeded(Exceeded),
    /// The user has asked to finish, and this becomes of the cell.
    Finishing(Finish),
    /// A cell has ended and was written.
    Ended {
        /// The cell.
        cell: &'a Cell,
        /// Its samples, if it has any.
        samples: Option<&'a Samples>,
    },
}

/// A receiver of the events of a run.
pub trait Observer {
    /// Takes an event.
    fn on_event(&mut self, event: Event<'_>);

    /// May redraw a progress display. Returns after how long again, or None if nobody looks.
    fn tick(&mut self) -> Option<Duration>;
}

/// The outcome of a cell, or why there is none.
pub type Driven = Result<Outcome, Unfinished>;

/// The reason why a cell has no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfinished {
    /// The user asked to stop before there was anything to keep. The cell stays missing.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
}

/// The time from the message that names the first sample's time to that time.
const LEAD: Duration = Duration::from_nanos(LEAD_NS);

/// The tasks before a cell is measured, and after.
const PREPARING: &str = "preparing its target and its load";
const ENDING: &str = "ending its load";
const ANALYSING: &str = "analysing its records";

/// The memory of a guest in MiB that is too little, and one that is enough.
const MEMORIES: [u64; 2] = [1, 512];
/// The longest time in which a guest with little memory is to become ready.
const TRIAL: Duration = Duration::from_secs(20);

/// Returns a guest with another size of its memory.
fn with_memory(target: &TargetSpec, mib: u64) -> TargetSpec {
    let mut target = target.clone();
    target.options.push(TargetOption {
        key: "mem".to_owned(),
        value: format!("{mib}M"),
    });
    target
}

/// The longest limit of a cell: a year. A deadline further away than the clock reaches would
/// overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The stage of one cell.
pub struct Stage<'a> {
    plan: &'a CellPlan,
    target: &'a Prepared,
    guard: &'a Guard,
    observer: &'a mut dyn Observer,
    limit: Limit<'a>,
    loaded: Loaded,
    server: Option<Server>,
    /// The cell as far as it is known.
    cell: Cell,
    samples: Option<Samples>,
}

/// A target's report about its program and itself.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    program: model::Program,
    notices: Vec<String>,
}

impl<'a> Stage<'a> {
    /// Begins to prepare a cell: there is nothing to be finished yet.
    pub(crate) fn begin(
        plan: &'a CellPlan,
        cell: Cell,
        target: &'a Prepared,
        guard: &'a Guard,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            plan,
            target,
            guard,
            observer,
            limit: Limit::begin(plan, interrupt),
            loaded: Loaded::Idle,
            server: None,
            cell,
            samples: None,
        }
    }

    /// Returns the plan of the cell.
    pub fn plan(&self) -> &CellPlan {
        self.plan
    }

    /// Plays the cell by one instance, which measures.
    ///
    /// # Errors
    ///
    /// Returns why there is no record.
    pub fn one(&mut self) -> Driven {
        let plan = self.plan;
        self.start_load()?;
        let planned_ns = now_ns();
        let load = self.loaded.inside().cloned();
        let job = Job {
            load: load.as_ref(),
            ..Job::idle(&plan.work)
        };
        let instance = self.start(&job)?;
        let watched = self.watch(instance, &plan.work, Some(plan.measured_cpus()))?;
        let times = Instance {
            planned_ns,
            ..watched.times
        };
        self.measured(watched, times)
    }

    /// Plays the cell by its server on the target, and a client on this machine, which measures.
    /// Of the address of the server's `port`, `words` makes the client's words, and `is_answered`
    /// waits for the first right answer, in the network of the client.
    ///
    /// # Errors
    ///
    /// Returns why there is no record.
    pub fn served(
        &mut self,
        port: u16,
        words: &dyn Fn(SocketAddr) -> String,
        is_answered: &(dyn Fn(SocketAddr) -> bool + Sync),
    ) -> Driven {
        let plan = self.plan;
        let Some(work) = &plan.server else {
            return self.one();
        };
        self.start_load()?;
        let planned_ns = now_ns();
        if plan.target.kernel().is_guest() {
            self.observer.on_event(Event::Booting);
        }
        let interrupt = self.limit.interrupt;
        let user_port = plan.has_user_network().then_some(port);
        let (label, value) = CellPlan::LEAST_MEMORY;
        let least = match plan.labels.get(label) == Some(value) {
            true => Some(self.least_memory(work, port, is_answered)?),
            false => None,
        };
        let smallest = least.map(|mib| spec::of(&with_memory(&plan.target, mib)));
        let smallest = self.prepared(smallest.transpose())?;
        let target = smallest.as_deref().unwrap_or(self.target.target.as_ref());
        let server = Server::start(target, work, user_port, self.guard, interrupt);
        let server = self.server.insert(self.prepared(server)?);
        let to = server.address(port);
        server.wait_for_answer(&|| is_answered(to));
        let client = Work {
            words: words(to),
            ..plan.work.clone()
        };
        let client = server.client(&client, self.guard);
        let times = server.times_of_start(planned_ns);
        let client = self.prepared(client)?;
        let watched = self.watch(client, &plan.work, Some(plan.measured_cpus()));
        let Some(mut server) = self.server.take() else {
            return Err(Unfinished::Stopped);
        };
        server.look();
        if let Some(why) = &server.ended {
            let why = format!("the server ended while the client asked it: {why}");
            return Err(Unfinished::Failed(why));
        }
        let mut watched = watched?;
        watched.values.extend(server.values());
        watched.values.extend(least.map(|mib| Value {
            measure: "least-memory".to_owned(),
            labels: Labels::default(),
            unit: "bytes".to_owned(),
            value: (mib << 20) as f64,
        }));
        // They are the client's, which is on no target.
        watched.received.program.facts.clear();
        drop(server);
        let times = Instance {
            exited_ns: now_ns(),
            ..times
        };
        self.measured(watched, times)
    }

    /// Finds the least memory of the guest in MiB with which its server still answers, by bisection.
    fn least_memory(
        &self,
        work: &Work,
        port: u16,
        is_answered: &(dyn Fn(SocketAddr) -> bool + Sync),
    ) -> Result<u64, Unfinished> {
        let (plan, interrupt) = (self.plan, self.limit.interrupt);
        let user_port = plan.has_user_network().then_some(port);
        let answers = |mib: u64| {
            let target = spec::of(&with_memory(&plan.target, mib))?;
            interrupt.bound(Some(TRIAL));
            let mut server =
                Server::start(target.as_ref(), work, user_port, self.guard, interrupt)?;
            let to = server.address(port);
            Ok::<_, TargetError>(server.wait_for_answer(&|| is_answered(to)))
        };
        let [mut fails, mut works] = MEMORIES;
        while works - fails > 1 {
            let mib = fails.midpoint(works);
            // A guest may end in any way.
            match answers(mib).unwrap_or(false) {
                true => works = mib,
                false => fails = mib,
            }
            if interrupt.stop_requested() {
                return Err(Unfinished::Stopped);
            }
        }
        self.limit.bound();
        Ok(works)
    }

    /// Ends the load, and makes the outcome of what an instance reported that measured.
    fn measured(&mut self, watched: Watched, times: Instance) -> Driven {
        let plan = self.plan;
        let Watched {
            received,
            notices,
            values,
            measured,
            was_asked,
            ..
        } = watched;
        let ended = self.end_load();
        // Its figures would be those of a load that was not there, or of phases that nobody knows.
        if let Err(error) = &ended
            && (plan.phase_ns().is_some() || !matches!(error, LoadError::NotEnded { .. }))
        {
            return Err(Unfinished::Failed(self.limit.explain(ENDING, error)));
        }
        let is_cut_short = received.cut_short;
        if is_cut_short && !was_asked {
            return Err(Unfinished::Failed(format!(
                "something other than tare asked it to end after {:.1} s (`kill`, `docker stop`, a shutdown)",
                measured.as_secs_f64()
            )));
        }
        let load = self.cell.load.as_ref();
        let phases = load.map_or_else(Vec::new, |load| load.phases_of(plan));
        let agent = self.target.program.agent();
        // Its rows are bounded, and a load that did not end in its time costs the cell no record.
        let (mut record, samples, more) = received.into_record(agent, times, &phases);
        record.values.extend(values);
        if is_cut_short && record.sets.iter().all(|head| head.n == 0) {
            return Err(Unfinished::Stopped);
        }
        let more = more.into_iter().map(|text| from_within(plan, text));
        self.cell.notices = more.collect();
        self.cell.notices.extend(notices);
        Ok(self.done(record, samples, is_cut_short.then_some(measured), ended))
    }

    /// Plays the cell by the many instances of its plan: first one that reports its program and its
    /// place, then all others.
    ///
    /// # Errors
    ///
    /// Returns why there is no record.
    pub fn arrivals(&mut self) -> Driven {
        let plan = self.plan;
        let Some(arrivals) = &plan.arrivals else {
            return self.one();
        };
        let Reported { program, notices } = match self.report(arrivals) {
            Err(_) if self.limit.interrupt.stop_requested() => Err(Unfinished::Stopped),
            reported => reported,
        }?;
        let job = Job {
            command: arrivals.command.as_deref(),
            is_alone: false,
            ..Job::idle(&plan.work)
        };
        let launch = self.prepared(self.target.target.launch(&job, self.guard))?;
        self.start_load()?;
        let latency_held = false;
        self.observer.on_event(Event::Ready { latency_held });
        self.limit.measures();
        let hz = frequency::choose(&program.frequencies).map(|tsc| tsc.hz);
        let Limit { interrupt, limit } = self.limit;
        let notify = &mut |finish: Option<Finish>| match finish {
            Some(finish) => self.observer.on_event(Event::Finishing(finish)),
            None => drop(self.observer.tick()),
        };
        let ran = many::run(arrivals, &launch, hz, limit, self.guard, interrupt, notify);
        self.limit.bound();
        drop(launch);
        let ended = self.end_load();
        let ran = ran?;
        self.cell.notices = notices;
        self.cell.notices.extend(ran.notices);
        let is_lowest = plan.rung.as_ref().is_none_or(|rung| rung.step == 0);
        match ran.why_none {
            Some(_) if ran.cut_short.is_some() => return Err(Unfinished::Stopped),
            // A target that does its work at no higher rate is saturated.
            Some(why) if is_lowest => return Err(Unfinished::Failed(why)),
            _ => {}
        }
        let record = Record {
            programs: vec![program],
            values: ran.values,
            arrived: Some(ran.arrived),
            ..Record::default()
        };
        let samples = Samples {
            instances: ran.instances,
            sets: Vec::new(),
        };
        Ok(self.done(record, samples, ran.cut_short, ended))
    }

    /// Records the daemons that run, now that the engine of the cell should.
    pub(crate) fn with_engine(
        &mut self,
        engine: Result<(), TargetError>,
    ) -> Result<(), Unfinished> {
        self.cell.daemons = engine::daemons();
        self.prepared(engine)
    }

    /// Passes on what came of preparing, unless the user has asked to stop.
    fn prepared<T, E: Display>(&self, result: Result<T, E>) -> Result<T, Unfinished> {
        match result {
            _ if self.limit.interrupt.stop_requested() => Err(Unfinished::Stopped),
            Ok(prepared) => Ok(prepared),
            Err(error) => Err(Unfinished::Failed(self.limit.explain(PREPARING, &error))),
        }
    }

    /// Ends what still runs. Returns the cell and its samples; None if it stays missing.
    pub(crate) fn finish(mut self, driven: Driven) -> Option<(Cell, Option<Samples>)> {
        let outcome = match driven {
            Ok(outcome) => Some(outcome),
            Err(Unfinished::Stopped) => {
                self.loaded = Loaded::Idle;
                None
            }
            Err(Unfinished::Failed(reason)) => {
                // That it can't be ended matters less.
                let _ = self.end_load();
                Some(Outcome::Failed { reason })
            }
        };
        self.limit.measures();
        self.cell.outcome = outcome?;
        Some((self.cell, self.samples))
    }

    /// Starts the load of the cell, if it has one and it runs on this machine.
    fn start_load(&mut self) -> Result<(), Unfinished> {
        let loaded = Loaded::start(self.plan, self.guard, self.limit.interrupt);
        self.loaded = self.prepared(loaded)?;
        Ok(())
    }

    /// Ends the load and keeps what it did.
    fn end_load(&mut self) -> Result<(), LoadError> {
        if !matches!(self.loaded, Loaded::Idle) {
            self.limit.bound();
            self.cell.load = mem::replace(&mut self.loaded, Loaded::Idle).stop()?;
        }
        Ok(())
    }

    /// Makes the outcome of a cell that has a record.
    fn done(
        &mut self,
        record: Record,
        samples: Samples,
        cut_short: Option<Duration>,
        load: Result<(), LoadError>,
    ) -> Outcome {
        let notices = &mut self.cell.notices;
        notices.extend(self.target.program.notice.clone());
        notices.extend(load.err().map(|error| self.limit.explain(ENDING, &error)));
        self.samples = Some(samples);
        let after = |after: Duration| format!("interrupted after {:.1} s", after.as_secs_f64());
        Outcome::Done {
            record: Box::new(record),
            cut_short: cut_short.map(after),
        }
    }

    /// Asks a target once what it is, seen from inside; what it reported before in this invocation
    /// is not asked again.
    fn report(&mut self, arrivals: &Arrivals) -> Result<Reported, Unfinished> {
        let target = self.target;
        let Some(work) = arrivals.report.as_deref() else {
            let program = model::Program {
                agent: target.program.agent(),
                ..model::Program::default()
            };
            let notices = Vec::new();
            return Ok(Reported { program, notices });
        };
        if let Some(reported) = target.reported.borrow().get(work) {
            return Ok(reported.clone());
        }
        if let Some((block, asked, why)) = &*target.silent.borrow()
            && (*block, asked) == (self.plan.block, work)
        {
            let why = format!("as before in this block: {why}");
            return Err(Unfinished::Failed(why));
        }
        let reported = self.ask(work);
        match &reported {
            Ok(reported) => {
                let mut known = target.reported.borrow_mut();
                known.insert(work.clone(), reported.clone());
            }
            Err(Unfinished::Failed(why)) if !self.limit.interrupt.finish_requested() => {
                *target.silent.borrow_mut() = Some((self.plan.block, work.clone(), why.clone()));
            }
            Err(_) => {}
        }
        reported
    }

    /// Starts an instance by itself, and returns what it reports.
    fn ask(&mut self, work: &Work) -> Result<Reported, Unfinished> {
        let instance = self.start(&Job::idle(work))?;
        let watched = self.watch(instance, &self.plan.work, None)?;
        let agent = self.target.program.agent();
        let of_nothing = Instance::default();
        let (record, _, more) = watched.received.into_record(agent, of_nothing, &[]);
        let more = more.into_iter().map(|text| from_within(self.plan, text));
        Ok(Reported {
            program: record.programs.into_iter().next().unwrap_or_default(),
            notices: watched.notices.into_iter().chain(more).collect(),
        })
    }

    /// Starts an instance of the target by itself.
    fn start(&mut self, job: &Job<'_>) -> Result<tare_targets::Instance, Unfinished> {
        if self.plan.target.kernel().is_guest() {
            self.observer.on_event(Event::Booting);
        }
        self.prepared(self.target.target.start(job, self.guard))
    }

    /// Watches an instance to its end that does some work. If CPUs are measured, so is what else
    /// runs there.
    fn watch(
        &mut self,
        instance: tare_targets::Instance,
        work: &Work,
        measured: Option<Cpus>,
    ) -> Result<Watched, Unfinished> {
        let (plan, target, guard) = (self.plan, self.target, self.guard);
        let mut times = Instance {
            started_ns: instance.started_ns,
            ..Instance::default()
        };
        if measured.is_some() {
            self.limit.measures();
        }
        let here = measured.filter(|_| !plan.target.kernel().is_remote());
        let cpus = measured.unwrap_or_default();
        let runs = self.server.as_ref().map_or(instance.pid(), Server::pid);
        let other_work =
            here.map(|cpus| OtherWorkWatch::of(cpus, plan.claimed_cpus(), runs, guard));
        let stolen = here.map(|cpus| Stolen::begin(&cpus, Source::system()));
        let Limit { interrupt, limit } = self.limit;
        let mut listener = Listener {
            receiver: Receiver::of(work),
            ready_ns: 0,
            begun: None,
            asked: None,
            other_work: other_work.flatten(),
            stage: self,
        };
        let ended = instance.watch(limit, interrupt, &mut listener);
        let stolen = stolen.flatten().and_then(Stolen::end);
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
            return Err(Unfinished::Stopped);
        }
        self.limit.bound();
        self.cell.other_work = other_work.map(OtherWorkWatch::finish);
        times.ready_ns = ready_ns;
        times.exited_ns = ended.as_ref().map_or(0, |ended| ended.exited_ns);
        let received = receiver.finish();
        // A client is on no target.
        let target = self.server.is_none().then_some(target);
        let judged = judge(plan, ended, received, target, self.cell.other_work.as_ref());
        let (mut received, notices) = judged.map_err(Unfinished::Failed)?;
        self.limit.check()?;
        let has_load = self.loaded.inside().is_some();
        self.cell.guest_work = other_work::of_guest(&mut received.program, has_load);
        // A client's thread has not the CPU that is watched.
        let left = other_work::left(&mut received.program).filter(|_| self.server.is_none());
        if let Some(left) = left {
            // Of this machine's CPU, a guest knows nothing.
            let other = match plan.target.kernel().is_host() {
                true => &mut self.cell.other_work,
                false => &mut self.cell.guest_work,
            };
            if let Some(other) = other.as_mut().filter(|_| cpus.count() == 1) {
                other_work::limit(other, left);
            }
        }
        Ok(Watched {
            received,
            notices,
            times,
            values: stolen.into_iter().collect(),
            measured: begun.map_or(Duration::ZERO, |begun| {
                let until = asked.unwrap_or_else(Instant::now);
                until.saturating_duration_since(begun + LEAD)
            }),
            was_asked: asked.is_some(),
        })
    }
}

/// Marks a text that a guest reports: it numbers its CPUs by itself.
fn from_within(plan: &CellPlan, text: String) -> String {
    match plan.target.kernel().is_guest() && plan.server.is_none() {
        true => format!("in the guest, {text}"),
        false => text,
    }
}

/// The result of an instance that was watched to its end.
struct Watched {
    received: Received,
    /// The remarks of its target.
    notices: Vec<String>,
    times: Instance,
    /// What this machine knows of it.
    values: Vec<Value>,
    /// How long it measured, if it says when it begins.
    measured: Duration,
    was_asked: bool,
}

/// The limit of a cell, for each of its parts.
#[derive(Clone, Copy)]
struct Limit<'a> {
    interrupt: &'a Interrupt,
    limit: Duration,
}

impl<'a> Limit<'a> {
    /// Begins to prepare a cell.
    fn begin(plan: &CellPlan, interrupt: &'a Interrupt) -> Self {
        let limit = Duration::try_from_secs_f64(plan.limit_seconds).unwrap_or(LONGEST);
        let limit = Self {
            interrupt,
            limit: limit.min(LONGEST),
        };
        interrupt.prepare(true);
        limit.bound();
        limit
    }

    /// Lets the limit count from now on.
    fn bound(&self) {
        self.interrupt.bound(Some(self.limit));
    }

    /// Begins to measure, under a separate limit.
    fn measures(&self) {
        self.interrupt.prepare(false);
        self.interrupt.bound(None);
    }

    /// Rejects an instance whose records took longer to analyse than the limit. A second Ctrl-C does
    /// not end the analysis: it is short, and the measurement is kept.
    fn check(&self) -> Result<(), Unfinished> {
        match self.interrupt.left() {
            Some(Duration::ZERO) => Err(Unfinished::Failed(self.explain(ANALYSING, &""))),
            _ => Ok(()),
        }
    }

    /// Says that the limit was reached, if it was, instead of what came of that.
    fn explain(&self, doing: &str, error: &dyn Display) -> String {
        match self.interrupt.left() {
            Some(Duration::ZERO) => format!(
                "timed out after {} while {doing}. `--cell-limit` changes the limit",
                units::limit(self.limit.as_secs_f64())
            ),
            _ => error.to_string(),
        }
    }
}

/// The receiver of what one instance writes.
struct Listener<'s, 'a> {
    stage: &'s mut Stage<'a>,
    receiver: Receiver,
    /// When it was ready; 0 until then.
    ready_ns: u64,
    /// When it reported the time of its first sample, and when it was asked to end.
    begun: Option<Instant>,
    asked: Option<Instant>,
    other_work: Option<OtherWorkWatch<'a>>,
}

impl Watcher for Listener<'_, '_> {
    fn on_event(&mut self, event: OutputEvent<'_>) {
        let (line, at_ns) = match event {
            OutputEvent::Line(line, at_ns) => (line, at_ns),
            OutputEvent::Finishing(finish) => {
                self.asked = Some(Instant::now());
                return self.stage.observer.on_event(Event::Finishing(finish));
            }
        };
        self.stage.loaded.line(line);
        match self.receiver.line(line) {
            Seen::Ready => {
                self.ready_ns = at_ns;
                let preparation = self.receiver.preparation();
                let latency_held = preparation.is_some_and(|done| done.latency_held);
                self.stage.observer.on_event(Event::Ready { latency_held });
                // Others say when they begin.
                if !self.stage.plan.work.ends_early {
                    self.begins();
                }
            }
            Seen::Live(live) => self.stage.observer.on_event(Event::Live(live)),
            Seen::Exceeded(exceeded) => {
                self.stage.observer.on_event(Event::Exceeded(exceeded));
            }
            Seen::Begins { origin_ns } => {
                self.begun = Some(Instant::now());
                self.stage.loaded.begins(origin_ns, at_ns);
                if let Some(server) = &mut self.stage.server {
                    server.begins(origin_ns);
                }
                self.begins();
            }
            Seen::Record if self.stage.plan.work.reports_between => {}
            Seen::Record | Seen::Last => {
                if let Some(server) = &mut self.stage.server {
                    server.is_over();
                }
                if let Some(watch) = &mut self.other_work {
                    watch.is_over();
                }
            }
            Seen::Remark | Seen::Other => {}
        }
    }

    fn worthless(&self) -> Option<String> {
        let server = self.stage.server.as_ref();
        let ended = server.and_then(|server| server.ended.clone());
        ended.or_else(|| self.receiver.too_much())
    }

    fn finishing(&mut self) -> Finish {
        match (self.stage.plan.work.ends_early, self.begun) {
            (false, _) if self.stage.limit.interrupt.stop_requested() => Finish::AtOnce,
            (false, _) => Finish::ByItself,
            (true, Some(_)) => Finish::Early,
            (true, None) => Finish::AtOnce,
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        let look = self.other_work.as_mut();
        let look = look.and_then(OtherWorkWatch::tick);
        let draw = self.stage.observer.tick();
        let server = self.stage.server.as_mut().map(Server::tick);
        look.into_iter().chain(draw).chain(server).min()
    }
}

impl Listener<'_, '_> {
    fn begins(&mut self) {
        if let Some(watch) = &mut self.other_work {
            watch.begins();
        }
    }
}

/// Decides whether an instance did its work, and if not, why, and who had its CPU.
fn judge(
    plan: &CellPlan,
    ended: Result<Ended, TargetError>,
    received: Result<Received, Incomplete>,
    target: Option<&Prepared>,
    other_work: Option<&OtherWork>,
) -> Result<(Received, Vec<String>), String> {
    let blamed = other_work.and_then(other_work::blamed);
    let with_blamed = |why: String| match &blamed {
        Some(blamed) => format!("{why}. {blamed}"),
        None => why,
    };
    let ended = ended.map_err(|error| error.to_string())?;
    match ended.how {
        Ending::Done => {
            let mut received = received.map_err(|incomplete| incomplete.to_string())?;
            if let Some(target) = target {
                target.verify(&received.program.facts)?;
                received.program.preparation.locked &= target.target.keeps_memory();
            }
            Ok((received, ended.notices))
        }
        Ending::Failed { why } => Err(match received {
            Err(Incomplete::Failed { text }) => with_blamed(from_within(plan, text)),
            _ => with_blamed(why),
        }),
        Ending::TimedOut { doing } => Err(format!(
            "timed out after {}: {}{}. `--cell-limit` changes the limit. {}",
            units::limit(plan.limit_seconds),
            match received {
                Err(incomplete) => incomplete.to_string(),
                Ok(_) => "all records had come".to_owned(),
            },
            doing.map(|doing| format!("; {doing}")).unwrap_or_default(),
            blamed
                .as_deref()
                .unwrap_or("Does a SCHED_FIFO task have the CPU, or was a process stopped?")
        )),
        Ending::Stopped => Err("stopped by the user".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analysis_ends_when_the_limit_is_over() {
        let interrupt = Interrupt::detached().unwrap();
        let limit = |seconds| Limit {
            interrupt: &interrupt,
            limit: Duration::from_secs(seconds),
        };
        limit(1_000).bound();
        assert_eq!(limit(1_000).check(), Ok(()));
        limit(0).bound();
        let Err(Unfinished::Failed(why)) = limit(0).check() else {
            panic!("the limit is over");
        };
        assert!(why.starts_with("timed out after"), "{why}");
        assert!(why.contains("while analysing its records"), "{why}");
    }
}

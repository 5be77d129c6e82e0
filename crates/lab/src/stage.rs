//! The stage of one cell: where an experiment drives the instances of a target.
//!
//! An experiment decides how a cell is played ([`Experiment::drive`](crate::Experiment::drive)): by
//! one instance that measures ([`Stage::one`]), by a server that a client asks ([`Stage::served`])
//! or by many that arrive ([`Stage::arrivals`]). The stage starts the load, starts instances and
//! watches them, and collects what the cell has besides its outcome: notices, load, other work,
//! samples. So nothing of it depends on how the cell is played.
//!
//! All ways take the same `Launch` and the same receiver of records. What waits differs, because
//! the tasks do: a single instance has a dialogue, with limits and samples of other work, for which
//! one thread polls (`watch`); thousands of arrivals have launchers and an epoll set, so that no
//! thread wakes before something happens while start-up is measured.
//!
//! The limit of a cell holds for each of its three parts: it is prepared, measured, ended.

mod watch;

use std::fmt::Display;
use std::mem;
use std::net::SocketAddr;
use std::time::Duration;

use tare_guard::{Guard, Interrupt, OwnedCgroup};
use tare_loads::LoadError;
use tare_results::frequency;
use tare_results::model::{
    self, Arrivals, Cell, CellPlan, Exceeded, Instance, Outcome, Record, Samples,
};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_targets::instance::{Finish, now_ns};
use tare_targets::{Job, Launch, TargetError, engine, spec};
use tare_wire::phases::LEAD_NS;
use tare_wire::record::Live;

use self::watch::{Watched, from_within};
use crate::execute::Prepared;
use crate::loaded::Loaded;
use crate::many;
use crate::served::Server;
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

/// The longest limit of a cell: a year. A deadline further away than the clock reaches would
/// overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// How the server of a cell is asked.
pub struct Endpoint<'e> {
    /// Its port.
    pub port: u16,
    /// Makes the client's words of the server's address.
    pub words: &'e dyn Fn(SocketAddr) -> String,
    /// Waits for the first right answer, in the network of the client.
    pub is_answered: &'e (dyn Fn(SocketAddr) -> bool + Sync),
}

/// The stage of one cell.
pub struct Stage<'a> {
    plan: &'a CellPlan,
    target: &'a Prepared,
    /// The control group in which the instance by itself starts, if one was made for it.
    group: Option<&'a OwnedCgroup>,
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
        (target, group): (&'a Prepared, Option<&'a OwnedCgroup>),
        guard: &'a Guard,
        interrupt: &'a Interrupt,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            plan,
            target,
            group,
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
    pub fn plan(&self) -> &'a CellPlan {
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
            group: self.group,
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

    /// Plays the cell by its server on a target, and a client on this machine, which measures. The
    /// target is the plan's, or one that differs from it in options.
    ///
    /// # Errors
    ///
    /// Returns why there is no record.
    pub fn served(&mut self, target: &TargetSpec, endpoint: &Endpoint<'_>) -> Driven {
        let plan = self.plan;
        if plan.server.is_none() {
            return self.one();
        }
        self.start_load()?;
        let planned_ns = now_ns();
        if plan.target.kernel().is_guest() {
            self.observer.on_event(Event::Booting);
        }
        let (server, _) = self.prepared(self.serve(target, endpoint))?;
        let server = self.server.insert(server);
        let client = Work {
            words: (endpoint.words)(server.address(endpoint.port)),
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
        // They are the client's, which is on no target.
        watched.received.program.facts.clear();
        drop(server);
        let times = Instance {
            exited_ns: now_ns(),
            ..times
        };
        self.measured(watched, times)
    }

    /// Returns whether the server of the cell answers on a target within a time; then it is ended.
    /// It may end by itself, in any way.
    ///
    /// # Errors
    ///
    /// Returns that the user asked to stop.
    pub fn answers(
        &self,
        target: &TargetSpec,
        endpoint: &Endpoint<'_>,
        within: Duration,
    ) -> Result<bool, Unfinished> {
        self.limit.interrupt.bound(Some(within));
        let answers = self.serve(target, endpoint);
        let answers = answers.is_ok_and(|(_, is_answered)| is_answered);
        self.limit.bound();
        match self.limit.interrupt.stop_requested() {
            true => Err(Unfinished::Stopped),
            false => Ok(answers),
        }
    }

    /// Starts the server of the cell on a target, and waits for its first right answer. Returns
    /// whether there was one.
    fn serve(
        &self,
        target: &TargetSpec,
        endpoint: &Endpoint<'_>,
    ) -> Result<(Server, bool), TargetError> {
        let Endpoint {
            port, is_answered, ..
        } = *endpoint;
        let work = self.plan.server.as_ref().unwrap_or(&self.plan.work);
        let user_port = self.plan.has_user_network().then_some(port);
        let is_other = *target != self.plan.target;
        let other = is_other.then(|| spec::of(target)).transpose()?;
        let target = other.as_deref().unwrap_or(self.target.target.as_ref());
        let interrupt = self.limit.interrupt;
        let mut server = Server::start(target, work, user_port, self.guard, interrupt)?;
        let to = server.address(port);
        let is_answered = server.wait_for_answer(&|| is_answered(to));
        Ok((server, is_answered))
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
        let (Reported { program, notices }, launch) = self.before_arrivals(arrivals)?;
        self.start_load()?;
        let latency_held = false;
        self.observer.on_event(Event::Ready { latency_held });
        self.limit.measures();
        let ran = self.many(arrivals, &launch, &program);
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

    /// Starts two instances one after the other as [`Stage::arrivals`] starts them, but before all
    /// of these and without the load. Nothing of them is in the cell.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be started.
    pub fn rehearse(&mut self) -> Result<Vec<Instance>, Unfinished> {
        let Some(arrivals) = &self.plan.arrivals else {
            return Ok(Vec::new());
        };
        let (Reported { program, .. }, launch) = self.before_arrivals(arrivals)?;
        // The first is the warm-up, and the window ends with the second.
        let two = Arrivals {
            interval_ns: None,
            warmup_ns: 0,
            measure_ns: 1,
            ..arrivals.clone()
        };
        Ok(self.many(&two, &launch, &program)?.instances)
    }

    /// Returns whether KVM executes the target's guests.
    pub fn is_under_kvm(&self) -> bool {
        let accelerator = self.target.program.accelerator.as_deref();
        accelerator.is_some_and(|name| name.starts_with("KVM"))
    }

    /// Asks a target once what it is, and prepares the start of many instances.
    fn before_arrivals(&mut self, arrivals: &Arrivals) -> Result<(Reported, Launch), Unfinished> {
        let reported = match self.report(arrivals) {
            Err(_) if self.limit.interrupt.stop_requested() => Err(Unfinished::Stopped),
            reported => reported,
        }?;
        let job = Job {
            command: arrivals.command.as_deref(),
            is_alone: false,
            ..Job::idle(&self.plan.work)
        };
        let launch = self.prepared(self.target.target.launch(&job, self.guard))?;
        Ok((reported, launch))
    }

    /// Starts instances, and waits for their end.
    fn many(
        &mut self,
        arrivals: &Arrivals,
        launch: &Launch,
        program: &model::Program,
    ) -> Result<many::Ran, Unfinished> {
        let hz = frequency::choose(&program.frequencies).map(|tsc| tsc.hz);
        let Limit { interrupt, limit } = self.limit;
        let notify = &mut |finish: Option<Finish>| match finish {
            Some(finish) => self.observer.on_event(Event::Finishing(finish)),
            None => drop(self.observer.tick()),
        };
        let ran = many::run(arrivals, launch, hz, limit, self.guard, interrupt, notify);
        self.limit.bound();
        ran
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

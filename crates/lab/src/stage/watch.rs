//! An instance that is watched to its end: its records, what else ran on its CPUs, and how its end
//! is judged.

use std::time::{Duration, Instant};

use tare_host::Source;
use tare_results::model::{CellPlan, Instance, OtherWork, Value};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_results::work::Work;
use tare_targets::TargetError;
use tare_targets::instance::{Ended, Ending, Finish, OutputEvent, Watcher};
use tare_wire::cpus::Cpus;

use super::{Event, LEAD, Limit, Stage, Unfinished};
use crate::execute::Prepared;
use crate::other_work::{self, OtherWorkWatch};
use crate::served::Server;
use crate::stolen::Stolen;
use crate::units;

/// The result of an instance that was watched to its end.
pub(super) struct Watched {
    pub(super) received: Received,
    /// The remarks of its target.
    pub(super) notices: Vec<String>,
    pub(super) times: Instance,
    /// What this machine knows of it.
    pub(super) values: Vec<Value>,
    /// How long it measured, if it says when it begins.
    pub(super) measured: Duration,
    pub(super) was_asked: bool,
}

impl Stage<'_> {
    /// Watches an instance to its end that does some work. If CPUs are measured, so is what else
    /// runs there.
    pub(super) fn watch(
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
pub(super) fn from_within(plan: &CellPlan, text: String) -> String {
    match plan.target.kernel().is_guest() && plan.server.is_none() {
        true => format!("in the guest, {text}"),
        false => text,
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
            Err(Incomplete::Failed { text }) => from_within(plan, text),
            _ => why,
        }),
        Ending::TimedOut { doing } => Err(format!(
            "timed out after {}: {}{}. `--cell-limit` changes the limit. {}",
            units::limit(plan.limit_seconds),
            match received {
                Err(incomplete) => incomplete.to_string(),
                Ok(_) => "all records had come".to_owned(),
            },
            doing.map(|doing| format!("; {doing}")).unwrap_or_default(),
            other_work
                .and_then(other_work::blamed)
                .as_deref()
                .unwrap_or("Does a SCHED_FIFO task have the CPU, or was a process stopped?")
        )),
        Ending::Stopped => Err("stopped by the user".to_owned()),
    }
}

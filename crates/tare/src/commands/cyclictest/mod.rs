//! `tare cyclictest`: cyclictest's options and output over tare's measurement.
//!
//! Standard output is cyclictest's, so that scripts read it unchanged; what cyclictest leaves out, the
//! missed activations and their latency, goes to standard error, and to keys of their own in the JSON.

mod gates;
mod screen;
mod settings;
mod summary;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tare_exchange::{ExchangeError, Latencies};
use tare_figures::analysis;
use tare_figures::notices::Severity;
use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_lab::other_work::{OtherWorkWatch, blamed};
use tare_pages::Report;
use tare_results::model::{Agent, Instance, Plan};
use tare_results::receive::{Incomplete, Received, Receiver, Seen};
use tare_targets::instance::{Ending, Watcher};
use tare_targets::{Availability, Job, spec};

use self::screen::Screen;
use self::settings::Settings;
use super::claim::claim_cpus;
use super::{clean_up, close};
use crate::cli::cyclictest::CyclictestArguments;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// How often it is looked whether the user asks to end.
const TICK: Duration = Duration::from_millis(100);

/// How long the agent has to report after that.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much longer than its threads the agent may take, at least.
const SLACK: Duration = Duration::from_secs(120);

/// The longest limit: a year. A deadline beyond what the clock holds would overflow.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Measures as cyclictest does, and prints what it prints.
pub fn run(arguments: &CyclictestArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let settings = Settings::of(arguments)?;
    let judged = match &arguments.output.fail_if[..] {
        [] => None,
        gates => Some(gates::check(gates, &settings.plan)?),
    };
    for remark in &settings.remarks {
        terminal.warn(remark);
    }
    let target = spec::parse("process")?;
    if let Availability::Unusable { why, remedy } = target.availability() {
        let what = format!("the target '{}'", target.spec());
        return Err(CommandError::Unavailable { what, why, remedy });
    }
    let guard = Guard::open(&default_state_dir()?)?;
    let work = tare_experiments::wakeup::work(&settings.plan);
    let cpus: Vec<u32> = work.measured_cpus().iter().collect();
    let left = Duration::from_nanos(settings.plan.expected_ns());
    let share = arguments.output.share_cpu;
    let _claim = claim_cpus(&cpus, "tare cyclictest", left, share, &guard, terminal)?;
    settings.step_aside();
    let start = tare_results::now()?;
    let instance = target.launch(&Job::idle(&work), &guard)?;
    let agent = instance.pid();
    let stop = Interrupt::detached()?;
    let mut watch = Watch {
        receiver: Receiver::default(),
        screen: Screen::new(&settings, terminal),
        asked: Asked::of(agent, &interrupt, &stop),
        other_work: OtherWorkWatch::of(work.measured_cpus(), agent, &guard),
        failed: None,
    };
    let limit = Duration::from_nanos(settings.plan.expected_ns())
        .saturating_mul(2)
        .saturating_add(SLACK);
    let ended = instance.watch(limit.min(LONGEST), &stop, &mut watch)?;
    let end = tare_results::now()?;
    let Watch {
        receiver,
        mut screen,
        failed,
        other_work,
        ..
    } = watch;
    let other_work = other_work.map(OtherWorkWatch::finish);
    close(guard, terminal);
    if let Some(error) = failed {
        return Err(error);
    }
    let received = match (ended.how, receiver.finish()) {
        (Ending::Done, Ok(received)) => Ok(received),
        (Ending::Stopped, _) => return Ok(exit::INTERRUPTED),
        (_, Err(Incomplete::Failed { text })) => Err(text),
        (Ending::Done, Err(incomplete)) => Err(incomplete.to_string()),
        (Ending::Failed { why }, _) => Err(why),
        (Ending::TimedOut { .. }, _) => Err("the threads did not come to their end".to_owned()),
    };
    let received = received.map_err(|why| {
        let blamed = other_work.as_ref().and_then(blamed);
        let blamed = blamed.map_or_else(String::new, |blamed| format!(". {blamed}"));
        CommandError::Measurement(why + &blamed)
    })?;
    let notices = other_work.as_ref().map(analysis::other_work);
    let notices = notices.into_iter().flatten();
    for notice in notices.filter(|notice| notice.severity >= Severity::Warning) {
        terminal.warn(&notice.text);
    }
    for notice in received.notices.iter().chain(&ended.notices) {
        terminal.warn(notice);
    }
    let taken = Taken::of(received, judged, (start, end))?;
    screen.last(&taken)?;
    summary::print(&settings, &taken, &screen, terminal)
}

/// What was measured.
struct Taken {
    threads: Vec<Latencies>,
    /// Thread and latency that ended it, in ns, if one did.
    broke: Option<(u32, u64)>,
    /// The figures that gates judge.
    analysis: Option<Report>,
    /// When it began, and when it ended.
    start: Timestamp,
    end: Timestamp,
}

impl Taken {
    fn of(
        received: Received,
        judged: Option<Plan>,
        (start, end): (Timestamp, Timestamp),
    ) -> Result<Self, CommandError> {
        let (record, samples, _) = received.into_record(Agent::default(), Instance::default(), &[]);
        let threads = Latencies::of_cell(&record, &samples);
        let mut threads = threads.map_err(ExchangeError::from)?;
        for thread in &mut threads {
            thread.node = thread.thread.cpu.and_then(summary::node);
        }
        // Without phases each thread has one set, in their order.
        let broke = record.exceeded.first();
        let broke = broke.map(|exceeded| (exceeded.set, exceeded.value));
        Ok(Self {
            threads,
            broke,
            analysis: judged
                .map(|plan| gates::analyse(plan, record, samples))
                .transpose()?,
            start,
            end,
        })
    }
}

/// Passes on what the agent says, and to the agent that the user asks to end.
struct Watch<'a, 'g> {
    receiver: Receiver,
    screen: Screen<'a>,
    asked: Asked<'a>,
    other_work: Option<OtherWorkWatch<'g>>,
    /// Why printing ended, if it did.
    failed: Option<CommandError>,
}

impl Watcher for Watch<'_, '_> {
    fn line(&mut self, line: &[u8], _at_ns: u64) {
        match self.receiver.line(line) {
            Seen::Ready => {
                let held = self.receiver.preparation().is_some_and(|p| p.latency_held);
                self.screen.latency_held = held;
            }
            Seen::Begins { .. } => {
                self.asked.has_begun = true;
                self.keep(Screen::begin);
                if let Some(watch) = &mut self.other_work {
                    watch.begins();
                }
            }
            Seen::Record | Seen::Last => {
                if let Some(watch) = &mut self.other_work {
                    watch.is_over();
                }
            }
            Seen::Live(live) => self.screen.take(&live),
            _ => {}
        }
    }

    fn tick(&mut self) -> Option<Duration> {
        self.keep(Screen::draw);
        self.asked.pass_on();
        self.other_work.as_mut().map(OtherWorkWatch::tick);
        Some(TICK)
    }
}

impl<'a> Watch<'a, '_> {
    /// Prints, unless that has failed before.
    fn keep(&mut self, print: impl FnOnce(&mut Screen<'a>) -> Result<(), CommandError>) {
        if self.failed.is_none()
            && let Err(error) = print(&mut self.screen)
        {
            self.failed = Some(error);
            self.asked.stop.request_stop();
        }
    }
}

/// Tells the agent to end, and to report, when the user asks for that: by SIGINT or, as `timeout` does, SIGTERM.
struct Asked<'a> {
    agent: Option<Pid>,
    interrupt: &'a Interrupt,
    stop: &'a Interrupt,
    /// Whether the agent listens: before that there is nothing to report.
    has_begun: bool,
    /// When it was told, and whether the user wanted it to stop at once.
    told: Option<(Instant, bool)>,
}

impl<'a> Asked<'a> {
    fn of(agent: Option<u32>, interrupt: &'a Interrupt, stop: &'a Interrupt) -> Self {
        let agent = agent.and_then(|agent| Pid::from_raw(agent.try_into().ok()?));
        Self {
            agent,
            interrupt,
            stop,
            has_begun: false,
            told: None,
        }
    }

    fn pass_on(&mut self) {
        if !self.interrupt.finish_requested() {
            return;
        }
        let at_once = self.interrupt.stop_requested();
        match (self.told, self.agent) {
            (None, Some(agent)) if self.has_begun => {
                // It has not been waited for, so the id is still its own.
                let _ = kill_process(agent, Signal::INT);
                self.told = Some((Instant::now(), at_once));
            }
            (Some((when, was_at_once)), _)
                if at_once == was_at_once && when.elapsed() < PATIENCE => {}
            _ => self.stop.request_stop(),
        }
    }
}

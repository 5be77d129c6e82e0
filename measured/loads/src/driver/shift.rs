//! One load while its tools run.

use std::path::Path;
use std::time::{Duration, Instant};

use tare_wire::record::{Achieved, Record};

use super::clock::now_ns;
use super::folder;
use super::left::{Leftovers, Patience};
use super::report::Reporter;
use super::signals::Signals;
use super::tool_set::ToolSet;
use crate::error::DriverError;
use crate::task::Task;

/// The name of the figure for the CPU time of the load's processes.
pub const CPU_TIME: &str = "ns of CPU time";

/// The minimum lifetime of all tools until the load counts as running: a tool that fails does so at
/// once. They must also have begun to work: a tool that is still being read from a cold disk
/// disturbs little, and is not counted.
const SETTLE: Duration = Duration::from_millis(200);

/// The time limit for tools to begin to work; then the load counts as running, and a notice names
/// idle tools. From a cold disk the first lines of `du` take half a second, more on a busy one.
const WORK_LIMIT: Duration = Duration::from_secs(20);

/// The interval at which tools are checked for work, after they have settled.
const ASK: Duration = Duration::from_millis(50);

/// The interval at which the scratch folder is checked, if a tool may write without limit.
const LOOK: Duration = Duration::from_millis(500);

/// A running load.
pub(super) struct Shift<'a> {
    tools: ToolSet,
    signals: &'a mut Signals,
    folder: &'a Path,
    /// The limit on written bytes, if a tool may write without limit.
    limit: Option<u64>,
    /// The next check of the scratch folder.
    look: Instant,
    started_ns: u64,
}

/// The results of a load.
#[derive(Debug)]
pub(super) struct Done {
    /// Time when its tools were started, CLOCK_MONOTONIC in ns.
    pub(super) started_ns: u64,
    /// Time when they were asked to end.
    pub(super) stopping_ns: u64,
    /// Time when the last of them had ended or was given up.
    pub(super) stopped_ns: u64,
    /// The tool that ended last.
    pub(super) last_tool: Option<String>,
    /// The work done.
    totals: Vec<(String, u64)>,
    /// CPU time until all had ended, in ns.
    cpu_ns: Option<u64>,
    /// Notices on work that could not be counted.
    pub(super) notices: Vec<String>,
}

impl<'a> Shift<'a> {
    /// Starts the tools.
    pub(super) fn start(
        tasks: Vec<Task>,
        signals: &'a mut Signals,
        folder: &'a Path,
        limit: Option<u64>,
    ) -> Result<Self, DriverError> {
        let started_ns = now_ns();
        let mut tools = ToolSet::new(tasks, folder, limit);
        tools.start(signals)?;
        Ok(Self {
            tools,
            signals,
            folder,
            limit,
            look: Instant::now() + LOOK,
            started_ns,
        })
    }

    /// Waits until all tools have begun to work, or a signal ends the load. Returns the idle ones
    /// after the time limit.
    pub(super) fn settle(&mut self) -> Result<Option<String>, DriverError> {
        if self.tools.is_empty() {
            return Ok(None);
        }
        let started = Instant::now();
        let mut ask = started + SETTLE;
        while !self.signals.stop_asked() {
            self.turn(Some(ask))?;
            let now = Instant::now();
            if now < ask {
                continue;
            }
            ask = now + ASK;
            let idlers = self.tools.idlers();
            if idlers.is_empty() {
                break;
            }
            if now >= started + WORK_LIMIT {
                let (idlers, limit) = (idlers.join(", "), WORK_LIMIT.as_secs());
                let text = format!("{idlers}: was not seen to work in its first {limit} s");
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// Keeps the tools running until a time, or until a signal ends the load.
    pub(super) fn go_on(&mut self, end: Option<Instant>) -> Result<(), DriverError> {
        while !self.signals.stop_asked() && end.is_none_or(|end| Instant::now() < end) {
            self.turn(end)?;
        }
        Ok(())
    }

    /// Ends the tools and their descendants; leaves those that do not end in time.
    pub(super) fn stop(
        mut self,
        patience: Patience,
        left: &mut Leftovers,
        phase: u32,
    ) -> Result<Done, DriverError> {
        let stopping_ns = now_ns();
        let stopped = self.tools.stop(self.signals, patience, left, phase);
        let rest = self.tools.end_rest(patience.killed, left, phase);
        let stopped = stopped?;
        rest?;
        Ok(Done {
            started_ns: self.started_ns,
            stopping_ns,
            stopped_ns: now_ns(),
            last_tool: stopped.last_tool,
            totals: self.tools.totals(),
            cpu_ns: self.tools.cpu_ns(),
            notices: stopped.notices,
        })
    }

    /// Waits for an event, at most until a time, and handles it.
    fn turn(&mut self, until: Option<Instant>) -> Result<(), DriverError> {
        let look = self.limit.map(|_| self.look);
        self.tools
            .wait(self.signals, until.into_iter().chain(look).min())?;
        let Some(limit) = self.limit else {
            return Ok(());
        };
        if Instant::now() >= self.look {
            self.look = Instant::now() + LOOK;
            let found = folder::used(self.folder);
            if found > limit {
                return Err(DriverError(format!(
                    "the load has put {} MiB into its scratch folder {}, which may hold {} MiB: \
                     let it write less",
                    found >> 20,
                    self.folder.display(),
                    limit >> 20
                )));
            }
        }
        Ok(())
    }
}

impl Done {
    /// The results of a load that was skipped, since its time had passed.
    pub(super) fn skipped() -> Self {
        let now_ns = now_ns();
        Self {
            started_ns: now_ns,
            stopping_ns: now_ns,
            stopped_ns: now_ns,
            last_tool: None,
            totals: Vec::new(),
            cpu_ns: None,
            notices: Vec::new(),
        }
    }

    /// Reports the work done.
    pub(super) fn report(&self, reporter: &mut Reporter) {
        let mut achieved = |what: &str, amount, ns| {
            reporter.put(&Record::Achieved(Achieved { what, amount, ns }));
        };
        for (what, amount) in &self.totals {
            achieved(what, *amount, self.stopping_ns - self.started_ns);
        }
        if let Some(cpu_ns) = self.cpu_ns {
            // Ending 2,400 processes uses CPU time, too, which belongs to a longer period than the
            // work.
            achieved(CPU_TIME, cpu_ns, self.stopped_ns - self.started_ns);
        }
    }
}

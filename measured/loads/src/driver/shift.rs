//! The time for which the tools of one load are kept going.

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

/// How the time is named that the load's processes spent on CPUs.
pub const CPU_TIME: &str = "ns of CPU time";

/// How long all tools must live before the load counts as going: one that crashes does so at once. They must also have
/// been seen to work: one that is still being loaded from a cold disk disturbs little, and is not counted.
const SETTLE: Duration = Duration::from_millis(200);

/// How long tools may take until they work; then the load counts as going, and a notice says who does not. From a cold
/// disk the first lines of `du` take half a second, more on a busy one.
const WORK_LIMIT: Duration = Duration::from_secs(20);

/// How often it is asked whether tools work, after they have settled.
const ASK: Duration = Duration::from_millis(50);

/// How often the scratch folder is looked at, if a tool may write what it wants.
const LOOK: Duration = Duration::from_millis(500);

/// A load while its tools run.
pub(super) struct Shift<'a> {
    tools: ToolSet,
    signals: &'a mut Signals,
    folder: &'a Path,
    /// How much may be written, if a tool may write what it wants.
    limit: Option<u64>,
    /// When the scratch folder is looked at next.
    look: Instant,
    started_ns: u64,
}

/// What came of a load.
#[derive(Debug)]
pub(super) struct Done {
    /// When its tools were started, CLOCK_MONOTONIC in ns.
    pub(super) started_ns: u64,
    /// When they were told to end.
    pub(super) stopping_ns: u64,
    /// When the last of them had ended or was left.
    pub(super) stopped_ns: u64,
    /// The tool that ended last.
    pub(super) last_tool: Option<String>,
    /// What was done while they were kept going.
    totals: Vec<(String, u64)>,
    /// CPU time until all had ended, in ns.
    cpu_ns: Option<u64>,
    /// What could not be counted.
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

    /// Waits until all tools were seen to work, or somebody asks for the end. Says who was not, if it takes too long.
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

    /// Keeps the tools going until a moment, or until somebody asks for the end.
    pub(super) fn go_on(&mut self, end: Option<Instant>) -> Result<(), DriverError> {
        while !self.signals.stop_asked() && end.is_none_or(|end| Instant::now() < end) {
            self.turn(end)?;
        }
        Ok(())
    }

    /// Ends the tools and all that they have started; leaves what can't be ended in its time.
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

    /// Waits until something happens, but not beyond a moment, and takes care of it.
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
    /// What came of a load that was not started, since its time had passed.
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

    /// Reports what was done.
    pub(super) fn report(&self, reporter: &mut Reporter) {
        let mut achieved = |what: &str, amount, ns| {
            reporter.put(&Record::Achieved(Achieved { what, amount, ns }));
        };
        for (what, amount) in &self.totals {
            achieved(what, *amount, self.stopping_ns - self.started_ns);
        }
        if let Some(cpu_ns) = self.cpu_ns {
            // To end 2,400 processes takes CPU time, too: it belongs to a longer time than the work.
            achieved(CPU_TIME, cpu_ns, self.stopped_ns - self.started_ns);
        }
    }
}

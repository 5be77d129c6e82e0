//! A load's tasks for the driver: tools to keep running, and meters of their work.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tare_wire::cpus::Cpus;

use crate::processes;

/// A tool to keep running.
#[derive(Debug)]
pub(crate) struct Task {
    /// The program: a name in `PATH`, or a path.
    pub(crate) program: String,
    pub(crate) args: Vec<OsString>,
    /// CPUs that it may use.
    pub(crate) cpus: Cpus,
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Output,
    pub(crate) ends: Ends,
    /// Time after which it is killed and restarted.
    pub(crate) kill_after: Option<Duration>,
    /// Signal that ends it.
    pub(crate) stop: Signal,
    /// The TCP port of the loopback device on which it listens; later tools wait until it does.
    pub(crate) listens: Option<u16>,
    /// Minimum time from one start to the next.
    pub(crate) again_after: Duration,
    pub(crate) meter: Box<dyn Meter>,
}

/// The destination of a tool's standard output.
#[derive(Debug)]
pub(crate) enum Output {
    Nowhere,
    /// Its meter.
    Meter,
    /// Another tool.
    Pipe(OwnedFd),
}

/// The permitted ends of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// It must not end.
    Never,
    /// With status 0 or one of these, after which it is restarted.
    Again(&'static [i32]),
}

/// A meter of a tool's work.
pub(crate) trait Meter: fmt::Debug {
    /// Receives standard output of the tool, if that goes to its meter.
    fn on_output(&mut self, _bytes: &[u8]) {}

    /// Returns whether the running tool has begun to work, as opposed to being loaded from a cold
    /// disk: work is counted from now on. Its process id is that of its group.
    fn works(&self, pid: Pid) -> bool {
        processes::of_group(pid).any(|process| processes::cpu_ticks(process) > 0)
    }

    /// Inspects the tool, which is about to be ended, or was killed and not yet reaped. Its process
    /// id is that of its group.
    fn last_look(&mut self, _pid: Pid) {}

    /// Records that the tool has ended.
    ///
    /// # Errors
    ///
    /// Returns a fault in its results or output.
    fn ended(&mut self, _ended: &Ended) -> Result<(), String> {
        Ok(())
    }

    /// Returns the work so far: units, in the plural, and their number.
    fn totals(&self) -> Vec<(String, u64)>;

    /// Returns a notice on its figures.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// The end of one execution of a tool.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The end of what it wrote to standard error.
    pub(crate) said: String,
    /// Whether the driver ended it, so that its work is incomplete.
    pub(crate) by_driver: bool,
}

impl Task {
    /// Returns a task that runs a tool repeatedly, on any of `cpus`.
    pub(crate) fn again(program: &str, cpus: Cpus, meter: impl Meter + 'static) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            cpus,
            input: None,
            output: Output::Nowhere,
            ends: Ends::Again(&[]),
            kill_after: None,
            stop: Signal::INT,
            listens: None,
            again_after: Duration::ZERO,
            meter: Box::new(meter),
        }
    }

    /// Returns a task whose tool never ends by itself.
    pub(crate) fn endless(program: &str, cpus: Cpus, meter: impl Meter + 'static) -> Self {
        Self {
            ends: Ends::Never,
            ..Self::again(program, cpus, meter)
        }
    }

    /// Adds arguments.
    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// A meter that counts nothing: another tool of the same load is counted.
#[derive(Debug)]
pub(crate) struct Uncounted;

impl Meter for Uncounted {
    fn works(&self, _pid: Pid) -> bool {
        true
    }

    fn totals(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
}

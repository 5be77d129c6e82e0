//! What the driver is given by a load: tools to keep going, and how to count what they do.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tare_wire::cpus::Cpus;

use crate::processes;

/// One tool that is kept going.
#[derive(Debug)]
pub(crate) struct Task {
    /// The program: a name in `PATH`, or a path.
    pub(crate) program: String,
    pub(crate) args: Vec<OsString>,
    /// CPUs that it may run on.
    pub(crate) cpus: Cpus,
    pub(crate) input: Option<OwnedFd>,
    pub(crate) output: Output,
    pub(crate) ends: Ends,
    /// After how long it is killed, to be started again.
    pub(crate) kill_after: Option<Duration>,
    /// What it is sent when the load is to stop.
    pub(crate) stop: Signal,
    /// The TCP port of the loopback device on which it listens; whoever comes after it waits until it does.
    pub(crate) listens: Option<u16>,
    /// How long after its start it is started again at the earliest.
    pub(crate) again_after: Duration,
    pub(crate) meter: Box<dyn Meter>,
}

/// Says where the standard output of a tool goes.
#[derive(Debug)]
pub(crate) enum Output {
    Nowhere,
    /// To its meter.
    Meter,
    /// Into another tool.
    Pipe(OwnedFd),
}

/// Says how a tool may end by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends {
    /// Not at all.
    Never,
    /// With status 0 or one of these, and is then started again.
    Again(&'static [i32]),
}

/// Counts what a tool does.
pub(crate) trait Meter: fmt::Debug {
    /// Takes what the tool wrote to its standard output, if that goes to its meter.
    fn heard(&mut self, _bytes: &[u8]) {}

    /// Says whether the running tool has begun to work, as opposed to being loaded from a cold disk: what it does from now
    /// on is counted. Its process id is that of its group.
    fn works(&self, pid: Pid) -> bool {
        processes::of_group(pid)
            .into_iter()
            .any(|process| processes::cpu_ticks(process) > 0)
    }

    /// Looks at the tool, which is about to be ended, or was killed and not yet waited for. Its process id is that of its
    /// group.
    fn last_look(&mut self, _pid: Pid) {}

    /// Takes note that the tool has ended.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with what it left or said.
    fn ended(&mut self, _ended: &Ended) -> Result<(), String> {
        Ok(())
    }

    /// Returns what was done so far: what is counted, in the plural, and how many.
    fn totals(&self) -> Vec<(String, u64)>;

    /// Says what the reader of its figures should know.
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
    /// Whether the driver ended it, so that its work is not whole.
    pub(crate) by_driver: bool,
}

impl Task {
    /// Makes a task that runs a tool again and again, on any of `cpus`.
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

    /// Makes a task whose tool never ends by itself.
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

/// Counts nothing: another tool of the same load is counted.
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

//! Many instances of a target, started as cheaply as it allows.
//!
//! A [`Target`](crate::Target) prepares once what all its instances share (an image, a bundle, an initramfs) and hands out a
//! [`Starter`]. Starting one is then what the target itself takes and nothing of ours: no journal, no dialogue with a
//! hypervisor, no pinning. Instances run on any CPU.

use std::any::Any;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::AtomicBool;

use regex_lite::Regex;
use tare_docker::Stream;
use tare_guard::{Exec, PrivateMount};
use tare_results::work::Work;

use crate::TargetError;

/// What many instances are to do.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// What the measured code is asked to do.
    pub work: &'a Work,
    /// A command line in place of the measured code.
    pub command: Option<&'a [String]>,
    /// How many may be alive at once.
    pub most_live: u32,
}

/// What starts instances. What they share is removed when it is dropped.
pub struct Starter {
    /// What is told of it in messages and in the journal: `crun`.
    pub name: &'static str,
    /// Mounts that what is started sees otherwise.
    pub mounts: Vec<PrivateMount>,
    /// How much memory one may take, as long as none was seen.
    pub memory_bytes: u64,
    /// What its engine takes beside it, which is never seen.
    pub beside_bytes: u64,
    /// Whether the CPU time of what is started holds that of its own code.
    pub waits_for_own: bool,
    /// By what an instance is ready.
    pub ready: Ready,
    /// How one is started.
    pub start: Start,
    /// Decides whether one did what it was to do, and if not, says what happened.
    pub judge: Judge,
    /// Whether the times of its own code are by this machine's clock.
    pub shares_clock: bool,
    /// What all share.
    pub(crate) shared: Vec<Box<dyn Any + Send + Sync>>,
}

/// A decision on an instance that has ended.
pub type Judge = Box<dyn Fn(&Ended<'_>) -> Result<(), String> + Send + Sync>;

/// By what an instance is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// By the first record of the measured code.
    Record,
    /// By the first that it writes to standard output.
    Output,
    /// By a line of its standard output that matches.
    Line(Regex),
}

/// How an instance is started.
pub enum Start {
    /// As a program. The number is one that no other live instance has, below [`Order::most_live`].
    Program(Box<dyn Fn(u32) -> io::Result<Program> + Send + Sync>),
    /// By calls that last as long as it lives.
    Calls(Box<dyn Calls>),
}

/// A program to be executed.
#[derive(Debug)]
pub struct Program {
    /// The program.
    pub exec: Exec,
    /// What it says beside its output, told when it has ended.
    pub aside: Option<UnixStream>,
}

/// Calls to an engine.
pub trait Calls: Send + Sync {
    /// Runs one instance to its end, or to the moment when `stop` is set, which ends it, and removes what it was.
    ///
    /// # Errors
    ///
    /// Returns why it could not be started, or what became of it is unknown.
    fn run(&self, hear: &mut dyn FnMut(Heard<'_>), stop: &AtomicBool) -> Result<(), String>;
}

/// What is heard of an instance.
#[derive(Clone, Copy, Debug)]
pub enum Heard<'a> {
    /// It has written something.
    Output(Stream, &'a [u8]),
    /// It has ended.
    Ended(ExitStatus),
}

/// How an instance ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'a> {
    /// How its process ended.
    pub status: ExitStatus,
    /// The last that it wrote to standard output.
    pub output: &'a str,
    /// The last that it wrote to standard error.
    pub error: &'a str,
    /// What its hypervisor said beside that.
    pub aside: &'a str,
}

impl From<Exec> for Program {
    fn from(exec: Exec) -> Self {
        Self { exec, aside: None }
    }
}

impl Starter {
    /// Makes one of programs on this machine that print records and end with status 0.
    pub(crate) fn of_programs(
        name: &'static str,
        start: impl Fn(u32) -> io::Result<Program> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            mounts: Vec::new(),
            memory_bytes: ORDINARY_BYTES,
            beside_bytes: 0,
            waits_for_own: true,
            ready: Ready::Record,
            start: Start::Program(Box::new(start)),
            judge: Box::new(|ended| match ended.status.success() {
                true => Ok(()),
                false => Err(ended.described()),
            }),
            shares_clock: true,
            shared: Vec::new(),
        }
    }

    /// Says whether instances tell how much memory they take. Of a guest it is the hypervisor's that counts.
    #[must_use]
    pub fn tells_memory(&self) -> bool {
        matches!(self.ready, Ready::Record) && self.shares_clock
    }

    /// Lets something be kept as long as it.
    pub(crate) fn keeping(mut self, shared: impl Any + Send + Sync) -> Self {
        self.shared.push(Box::new(shared));
        self
    }
}

/// How much memory an ordinary program is taken to need: most of what it maps is shared.
const ORDINARY_BYTES: u64 = 32 << 20;

impl Ended<'_> {
    /// Says how the process ended, and the last that it wrote to standard error.
    pub(crate) fn described(&self) -> String {
        crate::instance::describe_exit(self.status, self.error.trim())
    }

    /// Says what is wrong with the last words on its console.
    pub(crate) fn with_console(&self, what: &str) -> String {
        let lines: Vec<&str> = self.output.lines().map(str::trim).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        match &lines[lines.len().saturating_sub(LAST_LINES)..] {
            [] => format!("{what}; its console said nothing"),
            last => format!("{what}; the last on its console: {}", last.join(" / ")),
        }
    }
}

/// How many lines of a console are told.
const LAST_LINES: usize = 4;

/// Prepares a command of the user's own, found in the folders of PATH.
pub(crate) fn command(words: &[String]) -> Result<(std::path::PathBuf, Vec<String>), TargetError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(TargetError::Failed("the command is empty".to_owned()));
    };
    let path = crate::programs::find(program).ok_or_else(|| {
        let why = format!("there is no program '{program}'");
        TargetError::unusable(why, "give its path, or install it")
    })?;
    Ok((path, arguments.to_vec()))
}

/// Makes a program of a path and words.
pub(crate) fn exec<'a>(
    path: &Path,
    words: impl IntoIterator<Item = &'a (impl AsRef<std::ffi::OsStr> + ?Sized + 'a)>,
) -> io::Result<Exec> {
    Exec::new(path, words.into_iter().map(AsRef::as_ref))
}

impl fmt::Debug for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Starter")
            .field("name", &self.name)
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

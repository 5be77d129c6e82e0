//! How instances of a target are started, and how their ends are judged.
//!
//! A [`Target`](crate::Target) prepares once what its instances share (an image, a bundle, an
//! initramfs) and returns a [`Launch`]. From the same description one instance is started by itself
//! ([`Instance::start`](crate::Instance::start)) or many are, and both are judged by the same rule,
//! so that neither loses an answer of the other.
//!
//! One instance by itself may have a dialogue: its hypervisor is asked and told things, its threads
//! are pinned, and it can be asked to end. Many have none. Starting one of them is what the target
//! itself takes and nothing of ours, and they run on any CPU.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use regex_lite::Regex;
use tare_guard::{Exec, OwnedChild, PrivateMount};
use tare_networks::NetworkNamespace;
use tare_wire::cpus::Cpus;

use crate::TargetError;
use crate::instance::{Body, describe_exit};
use crate::output::InstanceOutput;
use crate::programs;
use crate::qemu::qmp;
use crate::server::Server;

/// The way to start instances. Dropping it removes the files that they share.
pub struct Launch {
    /// The name in messages and in the journal: `crun`.
    pub name: &'static str,
    /// Mounts that the instances see differently.
    pub mounts: Vec<PrivateMount>,
    /// How much memory one may take, as long as none was seen.
    pub memory_bytes: u64,
    /// Memory that its engine takes in addition, which can't be seen.
    pub engine_bytes: u64,
    /// Whether the CPU time of the started process includes that of its own code.
    pub waits_for_own: bool,
    /// By what an instance is ready.
    pub ready: Ready,
    /// How one is started.
    pub start: Start,
    /// Decides whether one did its work, and if not, returns what happened.
    pub judge: Judge,
    /// Whether its own code reads this machine's clock.
    pub shares_clock: bool,
    /// The files from which a server starts: its program, or its kernel and first file system.
    pub(crate) image: Vec<PathBuf>,
    /// Notices about its figures, for example which resources were rejected.
    pub notices: Vec<String>,
    /// How the dialogue with an instance by itself begins, if there is one.
    pub(crate) dialogue: Option<Begin>,
    /// Values that live as long as its instances.
    pub(crate) shared: Vec<Box<dyn Any + Send + Sync>>,
}

/// A decision on an instance that has ended.
pub type Judge = Box<dyn Fn(&Exited<'_>) -> Result<(), String> + Send + Sync>;

/// The beginning of a dialogue, with a program that has just been started and its channels.
pub(crate) type Begin = Box<
    dyn FnOnce(&mut OwnedChild, Channels) -> Result<Box<dyn Dialogue>, TargetError> + Send + Sync,
>;

/// By what an instance is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// By the first record of the measured code.
    Record,
    /// By the first output.
    Output,
    /// By a line of its standard output that matches.
    Line(Regex),
    /// By nothing: once it has started.
    Started,
}

/// How an instance is started.
pub enum Start {
    /// As a program. The number is one that no other live instance has.
    Program(Box<dyn Fn(u32) -> io::Result<Program> + Send + Sync>),
    /// By calls to an engine.
    Calls(Box<dyn Calls>),
}

/// A program to be executed.
#[derive(Debug)]
pub struct Program {
    /// The program.
    pub exec: Exec,
    /// Our ends of its standard streams.
    pub channels: Channels,
}

/// Our ends of a program's standard streams, where these are sockets.
#[derive(Debug, Default)]
pub struct Channels {
    /// That of its standard input.
    pub input: Option<UnixStream>,
    /// That of its standard output, by which bytes go both ways.
    pub output: Option<UnixStream>,
}

/// Calls to an engine.
pub trait Calls: Send + Sync {
    /// Starts an instance. Dropping it removes it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be started.
    fn start(&self, notices: &mut Vec<String>) -> Result<Box<dyn Body>, TargetError>;
}

/// The dialogue with an instance by itself, while it runs.
pub trait Dialogue: fmt::Debug {
    /// Takes a line of its output that is no record.
    fn on_line(&mut self, _line: &[u8]) {}

    /// Returns how often [`check`](Self::check) is worth a call; None if never.
    fn check_every(&self) -> Option<Duration> {
        None
    }

    /// Checks what the instance itself can't see.
    ///
    /// # Errors
    ///
    /// Returns why its figures are worth nothing.
    fn check(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Asks the measured code to end before its work is done, and to report what it has.
    ///
    /// # Errors
    ///
    /// Returns why it can't be asked.
    fn ask_to_end(&mut self) -> Result<(), TargetError>;

    /// Ends an instance that took too long in an orderly way. Returns what it was doing.
    fn end(&mut self, child: &mut OwnedChild) -> String;

    /// Returns why its hypervisor has ended, in the hypervisor's words.
    fn reason(&mut self) -> Option<String> {
        None
    }
}

/// How an instance ended.
#[derive(Clone, Copy, Debug)]
pub struct Exited<'a> {
    /// How its process ended.
    pub status: ExitStatus,
    /// The last that it wrote to standard output, without records.
    pub output: &'a str,
    /// The last that it wrote to standard error, without records.
    pub error: &'a str,
    /// Why its hypervisor or engine says that it has ended.
    pub reason: Option<&'a str>,
}

impl From<Exec> for Program {
    fn from(exec: Exec) -> Self {
        Self {
            exec,
            channels: Channels::default(),
        }
    }
}

impl Launch {
    /// Makes the launch of programs on this machine that print records and end with status 0.
    pub fn of_program(
        name: &'static str,
        start: impl Fn(u32) -> io::Result<Program> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, Start::Program(Box::new(start)))
    }

    /// Makes the launch of what is started that way, prints records, and ends with status 0.
    pub fn new(name: &'static str, start: Start) -> Self {
        Self {
            name,
            mounts: Vec::new(),
            memory_bytes: ORDINARY_BYTES,
            engine_bytes: 0,
            waits_for_own: true,
            ready: Ready::Record,
            start,
            judge: Box::new(|ended| match ended.status.success() {
                true => Ok(()),
                false => Err(ended.described()),
            }),
            shares_clock: true,
            image: Vec::new(),
            notices: Vec::new(),
            dialogue: None,
            shared: Vec::new(),
        }
    }

    /// Returns whether instances report how much memory they take. Of a guest, it is the
    /// hypervisor's that counts.
    pub fn tells_memory(&self) -> bool {
        matches!(self.ready, Ready::Record) && self.shares_clock
    }

    /// Keeps something as long as the launch.
    pub(crate) fn keeping(mut self, shared: impl Any + Send + Sync) -> Self {
        self.shared.push(Box::new(shared));
        self
    }

    /// Decides whether an instance did its work.
    ///
    /// # Errors
    ///
    /// Returns what happened, if it did not.
    pub fn judge(
        &self,
        status: ExitStatus,
        output: &mut InstanceOutput,
        reason: Option<&str>,
        end_ns: u64,
    ) -> Result<(), String> {
        let is_ready = output.ready_ns() > 0;
        let was_closed = output.was_closed_before(end_ns);
        let [said, error] = output.tails();
        let ended = Exited {
            status,
            output: &said,
            error: &error,
            reason,
        };
        (self.judge)(&ended)?;
        match self.unready(is_ready) {
            Some(_) if matches!(self.ready, Ready::Output) && was_closed => Err(format!(
                "{}, but it closed its standard output without having written: an instance is ready with its first output",
                describe_exit(status, "")
            )),
            Some(why) => {
                let how = describe_exit(status, "");
                let why = format!("{how}, but {why}");
                Err(match self.ready {
                    Ready::Output | Ready::Started => why,
                    Ready::Line(_) | Ready::Record => ended.with_console(&why),
                })
            }
            None => Ok(()),
        }
    }

    /// Returns why an instance is not ready whose console alone shows that, if it is not.
    pub(crate) fn unready(&self, is_ready: bool) -> Option<String> {
        match &self.ready {
            Ready::Line(wanted) if !is_ready => {
                Some(format!("no line of its console matched ready={wanted}"))
            }
            Ready::Output if !is_ready => {
                Some("it wrote nothing: an instance is ready with its first output".to_owned())
            }
            Ready::Line(_) | Ready::Record | Ready::Output | Ready::Started => None,
        }
    }
}

impl Channels {
    /// Returns why a hypervisor has ended that nobody spoke with, as it has said by itself.
    pub fn reason(self) -> Option<String> {
        let stream = self.input?;
        stream.set_nonblocking(true).ok()?;
        let mut said = Vec::new();
        // Everything before the end has arrived; there is nothing more to wait for.
        let _ = stream.take(MOST_SAID).read_to_end(&mut said);
        qmp::shutdown_reason_in(&String::from_utf8_lossy(&said))
    }
}

/// The most that is read of what a hypervisor said.
const MOST_SAID: u64 = 64 * 1024;

/// How much memory an ordinary program is taken to need: most of what it maps is shared.
const ORDINARY_BYTES: u64 = 32 << 20;

impl Exited<'_> {
    /// Describes how the process ended, with the last that it wrote to standard error.
    pub(crate) fn described(&self) -> String {
        describe_exit(self.status, self.error)
    }

    /// Adds the last lines of the console to what is wrong.
    pub(crate) fn with_console(&self, what: &str) -> String {
        with_last(what, self.output.lines())
    }
}

/// Adds the last lines of a console to what is wrong.
pub(crate) fn with_last<'a>(what: &str, lines: impl Iterator<Item = &'a str>) -> String {
    const LINES: usize = 4;
    const LENGTH: usize = 200;
    let printable = lines.map(|line| {
        let printable = line.chars().filter(|c| !c.is_control());
        printable.take(LENGTH).collect::<String>()
    });
    let lines: Vec<String> = printable.filter(|line| !line.trim().is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES)..] {
        [] => format!("{what}; its console said nothing"),
        last => format!("{what}; the last on its console: {}", last.join(" / ")),
    }
}

impl Launch {
    /// Turns a launch into that of a server, which can be asked once a line has these words, or from
    /// the start on, and starts from this program besides its other files.
    pub(crate) fn serving(mut self, words: Option<&str>, program: Option<PathBuf>) -> Self {
        let line = |words| Regex::new(words).expect("it has no special character");
        self.image.extend(program);
        Self {
            ready: words.map_or(Ready::Started, |words| Ready::Line(line(words))),
            ..self
        }
    }

    /// Turns a launch into that of a server, if it is one, and keeps the server's files.
    pub(crate) fn of_server(self, server: Option<Server>) -> Self {
        match server {
            Some(Server {
                program,
                folder,
                ready,
                ..
            }) => self.serving(ready, Some(program)).keeping(folder),
            None => self,
        }
    }
}

/// Prepares a program that runs in a network, and on some CPUs alone.
///
/// # Errors
///
/// Returns [`TargetError::Unusable`] if nsenter or taskset is missing, which every Linux has.
pub(crate) fn within(
    network: &NetworkNamespace,
    cpus: Option<&Cpus>,
    path: &Path,
    words: impl IntoIterator<Item = OsString>,
) -> Result<(PathBuf, Vec<OsString>), TargetError> {
    let mut line: Vec<OsString> = vec![format!("--net={}", network.path()).into()];
    if let Some(cpus) = cpus {
        let taskset = programs::require("taskset", "util-linux")?;
        line.extend([taskset.into(), "-c".into(), cpus.to_string().into()]);
    }
    line.push(path.into());
    line.extend(words);
    Ok((programs::require("nsenter", "util-linux")?, line))
}

/// Prepares a command of the user's own, found in the folders of PATH.
pub(crate) fn command(words: &[String]) -> Result<(PathBuf, Vec<String>), TargetError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(TargetError::Failed("the command is empty".to_owned()));
    };
    let path = crate::programs::find(program).ok_or_else(|| {
        let (why, remedy) = match Path::new(program).is_dir() {
            true => (
                format!("'{program}' is a folder"),
                "give the path of a program",
            ),
            false => (
                format!("there is no program '{program}'"),
                "give its path, or install it",
            ),
        };
        TargetError::unusable(why, remedy)
    })?;
    if let Some((why, remedy)) = crate::programs::not_executable(&path) {
        return Err(TargetError::unusable(why, remedy));
    }
    Ok((path, arguments.to_vec()))
}

/// Makes a program of a path and words.
///
/// # Errors
///
/// Returns an error if a word has a NUL.
pub fn exec<'a>(
    path: &Path,
    words: impl IntoIterator<Item = &'a (impl AsRef<std::ffi::OsStr> + ?Sized + 'a)>,
) -> io::Result<Exec> {
    Exec::new(path, words.into_iter().map(AsRef::as_ref))
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("name", &self.name)
            .field("ready", &self.ready)
            .finish_non_exhaustive()
    }
}

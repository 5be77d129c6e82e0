//! One connection to another machine, and what it keeps there.
//!
//! The connection itself runs one command, the *monitor* (`monitor.sh`): it makes a folder for this
//! user only, whose name ends with our guard's id, and waits for the end of its standard input.
//! Then it ends what runs in the folder and removes it. That end comes
//!
//! * when we close it: the monitor then confirms;
//! * when `tare` dies, even by SIGKILL: the kernel ends the client, and closes the pipe;
//! * when the connection breaks or the other machine's sshd dies: sshd's end of the pipe closes.
//!
//! So nothing has to be done by us for nothing to be left there. Each instance has a watcher of its
//! own by the same rule, so that one can be ended while the connection stays. A pseudo-terminal
//! (`ssh -tt`) was the other way: its hang-up signal can be ignored, it changes the bytes that come
//! out, and it removes no folder.
//!
//! If the line goes dead without a word (a cable is pulled), the other side can't know before its
//! sshd gives up: by `ClientAliveInterval` if its administrator has set it, else by the kernel's
//! TCP keepalive, by default after two hours. The agent has ended long before; until then two
//! shells sleep there, and the folder stays.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tare_guard::{Guard, GuardError, Lines, OwnedChild, Patience, ScratchDir};
use tare_host::open_ordinary;

use super::client;
use super::refusal::{one_line, refused};
use super::settings::Settings;
use crate::error::TargetError;
use crate::measured::MeasuredFile;
use crate::programs;

/// The script that the monitor executes.
const MONITOR: &str = include_str!("monitor.sh");

/// The line behind it.
const END_OF_MONITOR: &str = ".END.";

/// The command that has the other machine's shell read the monitor from standard input, line by
/// line and no further. It is read in the same way by all shells that a user may have there, even
/// fish and csh: one line, without single quotes within.
const BOOTSTRAP: &str = "exec /bin/sh -c 'eval \"$(while IFS= read -r line && \
     test \"$line\" != .END.; do printf \"%s\\n\" \"$line\"; done)\"'";

/// The beginning of each line of the monitor: what a login shell prints stands before or between.
const PREFIX: &str = "tare-monitor: ";

/// How long it may take until the monitor answers: the client's own limit for connecting, and as
/// much for authentication and a slow login shell.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// How long copying the agent may take: six megabytes over a slow line.
const COPY_LIMIT: Duration = Duration::from_secs(300);

/// How long the monitor may take to clean up.
const CLEAN_LIMIT: Duration = Duration::from_secs(5);

/// Maximum bytes kept of lines that are not the monitor's.
const KEPT_CHATTER: usize = 1_000;

/// A connection. When it is dropped, what it kept on the other machine is removed.
#[derive(Debug)]
pub(super) struct Session {
    settings: Settings,
    pub(super) machine: Machine,
    /// The folder on the other machine.
    pub(super) folder: String,
    /// The hash of the agent that is there.
    agent: Option<String>,
    talk: Talk,
    master: OwnedChild,
    /// Where the control socket is.
    control: ScratchDir,
    /// A separate guard: callers may have started nothing else.
    _guard: Guard,
}

/// Facts about the other machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Machine {
    /// The kernel's release.
    pub(super) kernel: String,
    /// The processor's model.
    pub(super) model: String,
    /// The CPUs on which we may run there: `0-3,6`.
    pub(super) cpus: String,
}

impl Session {
    /// Connect.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Ssh`] with its remedy if the machine can't be reached or used.
    pub(super) fn open(settings: &Settings, state_dir: &Path) -> Result<Self, TargetError> {
        require_identity(settings)?;
        let guard = Guard::open(state_dir)?;
        let control = guard.scratch("ssh")?;
        let (ours, theirs) = UnixStream::pair().map_err(|source| TargetError::Output { source })?;
        let theirs = OwnedFd::from(theirs);
        let input = theirs
            .try_clone()
            .map_err(|source| TargetError::Output { source })?;
        let mut command = client::master(settings, control.path(), BOOTSTRAP);
        command
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(theirs))
            .stderr(Stdio::piped());
        let master = guard.spawn(&mut command).map_err(|error| match &error {
            GuardError::Spawn { source, .. } if source.kind() == ErrorKind::NotFound => {
                programs::missing(client::PROGRAM, client::PACKAGE)
            }
            _ => error.into(),
        })?;
        // The command holds the client's end of the socket open: its end could not be seen.
        drop(command);
        let mut session = Self {
            settings: settings.clone(),
            machine: Machine::default(),
            folder: String::new(),
            agent: None,
            talk: Talk::new(ours, CONNECT_LIMIT),
            master,
            control,
            _guard: guard,
        };
        session.greet()?;
        Ok(session)
    }

    /// Returns whether the client reports the connection as open.
    pub(super) fn stands(&mut self) -> bool {
        matches!(self.master.try_wait(), Ok(None))
    }

    /// Prepares a client that runs a command by this connection.
    pub(super) fn through(&self, remote: &str) -> Command {
        client::through(&self.settings, self.control.path(), remote)
    }

    /// Copies the agent unless it is there. Returns the name of its file.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Ssh`] if it can't be copied whole, or does not run there.
    pub(super) fn bring(
        &mut self,
        agent: &MeasuredFile,
        sha256: &str,
        guard: &Guard,
    ) -> Result<String, TargetError> {
        let name = format!("agent-{}", &sha256[..16.min(sha256.len())]);
        if self.agent.as_deref() == Some(sha256) {
            return Ok(name);
        }
        let file = File::open(agent.path()?).map_err(|error| agent.unreadable(&error))?;
        // In the folder's name and the hash there is nothing to quote.
        let remote = format!(
            "exec /bin/sh -c 'umask 077; cd {} && cat >{name} && sha256sum {name} && chmod 700 \
             {name} && ./{name} --version'",
            self.folder
        );
        let mut command = self.through(&remote);
        let output = programs::run(command.stdin(Stdio::from(file)), COPY_LIMIT, guard)?;
        let complaint = one_line(&output.stderr);
        match output.status {
            None => Err(self.not_copied(
                format!("copying took longer than {} s", COPY_LIMIT.as_secs()),
                "use a faster line, or copy less: build the agent with `make build` and strip it",
            )),
            // The client's own failure: it did not get through.
            Some(status) if status.code() == Some(255) => Err(self.not_copied(
                format!("ssh said: {complaint}"),
                "if the connection stands, have its sshd allow several sessions for one: \
                 MaxSessions in its sshd_config, 2 or more",
            )),
            Some(_) if !output.stdout.contains(sha256) => Err(self.not_copied(
                complaint,
                "see that there is room in that folder, or name another one with dir=DIR",
            )),
            Some(status) if !status.success() => Err(self.not_copied(
                format!("it is there, but does not run: {complaint}"),
                "name a folder with dir=DIR that is not mounted noexec",
            )),
            Some(_) => {
                self.agent = Some(sha256.to_owned());
                Ok(name)
            }
        }
    }

    /// Sends the monitor, and reads what it says until its folder is there.
    fn greet(&mut self) -> Result<(), TargetError> {
        let name = self.control.path().file_name();
        let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
        let script = format!(
            "base={}\nname={name}\n{MONITOR}{END_OF_MONITOR}\n",
            self.settings.dir
        );
        // The end of the client is reported below, with its messages.
        let _ = self.talk.stream.write_all(script.as_bytes());
        loop {
            let said = match self.talk.line() {
                Ok(Some(said)) => said,
                Ok(None) => return Err(self.no_monitor("the connection ended")?),
                Err(why) => return Err(self.no_monitor(&why)?),
            };
            let (what, text) = said.split_once(' ').unwrap_or((&said, ""));
            match what {
                "system" if text != "Linux x86_64" => {
                    let why = format!("it is {text}, and the agent is for Linux x86_64");
                    let remedy = "choose an x86-64 machine with Linux";
                    return Err(self.settings.unusable(why, remedy));
                }
                "kernel" => self.machine.kernel = text.to_owned(),
                "model" => self.machine.model = text.to_owned(),
                "cpus" => self.machine.cpus = text.to_owned(),
                "failed" => {
                    let why = format!("no folder can be made there: {text}");
                    let remedy = "name another one with dir=DIR";
                    return Err(self.settings.unusable(why, remedy));
                }
                "folder" => {
                    self.folder = text.to_owned();
                    return Ok(());
                }
                _ => {}
            }
        }
    }

    /// Makes the error of a monitor that does not answer.
    fn no_monitor(&mut self, why: &str) -> Result<TargetError, GuardError> {
        let output = programs::finish(&mut self.master, Duration::from_secs(1))?;
        // ssh's own failure has this status; others are of the command there.
        if output
            .status
            .is_some_and(|status| status.code() == Some(255))
        {
            return Ok(refused(&self.settings, &output.stderr));
        }
        let mut why = format!("its shell does not run a script ({why})");
        for said in [&output.stderr, &self.talk.chatter] {
            if !said.trim().is_empty() {
                let _ = write!(why, "; it said: {}", one_line(said));
            }
        }
        let machine = self.settings.words("-p");
        let remedy = format!("see what `ssh {machine} /bin/sh -c true` says");
        Ok(self.settings.unusable(why, remedy))
    }

    fn not_copied(&self, why: String, remedy: &str) -> TargetError {
        let why = format!("the agent could not be copied into {}: {why}", self.folder);
        self.settings.unusable(why, remedy)
    }
}

impl Drop for Session {
    /// Have the monitor clean up, and wait for it: who measures next should have the machine alone.
    fn drop(&mut self) {
        if self.folder.is_empty() || self.talk.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        self.talk.patience = Patience::new(CLEAN_LIMIT);
        loop {
            match self.talk.line() {
                Ok(Some(said)) if said == "gone" => break,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => {
                    let said = format!(
                        "tare: {} did not confirm that {} is removed there; it removes it by itself \
                         when its sshd sees that the connection has ended",
                        self.settings.host, self.folder
                    );
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "there is nobody to return it to"
                    )]
                    let mut stderr = io::stderr();
                    // Not `eprintln`, which panics if it can't write.
                    let _ = writeln!(stderr, "{}", tare_host::visible_in_line(&said));
                    return;
                }
            }
        }
        let _ = self
            .master
            .wait_with_deadline(Instant::now() + self.talk.patience.left());
    }
}

/// The dialogue with the monitor.
#[derive(Debug)]
struct Talk {
    stream: UnixStream,
    lines: Lines,
    /// Unread output of the monitor.
    said: VecDeque<String>,
    /// The beginning of what others said.
    chatter: String,
    patience: Patience,
}

impl Talk {
    fn new(stream: UnixStream, most: Duration) -> Self {
        Self {
            stream,
            lines: Lines::default(),
            said: VecDeque::new(),
            chatter: String::new(),
            patience: Patience::new(most),
        }
    }

    /// Returns the monitor's next line; None at the end.
    fn line(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Ok(Some(said));
            }
            let came = self.patience.wait(&[self.stream.as_fd()]);
            if !came.map_err(|error| error.to_string())? {
                return Err("it did not answer in time".to_owned());
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(n) => {
                    let (said, chatter) = (&mut self.said, &mut self.chatter);
                    self.lines.take(&bytes[..n], |line, _| {
                        let line = String::from_utf8_lossy(line);
                        match line.split_once(PREFIX) {
                            Some((_, own)) => said.push_back(own.trim_end().to_owned()),
                            None if chatter.len() < KEPT_CHATTER => {
                                chatter.extend(line.chars().take(KEPT_CHATTER).chain(['\n']));
                            }
                            None => {}
                        }
                    });
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {}
                    _ => return Err(error.to_string()),
                },
            }
        }
    }
}

/// Refuses a key that isn't there: ssh would try others instead.
fn require_identity(settings: &Settings) -> Result<(), TargetError> {
    let Some(path) = &settings.identity else {
        return Ok(());
    };
    let unreadable = |error| {
        let path = path.display();
        let why = format!("the key {path} can't be read: {error}");
        let remedy =
            format!("name the key with identity=FILE, or make one with `ssh-keygen -f {path}`");
        settings.unusable(why, remedy)
    };
    open_ordinary(path).map(drop).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Lets somebody write pieces, with pauses between them, into a dialogue that has 300 ms, until
    /// it ends; returns what became of it, and how much was kept.
    fn written(piece: &[u8], pause: Duration) -> (Result<Option<String>, String>, usize) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut talk = Talk::new(ours, Duration::from_millis(300));
        thread::scope(|scope| {
            scope.spawn(move || {
                while theirs.write_all(piece).is_ok() {
                    thread::sleep(pause);
                }
            });
            let begun = Instant::now();
            let said = talk.line();
            assert!(begun.elapsed() < Duration::from_secs(2));
            let kept = talk.lines.begun().len() + talk.chatter.len();
            drop(talk);
            (said, kept)
        })
    }

    #[test]
    fn whatever_is_written_a_dialogue_ends_in_its_time_and_keeps_little() {
        let flood = [0; 4096];
        let lines = [b'\n'; 4096];
        let pause = Duration::from_millis(50);
        for (piece, pause) in [
            (&flood[..], Duration::ZERO),
            (&lines[..], Duration::ZERO),
            (&b"x"[..], pause),
        ] {
            let (said, kept) = written(piece, pause);
            assert_eq!(said.unwrap_err(), "it did not answer in time");
            assert!(kept <= 2 * Lines::LONGEST, "{kept}");
        }
    }
}

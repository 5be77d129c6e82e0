//! `ssh`: the agent on another machine, by the system's OpenSSH client.
//!
//! One connection serves a run ([`session`]). The agent is copied once, into a folder that goes
//! when the connection does; each cell is one call of the client through that connection. `started`
//! is the call of the client here, `ready` and `exited` are when the record and the end arrive
//! here: the network and sshd are in them.
//!
//! The measured CPU is `cpu=`, else the plan's, which was chosen by looking at *this* machine: it
//! must be one of those that we may use there.
//!
//! While the workload runs, the other machine has nothing to do for us but to answer a keepalive
//! packet every 15 s, which `option=ServerAliveInterval=0` turns off; a break is then seen only by
//! the limit of the cell. Two shells sleep there in `read`.

mod client;
mod refusal;
mod session;
mod settings;

use std::cell::{OnceCell, RefCell, RefMut};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tare_guard::{Guard, OwnedChild, default_state_dir};
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::cpus::Cpus;

use self::session::{Machine, Session};
use crate::error::TargetError;
use crate::launch::{self, Channels, Dialogue, Exited, Launch};
use crate::measured::MeasuredFile;
use crate::{Availability, Job, Program, Target, once, programs};

pub(crate) use self::settings::{OPTIONS, Settings};

/// How long the other machine may take to end an agent.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The agent on another machine.
#[derive(Debug)]
pub struct Ssh {
    settings: Settings,
    agent: MeasuredFile,
    /// Of the agent as it was when it was first asked for.
    sha256: OnceCell<String>,
    /// Where the connection's guard keeps its journal; the user's own folder if None.
    state_dir: Option<PathBuf>,
    /// Made when it is first needed, and anew if it broke.
    session: RefCell<Option<Session>>,
}

impl Ssh {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            sha256: OnceCell::new(),
            state_dir: None,
            session: RefCell::new(None),
        }
    }

    fn sha256(&self) -> Result<&str, TargetError> {
        once(&self.sha256, || self.agent.sha256()).map(String::as_str)
    }

    /// Returns a connection that stands.
    fn session(&self) -> Result<RefMut<'_, Session>, TargetError> {
        let mut slot = self.session.borrow_mut();
        if !slot.as_mut().is_some_and(Session::stands) {
            // The broken one first: its clean-up must not meet the new one.
            *slot = None;
            let state_dir = match &self.state_dir {
                Some(folder) => folder.clone(),
                None => default_state_dir()?,
            };
            *slot = Some(Session::open(&self.settings, &state_dir)?);
        }
        Ok(RefMut::map(slot, |slot| {
            slot.as_mut().expect("it was just put there")
        }))
    }

    /// Returns the plan for CPUs of the other machine.
    fn plan(&self, work: &Work, machine: &Machine) -> Result<Work, TargetError> {
        let work = match self.settings.cpu {
            Some(cpu) => work.on(Some(Cpus::one(cpu))),
            None => work.clone(),
        };
        // If that machine does not report its CPUs, its agent reports whether it can be pinned.
        let Ok(cpus) = machine.cpus.parse::<Cpus>() else {
            return Ok(work);
        };
        // A number that no set of CPUs holds is in the settings alone.
        let own = self.settings.cpu.into_iter();
        let named = work.cpus.iter().chain(&work.main).flat_map(Cpus::iter);
        let missing = own.chain(named).find(|cpu| !cpus.contains(*cpu));
        match missing {
            Some(cpu) => Err(self.settings.unusable(
                format!("CPU {cpu} is not among its CPUs {cpus}"),
                "say which one measures with cpu=N",
            )),
            None => Ok(work),
        }
    }
}

impl Target for Ssh {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        here()
    }

    fn availability(&self) -> Availability {
        Availability::of(self.agent.path().and_then(|_| self.session().map(drop)))
    }

    fn program(&self) -> Result<Program, TargetError> {
        let sha256 = self.sha256()?.to_owned();
        let machine = self.session()?.machine.clone();
        let notice = format!(
            "measured on {}: {}, Linux {}, CPUs {}; the machine that this run describes is the one \
             that tare ran on. The times of its events include the network",
            self.settings.host, machine.model, machine.kernel, machine.cpus
        );
        Ok(Program {
            sha256,
            notice: Some(notice),
            ..Program::default()
        })
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        if let Some(load) = job.load {
            let why = "loads are not started on other machines; start it there by hand";
            let what = format!("the load {load}");
            return Err(TargetError::contradiction(settings::NAME, what, why));
        }
        let sha256 = self.sha256()?;
        let mut session = self.session()?;
        let plan = self.plan(job.work, &session.machine)?;
        let agent = session.bring(&self.agent, sha256, guard)?;
        let remote = format!("exec /bin/sh {}/run {agent} {plan}", session.folder);
        let client = programs::require(client::PROGRAM, client::PACKAGE)?;
        let command = session.through(&remote);
        let words: Vec<OsString> = command.get_args().map(OsStr::to_owned).collect();
        let folder = command.get_current_dir().map(Path::to_owned);
        let start = move |_| {
            let mut exec = launch::exec(&client, &words)?;
            folder
                .iter()
                .try_for_each(|folder| exec.in_folder(folder))?;
            // The end of this stream ends the agent there.
            let (ours, theirs) = UnixStream::pair()?;
            exec.stdin(OwnedFd::from(theirs));
            let channels = Channels {
                input: Some(ours),
                output: None,
            };
            Ok(launch::Program { exec, channels })
        };
        let [host, same] = [(); 2].map(|()| self.settings.host.clone());
        let mut launch = Launch {
            judge: Box::new(move |ended| judge(&host, ended)),
            ..Launch::of_program(settings::NAME, start)
        };
        launch.dialogue = Some(Box::new(move |_, channels| {
            let input = channels.input;
            Ok(Box::new(RemoteDialogue { host: same, input }))
        }));
        Ok(launch)
    }
}

/// Returns whether ssh can be used from here, whatever the other machine.
pub(crate) fn here() -> Availability {
    let client = || programs::require(client::PROGRAM, client::PACKAGE);
    Availability::of(MeasuredFile::agent().path().and_then(|_| client()))
}

/// Judges an agent on another machine.
///
/// | status of the client | meaning |
/// |---|---|
/// | 0 | the agent is done |
/// | 255 | the connection failed |
/// | 125 | the folder there is gone |
/// | 128 + n | signal n ended the agent |
/// | other | the agent's own |
fn judge(host: &str, ended: &Exited<'_>) -> Result<(), String> {
    Err(match ended.status.code() {
        Some(0) => return Ok(()),
        Some(255) => format!(
            "the connection to {host} broke; the next cell makes a new one. ssh said: {}",
            refusal::one_line(ended.error)
        ),
        Some(125) => {
            format!("its folder on {host} is gone: somebody removed it while the run went on")
        }
        Some(137) => format!(
            "it was killed (SIGKILL) on {host}: by another process, or by the kernel because \
             memory ran out (see dmesg there)"
        ),
        Some(code @ 129..=192) => {
            let signal = code - 128;
            format!("it crashed or was ended by signal {signal} on {host}")
        }
        _ => ended.described(),
    })
}

/// The dialogue with an agent on another machine.
#[derive(Debug)]
struct RemoteDialogue {
    host: String,
    /// The input of the remote shell: a line asks the agent to end; end of file kills it.
    input: Option<UnixStream>,
}

impl Dialogue for RemoteDialogue {
    fn ask_to_end(&mut self) -> Result<(), TargetError> {
        let asked = self.input.as_mut().map(|input| input.write_all(b"end\n"));
        asked
            .unwrap_or(Ok(()))
            .map_err(|source| TargetError::Output { source })
    }

    /// Closes the agent's standard input, and gives the other machine time to end it: the next cell
    /// should not meet it there.
    fn end(&mut self, child: &mut OwnedChild) -> String {
        drop(self.input.take());
        let ended = child.wait_with_deadline(Instant::now() + END_LIMIT);
        let host = &self.host;
        match ended {
            Ok(Some(status)) if status.code() != Some(255) => {
                format!("the agent still ran on {host}, and was ended there")
            }
            Ok(Some(_)) => format!("the connection to {host} broke when it was ended"),
            Ok(None) | Err(_) => format!("{host} does not answer any more"),
        }
    }
}

#[cfg(test)]
mod remote_tests;

//! `process`: the agent as a process on this machine.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rustix::thread::{CapabilitySet, capabilities};
use tare_guard::{Guard, OwnedCgroup};
use tare_networks::Network;
use tare_results::target::{Group, TargetSpec};
use tare_results::work::Work;

use crate::error::TargetError;
use crate::launch::{self, Launch, Ready};
use crate::measured::MeasuredFile;
use crate::programs;
use crate::server::{STACK, Server};
use crate::{Availability, Job, Program, Target};

/// Returns the target where none is named.
pub fn spec() -> TargetSpec {
    TargetSpec::new("process", Vec::new(), Group::Process)
}

/// The agent as a child process.
#[derive(Debug)]
pub struct Process {
    agent: MeasuredFile,
    /// What keeps the kernel's events open while cells record them.
    events: OnceLock<()>,
}

impl Process {
    /// Makes the target from the agent's program.
    pub fn new(agent: MeasuredFile) -> Self {
        let events = OnceLock::new();
        Self { agent, events }
    }

    /// Has the kernel's events kept open until the guard is closed, if a cell records them: opening
    /// and closing them anew takes about a second for each cell.
    fn keep_events_open(&self, guard: &Guard) -> Result<(), TargetError> {
        if self.events.set(()).is_ok() {
            let mut keeper = Command::new(self.agent.path()?);
            keeper.arg("events").stdin(Stdio::null());
            keeper.stdout(Stdio::null()).stderr(Stdio::null());
            guard.spawn(&mut keeper)?.leave_to_guard();
        }
        Ok(())
    }
}

impl Target for Process {
    fn spec(&self) -> TargetSpec {
        spec()
    }

    fn present(&self) -> Availability {
        Availability::of(self.agent.path())
    }

    fn finds(&self, command: &[String]) -> Availability {
        Availability::of(launch::command(command))
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        if let Some(network) = job.network {
            return serve(network, job.work, guard);
        }
        let (path, words) = match job.command {
            Some(words) => launch::command(words)?,
            None => (self.agent.path()?.to_owned(), job.words()),
        };
        if job.is_alone && words.iter().any(|word| records_events(word)) {
            self.keep_events_open(guard)?;
        }
        let group = job.group.map(OwnedCgroup::entry).transpose()?;
        let start = move |_| {
            let mut exec = launch::exec(&path, &words)?;
            group.iter().try_for_each(|group| exec.enter(group))?;
            Ok(exec.into())
        };
        Ok(Launch {
            ready: match job.command {
                Some(_) => Ready::Output,
                None => Ready::Record,
            },
            ..Launch::of_program("process", start)
        })
    }
}

/// Returns whether a word of a plan asks for the kernel's events.
fn records_events(word: &str) -> bool {
    let asked = word.strip_prefix("explain=");
    let asked = asked.or_else(|| word.strip_prefix("trace="));
    asked.is_some_and(|value| value != "0")
}

/// Returns whether TAP devices can be made in such networks, and if not, the remedy.
pub fn taps() -> Availability {
    const DEVICE: &str = "/dev/net/tun";
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    let opened = opened.map_err(|error| {
        let why = format!("a TAP device requires {DEVICE}: {error}");
        TargetError::unusable(
            why,
            "modprobe tun, or measure without guests and --server stack",
        )
    });
    match networks() {
        Availability::Usable => Availability::of(opened),
        unusable => unusable,
    }
}

/// Returns whether servers and clients can be started here, each in its own network, and if not,
/// the remedy.
pub fn networks() -> Availability {
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
    let may = capabilities(None).is_ok_and(|sets| sets.effective.contains(needed));
    let root = may.then_some(()).ok_or_else(|| {
        TargetError::unusable(
            "a network for a service and its clients requires root, with CAP_NET_ADMIN and CAP_SYS_ADMIN",
            "run tare as root, or within a user namespace: TARE_STATE_DIR=FOLDER unshare --map-root-user tare …",
        )
    });
    Availability::of(root.and_then(|()| programs::require("ip", "iproute2")))
}

/// Prepares to start the agent as a client in a network.
///
/// # Errors
///
/// Returns [`TargetError`] if there is no agent.
pub fn client(network: &Network, work: &Work) -> Result<Launch, TargetError> {
    let agent = MeasuredFile::agent();
    let words = Job::idle(work).words().into_iter().map(OsString::from);
    let (path, words) = match network.clients() {
        Some(clients) => launch::within(clients, None, agent.path()?, words)?,
        None => (agent.path()?.to_owned(), words.collect()),
    };
    let start = move |_| Ok(launch::exec(&path, &words)?.into());
    Ok(Launch::of_program("process", start))
}

/// Prepares to start a server in a network, on the CPUs of its work.
fn serve(network: &Network, work: &Work, guard: &Guard) -> Result<Launch, TargetError> {
    let server = Server::of(work, guard)?;
    let place = match &*work.words {
        STACK => &network.tap()?.hypervisor,
        _ => network.member()?,
    };
    let words = server.words.iter().map(OsString::from);
    let (path, words) = launch::within(place, work.cpus.as_ref(), &server.program, words)?;
    let start = move |_| Ok(launch::exec(&path, &words)?.into());
    Ok(Launch::of_program("process", start).of_server(Some(server)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cut_short;

    #[test]
    fn it_reports_what_it_has_when_it_is_asked_to_end() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let target = Process::new(MeasuredFile::agent());
        if let Availability::Unusable { why, .. } = target.availability() {
            return tare_testkit::skip("the agent", &why);
        }
        cut_short(&target, "", &guard);
    }
}

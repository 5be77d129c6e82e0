//! `process`: the agent as a process on this machine.

use std::process::{Command, Stdio};

use tare_guard::Guard;
use tare_results::target::{Group, TargetSpec};

use crate::error::TargetError;
use crate::instance::{Instance, Ordinary, now_ns};
use crate::measured::MeasuredFile;
use crate::starter::{self, Order, Ready, Starter};
use crate::{Availability, Job, Program, Target};

/// Return the target where none is named.
#[must_use]
pub fn spec() -> TargetSpec {
    TargetSpec::new("process", Vec::new(), Group::Process)
}

/// The agent as a child process.
#[derive(Debug)]
pub struct Process {
    agent: MeasuredFile,
}

impl Process {
    /// Make the target from the agent's program.
    #[must_use]
    pub fn new(agent: MeasuredFile) -> Self {
        Self { agent }
    }
}

impl Target for Process {
    fn spec(&self) -> TargetSpec {
        spec()
    }

    fn present(&self) -> Availability {
        Availability::of(self.agent.path())
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        let mut command = Command::new(self.agent.path()?);
        command
            .args(job.work.to_string().split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started_ns = now_ns();
        let child = guard.spawn(&mut command)?;
        Instance::of_child(child, started_ns, Ordinary)
    }

    fn starter(&self, order: &Order<'_>, _guard: &Guard) -> Result<Starter, TargetError> {
        let (path, words) = match order.command {
            Some(words) => starter::command(words)?,
            None => {
                let words = order.work.to_string();
                let words = words.split_whitespace().map(str::to_owned).collect();
                (self.agent.path()?.to_owned(), words)
            }
        };
        let mut starter =
            Starter::of_programs("process", move |_| Ok(starter::exec(&path, &words)?.into()));
        if order.command.is_some() {
            starter.ready = Ready::Output;
        }
        Ok(starter)
    }
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

//! One execution of a tool.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, kill_process_group,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::sched_setaffinity;

use super::signals;
use crate::cpus;
use crate::error::DriverError;
use crate::task::{Output, Task};

/// The number of bytes stored from the end of a tool's standard error.
const KEPT: usize = 2_000;

/// A running tool.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) pid: Pid,
    pub(super) begun: Instant,
    /// Whether the driver has ended it.
    pub(super) by_driver: bool,
    /// Whether the driver has killed it after its lifetime.
    pub(super) killed: bool,
    /// Its standard output, if its meter reads it.
    pub(super) output: Option<File>,
    pub(super) error: Option<File>,
    said: VecDeque<u8>,
}

impl Running {
    /// Starts the tool of a task in its own process group. `limit` is the maximum size of its
    /// files.
    pub(super) fn start(
        task: &mut Task,
        folder: &Path,
        limit: Option<u64>,
    ) -> Result<Self, DriverError> {
        let failed =
            |source: io::Error| DriverError::system(format!("execute {}", task.program), source);
        let mut command = Command::new(&task.program);
        command
            .args(&task.args)
            .current_dir(folder)
            // Its output is parsed in English.
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(task.input.take().map_or_else(Stdio::null, Stdio::from))
            .stderr(Stdio::piped());
        command.stdout(match std::mem::replace(&mut task.output, Output::Nowhere) {
            Output::Nowhere => Stdio::null(),
            Output::Meter => {
                task.output = Output::Meter;
                Stdio::piped()
            }
            Output::Pipe(end) => end.into(),
        });
        let (parent, mask) = (getpid(), cpus::mask(&task.cpus));
        let prepare = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                // The driver died before PR_SET_PDEATHSIG took effect.
                return Err(io::ErrorKind::NotFound.into());
            }
            sched_setaffinity(None, &mask?)?;
            if let Some(bytes) = limit {
                let (current, maximum) = (Some(bytes), Some(bytes));
                setrlimit(Resource::Fsize, Rlimit { current, maximum })?;
            }
            signals::unblock()
        };
        // SAFETY: between fork and exec the closure makes system calls and neither allocates, locks
        // nor accesses memory that another thread may be changing: the driver has one thread.
        unsafe { command.pre_exec(prepare) };
        let begun = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let pid = Pid::from_child(&child);
        let output = child.stdout.take().map(|pipe| listen(pipe.into()));
        let error = child.stderr.take().map(|pipe| listen(pipe.into()));
        Ok(Self {
            pid,
            begun,
            by_driver: false,
            killed: false,
            output: output.transpose().map_err(failed)?,
            error: error.transpose().map_err(failed)?,
            said: VecDeque::new(),
        })
    }

    /// Signals its process group, which is empty if it has ended.
    pub(super) fn signal(&mut self, signal: Signal) {
        self.by_driver = true;
        let _ = kill_process_group(self.pid, signal);
    }

    /// Reads its output.
    pub(super) fn read_output(&mut self, mut meter: impl FnMut(&[u8])) {
        read_output(&mut self.output, &mut meter);
        let said = &mut self.said;
        read_output(&mut self.error, &mut |bytes| {
            said.extend(bytes);
            let surplus = said.len().saturating_sub(KEPT);
            said.drain(..surplus);
        });
    }

    /// Returns the end of its standard error.
    pub(super) fn said(&mut self) -> String {
        let text = String::from_utf8_lossy(self.said.make_contiguous());
        text.trim().to_owned()
    }
}

fn listen(pipe: OwnedFd) -> io::Result<File> {
    let flags = fcntl_getfl(pipe.as_fd())?;
    fcntl_setfl(pipe.as_fd(), flags | OFlags::NONBLOCK)?;
    Ok(File::from(pipe))
}

/// Reads available data, at most 1 MiB at a time, so that a tool that writes continuously does not
/// block the driver; closes the pipe at its end.
fn read_output(pipe: &mut Option<File>, take: &mut impl FnMut(&[u8])) {
    let mut bytes = [0; 16 * 1024];
    for _ in 0..64 {
        let Some(open) = pipe else {
            return;
        };
        match open.read(&mut bytes) {
            Ok(0) => *pipe = None,
            Ok(length) => take(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => *pipe = None,
        }
    }
}

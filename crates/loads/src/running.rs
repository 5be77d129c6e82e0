//! A load that runs next to the measured code.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tare_guard::{
    CgroupVersion, Guard, Interrupt, Lines, OwnedCgroup, OwnedChild, Patience, ScratchDir,
};
use tare_load_driver::Schedule;
use tare_load_driver::driver::origin_line;
use tare_results::model::{self, LoadPlace};
use tare_wire::cpus::Cpus as Measured;

use crate::error::LoadError;
use crate::receiver::LoadReceiver;

/// How long a load may take until it is going: the longest is to write the tree of files on a slow
/// disk.
const START_LIMIT: Duration = Duration::from_secs(120);

/// How long its driver may take to end all tools: longer than the driver's own limits.
const STOP_LIMIT: Duration = Duration::from_secs(70);

/// A running load. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    /// Waits for the time at which the first phase begins.
    told: Option<ChildStdin>,
    // Before the folder: a tool that still writes would refill it.
    child: OwnedChild,
    group: Option<OwnedCgroup>,
    scratch: ScratchDir,
    output: Output,
}

impl Running {
    /// Starts a load by the agent, and waits until it is going; one with phases, until it is ready
    /// and waits for [`Running::begin`]. `measured` are the CPUs that a load on `others` leaves
    /// out.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] if it can't run, as its driver says, or the user asked to stop;
    /// nothing is left running then.
    pub fn start(
        load: &Schedule,
        agent: &Path,
        measured: &Measured,
        guard: &Guard,
        interrupt: &Interrupt,
    ) -> Result<Self, LoadError> {
        let scratch = guard.scratch("load")?;
        let mut dir = OsString::from("dir=");
        dir.push(scratch.path());
        let mut command = Command::new(agent);
        command
            .arg("load")
            .arg(load.to_string())
            .arg(dir)
            .args((measured.count() > 0).then(|| format!("except={measured}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if load.phase_ns().is_some() {
            command.arg("begin=stdin").stdin(Stdio::piped());
        }
        let group = own_group(guard).filter(|group| group.enter(&mut command).is_ok());
        let mut child = guard.spawn(&mut command)?;
        let output = Output::new(child.take_stdout())?;
        let mut running = Self {
            told: child.take_stdin(),
            child,
            group,
            scratch,
            output,
        };
        running.wait_until_going(interrupt)?;
        Ok(running)
    }

    /// Tells when the first phase begins, CLOCK_MONOTONIC in ns. Does nothing if the load has no
    /// phases, or has its time already.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError::Output`] if its driver has gone.
    pub fn begin(&mut self, origin_ns: u64) -> Result<(), LoadError> {
        let Some(mut told) = self.told.take() else {
            return Ok(());
        };
        Ok(told.write_all(origin_line(origin_ns).as_bytes())?)
    }

    /// Lists the processes of the load, if it has its own control group.
    pub fn processes(&self) -> Option<Vec<u32>> {
        self.group.as_ref().map(OwnedCgroup::procs)
    }

    /// Returns the id of the driver's process.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Ends the load and returns what it did. Processes that the kernel does not let be killed, as
    /// the driver told, is left to the guard, which tries again when it is closed and keeps its
    /// journal for `tare clean` if that fails.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] if it had ended before; [`LoadError::NotEnded`] if it was going and
    /// can't be ended.
    pub fn stop(mut self) -> Result<model::Load, LoadError> {
        let was_going = self.child.try_wait()?.is_none();
        self.end().map_err(|error| match error {
            LoadError::Incomplete(_) | LoadError::Guard(_) if was_going => {
                let why = Box::new(error);
                LoadError::NotEnded { why }
            }
            error => error,
        })
    }

    fn end(mut self) -> Result<model::Load, LoadError> {
        self.child.stop_group(STOP_LIMIT)?;
        self.output.read()?;
        let load = self.output.receiver.finish();
        let is_left = |load: &model::Load| load.left.iter().any(|tool| !tool.ended);
        if load.as_ref().is_ok_and(is_left) {
            self.child.leave_to_guard();
            self.group.map(OwnedCgroup::leave_to_guard);
            self.scratch.leave_to_guard();
            return load;
        }
        drop(self.child);
        if let Some(group) = self.group {
            group.remove()?;
        }
        self.scratch.remove()?;
        load
    }

    fn wait_until_going(&mut self, interrupt: &Interrupt) -> Result<(), LoadError> {
        let patience = Patience::new(START_LIMIT);
        loop {
            if interrupt.stop_requested() {
                return Err(LoadError::Stopped);
            }
            self.output.read()?;
            let Some(pipe) = &self.output.pipe else {
                let receiver = LoadReceiver::at(LoadPlace::Beside);
                let receiver = std::mem::replace(&mut self.output.receiver, receiver);
                let finished = receiver.finish();
                return finished.and(Err(LoadError::NeverGoing));
            };
            if self.output.receiver.is_going() {
                return Ok(());
            }
            if !patience.wait(&[pipe.as_fd()])? {
                if interrupt.stop_requested() {
                    return Err(LoadError::Stopped);
                }
                let limit = START_LIMIT;
                return Err(LoadError::TooSlow { limit });
            }
        }
    }
}

/// Makes a control group for the load, where that is allowed and changes nothing: from it nothing
/// can get lost.
///
/// A group with the `cpu` controller would be scheduled as one task: 2,400 processes of hackbench
/// would get half of a CPU from the workload, not nearly all of it. In version 1 the group is in
/// the hierarchy of `pids` alone; in version 2 it is made only if its parent does not hand `cpu`
/// down.
fn own_group(guard: &Guard) -> Option<OwnedCgroup> {
    const CONTROLLER: &str = "pids";
    let group = guard.cgroup("load", &[CONTROLLER]).ok()?;
    let (folder, version) = group.folder(CONTROLLER)?;
    let shares_cpu = version == CgroupVersion::Two
        && fs::read_to_string(folder.join("cgroup.controllers")).map_or(true, |text| {
            text.split_whitespace().any(|name| name == "cpu")
        });
    (!shares_cpu).then_some(group)
}

/// How many pieces are read at a time: twice what a pipe holds.
const MOST_READS: usize = 8;

/// The driver's output.
#[derive(Debug)]
struct Output {
    pipe: Option<ChildStdout>,
    lines: Lines,
    receiver: LoadReceiver,
}

impl Output {
    fn new(pipe: Option<ChildStdout>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            let flags = fcntl_getfl(pipe)?;
            fcntl_setfl(pipe, flags | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            pipe,
            lines: Lines::default(),
            receiver: LoadReceiver::at(LoadPlace::Beside),
        })
    }

    /// Reads what is there, and no more than a pipe can hold: the rest next time.
    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        for _ in 0..MOST_READS {
            let Some(pipe) = &mut self.pipe else {
                break;
            };
            match pipe.read(&mut bytes) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    let receiver = &mut self.receiver;
                    self.lines
                        .take(&bytes[..length], |line, _| receiver.line(line));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

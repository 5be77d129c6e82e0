//! A load that runs beside the measured code.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tare_guard::{CgroupVersion, Guard, Interrupt, OwnedCgroup, OwnedChild, ScratchDir};
use tare_load_driver::Schedule;
use tare_load_driver::driver::origin_line;
use tare_results::model::{self, LoadPlace};
use tare_wire::cpus::Cpus as Measured;

use crate::error::LoadError;
use crate::receiver::{LoadReceiver, LoadSeen};

/// Is how long a load may take until it is going: the longest is to write the tree of files on a slow disk.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Is how long its driver may take to end all tools: longer than the driver's own limits.
const STOP_LIMIT: Duration = Duration::from_secs(70);

/// Is a running load. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    /// Waits to be told when the first phase begins.
    told: Option<ChildStdin>,
    // Before the folder: a tool that still writes would refill it.
    child: OwnedChild,
    group: Option<OwnedCgroup>,
    scratch: ScratchDir,
    output: Output,
}

impl Running {
    /// Starts a load by the agent, and waits until it is going; one with phases, until it is ready and waits for
    /// [`Running::begin`]. `measured` are the CPUs that a load on `others` leaves out.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] if it can't run, as its driver says, or the user asked to stop; nothing is left running then.
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

    /// Tells when the first phase begins, CLOCK_MONOTONIC in ns. Does nothing if the load has no phases, or was told before.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError::Output`] if its driver has gone.
    pub fn begin(&mut self, origin_ns: u64) -> Result<(), LoadError> {
        let Some(mut told) = self.told.take() else {
            return Ok(());
        };
        told.write_all(origin_line(origin_ns).as_bytes())
            .map_err(|source| LoadError::Output { source })
    }

    /// Lists the processes of the load, if it is in a control group of its own.
    #[must_use]
    pub fn processes(&self) -> Option<Vec<u32>> {
        self.group.as_ref().map(OwnedCgroup::procs)
    }

    /// Returns the id of the driver's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Ends the load and returns what it did. What the kernel does not let be killed, as the driver told, is left to the
    /// guard, which tries again when it is closed and keeps its journal for `tare clean` if that fails.
    ///
    /// # Errors
    ///
    /// Returns [`LoadError`] if it had ended before, or can't be ended.
    pub fn stop(mut self) -> Result<model::Load, LoadError> {
        self.child.stop_group(STOP_LIMIT)?;
        self.output.read()?;
        let load = self.output.receiver.finish(LoadPlace::Beside);
        if load
            .as_ref()
            .is_ok_and(|load| load.left.iter().any(|tool| !tool.ended))
        {
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
        let deadline = Instant::now() + START_LIMIT;
        loop {
            interrupt.clear_wake_up();
            if interrupt.stop_requested() {
                return Err(LoadError::Stopped);
            }
            match self.output.read()? {
                Progress::Going => return Ok(()),
                Progress::Ended => {
                    let receiver = std::mem::take(&mut self.output.receiver);
                    return match receiver.finish(LoadPlace::Beside) {
                        Ok(_) => Err(LoadError::NeverGoing),
                        Err(error) => Err(error),
                    };
                }
                Progress::Waiting => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let limit = START_LIMIT;
                return Err(LoadError::TooSlow { limit });
            }
            self.output.wait(interrupt, left)?;
        }
    }
}

/// Makes a control group for the load, where that is allowed and changes nothing: from it nothing can get lost.
///
/// A group with the `cpu` controller would be scheduled as one task: 2,400 processes of hackbench would get half of a CPU
/// from the workload, not nearly all of it. In version 1 the group is in the hierarchy of `pids` alone; in version 2 it is
/// made only if its parent does not hand `cpu` down.
fn own_group(guard: &Guard) -> Option<OwnedCgroup> {
    const CONTROLLER: &str = "pids";
    let group = guard.cgroup("load", &[CONTROLLER]).ok()?;
    let (folder, version) = group.folder(CONTROLLER)?;
    let shares_cpu = || {
        let controllers = fs::read_to_string(folder.join("cgroup.controllers"));
        controllers.map_or(true, |text| {
            text.split_whitespace().any(|name| name == "cpu")
        })
    };
    let is_harmless = match version {
        CgroupVersion::One => true,
        CgroupVersion::Two => !shares_cpu(),
    };
    is_harmless.then_some(group)
}

/// Is the driver's output.
#[derive(Debug)]
struct Output {
    pipe: Option<ChildStdout>,
    begun: Vec<u8>,
    receiver: LoadReceiver,
}

/// Says how far a load is that was started.
enum Progress {
    Waiting,
    Going,
    Ended,
}

impl Output {
    fn new(pipe: Option<ChildStdout>) -> Result<Self, LoadError> {
        if let Some(pipe) = &pipe {
            let flags = fcntl_getfl(pipe).map_err(failed)?;
            fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(failed)?;
        }
        Ok(Self {
            pipe,
            begun: Vec::new(),
            receiver: LoadReceiver::default(),
        })
    }

    /// Reads what is there.
    fn read(&mut self) -> Result<Progress, LoadError> {
        let mut progress = Progress::Waiting;
        let mut bytes = [0; 16 * 1024];
        loop {
            let Some(pipe) = &mut self.pipe else {
                return Ok(Progress::Ended);
            };
            match pipe.read(&mut bytes) {
                Ok(0) => self.pipe = None,
                Ok(length) => {
                    for piece in bytes[..length].split_inclusive(|byte| *byte == b'\n') {
                        self.begun.extend_from_slice(piece);
                        if piece.ends_with(b"\n") {
                            if self.receiver.line(&self.begun) == LoadSeen::Going {
                                progress = Progress::Going;
                            }
                            self.begun.clear();
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(progress),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(LoadError::Output { source }),
            }
        }
    }

    fn wait(&self, interrupt: &Interrupt, left: Duration) -> Result<(), LoadError> {
        let mut fds = vec![PollFd::new(interrupt, PollFlags::IN)];
        fds.extend(
            self.pipe
                .iter()
                .map(|pipe| PollFd::new(pipe, PollFlags::IN)),
        );
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(failed(errno)),
        }
    }
}

fn failed(errno: Errno) -> LoadError {
    let source = errno.into();
    LoadError::Output { source }
}

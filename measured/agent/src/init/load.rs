//! A load in the guest of a plan: this program again, as the driver of loads, in a separate process
//! group.
//!
//! Its records are passed on before the plan starts and after it has ended: whole lines, by a
//! single writer, so that nothing is written while the plan runs.

use std::fs;
use std::io::{self, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::statvfs;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tare_load_driver::Schedule;
use tare_wire::guest::{SCRATCH, TREE};
use tare_wire::line::{Line, MAX_PAYLOAD, Stream, decode_of};
use tare_wire::record::Record;

use super::error::InitError;
use super::{OURSELVES, Out, children};

/// The time limit for a load to reach full load: some fill the disk first, and an emulated guest is
/// slow.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The time limit for the load to end: the driver waits up to 40 s for its tools and then kills
/// them, and an emulated CPU needs long to end the 2,400 processes of hackbench.
const STOP_LIMIT: Duration = Duration::from_secs(180);

/// The time limit for processes that the driver left behind: they were killed, and are waited for.
const LEFT_LIMIT: Duration = Duration::from_secs(2);

/// The folders with the tools of loads.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A load that is running, or ready to run.
pub struct Load {
    group: Pid,
    lines: Lines,
    /// The pipe for the beginning of the first phase, if there are phases.
    begin: Option<PipeWriter>,
}

impl Load {
    /// Starts a load on CPUs other than the measured one and waits until it is running, or ready to
    /// run if it has phases.
    pub fn start(spec: &str, measured: Option<&str>, out: &mut Out) -> Result<Self, InitError> {
        let failed = |source| InitError::NotStarted {
            what: "the load",
            source,
        };
        let mut command = Command::new(OURSELVES);
        command
            .args(["load", spec])
            .args(words(measured))
            .env_clear()
            .env("PATH", PATH)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        // The driver reports invalid loads.
        let has_phases = Schedule::parse(spec).is_ok_and(|it| it.phase_ns().is_some());
        let begin = match has_phases {
            true => {
                let (heard, told) = io::pipe().map_err(failed)?;
                command.arg("begin=stdin").stdin(heard);
                Some(told)
            }
            false => None,
        };
        let mut child = command.spawn().map_err(failed)?;
        let group = children::pid(&child);
        let mut load = Self {
            group,
            lines: Lines::new(child.stdout.take()),
            begin,
        };
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let line = match load.lines.next(deadline) {
                Ok(Some(line)) => line,
                Ok(None) => return Err(load.failed("ended before it disturbed")),
                Err(error) => {
                    return Err(load.failed(&format!("did not start to disturb: {error}")));
                }
            };
            out.pass_on(&line);
            if is_going(&line) {
                return Ok(load);
            }
        }
    }

    /// Returns the descriptor to which the measured process writes the beginning of the first
    /// phase, if there are phases. The next child inherits it.
    pub fn take_begin(&mut self) -> io::Result<Option<PipeWriter>> {
        let Some(pipe) = self.begin.take() else {
            return Ok(None);
        };
        fcntl_setfd(&pipe, FdFlags::empty())?;
        Ok(Some(pipe))
    }

    /// Ends the load, and passes on its records.
    pub fn stop(mut self, out: &mut Out) -> Result<(), InitError> {
        // Only the driver: it ends its tools in order.
        let _ = kill_process(self.group, Signal::TERM);
        let deadline = Instant::now() + STOP_LIMIT;
        loop {
            match self.lines.next(deadline) {
                Ok(Some(line)) => out.pass_on(&line),
                Ok(None) => break,
                Err(error) => return Err(self.failed(&format!("did not end: {error}"))),
            }
        }
        children::wait_for_all(LEFT_LIMIT);
        Ok(())
    }

    fn failed(&self, why: &str) -> InitError {
        let _ = kill_process_group(self.group, Signal::KILL);
        InitError::Load(why.to_owned())
    }
}

/// Returns the driver's arguments about the guest.
fn words(measured: Option<&str>) -> Vec<String> {
    let mut words = vec![format!("dir={SCRATCH}")];
    words.extend(measured.map(|cpu| format!("except={cpu}")));
    if fs::exists(TREE).unwrap_or(false) {
        words.push(format!("tree={TREE}"));
    }
    // Otherwise it would expect the disk of a host. Some space is left for the file system itself.
    if let Ok(disk) = statvfs(SCRATCH) {
        let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
        words.push(format!("limit={}", bytes / 10 * 9));
    }
    words
}

fn is_going(line: &[u8]) -> bool {
    let mut room = [0; MAX_PAYLOAD];
    matches!(
        decode_of(Stream::Load, line, &mut room),
        Line::Record {
            record: Record::Going,
            ..
        }
    )
}

/// The lines from a pipe.
struct Lines {
    /// None at its end.
    pipe: Option<ChildStdout>,
    begun: Vec<u8>,
}

impl Lines {
    fn new(pipe: Option<ChildStdout>) -> Self {
        Self {
            pipe,
            begun: Vec::new(),
        }
    }

    /// Returns the next line with its newline, or None at the end.
    fn next(&mut self, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
                return Ok(Some(self.begun.drain(..=end).collect()));
            }
            let Some(pipe) = &mut self.pipe else {
                return Ok(None);
            };
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            }
            let mut bytes = [0; 4096];
            match pipe.read(&mut bytes)? {
                0 => self.pipe = None,
                read => self.begun.extend_from_slice(&bytes[..read]),
            }
        }
    }
}

//! The tools of a load: starts, restarts, kills after a lifetime, and ends them.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, wait};

use super::child::Running;
use super::left::{Leftovers, Patience, kill_children};
use super::signals::{self, Signals};
use crate::error::DriverError;
use crate::processes;
use crate::task::{Ended, Ends, Task};

/// The time limit for a tool to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// The number of lines quoted from a failed tool: dd gives the reason, and three more lines.
const SAID_LINES: usize = 4;

/// The tools of a load.
#[derive(Debug)]
pub(super) struct ToolSet {
    members: Vec<Member>,
    folder: PathBuf,
    /// The maximum size of a file.
    file_limit: Option<u64>,
    /// CPU time of children that had ended before the first tool was started.
    cpu_before_ns: u64,
    /// Whether all tools have been ended.
    ended: bool,
}

#[derive(Debug)]
struct Member {
    task: Task,
    running: Option<Running>,
    /// Whether it has begun to work.
    works: bool,
    /// Time of the next start.
    due: Option<Instant>,
}

impl ToolSet {
    /// Prepares tools that work in a folder; nothing runs yet.
    pub(super) fn new(tasks: Vec<Task>, folder: &Path, file_limit: Option<u64>) -> Self {
        let member = |task| Member {
            task,
            running: None,
            works: false,
            due: None,
        };
        Self {
            members: tasks.into_iter().map(member).collect(),
            folder: folder.to_owned(),
            file_limit,
            cpu_before_ns: children_cpu_ns(),
            ended: false,
        }
    }

    /// Returns whether there are no tools.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Starts every tool.
    pub(super) fn start(&mut self, signals: &mut Signals) -> Result<(), DriverError> {
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            member.start(&self.folder, self.file_limit)?;
            let Some(port) = member.task.listens else {
                continue;
            };
            let deadline = Instant::now() + LISTEN_LIMIT;
            while !listens(port) {
                if Instant::now() > deadline {
                    return Err(self.members[index].error("does not listen"));
                }
                // If it has ended instead, this reports it.
                self.wait(signals, Some(Instant::now() + Duration::from_millis(5)))?;
            }
        }
        Ok(())
    }

    /// Returns the tools that have not begun to work.
    pub(super) fn idlers(&mut self) -> Vec<&str> {
        for member in &mut self.members {
            if let Some(running) = &member.running {
                member.works = member.works || member.task.meter.works(running.pid);
            }
        }
        let idlers = self.members.iter().filter(|member| !member.works);
        idlers.map(|member| member.task.program.as_str()).collect()
    }

    /// Waits for an event, at most until a time, and handles it.
    pub(super) fn wait(
        &mut self,
        signals: &mut Signals,
        until: Option<Instant>,
    ) -> Result<(), DriverError> {
        let deaths = self.members.iter().filter_map(Member::death);
        let starts = self.members.iter().filter_map(|member| member.due);
        let moment = deaths.chain(starts).chain(until).min();
        self.sleep(signals, moment)?;
        let ends = self.reap()?;
        // A signal to the driver's process group also reaches a tool that has no group yet.
        signals.note();
        for mut end in ends {
            let signal = end.how.status.signal();
            end.how.by_driver |= signals.stop_asked() && signal.is_some_and(signals::asks_for_end);
            let member = &mut self.members[end.member];
            if let Some(why) = member.why_wrong(&end.how) {
                return Err(member.error(&why));
            }
            let noted = member.task.meter.ended(&end.how);
            noted.map_err(|why| member.error(&why))?;
            // A complete run has done its work.
            member.works = true;
            member.due = Some(end.begun + member.task.again_after);
        }
        let now = Instant::now();
        for member in &mut self.members {
            if member.death().is_some_and(|moment| now >= moment) {
                member.begin_end(Signal::KILL);
                member.look_at_killed();
            }
            if member.due.is_some_and(|moment| now >= moment) {
                member.start(&self.folder, self.file_limit)?;
            }
        }
        Ok(())
    }

    /// Counts the work done, asks every tool to end, kills those that don't, and gives up on those
    /// that can't be killed.
    pub(super) fn stop(
        &mut self,
        signals: &mut Signals,
        patience: Patience,
        left: &mut Leftovers,
        phase: u32,
    ) -> Result<Stopped, DriverError> {
        for member in &mut self.members {
            member.begin_end(member.task.stop);
        }
        for member in &mut self.members {
            member.look_at_killed();
        }
        let mut stopped = Stopped::default();
        let killed_at = Instant::now() + patience.asked;
        let left_at = killed_at + patience.killed;
        let mut killed = false;
        while self.members.iter().any(|member| member.running.is_some()) {
            let now = Instant::now();
            let running = self.members.iter_mut();
            let running = running.filter(|member| member.running.is_some());
            if now > left_at {
                for member in running {
                    if let Some(running) = member.running.take() {
                        left.add(running.pid, &member.task.program, phase);
                        stopped.last_tool = Some(member.task.program.clone());
                    }
                }
                break;
            }
            if !killed && now > killed_at {
                killed = true;
                for member in running {
                    member.begin_end(Signal::KILL);
                    stopped.notices.push(format!(
                        "{} did not end within {} s after it was asked to, and was killed; its last work is not counted",
                        member.task.program,
                        patience.asked.as_secs_f64()
                    ));
                }
            }
            let next = if killed { left_at } else { killed_at };
            self.sleep(signals, Some(next + Duration::from_millis(1)))?;
            for end in self.reap()? {
                let member = &mut self.members[end.member];
                if let Err(why) = member.task.meter.ended(&end.how) {
                    let notice = format!("{} {why}", member.task.program);
                    stopped.notices.push(notice);
                }
                stopped.last_tool = Some(member.task.program.clone());
            }
        }
        Ok(stopped)
    }

    /// Kills the descendants of the tools, and waits for their end; gives up on those that can't be
    /// killed.
    pub(super) fn end_rest(
        &mut self,
        limit: Duration,
        left: &mut Leftovers,
        phase: u32,
    ) -> Result<(), DriverError> {
        self.ended = true;
        let deadline = Instant::now() + limit;
        loop {
            for member in &mut self.members {
                if let Some(running) = &mut member.running {
                    running.signal(Signal::KILL);
                }
            }
            // Orphans become children when their parent is reaped: repeat until there are none.
            let children = kill_children(|child| !left.has(child));
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some((pid, _))) => {
                        for member in &mut self.members {
                            member.running.take_if(|running| running.pid == pid);
                        }
                    }
                    Ok(None) if children.is_empty() => return Ok(()),
                    Ok(None) => break,
                    Err(Errno::CHILD) => return Ok(()),
                    Err(errno) => return Err(DriverError::system("wait for its tools", errno)),
                }
            }
            if Instant::now() > deadline {
                for child in kill_children(|child| !left.has(child)) {
                    let tool = processes::name(child).unwrap_or_default();
                    left.add(child, &tool, phase);
                }
                return Ok(());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the work done, summed by name.
    pub(super) fn totals(&self) -> Vec<(String, u64)> {
        let mut all: Vec<(String, u64)> = Vec::new();
        let meters = self.members.iter().map(|member| &member.task.meter);
        for (what, amount) in meters.flat_map(|meter| meter.totals()) {
            match all.iter_mut().find(|(known, _)| *known == what) {
                Some((_, sum)) => *sum += amount,
                None => all.push((what, amount)),
            }
        }
        all
    }

    /// Returns the CPU time of all processes that have ended since the set was created, in ns; None
    /// if there is no tool.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        let used = children_cpu_ns().saturating_sub(self.cpu_before_ns);
        (!self.is_empty()).then_some(used)
    }

    /// Sleeps until a signal comes, a tool writes, or a time, and handles it.
    fn sleep(&mut self, signals: &mut Signals, until: Option<Instant>) -> Result<(), DriverError> {
        let running = self
            .members
            .iter()
            .filter_map(|member| member.running.as_ref());
        let pipes = running.flat_map(|running| [&running.output, &running.error]);
        let mut fds = vec![PollFd::new(&*signals, PollFlags::IN)];
        fds.extend(pipes.flatten().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let pause = until.map(|until| until.saturating_duration_since(Instant::now()));
        let pause = pause.and_then(|pause| Timespec::try_from(pause).ok());
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(DriverError::system("wait for its tools", errno)),
        }
        drop(fds);
        signals.note();
        self.members.iter_mut().for_each(Member::read_output);
        Ok(())
    }

    /// Reaps ended processes, and returns the tools among them.
    fn reap(&mut self) -> Result<Vec<End>, DriverError> {
        let mut ends = Vec::new();
        loop {
            let (pid, status) = match wait(WaitOptions::NOHANG) {
                Ok(Some(ended)) => ended,
                Ok(None) | Err(Errno::CHILD) => return Ok(ends),
                Err(errno) => return Err(DriverError::system("wait for its tools", errno)),
            };
            let status = ExitStatus::from_raw(status.as_raw());
            // Others are orphans.
            ends.extend(self.ended(pid, status));
        }
    }

    fn ended(&mut self, pid: Pid, status: ExitStatus) -> Option<End> {
        let mut members = self.members.iter().map(|member| member.running.as_ref());
        let number = members.position(|running| running.is_some_and(|it| it.pid == pid))?;
        let member = &mut self.members[number];
        // Its last output is in the pipes by now.
        member.read_output();
        let mut running = member.running.take()?;
        let how = Ended {
            status,
            said: running.said(),
            by_driver: running.by_driver,
        };
        Some(End {
            member: number,
            how,
            begun: running.begun,
        })
    }
}

impl Drop for ToolSet {
    fn drop(&mut self) {
        // After an orderly end the laboratory's guard handles the rest. A process that can't be
        // killed now can't be killed at all.
        if !self.ended && !self.members.is_empty() {
            let _ = self.end_rest(Patience::LAST.killed, &mut Leftovers::default(), 0);
        }
    }
}

impl Member {
    fn start(&mut self, folder: &Path, file_limit: Option<u64>) -> Result<(), DriverError> {
        self.due = None;
        self.running = Some(Running::start(&mut self.task, folder, file_limit)?);
        Ok(())
    }

    /// Returns the time when the running tool must be killed.
    fn death(&self) -> Option<Instant> {
        let running = self.running.as_ref().filter(|running| !running.by_driver)?;
        running.begun.checked_add(self.task.kill_after?)
    }

    /// Counts the running tool's work, and signals it. If it is killed, its work is counted
    /// afterwards: a killed process stays countable until it is reaped, and counting 800 running
    /// processes of hackbench takes long.
    fn begin_end(&mut self, signal: Signal) {
        if let Some(running) = &mut self.running {
            if signal != Signal::KILL {
                self.task.meter.last_look(running.pid);
            }
            running.signal(signal);
            running.killed |= signal == Signal::KILL;
        }
    }

    /// Counts the work of the tool that was just killed.
    fn look_at_killed(&mut self) {
        if let Some(running) = self.running.as_ref().filter(|running| running.killed) {
            self.task.meter.last_look(running.pid);
        }
    }

    fn read_output(&mut self) {
        if let Some(running) = &mut self.running {
            running.read_output(|bytes| self.task.meter.on_output(bytes));
        }
    }

    /// Describes an end that the driver did not cause.
    fn why_wrong(&self, end: &Ended) -> Option<String> {
        if end.by_driver {
            return None;
        }
        let tolerated = match (self.task.ends, end.status.code()) {
            (Ends::Again(tolerated), Some(code)) => code == 0 || tolerated.contains(&code),
            _ => false,
        };
        (!tolerated).then(|| describe(end.status, &end.said))
    }

    fn error(&self, how: &str) -> DriverError {
        DriverError(format!("the load's {} {how}", self.task.program))
    }
}

/// The result of ending the tools.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// Notices on work that could not be counted.
    pub(super) notices: Vec<String>,
    /// The tool that ended last, or did not end.
    pub(super) last_tool: Option<String>,
}

/// The end of a member's tool.
struct End {
    member: usize,
    how: Ended,
    begun: Instant,
}

/// Describes the unexpected end of a tool, and the remedy.
fn describe(status: ExitStatus, said: &str) -> String {
    let mut how = match (status.signal(), status.code()) {
        (Some(libc::SIGXFSZ), _) => "wrote a file larger than the load's limit".to_owned(),
        (Some(libc::SIGKILL), _) => {
            "was killed (SIGKILL) by another process, or by the kernel because memory ran out (see dmesg)"
                .to_owned()
        }
        (Some(signal), _) => format!("crashed or was ended by signal {signal}"),
        (None, code) => format!("ended by itself with status {}", code.unwrap_or_default()),
    };
    let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.collect();
    if !lines.is_empty() {
        how.push_str("; it said: ");
        how.push_str(&lines[lines.len().saturating_sub(SAID_LINES)..].join(" / "));
    }
    if said.contains("No space left on device") {
        how.push_str("; the scratch folder's disk is full: make room there, or choose another place by TMPDIR");
    }
    how
}

/// Returns whether a TCP port of 127.0.0.1 has a listener, without connecting: it accepts only one
/// connection.
fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let address = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        fields.next() == Some(&address) && fields.nth(1) == Some(LISTEN)
    })
}

/// Returns the CPU time of all reaped descendants, user and system.
fn children_cpu_ns() -> u64 {
    // SAFETY: zeroed is a valid `rusage`; the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_the_last_words_and_a_remedy() {
        let status = ExitStatus::from_raw(1 << 8);
        let said = "one\ntwo\nthree\nfour\ndd: error writing 'f': No space left on device";
        assert_eq!(
            describe(status, said),
            "ended by itself with status 1; it said: two / three / four / dd: error writing 'f': No space left on device; \
             the scratch folder's disk is full: make room there, or choose another place by TMPDIR"
        );
        assert_eq!(describe(status, ""), "ended by itself with status 1");
        assert!(describe(ExitStatus::from_raw(11), "").contains("signal 11"));
    }

    #[test]
    fn a_listener_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(port));
        drop(listener);
        assert!(!listens(port));
    }
}

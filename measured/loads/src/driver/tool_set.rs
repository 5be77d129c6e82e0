//! All tools of a load: started, started again, killed when they are old, ended.

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

/// How long a tool may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(5);

/// How many lines of what a failed tool said are told: dd says why, and three lines more.
const SAID_LINES: usize = 4;

/// The set of tools that are kept going.
#[derive(Debug)]
pub(super) struct ToolSet {
    members: Vec<Member>,
    folder: PathBuf,
    /// How long a file may become.
    file_limit: Option<u64>,
    /// CPU time of children that had ended before the first tool was started.
    cpu_before_ns: u64,
    /// Whether nothing is left to end.
    ended: bool,
}

#[derive(Debug)]
struct Member {
    task: Task,
    running: Option<Running>,
    /// Whether it was seen to work.
    works: bool,
    /// When it is to be started again.
    due: Option<Instant>,
}

impl ToolSet {
    /// Prepares a tools that works in a folder; nothing runs yet.
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

    /// Says whether there is no tool at all.
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
                // If it has ended instead, this says so.
                self.wait(signals, Some(Instant::now() + Duration::from_millis(5)))?;
            }
        }
        Ok(())
    }

    /// Names the tools that have not begun to work yet.
    pub(super) fn idlers(&mut self) -> Vec<&str> {
        for member in &mut self.members {
            if let Some(running) = &member.running {
                member.works = member.works || member.task.meter.works(running.pid);
            }
        }
        let idlers = self.members.iter().filter(|member| !member.works);
        idlers.map(|member| member.task.program.as_str()).collect()
    }

    /// Waits until something happens, but not beyond a moment, and takes care of it.
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
        // Who asks the driver's process group for the end also meets a tool that has no group of its own yet.
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
            // A whole run has done what it was to do.
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

    /// Counts what was done, asks every tool to end, kills those that don't, and leaves those that can't be killed.
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
                        "{} did not end within {} s after it was asked to, and was killed; what it did last is not counted",
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

    /// Kills what the tools have started, and waits until all of it is gone; leaves what can't be killed.
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
            // Orphans become children when their parent is reaped: look again until there are none.
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

    /// Returns what was done, everything of one name together.
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

    /// Returns the CPU time of all that has ended since the tools was made, in ns; None if there is no tool.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        let used = children_cpu_ns().saturating_sub(self.cpu_before_ns);
        (!self.is_empty()).then_some(used)
    }

    /// Sleeps until a signal comes, a tool speaks, or a moment is there, and takes note of what came.
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
        self.members.iter_mut().for_each(Member::hear);
        Ok(())
    }

    /// Reaps what has ended, and returns the tools among it.
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
        // What it wrote before its end is in the pipes by now.
        member.hear();
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
        // After an orderly end somebody else cares for what was left. What can't be killed now can't be killed at all.
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

    /// Returns when the running tool is to be killed.
    fn death(&self) -> Option<Instant> {
        let running = self.running.as_ref().filter(|running| !running.by_driver)?;
        running.begun.checked_add(self.task.kill_after?)
    }

    /// Counts what the running tool has done, and signals it. One that is killed is counted afterwards: what is killed
    /// stays countable until it is waited for, and to count 800 processes of hackbench beside them running takes long.
    fn begin_end(&mut self, signal: Signal) {
        if let Some(running) = &mut self.running {
            if signal != Signal::KILL {
                self.task.meter.last_look(running.pid);
            }
            running.signal(signal);
            running.killed |= signal == Signal::KILL;
        }
    }

    /// Counts what the tool has done that was just killed.
    fn look_at_killed(&mut self) {
        if let Some(running) = self.running.as_ref().filter(|running| running.killed) {
            self.task.meter.last_look(running.pid);
        }
    }

    fn hear(&mut self) {
        if let Some(running) = &mut self.running {
            running.hear(|bytes| self.task.meter.heard(bytes));
        }
    }

    /// Says what is wrong with an end that the driver did not ask for.
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

/// What came of ending the tools.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    /// What could not be counted.
    pub(super) notices: Vec<String>,
    /// The tool that ended last, or was left.
    pub(super) last_tool: Option<String>,
}

/// The end of a member's tool.
struct End {
    member: usize,
    how: Ended,
    begun: Instant,
}

/// Says how a tool ended that should not have, and what to do.
fn describe(status: ExitStatus, said: &str) -> String {
    let mut how = match (status.signal(), status.code()) {
        (Some(libc::SIGXFSZ), _) => "wrote a file larger than the load's limit".to_owned(),
        (Some(libc::SIGKILL), _) => {
            "was killed (SIGKILL): by somebody, or by the kernel for want of memory (see dmesg)"
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

/// Says whether somebody listens on a TCP port of 127.0.0.1, without connecting: the one connection is another's.
fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let address = format!("0100007F:{port:04X}");
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap_or_default();
    table.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        fields.next() == Some(&address) && fields.nth(1) == Some(LISTEN)
    })
}

/// Returns the CPU time of all descendants that have ended and were waited for, user and system.
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

//! Tools that do not end in time.
//!
//! A process in an uninterruptible sleep or in a frozen control group keeps its SIGKILL pending and
//! ends as soon as the kernel permits. The driver waits no longer than [`Patience`]: it continues,
//! and reports the remaining tools, and the phases during which they were still running.

use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use tare_wire::record::{self, Record};

use super::report::Reporter;
use crate::processes;

/// The time limits for tools to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// After they were asked to end.
    pub(super) asked: Duration,
    /// After they were killed.
    pub(super) killed: Duration,
}

impl Patience {
    /// At the end of the load: `dd` may have to write back a file first.
    pub(super) const LAST: Self = Self {
        asked: Duration::from_secs(30),
        killed: Duration::from_secs(10),
    };

    /// Between two phases: the next one is waiting, so a quarter of a phase, but at least 1 s and
    /// at most 10 s.
    pub(super) fn between(phase: Duration) -> Self {
        const LEAST: Duration = Duration::from_secs(1);
        const MOST: Duration = Duration::from_secs(10);
        let limit = (phase / 4).clamp(LEAST, MOST);
        Self {
            asked: limit,
            killed: limit,
        }
    }
}

/// The tools that are still running.
#[derive(Debug, Default)]
pub(super) struct Leftovers(Vec<Leftover>);

#[derive(Debug)]
struct Leftover {
    pid: Pid,
    tool: String,
    phase: u32,
    until: u32,
    ended: bool,
}

impl Leftovers {
    /// Adds a tool of a phase that was killed and is still running.
    pub(super) fn add(&mut self, pid: Pid, tool: &str, phase: u32) {
        self.0.push(Leftover {
            pid,
            tool: tool.to_owned(),
            phase,
            until: phase,
            ended: false,
        });
    }

    /// Returns whether this child is still running.
    pub(super) fn has(&self, child: Pid) -> bool {
        self.0.iter().any(|left| left.pid == child && !left.ended)
    }

    /// Returns whether some were still running at the last check.
    pub(super) fn remain(&self) -> bool {
        self.0.iter().any(|left| !left.ended)
    }

    /// Records that a phase begins while they are still running.
    pub(super) fn phase_begins(&mut self, number: u32) {
        self.look();
        for left in self.0.iter_mut().filter(|left| !left.ended) {
            left.until = number;
        }
    }

    /// Waits until all have ended, up to the limit for killed tools.
    pub(super) fn end(&mut self) {
        let deadline = Instant::now() + Patience::LAST.killed;
        while self.remain() && Instant::now() < deadline {
            // Their children become the driver's when they end.
            kill_children(|_| true);
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
            self.look();
        }
    }

    /// Reports each of them.
    pub(super) fn report(&self, reporter: &mut Reporter) {
        for left in &self.0 {
            reporter.put(&Record::Leftovers(record::Leftovers {
                tool: &left.tool,
                pid: left.pid.as_raw_pid().unsigned_abs(),
                phase: left.phase,
                until: left.until,
                ended: left.ended,
            }));
        }
    }

    fn look(&mut self) {
        if self.remain() {
            let there = processes::children(getpid());
            for left in &mut self.0 {
                left.ended |= !there.contains(&left.pid);
            }
        }
    }
}

/// Kills the selected children, and returns them.
pub(super) fn kill_children(is_meant: impl Fn(Pid) -> bool) -> Vec<Pid> {
    let mut children = processes::children(getpid());
    children.retain(|child| is_meant(*child));
    for child in &children {
        let _ = kill_process(*child, Signal::KILL);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_phase_waits_for_a_part_of_its_length() {
        let limit = |ms| Patience::between(Duration::from_millis(ms)).asked;
        assert_eq!(limit(300), Duration::from_secs(1));
        assert_eq!(limit(25_000), Duration::from_millis(6_250));
        assert_eq!(limit(u64::MAX / 2), Duration::from_secs(10));
    }
}

//! Tools that can't be ended in their time.
//!
//! A process in an uninterruptible sleep or in a frozen control group keeps its SIGKILL pending and ends as soon as the
//! kernel lets it. The driver doesn't wait for that longer than [`Patience`] says: it goes on, and tells who was left, and
//! beside which phases.

use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use tare_wire::record::{self, Record};

use super::report::Reporter;
use crate::processes;

/// How long tools may take to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// When they were asked to.
    pub(super) asked: Duration,
    /// When they were killed.
    pub(super) killed: Duration,
}

impl Patience {
    /// At the end of the load: `dd` may have to write a file out first.
    pub(super) const LAST: Self = Self {
        asked: Duration::from_secs(30),
        killed: Duration::from_secs(10),
    };

    /// Between two phases: the next one waits meanwhile, so a quarter of a phase, but at least 1 s and at most 10 s.
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

/// The tools that were left running.
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
    /// Takes note of a tool of a phase that was killed and is still there.
    pub(super) fn add(&mut self, pid: Pid, tool: &str, phase: u32) {
        self.0.push(Leftover {
            pid,
            tool: tool.to_owned(),
            phase,
            until: phase,
            ended: false,
        });
    }

    /// Says whether a child was left.
    pub(super) fn has(&self, child: Pid) -> bool {
        self.0.iter().any(|left| left.pid == child && !left.ended)
    }

    /// Says whether some were still there when they were last looked at.
    pub(super) fn remain(&self) -> bool {
        self.0.iter().any(|left| !left.ended)
    }

    /// Takes note that a phase begins beside those that are still there.
    pub(super) fn phase_begins(&mut self, number: u32) {
        self.look();
        for left in self.0.iter_mut().filter(|left| !left.ended) {
            left.until = number;
        }
    }

    /// Waits until all have ended, as long as what was killed may take.
    pub(super) fn end(&mut self) {
        let deadline = Instant::now() + Patience::LAST.killed;
        while self.remain() && Instant::now() < deadline {
            // What they have started becomes a child when they end.
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

    /// Reports each.
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

/// Kills those children that are meant, and returns them.
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

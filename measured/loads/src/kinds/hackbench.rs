//! `hackbench`: three instances in a loop, killed every five seconds, as in the study's DD phase.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{Kind, PLAIN, Setup};
use crate::error::DriverError;
use crate::processes;
use crate::task::{Ended, Meter, Task};
use crate::tools::Tool;

/// The number of instances, on any CPU.
const LOOPS: usize = 3;
/// The number of groups of each.
const GROUPS: u64 = 20;
/// The number of senders in a group, and of receivers: hackbench's 40 descriptors.
const MEMBERS: u64 = 20;
/// The number of messages from each sender to each receiver of its group.
const MESSAGES: u64 = 100;
/// The length of a message.
const MESSAGE_BYTES: u64 = 100;
/// The time after which one is killed.
const LIFE: Duration = Duration::from_secs(5);

pub(super) const HACKBENCH: Kind = Kind {
    name: "hackbench",
    usage: "hackbench",
    summary: "3 × hackbench of 20 groups (800 processes) in a loop, killed every 5 s",
    tools: &[Tool::new("hackbench", "rt-tests")],
    deviations: &[
        "`hackbench -g 20`, because today's hackbench ignores the number of the published `hackbench 20`",
        "each is killed by its process group when it is 5 s old, not by name: other people's are left alone",
    ],
    tasks,
    ..PLAIN
};

fn tasks(setup: &mut Setup, _words: &[String]) -> Result<Vec<Task>, DriverError> {
    let groups = GROUPS.to_string();
    let task = |_| Task {
        kill_after: Some(LIFE),
        // A signal that it handles makes each of its 800 processes report.
        stop: Signal::KILL,
        ..Task::again("hackbench", setup.cpus, HackbenchMeter::default()).args(["-g", &groups])
    };
    Ok((0..LOOPS).map(task).collect())
}

/// A meter that uses the loop counts of those that ended, and the kernel's I/O accounting of those
/// that were killed.
#[derive(Debug, Default)]
struct HackbenchMeter {
    messages: u64,
    /// Messages of the one that is about to be killed.
    begun: u64,
}

impl Meter for HackbenchMeter {
    fn works(&self, pid: Pid) -> bool {
        let keeps_accounts = processes::io(pid).is_some();
        self.messages > 0 || sent(pid).any(|messages| messages > 0) || !keeps_accounts
    }

    fn last_look(&mut self, pid: Pid) {
        self.begun = sent(pid).sum();
    }

    fn ended(&mut self, ended: &Ended) -> Result<(), String> {
        self.messages += if ended.status.success() {
            GROUPS * MEMBERS * MEMBERS * MESSAGES
        } else {
            self.begun
        };
        self.begun = 0;
        Ok(())
    }

    fn totals(&self) -> Vec<(String, u64)> {
        vec![("messages".to_owned(), self.messages)]
    }
}

/// Returns the number of messages sent so far by each process of a running one.
fn sent(pid: Pid) -> impl Iterator<Item = u64> {
    let accounts = processes::of_group(pid).filter_map(processes::io);
    // Apart from messages, its senders only write one byte each, at the start.
    accounts.map(|io| io.written / MESSAGE_BYTES)
}

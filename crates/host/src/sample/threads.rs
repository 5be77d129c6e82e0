//! The CPU time of a process and all that it has started, thread by thread.

use std::collections::BTreeMap;

use super::processes::{self, parse};
use super::tasks::cpu_ns;
use crate::source::Source;

/// The CPU time that each thread has had, of a process and its descendants, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes(BTreeMap<(u32, u32), ThreadTime>);

/// The CPU time of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Its process.
    pub process: u32,
    /// Its name.
    pub thread: String,
    /// CPU time in ns.
    pub ns: u64,
}

impl ThreadTimes {
    /// Reads the threads of a process and of its descendants.
    pub fn of(source: &Source, process: u32) -> Self {
        let all = processes::read(source).into_known().unwrap_or_default();
        let mut family = vec![process];
        let mut place = 0;
        while let Some(parent) = family.get(place).copied() {
            let children = all.iter().filter(|one| one.parent == parent);
            family.extend(children.map(|one| one.pid));
            place += 1;
        }
        let members = all.iter().filter(|one| family.contains(&one.pid));
        let threads = members.flat_map(|member| {
            let folder = format!("/proc/{}/task", member.pid);
            let ids = source.names(&folder).into_known().unwrap_or_default();
            ids.into_iter().filter_map(move |id| {
                let task = parse(source.text(&format!("{folder}/{id}/stat")).known()?)?;
                let time = ThreadTime {
                    process: member.pid,
                    ns: cpu_ns(source, member.pid, &task),
                    thread: task.name,
                };
                Some(((member.pid, task.pid), time))
            })
        });
        Self(threads.collect())
    }

    /// Returns the ids of the threads.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.keys().map(|(_, thread)| *thread)
    }

    /// Returns the CPU time that threads have had since an earlier moment. Of threads that have
    /// ended, the time since then is unknown.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = ThreadTime> + 'a {
        self.0.iter().map(|(id, now)| {
            let before = earlier.0.get(id).map_or(0, |before| before.ns);
            ThreadTime {
                ns: now.ns.saturating_sub(before),
                ..now.clone()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_time_of_a_process_and_its_children_is_counted() {
        let script = "while :; do :; done & exec sleep 1000";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let source = Source::system();
        let mut spent = BTreeMap::new();
        for _ in 0..100 {
            let before = ThreadTimes::of(&source, shell.id());
            std::thread::sleep(std::time::Duration::from_millis(100));
            let after = ThreadTimes::of(&source, shell.id());
            spent = after
                .since(&before)
                .map(|time| (time.thread, time.ns))
                .collect();
            if spent.len() == 2 && spent.contains_key("sleep") && spent["sh"] > 0 {
                break;
            }
        }
        let loops = ThreadTimes::of(&source, shell.id());
        for (process, _) in loops.0.keys().filter(|(process, _)| *process != shell.id()) {
            let ended = Command::new("kill")
                .args(["-9", &process.to_string()])
                .status();
            assert!(ended.unwrap().success());
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        // The shell's loop runs, and what it became sleeps.
        assert!(
            spent["sh"] > 1_000_000 && spent["sleep"] < spent["sh"],
            "{spent:?}"
        );
    }
}

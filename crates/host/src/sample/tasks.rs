//! Which other tasks ran on some CPUs while something was measured there.
//!
//! The kernel shows for each task how much CPU time it has had and on which CPU it ran last, not
//! how much it had on which. So the system is read again and again, and what a task has had since
//! the reading before is counted for a CPU if it ran there last both times. A reading walks through
//! `/proc`, which is itself work: make it from another CPU than those.
//!
//! # When the method lies
//!
//! A task that wanders between CPUs is counted for none of them, or for the one on which it was met
//! twice, with what it has had elsewhere in between. So all of them together are counted for what
//! the own processes leave of a CPU at most. One that began and ended between two readings is not
//! seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::processes::{Process, parse};
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// The share of a process's CPU time from which on the thread that had it is named.
const MOST_OF: f64 = 0.9;

/// The CPU time that a process has had on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskTime {
    /// The CPU.
    pub cpu: u32,
    /// Its process identifier.
    pub pid: u32,
    /// The process's name as the kernel keeps it, and that of the thread that did nearly all if it
    /// has another one: each at most 15 characters, which anybody can choose.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// CPU time of all of its tasks there.
    pub time: Duration,
}

/// Watches which tasks run on some CPUs.
#[derive(Debug)]
pub struct TaskWatch {
    source: Source,
    cpus: Cpus,
    own: Own,
    since: Instant,
    before: BTreeMap<u32, Seen>,
    /// By CPU, process and task.
    used: BTreeMap<(u32, u32, u32), Used>,
}

/// The processes that are not told.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// These and their descendants.
    pub processes: BTreeSet<u32>,
    /// The mark in the environment or in the name of the control group of those that lost their
    /// parents.
    pub mark: String,
}

/// The time of a task on a CPU.
#[derive(Debug, Default)]
struct Used {
    process: String,
    /// Its name, if it is another one than its process's.
    thread: Option<String>,
    is_kernel: bool,
    is_own: bool,
    ns: u64,
}

/// A task at one reading.
#[derive(Clone, Copy, Debug)]
struct Seen {
    started: u64,
    cpu: u32,
    ns: u64,
}

impl TaskWatch {
    /// Begins to watch what runs on `cpus`, except for its own processes.
    pub fn begin(source: Source, cpus: Cpus, own: Own) -> Self {
        let mut watch = Self {
            source,
            cpus,
            own,
            since: Instant::now(),
            before: BTreeMap::new(),
            used: BTreeMap::new(),
        };
        watch.read();
        // Time before the first look does not count.
        watch.used.clear();
        watch
    }

    /// Reads the system once more.
    pub fn read(&mut self) {
        let mut seen = BTreeMap::new();
        for (process, name, task, is_own) in self.tasks() {
            let ns = match self.cpus.contains(task.cpu) {
                true => cpu_ns(&self.source, process, &task),
                // Of a task that ran elsewhere only that is of interest.
                false => 0,
            };
            let now = Seen {
                started: task.started,
                cpu: task.cpu,
                ns,
            };
            seen.insert(task.pid, now);
            if !self.cpus.contains(task.cpu) {
                continue;
            }
            let before = self.before.get(&task.pid);
            let used = match before.filter(|before| before.started == task.started) {
                Some(before) if before.cpu == task.cpu => ns.saturating_sub(before.ns),
                Some(_) => 0,
                None => ns,
            };
            let key = (task.cpu, process, task.pid);
            let is_new = !self.used.contains_key(&key);
            if used > 0 {
                let is_own = is_own || (is_new && self.is_marked(process));
                let known = self.used.entry(key).or_default();
                known.is_own |= is_own;
                known.is_kernel = task.is_kernel;
                known.thread = (name != task.name).then_some(task.name);
                known.process = name;
                known.ns += used;
            }
        }
        self.before = seen;
    }

    /// Reads the system for the last time, and returns how long was watched, and what ran, the most
    /// first.
    pub fn finish(mut self) -> (Duration, Vec<TaskTime>) {
        self.read();
        let watched = self.since.elapsed();
        let used = |cpu: u32, is_own: bool| {
            let of = self.used.iter();
            let of = of.filter(move |((on, ..), task)| *on == cpu && task.is_own == is_own);
            of.map(|(_, task)| task.ns).sum::<u64>() as f64
        };
        // What others can have had of a CPU, of what is counted for them.
        let had = |cpu: u32| {
            let left = (watched.as_nanos() as f64 - used(cpu, true)).max(0.0);
            (left / used(cpu, false).max(1.0)).min(1.0)
        };
        let had: BTreeMap<u32, f64> = self.cpus.iter().map(|cpu| (cpu, had(cpu))).collect();
        let mut processes: BTreeMap<(u32, u32), (Used, u64)> = BTreeMap::new();
        for ((cpu, pid, _), task) in self.used.into_iter().filter(|(_, task)| !task.is_own) {
            let (most, ns) = processes.entry((cpu, pid)).or_default();
            *ns += task.ns;
            if task.ns > most.ns {
                *most = task;
            }
        }
        let mut all: Vec<TaskTime> = processes
            .into_iter()
            .map(|((cpu, pid), (most, ns))| TaskTime {
                cpu,
                pid,
                name: match most.thread {
                    None => most.process,
                    Some(name) if most.ns as f64 >= MOST_OF * ns as f64 => {
                        format!("{} (thread {name})", most.process)
                    }
                    Some(_) => format!("{} (several threads)", most.process),
                },
                is_kernel: most.is_kernel,
                time: Duration::from_nanos((ns as f64 * had[&cpu]) as u64),
            })
            .collect();
        all.sort_by_key(|task| std::cmp::Reverse(task.time));
        (watched, all)
    }

    /// Returns all tasks with the numbers and names of their processes, and whether these are the own
    /// ones. Tasks that end while it reads are skipped.
    fn tasks(&self) -> Vec<(u32, String, Process, bool)> {
        let names = self.source.names("/proc").into_known().unwrap_or_default();
        let pids = names.iter().filter_map(|name| name.parse::<u32>().ok());
        let stat = |path: String| parse(self.source.text(&path).known()?);
        let processes: BTreeMap<u32, Process> = pids
            .filter_map(|pid| Some((pid, stat(format!("/proc/{pid}/stat"))?)))
            .collect();
        let is_own = |process: &Process| {
            // As many steps as there are processes: identifiers may have been reused between two
            // reads.
            let line = std::iter::successors(Some(process), |of| processes.get(&of.parent));
            line.take(processes.len())
                .any(|process| self.own.processes.contains(&process.pid))
        };
        let all = processes.values();
        all.flat_map(|process| {
            let (pid, is_own) = (process.pid, is_own(process));
            let name = || process.name.clone();
            if process.threads <= 1 {
                return vec![(pid, name(), process.clone(), is_own)];
            }
            let tids = self.source.names(&format!("/proc/{pid}/task"));
            let tids = tids.into_known().unwrap_or_default();
            let tasks = tids.iter().filter_map(|tid| {
                let task = stat(format!("/proc/{pid}/task/{tid}/stat"))?;
                Some((pid, name(), task, is_own))
            });
            tasks.collect()
        })
        .collect()
    }

    /// Returns whether a process carries the mark. Remembers it for its descendants.
    fn is_marked(&mut self, process: u32) -> bool {
        let texts = ["environ", "cgroup"].map(|file| format!("/proc/{process}/{file}"));
        let is_in = |path: &String| {
            let text = self.source.text(path).into_known();
            text.is_some_and(|text| text.contains(&self.own.mark))
        };
        let is_marked = !self.own.mark.is_empty() && texts.iter().any(is_in);
        if is_marked {
            self.own.processes.insert(process);
        }
        is_marked
    }
}

/// The kernel's unit of times in `stat`, in ns.
pub(super) const TICK_NS: u64 = 10_000_000;

/// Returns the CPU time that a task has had in ns: exactly where the kernel has schedstat, else in
/// its units of 1/100 s.
pub(super) fn cpu_ns(source: &Source, process: u32, task: &Process) -> u64 {
    let path = format!("/proc/{process}/task/{}/schedstat", task.pid);
    let exact = source.text(&path).into_known().and_then(|text| {
        let first = text.split_ascii_whitespace().next()?;
        first.parse().ok()
    });
    exact.unwrap_or(task.ticks.saturating_mul(TICK_NS))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Writes a task of a process.
    pub(in super::super) fn task(
        root: &Path,
        (pid, tid, parent): (u32, u32, u32),
        name: &str,
        cpu: u32,
        ns: u64,
    ) {
        let line = |id: u32| {
            format!(
                "{id} ({name}) R {parent} 1 1 0 -1 4194304 100 0 0 0 {} 0 0 0 20 0 2 0 77 3133440 407 1 1 1 1 0 0 0 0 0 0 \
                 0 0 0 17 {cpu} 0 0 0 0 0\n",
                ns / 10_000_000
            )
        };
        let folder = root.join(format!("proc/{pid}/task/{tid}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), line(tid)).unwrap();
        fs::write(folder.join("schedstat"), format!("{ns} 5 6\n")).unwrap();
        if tid == pid {
            fs::write(root.join(format!("proc/{pid}/stat")), line(pid)).unwrap();
        }
    }

    #[test]
    fn work_is_counted_for_the_cpu_on_which_a_task_was_met_twice() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let at = |moment: u64| {
            task(root, (10, 10, 1), "tare", 1, moment * 900);
            task(root, (11, 11, 10), "dd", 1, moment * 900);
            task(root, (20, 20, 1), "server", 0, moment * 7);
            task(root, (20, 21, 1), "a) R (b", 1, moment * 1_000);
            task(root, (20, 22, 1), "helper", 1, moment * 10);
            task(
                root,
                (30, 30, 1),
                "wanders",
                (moment % 2) as u32,
                moment * 500,
            );
            task(root, (40, 40, 1), "elsewhere", 2, moment * 500);
            task(root, (50, 50, 2), "idle", 1, 4_000);
            task(root, (70, 70, 1), "conmon", 1, moment * 300);
            task(root, (71, 71, 70), "tare-agent", 1, moment * 500);
            task(root, (80, 80, 1), "tare-agent", 1, moment * 800);
        };
        at(1);
        let told = |file: &str, text| fs::write(root.join("proc").join(file), text).unwrap();
        told("70/cgroup", "0::/tare-podman-own-f00d-1\n");
        told("80/environ", "PATH=/bin\0TARE_OWNER=f00d/7\0");
        told("20/cgroup", "0::/tare-podman-own-beef-1\n");
        let cpus = Cpus::from_iter([1]);
        let own = Own {
            processes: [10].into(),
            mark: "f00d".to_owned(),
        };
        let mut watch = TaskWatch::begin(Source::at(root), cpus, own);
        watch.since = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        at(2);
        task(root, (60, 60, 1), "hog", 1, 300);
        watch.read();
        // It ends before the last reading.
        fs::remove_dir_all(root.join("proc/60")).unwrap();
        at(4);
        let (_, used) = watch.finish();
        let of = |pid, name: &str, ns| TaskTime {
            cpu: 1,
            pid,
            name: name.to_owned(),
            is_kernel: false,
            time: Duration::from_nanos(ns),
        };
        assert_eq!(
            used,
            [of(20, "server (thread a) R (b)", 3_030), of(60, "hog", 300)]
        );
    }

    #[test]
    fn others_had_what_the_measured_ones_left_at_most() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let at = |ms: u64| {
            task(root, (11, 11, 1), "measured", 1, ms * 900_000);
            // Met on the CPU twice, and in between elsewhere.
            task(root, (20, 20, 1), "wanders", 1, ms * 600_000);
            task(root, (21, 21, 1), "next", 1, ms * 200_000);
        };
        at(0);
        let own = Own {
            processes: [11].into(),
            ..Own::default()
        };
        let mut watch = TaskWatch::begin(Source::at(root), Cpus::from_iter([1]), own);
        watch.since = Instant::now()
            .checked_sub(Duration::from_secs(100))
            .unwrap();
        at(100_000);
        let (watched, used) = watch.finish();
        let share = |of: &TaskTime| of.time.as_secs_f64() / watched.as_secs_f64();
        let shares: Vec<f64> = used.iter().map(share).collect();
        assert!((shares[0] - 0.075).abs() < 0.01, "{shares:?}");
        assert!((shares[1] - 0.025).abs() < 0.01, "{shares:?}");
    }
}

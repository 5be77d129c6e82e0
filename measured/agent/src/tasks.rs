//! The CPU time of all tasks of this system, as its kernel counts it.

use std::collections::BTreeMap;
use std::fs;
use std::process;

/// PF_KTHREAD of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// A task and its CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The process ID.
    pub pid: u32,
    /// The process's name as the kernel keeps it, with the thread's if that has another one.
    pub name: String,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// Its CPU time in ns.
    pub ns: u64,
}

/// The tasks at one moment, by the ID of their thread.
#[derive(Clone, Debug, Default)]
pub struct Tasks(BTreeMap<u32, Task>);

impl Tasks {
    /// Reads all tasks but those of this process. A task that ends during the reading is skipped.
    pub fn read() -> Self {
        Self::of(numbers("/proc"))
    }

    /// Reads the threads of the kernel only. In an emulated guest that shares its CPU with the 2,400
    /// processes of hackbench, reading those as well takes minutes.
    pub fn read_kernel() -> Self {
        // All of them are children of `kthreadd`; a kernel may lack the file.
        let Ok(children) = fs::read_to_string("/proc/2/task/2/children") else {
            return Self::read();
        };
        let children = children.split_ascii_whitespace();
        Self::of(children.filter_map(|pid| pid.parse().ok()))
    }

    fn of(pids: impl Iterator<Item = u32>) -> Self {
        let own = process::id();
        let others = pids.filter(|pid| *pid != own);
        let tasks = others.flat_map(|pid| {
            let threads = numbers(&format!("/proc/{pid}/task"));
            threads.filter_map(move |tid| Some((tid, read(pid, tid)?)))
        });
        Self(tasks.collect())
    }

    /// Returns the tasks that used CPU time since an earlier reading, with that time; the one with
    /// the most first.
    pub fn since(self, before: &Self) -> Vec<Task> {
        let used = self.0.into_iter().filter_map(|(tid, task)| {
            let known = before.0.get(&tid).filter(|known| known.pid == task.pid);
            let ns = task.ns.saturating_sub(known.map_or(0, |known| known.ns));
            (ns > 0).then_some(Task { ns, ..task })
        });
        let mut used: Vec<Task> = used.collect();
        used.sort_by_key(|task| std::cmp::Reverse(task.ns));
        used
    }
}

/// Returns the entries of a folder that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn read(pid: u32, tid: u32) -> Option<Task> {
    // Names need not be UTF-8.
    let file = |tid, name| {
        let bytes = fs::read(format!("/proc/{pid}/task/{tid}/{name}")).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let times = file(tid, "schedstat")?;
    let mut task = parse(&file(tid, "stat")?)?;
    (task.pid, task.ns) = (pid, times.split_whitespace().next()?.parse().ok()?);
    if tid != pid
        && let Some(process) = file(pid, "stat").and_then(|line| parse(&line))
        && process.name != task.name
    {
        task.name = format!("{} (thread {})", process.name, task.name);
    }
    Some(task)
}

/// Reads name, flags and CPU of a line of `/proc/PID/stat` (proc(5)). The name may hold anything,
/// parentheses and white space included.
fn parse(line: &str) -> Option<Task> {
    let (head, rest) = line.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let field = |number: usize| rest.split_whitespace().nth(number - 3)?.parse::<u64>().ok();
    Some(Task {
        pid: 0,
        name: name.to_owned(),
        is_kernel: field(9)? & KERNEL_THREAD != 0,
        cpu: u32::try_from(field(39)?).ok()?,
        ns: 0,
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::{gettid, set_name};

    use super::*;

    impl FromIterator<(u32, Task)> for Tasks {
        fn from_iter<I: IntoIterator<Item = (u32, Task)>>(tasks: I) -> Self {
            Self(tasks.into_iter().collect())
        }
    }

    #[test]
    fn a_name_may_hold_anything() {
        let line = "57 (a) R 1 1 (b) S 2 0 0 0 -1 2129984 100 0 0 0 5 6 0 0 20 0 1 0 32 0 0 1 1 1 1 0 0 0 0 0 0 0 0 0 17 3 0 0";
        let task = parse(line).unwrap();
        assert_eq!(
            (task.name.as_str(), task.is_kernel, task.cpu),
            ("a) R 1 1 (b", true, 3)
        );
        assert_eq!(parse("57 (cat"), None);
    }

    #[test]
    fn threads_have_the_name_of_their_process_whatever_they_call_themselves() {
        for name in [c"ksoftirqd/1", c"\xff\xfe latin", c"    ", c"a) R 1 1 (b"] {
            let own = thread::spawn(move || {
                set_name(name).unwrap();
                read(
                    process::id(),
                    gettid().as_raw_nonzero().get().try_into().unwrap(),
                )
            });
            let own = own.join().unwrap().unwrap();
            let thread = String::from_utf8_lossy(name.to_bytes());
            assert!(
                own.name.ends_with(&format!(" (thread {thread})")),
                "{own:?}"
            );
            assert!(!own.is_kernel, "{own:?}");
        }
    }

    #[test]
    fn only_what_ran_in_between_is_listed() {
        let task = |pid, ns| Task {
            pid,
            name: format!("t{pid}"),
            is_kernel: false,
            cpu: 0,
            ns,
        };
        let tasks = |list: &[(u32, u64)]| -> Tasks {
            list.iter()
                .map(|(pid, ns)| (*pid, task(*pid, *ns)))
                .collect()
        };
        let before = tasks(&[(2, 10), (3, 10)]);
        let used = tasks(&[(2, 10), (3, 14), (4, 7)]).since(&before);
        assert_eq!(used, [task(4, 7), task(3, 4)]);
    }
}

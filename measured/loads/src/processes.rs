//! The kernel's information on the load's processes, in `/proc`.

use std::fs;

use rustix::process::Pid;

/// The kernel's accounting of the bytes that a process read and wrote by system calls: files,
/// pipes, sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

/// Reads the accounting of a process; None if it has exited or the kernel has no accounting
/// (CONFIG_TASK_IO_ACCOUNTING).
pub(crate) fn io(pid: Pid) -> Option<Io> {
    let text = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_pid())).ok()?;
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
    };
    Some(Io {
        read: field("rchar:")?,
        written: field("wchar:")?,
    })
}

/// Returns the CPU time of a process and its reaped children, user and system, in ticks of the
/// kernel's accounting (10 ms); 0 if it has exited.
pub(crate) fn cpu_ticks(pid: Pid) -> u64 {
    stat(pid.as_raw_pid()).map_or(0, |stat| stat.cpu_ticks)
}

/// Returns the name of a process; None if it has exited.
pub(crate) fn name(pid: Pid) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_pid())).ok()?;
    Some(name.trim_end().to_owned())
}

/// Looks for the processes of a group, one by one: there may be thousands.
pub(crate) fn of_group(group: Pid) -> impl Iterator<Item = Pid> {
    select(move |stat| stat.group == group.as_raw_pid())
}

/// Returns the children of a process with a single thread.
pub(crate) fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_pid();
    // A kernel may lack that file (CONFIG_PROC_CHILDREN).
    match fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")) {
        Ok(pids) => {
            let pids = pids.split_ascii_whitespace();
            pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
                .collect()
        }
        Err(_) => select(|stat| stat.parent == parent).collect(),
    }
}

fn select(wanted: impl Fn(&Stat) -> bool) -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        wanted(&stat(number)?).then(|| Pid::from_raw(number))?
    })
}

fn stat(pid: i32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The fields of `/proc/PID/stat` that are used.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: i32,
    group: i32,
    cpu_ticks: u64,
}

impl Stat {
    fn parse(line: &str) -> Option<Self> {
        // The program's name is in parentheses, and may itself contain parentheses and spaces.
        let (_, fields) = line.rsplit_once(')')?;
        let mut fields = fields.split_ascii_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // utime, stime, cutime, cstime: fields 14 to 17 of proc(5).
        let times = fields.skip(8).take(4);
        let cpu_ticks = times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Some(Self {
            parent,
            group,
            cpu_ticks,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::process::{getpgrp, getpid, getppid};

    use super::*;

    #[test]
    fn stat_is_read_past_a_name_with_parentheses() {
        let stat = Stat::parse("7 (a) b (c) S 1 5 7 0 -1 64 90 91 92 93 1 2 3 4 20 0").unwrap();
        assert_eq!(
            stat,
            Stat {
                parent: 1,
                group: 5,
                cpu_ticks: 10,
            }
        );
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_is_in_its_group_and_a_child_of_its_parent() {
        assert!(of_group(getpgrp()).any(|pid| pid == getpid()));
        assert!(children(getppid().unwrap()).contains(&getpid()));
    }

    #[test]
    fn what_is_written_is_accounted() {
        let before = io(getpid()).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[0; 100_000]).unwrap();
        assert!(io(getpid()).unwrap().written >= before.written + 100_000);
    }
}

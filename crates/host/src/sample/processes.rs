//! `/proc/*/stat`: which processes used CPU time.

use std::collections::BTreeMap;

use crate::fact::Fact;
use crate::source::Source;

/// A process that used CPU time during the sample.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyProcess {
    /// Its process identifier.
    pub pid: u32,
    /// Its name as the kernel keeps it, at most 15 characters; kernel threads have one too.
    pub name: String,
    /// The time it used, all threads together, as a share of one CPU.
    pub share: f64,
    /// The CPU on which its main thread ran last.
    pub cpu: u32,
}

/// One process at one reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) parent: u32,
    /// Whether it is a thread of the kernel.
    pub(super) is_kernel: bool,
    /// Minor and major page faults.
    pub(super) faults: u64,
    /// User and system time of all threads in units of 1/100 s.
    pub(super) ticks: u64,
    /// The part of that in guests of KVM, in the same units: by ticks of the kernel.
    pub(super) guest_ticks: u64,
    pub(super) threads: u64,
    /// When it started, in units of 1/100 s after boot: tells a reused identifier from an old
    /// process.
    pub(super) started: u64,
    pub(super) cpu: u32,
}

/// The kernel's flag for its threads (include/linux/sched.h).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Reads all processes that can be seen, without this one. Processes that end while it reads are
/// skipped.
pub(super) fn read(source: &Source) -> Fact<Vec<Process>> {
    let own = source
        .text("/proc/self/stat")
        .into_known()
        .and_then(|text| parse(&text))
        .map(|process| process.pid);
    source.names("/proc").map(|names| {
        names
            .iter()
            .filter_map(|name| name.parse::<u32>().ok())
            .filter(|pid| Some(*pid) != own)
            .filter_map(|pid| parse(source.text(&format!("/proc/{pid}/stat")).known()?))
            .collect()
    })
}

/// Returns whether a thread is one of the kernel's; no if it has ended.
pub fn is_kernel_thread(source: &Source, tid: u32) -> bool {
    let stat = source.text(&format!("/proc/{tid}/stat"));
    let thread = stat.known().and_then(|text| parse(text));
    thread.is_some_and(|thread| thread.is_kernel)
}

/// Subtract, and sort by the time used. `cpu_ticks` is how much time one CPU had.
pub(super) fn busiest(before: &[Process], after: &[Process], cpu_ticks: u64) -> Vec<BusyProcess> {
    if cpu_ticks == 0 {
        return Vec::new();
    }
    let earlier: BTreeMap<u32, &Process> = before
        .iter()
        .map(|process| (process.pid, process))
        .collect();
    let mut busy: Vec<BusyProcess> = after
        .iter()
        .filter_map(|process| {
            let before = earlier
                .get(&process.pid)
                .filter(|before| before.started == process.started)
                .map_or(0, |before| before.ticks);
            let used = process.ticks.saturating_sub(before);
            (used > 0).then(|| BusyProcess {
                pid: process.pid,
                name: process.name.clone(),
                share: used as f64 / cpu_ticks as f64,
                cpu: process.cpu,
            })
        })
        .collect();
    busy.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.pid.cmp(&b.pid)));
    busy
}

/// Parses `pid (name) state ppid … utime stime … num_threads … starttime … processor …`
/// (proc_pid_stat(5)), of a process or of one of its tasks.
///
/// The name may hold spaces and parentheses, so it ends at the *last* one.
pub(super) fn parse(text: &str) -> Option<Process> {
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    // Field 3, the state, is the first of these.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process {
        pid: pid.trim().parse().ok()?,
        name: name.to_owned(),
        parent: u32::try_from(field(4)?).ok()?,
        is_kernel: field(9)? & PF_KTHREAD != 0,
        faults: field(10)?.saturating_add(field(12)?),
        ticks: field(14)?.saturating_add(field(15)?),
        guest_ticks: field(43).unwrap_or(0),
        threads: field(20)?,
        started: field(22)?,
        cpu: field(39)
            .and_then(|cpu| u32::try_from(cpu).ok())
            .unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: u32, name: &str, user: u64, system: u64, started: u64, cpu: u32) -> String {
        format!(
            "{pid} ({name}) R 1 1 1 0 -1 4194304 100 0 0 0 {user} {system} 0 0 20 0 1 0 {started} \
             3133440 407 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0\n"
        )
    }

    #[test]
    fn names_may_hold_parentheses_and_spaces() {
        let process = parse(&line(7, "a) R (b", 3, 4, 99, 5)).unwrap();
        assert_eq!(process.name, "a) R (b");
        assert_eq!((process.ticks, process.started, process.cpu), (7, 99, 5));
        assert_eq!(process.faults, 100);
    }

    #[test]
    fn a_reused_identifier_is_another_process() {
        let before = [parse(&line(7, "old", 500, 0, 10, 0)).unwrap()];
        let after = [
            parse(&line(7, "new", 5, 5, 900, 1)).unwrap(),
            parse(&line(8, "idle", 0, 0, 1, 0)).unwrap(),
        ];
        let busy = busiest(&before, &after, 20);
        assert_eq!(busy.len(), 1);
        assert_eq!((busy[0].name.as_str(), busy[0].share), ("new", 0.5));
    }

    #[test]
    fn nonsense_is_skipped() {
        for text in ["", "7 (x", "7 (x) R", "x (y) R 1 2 3", "7 (x) "] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

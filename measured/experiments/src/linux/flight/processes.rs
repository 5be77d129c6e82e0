//! The names of the processes that threads belong to.

use std::collections::HashMap;
use std::fs;

use super::decode::Names;

/// The kind of names of processes, by the number of a thread. Events give the number of the process
/// in place of its name.
pub const PROCESS: &str = "process";

/// The processes at a moment by number: those that have ended when events are decoded had names,
/// too.
#[derive(Default)]
pub struct Processes(HashMap<u64, Process>);

/// The name of a process; None of a thread of the kernel.
type Process = Option<String>;

impl Processes {
    /// Reads those that run.
    pub fn read() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        Self(HashMap::from_iter(
            numbers.filter_map(|pid| Some((pid, read(pid)?))),
        ))
    }

    /// Replaces the numbers of processes by their names, where these are known: by events, by the
    /// system now, or as it was.
    pub fn name(&self, names: &mut Names) {
        let numbered = names.range((PROCESS, 0)..=(PROCESS, u64::MAX));
        let numbered = numbered.map(|((_, tid), pid)| (*tid, pid.parse().unwrap_or(0)));
        for (tid, pid) in Vec::from_iter(numbered) {
            let by_events = || names.get(&("thread", pid)).cloned();
            let name = match read(pid).or_else(|| self.0.get(&pid).cloned()) {
                Some(process) => process.map(|name| by_events().unwrap_or(name)),
                None => by_events(),
            };
            match name {
                Some(name) => names.insert((PROCESS, tid), name),
                None => names.remove(&(PROCESS, tid)),
            };
        }
    }
}

fn read(pid: u64) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&stat))
}

/// Parses name and flags of `/proc/PID/stat` (proc_pid_stat(5)); the name may have anything in it.
fn parse(stat: &str) -> Option<Process> {
    /// The mark of a thread of the kernel (include/linux/sched.h).
    const PF_KTHREAD: u32 = 0x0020_0000;
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let flags: u32 = after.split(' ').nth(6)?.parse().ok()?;
    Some((flags & PF_KTHREAD == 0).then(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_names_and_threads_of_the_kernel_are_none() {
        let stat = |name, flags| format!("7 ({name}) S 1 7 7 0 -1 {flags} 100 0 0 0\n");
        let of = |name: &str| Some(Some(name.to_owned()));
        for name in ["rustc", "a) R 1 1 (b", "new\nline", ""] {
            assert_eq!(parse(&stat(name, 4_194_304)), of(name));
        }
        assert_eq!(parse(&stat("kworker/1:1", 69_238_880)), Some(None));
        for bad in ["", "7 (sh", "7 (sh) S 1 7", &stat("sh", 7)[..9]] {
            assert_eq!(parse(bad), None);
        }
    }

    #[test]
    fn a_thread_gets_the_name_of_its_process_by_events_or_as_it_was() {
        let own = u64::from(std::process::id());
        let known = [(u64::MAX, Some("make".to_owned())), (u64::MAX - 1, None)];
        let numbered = [
            (21, u64::MAX),
            (22, u64::MAX - 1),
            (23, u64::MAX - 2),
            (24, u64::MAX - 3),
            (25, own),
        ];
        let numbered = numbered.map(|(tid, pid)| ((PROCESS, tid), pid.to_string()));
        let mut names = Names::from(numbered);
        names.insert(("thread", u64::MAX - 2), "rustc".to_owned());
        Processes(known.into()).name(&mut names);
        let of = |tid| names.get(&(PROCESS, tid)).map(String::as_str);
        assert_eq!(
            [21, 22, 23, 24].map(of),
            [Some("make"), None, Some("rustc"), None]
        );
        let comm = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(of(25), Some(comm.trim_end()));
    }
}

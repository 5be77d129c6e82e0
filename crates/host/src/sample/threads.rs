//! What a process, all that it has started, and a network cost, thread by thread.

use std::collections::{BTreeMap, BTreeSet};

use super::processes::{self, Process, parse};
use super::tasks::{TICK_NS, cpu_ns};
use crate::source::Source;

/// The cost of each thread of some processes so far, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes(BTreeMap<(u32, u32), ThreadTime>);

/// The cost of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Whether its process is in the network namespace.
    pub is_in_network: bool,
    /// Its name.
    pub thread: String,
    /// CPU time in ns.
    pub ns: u64,
    /// The part of that in guests of KVM, in ns, as the kernel counts it: by ticks of 10 ms. 0 under
    /// an emulator.
    pub guest_ns: u64,
    /// Page faults, minor and major.
    pub faults: u64,
    /// How often it went to sleep, and so was woken up.
    pub sleeps: u64,
}

impl ThreadTimes {
    /// Reads the threads of a process and of its descendants, and of all processes in a network
    /// namespace and their parents. Its name is what `/proc/PID/ns/net` points to. This process
    /// and that with the id 1 are no such parents.
    pub fn of(source: &Source, process: u32, network: Option<&str>) -> Self {
        let all = processes::read(source).into_known().unwrap_or_default();
        let is_in_network = |one: &Process| {
            let own = network.map(|_| source.link(&format!("/proc/{}/ns/net", one.pid)));
            own.is_some_and(|own| own.known().map(String::as_str) == network)
        };
        let mut inside = BTreeSet::new();
        let mut family = vec![process];
        for one in all.iter().filter(|one| is_in_network(one)) {
            inside.insert(one.pid);
            family.extend([one.pid, one.parent].into_iter().filter(|pid| *pid > 1));
        }
        let mut place = 0;
        while let Some(parent) = family.get(place).copied() {
            let children = all.iter().filter(|one| one.parent == parent);
            family.extend(children.map(|one| one.pid));
            place += 1;
        }
        let members = all.iter().filter(|one| family.contains(&one.pid));
        let threads = members.flat_map(|member| {
            let folder = format!("/proc/{}/task", member.pid);
            let is_in_network = inside.contains(&member.pid);
            let ids = source.names(&folder).into_known().unwrap_or_default();
            ids.into_iter().filter_map(move |id| {
                let task = parse(source.text(&format!("{folder}/{id}/stat")).known()?)?;
                let status = source.text(&format!("{folder}/{id}/status"));
                let time = ThreadTime {
                    is_in_network,
                    ns: cpu_ns(source, member.pid, &task),
                    guest_ns: task.guest_ticks.saturating_mul(TICK_NS),
                    faults: task.faults,
                    sleeps: status
                        .into_known()
                        .and_then(|status| number(&status, SLEEPS))
                        .unwrap_or(0),
                    thread: task.name,
                };
                Some(((member.pid, task.pid), time))
            })
        });
        Self(threads.collect())
    }

    /// Returns whether the kernel has counted time in a guest.
    pub fn has_guest_time(&self) -> bool {
        self.0.values().any(|time| time.guest_ns > 0)
    }

    /// Returns the ids of the threads.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.0.keys().map(|(_, thread)| *thread)
    }

    /// Returns the resident memory of each process in bytes, and whether it is in the network
    /// namespace.
    pub fn resident(&self, source: &Source) -> Vec<(bool, u64)> {
        let each = self.0.iter();
        let each = each.map(|((process, _), time)| (*process, time.is_in_network));
        let mut each: Vec<(u32, bool)> = each.collect();
        each.dedup();
        let resident = |(process, is_in_network)| {
            let status = source.text(&format!("/proc/{process}/status"));
            let kib = number(&status.into_known()?, RESIDENT)?;
            Some((is_in_network, kib << 10))
        };
        each.into_iter().filter_map(resident).collect()
    }

    /// Returns what threads have cost since an earlier moment. Of threads that have ended, the cost
    /// since then is unknown.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = ThreadTime> + 'a {
        self.0.iter().map(|(id, now)| {
            let mut since = now.clone();
            if let Some(before) = earlier.0.get(id) {
                since.ns = now.ns.saturating_sub(before.ns);
                since.guest_ns = now.guest_ns.saturating_sub(before.guest_ns);
                since.faults = now.faults.saturating_sub(before.faults);
                since.sleeps = now.sleeps.saturating_sub(before.sleeps);
            }
            since
        })
    }
}

/// How often a task went to sleep, and the resident memory of a process, in its `status`.
const SLEEPS: &str = "voluntary_ctxt_switches:";
const RESIDENT: &str = "VmRSS:";

/// Returns the number of a line of a `status`, without its unit.
fn number(status: &str, name: &str) -> Option<u64> {
    let mut lines = status.lines();
    let text = lines.find_map(|line| line.strip_prefix(name))?;
    text.split_whitespace().next()?.parse().ok()
}

/// Where QEMU has the memory of a guest begin: at a multiple of this many bytes.
const ALIGNED: u64 = 2 << 20;

/// Returns how much of its memory (`-m`) the guest of a QEMU has touched, in bytes: what is
/// resident of the aligned and writable mapping of that size. Of several the one with more: others
/// are stacks. `None` if the process is no QEMU.
pub fn guest_resident(source: &Source, process: u32) -> Option<u64> {
    let line = source
        .text(&format!("/proc/{process}/cmdline"))
        .into_known()?;
    let memory = line.split('\0').skip_while(|word| *word != "-m").nth(1)?;
    let (memory, kib) = match memory.strip_suffix('G') {
        Some(memory) => (memory, 1 << 20),
        None => (memory.trim_end_matches('M'), 1 << 10),
    };
    let wanted_kib = memory.parse::<u64>().ok()? * kib;
    let maps = source
        .text(&format!("/proc/{process}/smaps"))
        .into_known()?;
    let (mut is_data, mut size_kib) = (false, 0);
    let mut found = None;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            continue;
        };
        let number = second.parse::<u64>();
        match (first, number) {
            ("Size:", Ok(kib)) => size_kib = kib,
            ("Rss:", Ok(kib)) if is_data && size_kib == wanted_kib => {
                found = found.max(Some(kib << 10));
            }
            _ => {
                let start = first.split_once('-').map(|(start, _)| start);
                if let Some(start) = start.and_then(|hex| u64::from_str_radix(hex, 16).ok()) {
                    is_data = second.starts_with("rw-") && start.is_multiple_of(ALIGNED);
                }
            }
        }
    }
    found
}

/// Returns how often the guests of a process under KVM have left it, by reason (`halt_exits`) and in
/// all (`exits`). Nothing where the kernel does not show it: without debugfs, or without root.
pub fn vm_exits(source: &Source, process: u32) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let guests = source.names("/sys/kernel/debug/kvm").into_known();
    let own = |name: &String| name.starts_with(&format!("{process}-"));
    for guest in guests.unwrap_or_default().into_iter().filter(own) {
        let folder = format!("/sys/kernel/debug/kvm/{guest}");
        let names = source.names(&folder).into_known().unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with("exits")) {
            let text = source.text(&format!("{folder}/{name}")).into_known();
            let number: Option<u64> = text.and_then(|text| text.trim().parse().ok());
            *all.entry(name).or_default() += number.unwrap_or(0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use super::super::tasks::tests::task;
    use super::*;
    use crate::tests::fixtures::Tree;

    #[test]
    fn exits_are_those_of_the_process_s_guests() {
        let tree = Tree::new()
            .file("/sys/kernel/debug/kvm/7-12/exits", "20\n")
            .file("/sys/kernel/debug/kvm/7-13/exits", "10\n")
            .file("/sys/kernel/debug/kvm/7-12/halt_exits", "5\n")
            .file("/sys/kernel/debug/kvm/7-12/pages_4k", "99\n")
            .file("/sys/kernel/debug/kvm/77-3/exits", "1000\n");
        let source = tree.source();
        let exits = vm_exits(&source, 7);
        let exits: Vec<(&str, u64)> = exits.iter().map(|(name, n)| (&**name, *n)).collect();
        assert_eq!(exits, [("exits", 30), ("halt_exits", 5)]);
    }

    #[test]
    fn what_a_guest_has_touched_is_resident_of_its_mapping() {
        let maps = "7f000000-7f001000 rwxp 0 00:00 0 \nSize: 65536 kB\nRss: 400 kB\n\
                    7f200000-7f201000 rw-p 0 00:00 0 \nSize: 132096 kB\nRss: 900 kB\nVmFlags: rd wr\n\
                    7f401000-7f402000 rw-p 0 00:00 0 \nSize: 65536 kB\nRss: 8 kB\n\
                    7f600000-7f700000 rw-p 0 00:00 0 \nSize: 65536 kB\nRss: 5000 kB\n\
                    7fa00000-7fb00000 rw-p 0 00:00 0 \nSize: 65536 kB\nRss: 12 kB\n\
                    7f800000-7f900000 rw-p 0 00:00 0 [stack]\nSize: 132 kB\nRss: 40 kB\n";
        let tree = Tree::new()
            .file(
                "/proc/7/cmdline",
                "qemu-system-x86_64\0-m\u{0}64M\0-nodefaults\0",
            )
            .file("/proc/7/smaps", maps)
            .file("/proc/8/cmdline", "sleep\u{0}9\0");
        let source = tree.source();
        assert_eq!(guest_resident(&source, 7), Some(5_000 << 10));
        assert_eq!(guest_resident(&source, 8), None);
    }

    #[test]
    fn a_container_is_what_is_in_its_network_and_what_has_started_that() {
        let root = tempfile::tempdir().unwrap();
        for (pid, parent, name, network) in [
            (1, 0, "init", 1),
            (10, 1, "podman", 1),
            (20, 1, "conmon", 1),
            (21, 20, "nsd", 2),
            (22, 21, "nsd", 2),
            (30, 1, "orphan", 2),
            (40, 1, "other", 3),
        ] {
            task(root.path(), (pid, pid, parent), name, 0, 5);
            let folder = root.path().join(format!("proc/{pid}/ns"));
            fs::create_dir(&folder).unwrap();
            symlink(format!("net:[{network}]"), folder.join("net")).unwrap();
        }
        let times = ThreadTimes::of(&Source::at(root.path()), 10, Some("net:[2]"));
        let told = times
            .0
            .iter()
            .map(|((pid, _), time)| (*pid, time.is_in_network));
        let all = [(10, false), (20, false), (21, true), (22, true), (30, true)];
        assert_eq!(told.collect::<Vec<_>>(), all);
    }

    #[test]
    fn time_in_a_guest_is_field_43() {
        let line = |guest: u32| {
            let zeros = ["0"; 26].join(" ");
            format!("7 (CPU 0/KVM) R 1 1 1 0 -1 64 0 0 0 0 9 9 {zeros} 0 {guest} 0\n")
        };
        let times = |guest: u32| {
            let tree = Tree::new()
                .file("/proc/7/stat", &line(guest))
                .file("/proc/7/task/7/stat", &line(guest));
            ThreadTimes::of(&tree.source(), 7, None)
        };
        let (none, before, after) = (times(0), times(3), times(8));
        assert!(after.has_guest_time() && !none.has_guest_time());
        let since = after.since(&before).next().unwrap();
        assert_eq!(since.guest_ns, 50_000_000);
    }

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
            let before = ThreadTimes::of(&source, shell.id(), None);
            std::thread::sleep(std::time::Duration::from_millis(100));
            let after = ThreadTimes::of(&source, shell.id(), None);
            spent = after
                .since(&before)
                .map(|time| (time.thread, time.ns))
                .collect();
            if spent.len() == 2 && spent.contains_key("sleep") && spent["sh"] > 0 {
                break;
            }
        }
        let loops = ThreadTimes::of(&source, shell.id(), None);
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

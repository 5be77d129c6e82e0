//! The settings that keep this kernel's work away from one CPU and can be changed while it runs.
//!
//! [`TABLE`] is the list: a switch consists of the files that serve one purpose. [`switches`]
//! returns those that this machine has and that are not yet set as wanted.

use crate::cgroup::{Cgroup, CgroupVersion};
use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// Settings that serve one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// A short name that stays the same between versions, such as `irq-affinity`.
    pub id: &'static str,
    /// Files with the values that they are to have.
    pub files: Vec<(String, String)>,
}

/// The value that a file is to have.
#[derive(Clone, Copy)]
enum Wanted {
    /// This one.
    Is(&'static str),
    /// This number, if it is lower.
    AtLeast(u64),
    /// The list of CPUs without the measured one.
    List,
    /// The same, as a hexadecimal mask.
    Mask,
    /// What gives a control group the measured CPU for itself.
    Isolated,
}

use Wanted::{AtLeast, Is, Isolated, List, Mask};

/// The control group that is made for a cell: its name stands for the one that it will have.
const OWN_GROUP: &str = "/tare/cpuset.";

/// A switch: its id and its files. `{cpu}` stands for the measured CPU, a component `*` for each
/// number that the folder has an entry of.
type Row = (&'static str, &'static [(&'static str, Wanted)]);

/// All switches.
const TABLE: &[Row] = &[
    // The scheduler gives the CPU to the measured process alone.
    ("cpuset", &[(OWN_GROUP, Isolated)]),
    // Device interrupts go to other CPUs.
    ("irq-affinity", &[("/proc/irq/*/smp_affinity_list", List)]),
    // Unbound kernel workers run on other CPUs.
    (
        "workqueues",
        &[
            ("/sys/devices/virtual/workqueue/cpumask", Mask),
            ("/sys/bus/workqueue/devices/writeback/cpumask", Mask),
        ],
    ),
    // The lockup detectors watch other CPUs.
    (
        "watchdog",
        &[
            ("/proc/sys/kernel/watchdog_cpumask", List),
            ("/proc/sys/kernel/nmi_watchdog", Is("0")),
        ],
    ),
    // Memory counters are folded every 120 s.
    (
        "stat-interval",
        &[("/proc/sys/vm/stat_interval", AtLeast(120))],
    ),
    // Timers of idle CPUs stay there.
    (
        "timer-migration",
        &[("/proc/sys/kernel/timer_migration", Is("0"))],
    ),
    // RCU grace periods interrupt no CPU.
    ("rcu-normal", &[("/sys/kernel/rcu_normal", Is("1"))]),
    // No transparent huge pages are made or collected.
    (
        "huge-pages",
        &[("/sys/kernel/mm/transparent_hugepage/enabled", Is("never"))],
    ),
    // Memory is not moved about to make room in one piece.
    (
        "compaction",
        &[
            ("/proc/sys/vm/compaction_proactiveness", Is("0")),
            ("/proc/sys/vm/compact_unevictable_allowed", Is("0")),
        ],
    ),
    // Memory is not searched for equal pages.
    ("page-merging", &[("/sys/kernel/mm/ksm/run", Is("0"))]),
    // Pages are not unmapped to see who uses them.
    (
        "numa-balancing",
        &[("/proc/sys/kernel/numa_balancing", Is("0"))],
    ),
    // The CPU keeps its highest frequency.
    (
        "governor",
        &[(
            "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor",
            Is("performance"),
        )],
    ),
    // The processor prefers speed to saving energy.
    (
        "energy-bias",
        &[(
            "/sys/devices/system/cpu/cpu{cpu}/power/energy_perf_bias",
            Is("0"),
        )],
    ),
    // Corrected machine errors are not polled for.
    (
        "machine-check",
        &[(
            "/sys/devices/system/machinecheck/machinecheck{cpu}/check_interval",
            Is("0"),
        )],
    ),
    // Real-time tasks are not throttled, nor interrupted by the fair server (from Linux 6.12 on).
    (
        "rt-throttling",
        &[
            ("/proc/sys/kernel/sched_rt_runtime_us", Is("-1")),
            (
                "/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime",
                Is("0"),
            ),
        ],
    ),
];

/// Returns the ids of all switches that there may be.
pub fn switch_ids() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(id, _)| *id)
}

/// Returns the switches that this machine has and that are not set as a measurement on a CPU wants
/// them. Each has at least one file.
pub fn switches(source: &Source, cpu: u32) -> Vec<Switch> {
    let all = switch_ids().map(|id| Switch {
        id,
        files: settings(source, cpu, id)
            .filter_map(|(path, _, wanted)| Some((path, wanted?)))
            .collect(),
    });
    all.filter(|switch| !switch.files.is_empty()).collect()
}

/// Returns the files of a switch, with what each holds and, if that has to change, the value that it
/// is to have.
pub(crate) fn settings(
    source: &Source,
    cpu: u32,
    id: &str,
) -> impl Iterator<Item = (String, Fact<String>, Option<String>)> {
    let online: Option<Cpus> = source.value("/sys/devices/system/cpu/online").into_known();
    let others = online.unwrap_or_default().without(&Cpus::one(cpu));
    let rows = TABLE.iter().filter(move |(known, _)| *known == id);
    let files = rows.flat_map(|(_, files)| files.iter());
    files.flat_map(move |(pattern, wanted)| {
        let pattern = pattern.replace("{cpu}", &cpu.to_string());
        let paths = match wanted {
            Isolated => Vec::from_iter(partition(source)),
            _ => expanded(source, &pattern),
        };
        paths.into_iter().map(move |path| {
            let found = source.line(&path);
            let wanted = match (wanted, found.known()) {
                (Isolated, _) => is_shared(source, cpu, &others).then(|| kind(&path).to_owned()),
                (_, found) => found.and_then(|found| wanted.value(found, cpu, &others)),
            };
            (path, found, wanted)
        })
    })
}

/// Returns the file by which a control group gets its CPUs for itself; `None` if no hierarchy has
/// the controller.
fn partition(source: &Source) -> Option<String> {
    let own = Cgroup::of_self(source, "cpuset").into_known()?;
    let file = match own.version {
        CgroupVersion::One => "sched_load_balance",
        CgroupVersion::Two => {
            let controllers = source.line(&format!("{}/cgroup.controllers", own.mount));
            let mut names = controllers.known()?.split(' ');
            names.find(|name| *name == "cpuset").map(|_| PARTITION)?
        }
    };
    Some(format!("{}{OWN_GROUP}{file}", own.mount))
}

/// The file of version 2, after the controller's name.
const PARTITION: &str = "cpus.partition";

/// Returns the value that a file of [`partition`] is to have.
fn kind(path: &str) -> &'static str {
    match path.ends_with(PARTITION) {
        true => "isolated",
        false => "0",
    }
}

/// Returns whether a file is one of the control group that is made for a cell.
pub fn is_of_own_group(path: &str) -> bool {
    path.contains(OWN_GROUP)
}

/// Returns whether the scheduler may give a CPU to others, and they have other CPUs.
fn is_shared(source: &Source, cpu: u32, others: &Cpus) -> bool {
    let isolated = source.value::<Cpus>("/sys/devices/system/cpu/isolated");
    let is_isolated = isolated.known().is_some_and(|cpus| cpus.contains(cpu));
    !is_isolated && !others.is_empty()
}

/// Returns the files that a pattern stands for.
fn expanded(source: &Source, pattern: &str) -> Vec<String> {
    let Some((folder, file)) = pattern.split_once("/*") else {
        return vec![pattern.to_owned()];
    };
    let numbers = source.numbered(folder, "").into_iter();
    numbers
        .map(|number| format!("{folder}/{number}{file}"))
        .collect()
}

impl Wanted {
    /// Returns the value to write; `None` if the file has it already, or can't have it.
    fn value(self, found: &str, cpu: u32, others: &Cpus) -> Option<String> {
        let moved = |cpus: Cpus| {
            let left = cpus.without(&Cpus::one(cpu));
            let left = if left.is_empty() { *others } else { left };
            (cpus.contains(cpu) && !left.is_empty()).then_some(left)
        };
        match self {
            Is(value) => {
                let marked = found.contains(&format!("[{value}]"));
                (found != value && !marked).then(|| value.to_owned())
            }
            AtLeast(least) => (found.parse::<u64>().ok()? < least).then(|| least.to_string()),
            List => Some(moved(Cpus::parse(found)?)?.to_string()),
            Mask => Some(mask(&moved(unmasked(found)?)?)),
            Isolated => None,
        }
    }
}

/// Reads a mask of CPUs: hexadecimal words of 32 bits, separated by commas.
fn unmasked(text: &str) -> Option<Cpus> {
    let digits = text.chars().rev().filter(|digit| *digit != ',');
    let mut cpus = Vec::new();
    for (place, digit) in (0..).zip(digits) {
        let bits = digit.to_digit(16)?;
        cpus.extend(
            (0..4)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| 4 * place + bit),
        );
    }
    Cpus::checked(cpus)
}

/// Writes a mask of CPUs as the kernel does.
fn mask(cpus: &Cpus) -> String {
    let words = cpus.last().map_or(0, |last| last / 32);
    let word = |number: u32| {
        let own = (0..32).filter(|bit| cpus.contains(32 * number + bit));
        own.fold(0_u32, |word, bit| word | 1 << bit)
    };
    let rest = (0..words)
        .rev()
        .map(|number| format!(",{:08x}", word(number)));
    format!("{:x}{}", word(words), rest.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{Tree, telecom};

    fn lines(tree: &Tree, cpu: u32) -> Vec<String> {
        let all = switches(&tree.source(), cpu).into_iter();
        all.flat_map(|switch| {
            let files = switch.files.into_iter();
            files.map(move |(path, value)| format!("{}: {path}={value}", switch.id))
        })
        .collect()
    }

    #[test]
    fn what_is_not_yet_as_wanted_is_changed() {
        let tree = Tree::new().cpus(4, 1).files(&[
            ("/proc/irq/24/smp_affinity_list", "0-3\n"),
            ("/proc/irq/25/smp_affinity_list", "2\n"),
            ("/proc/irq/26/smp_affinity_list", "0-1\n"),
            ("/proc/irq/default_smp_affinity", "f\n"),
            ("/sys/devices/virtual/workqueue/cpumask", "0000000f\n"),
            ("/proc/sys/kernel/watchdog_cpumask", "0-3\n"),
            ("/proc/sys/kernel/nmi_watchdog", "0\n"),
            ("/proc/sys/vm/stat_interval", "1\n"),
            ("/proc/sys/kernel/numa_balancing", "1\n"),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("/sys/kernel/mm/ksm/run", "0\n"),
            (
                "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "/sys/kernel/debug/sched/fair_server/cpu2/runtime",
                "50000000\n",
            ),
            ("/proc/self/cgroup", "0::/\n"),
            (
                "/proc/self/mountinfo",
                "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"),
        ]);
        assert_eq!(
            lines(&tree, 2),
            [
                "cpuset: /sys/fs/cgroup/tare/cpuset.cpus.partition=isolated",
                "irq-affinity: /proc/irq/24/smp_affinity_list=0-1,3",
                // It was aimed at this CPU alone.
                "irq-affinity: /proc/irq/25/smp_affinity_list=0-1,3",
                "workqueues: /sys/devices/virtual/workqueue/cpumask=b",
                "watchdog: /proc/sys/kernel/watchdog_cpumask=0-1,3",
                "stat-interval: /proc/sys/vm/stat_interval=120",
                "huge-pages: /sys/kernel/mm/transparent_hugepage/enabled=never",
                "numa-balancing: /proc/sys/kernel/numa_balancing=0",
                "governor: /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor=performance",
                "rt-throttling: /sys/kernel/debug/sched/fair_server/cpu2/runtime=0",
            ]
        );
    }

    #[test]
    fn a_machine_that_is_tuned_already_has_little_left_to_change() {
        assert_eq!(
            lines(&telecom(), 3),
            ["stat-interval: /proc/sys/vm/stat_interval=120"]
        );
    }

    #[test]
    fn a_cpu_is_isolated_by_whatever_version_has_cpusets() {
        let mixed = "34 31 0:31 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n\
                     41 31 0:38 / /cg/unified rw - cgroup2 cgroup2 rw\n";
        let of = |groups: &str, isolated: &str| {
            let tree = Tree::new().cpus(4, 1).files(&[
                ("/proc/self/cgroup", groups),
                ("/proc/self/mountinfo", mixed),
                ("/cg/unified/cgroup.controllers", "cpu io\n"),
                ("/sys/devices/system/cpu/isolated", isolated),
            ]);
            lines(&tree, 2).join(" ")
        };
        let groups = "3:cpuset:/\n0::/\n";
        let one = "cpuset: /cg/cpuset/tare/cpuset.sched_load_balance=0";
        assert_eq!(of(groups, "\n"), one);
        assert_eq!(of(groups, "2-3\n"), "");
        assert_eq!(of("0::/\n", "\n"), "");
    }

    #[test]
    fn nothing_can_be_moved_to_other_cpus_where_there_are_none() {
        let tree = Tree::new().cpus(1, 1).files(&[
            ("/proc/irq/24/smp_affinity_list", "0\n"),
            ("/sys/devices/virtual/workqueue/cpumask", "1\n"),
            ("/proc/sys/kernel/watchdog_cpumask", "nonsense\n"),
        ]);
        assert_eq!(lines(&tree, 0), [""; 0]);
    }

    #[test]
    fn masks_are_read_and_written_as_the_kernel_does() {
        for (text, list) in [
            ("3", "0-1"),
            ("1,00000000,80000001", "0,31,64"),
            ("0000000f", "0-3"),
        ] {
            let cpus = unmasked(text).unwrap();
            assert_eq!(cpus.to_string(), list);
            assert_eq!(unmasked(&mask(&cpus)), Some(cpus));
        }
        assert_eq!(
            mask(&unmasked("1,00000000,80000001").unwrap()),
            "1,00000000,80000001"
        );
        assert_eq!(unmasked("fx"), None);
    }
}

//! Real-time time of control groups: which group has how much, in which file, and how it gets more.
//!
//! A kernel with RT_GROUP_SCHED (Documentation/scheduler/sched-rt-group.rst) gives each control
//! group of version 1 its own real-time time. A new group has none, and SCHED_FIFO is then refused
//! with "Operation not permitted", even to root. The time of the groups below one may together not
//! exceed its own, and a group can only get time after its parent. Version 2 has no such files:
//! there the kernel refuses real-time policies in every group below the root that has the cpu
//! controller.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cgroup::{Cgroup, CgroupVersion};
use crate::fact::Fact;
use crate::machine::{CommandLine, KernelConfig};
use crate::source::Source;

/// The effect of RT_GROUP_SCHED on this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RtGroup {
    /// The kernel does not limit real-time policies by control group.
    Unlimited,
    /// The control group has this much real-time CPU time per period; with 0, SCHED_FIFO is refused
    /// with EPERM.
    Budget {
        /// Time per period in microseconds; -1 is without limit.
        runtime_us: i64,
    },
    /// The kernel has RT_GROUP_SCHED, and the group is one of cgroup version 2, which can have no
    /// budget.
    NoBudgetPossible,
}

impl fmt::Display for RtGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("not limited by control group"),
            Self::Budget { runtime_us: -1 } => f.write_str("budget without limit"),
            Self::Budget { runtime_us } => write!(f, "budget {runtime_us} µs per period"),
            Self::NoBudgetPossible => {
                f.write_str("RT_GROUP_SCHED with cgroup version 2, which has no budgets")
            }
        }
    }
}

impl RtGroup {
    /// Finds out whether RT_GROUP_SCHED is in force for the group of this process. In version 1 the
    /// file with the budget exists exactly then.
    pub(crate) fn of_self(
        source: &Source,
        command_line: &CommandLine,
        config: &Fact<KernelConfig>,
    ) -> Fact<Self> {
        Cgroup::of_self(source, "cpu").and_then(|group| match group.version {
            CgroupVersion::One => {
                let file = format!("{}/{}", group.folder(), RealTime::RUNTIME);
                if source.exists(&file) {
                    let runtime = source.value(&file);
                    runtime.map(|runtime_us| Self::Budget { runtime_us })
                } else if source.exists(&format!("{}/cpu.shares", group.folder())) {
                    Fact::Known(Self::Unlimited)
                } else {
                    Fact::unknown(format!("there is no {file}"))
                }
            }
            CgroupVersion::Two => config.as_ref().map(|config| {
                let own_task_group = group
                    .lineage()
                    .iter()
                    .any(|folder| source.exists(&format!("{folder}/cpu.max")));
                let in_force = config.has("RT_GROUP_SCHED")
                    && match command_line.value("rt_group_sched") {
                        Some("0" | "n" | "off" | "no") => false,
                        Some(_) => true,
                        None => !config.has("RT_GROUP_SCHED_DEFAULT_DISABLED"),
                    };
                match in_force && own_task_group {
                    true => Self::NoBudgetPossible,
                    false => Self::Unlimited,
                }
            }),
        })
    }
}

/// Real-time time of a group of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTime {
    /// Time in each period, in µs.
    pub runtime_us: u64,
    /// The period, in µs.
    pub period_us: u64,
}

impl RealTime {
    /// The file with a group's time in each period, in µs; -1 is without limit.
    pub const RUNTIME: &str = "cpu.rt_runtime_us";
    /// The file with the length of that period, in µs.
    pub const PERIOD: &str = "cpu.rt_period_us";

    /// Returns the time that the groups at the top of the hierarchy leave for another one; None if
    /// the kernel does not count it, or nothing is left.
    pub fn left(source: &Source) -> Option<Self> {
        let group = Cgroup::of_self(source, "cpu").into_known()?;
        match group.version {
            CgroupVersion::One => Self::left_in(source, &group.mount, ""),
            CgroupVersion::Two => None,
        }
    }

    /// Returns the time that the groups below a group leave, not counting `except`.
    fn left_in(source: &Source, parent: &str, except: &str) -> Option<Self> {
        let whole = Self::of(source, parent)?;
        let names = source.names(parent).into_known().unwrap_or_default();
        let given: u64 = names
            .iter()
            .map(|name| format!("{parent}/{name}"))
            .filter(|folder| folder != except)
            .filter_map(|folder| Self::of(source, &folder))
            // A group with another period has the same share of a shorter or longer time.
            .map(|group| group.runtime_us.saturating_mul(whole.period_us) / group.period_us.max(1))
            .fold(0, u64::saturating_add);
        let runtime_us = whole.runtime_us.saturating_sub(given);
        (runtime_us > 0).then_some(Self {
            runtime_us,
            ..whole
        })
    }

    fn of(source: &Source, folder: &str) -> Option<Self> {
        let number = |name| {
            source
                .value::<i64>(&format!("{folder}/{name}"))
                .into_known()
        };
        let period = number(Self::PERIOD).unwrap_or(DEFAULT_PERIOD_US);
        let runtime = number(Self::RUNTIME)?;
        Some(Self {
            runtime_us: u64::try_from(runtime).unwrap_or(period.unsigned_abs()),
            period_us: period.unsigned_abs(),
        })
    }

    /// Returns which times to write into which groups, from the top down, so that the group of this
    /// process gets some. None if nothing is left to give.
    pub(crate) fn writes(source: &Source, group: &Cgroup) -> Option<Vec<(String, u64)>> {
        let mut lineage = group.lineage();
        lineage.reverse();
        let mut writes = Vec::new();
        let mut promised = None;
        for pair in lineage.windows(2) {
            let [parent, folder] = pair else { continue };
            if Self::of(source, folder).is_some_and(|own| own.runtime_us > 0) {
                continue;
            }
            // The parent's own time is only what it will be after the write above.
            let left = match promised {
                Some(us) => us,
                None => Self::left_in(source, parent, folder)?.runtime_us,
            };
            promised = Some(left);
            writes.push((folder.clone(), left));
        }
        Some(writes)
    }
}

/// The kernel's default for [`RealTime::PERIOD`].
const DEFAULT_PERIOD_US: i64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Machine, ProcessLimits};
    use crate::tests::fixtures::Tree;

    fn process(tree: &Tree) -> ProcessLimits {
        Machine::collect(&tree.source()).process
    }

    #[test]
    fn rt_group_sched_shows_in_version_one_only() {
        let one = Tree::new()
            .file("/proc/self/cgroup", "1:cpu:/a\n")
            .file(
                "/proc/self/mountinfo",
                "1 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            )
            .file("/sys/fs/cgroup/cpu/a/cpu.shares", "1024\n");
        assert_eq!(process(&one).rt_group, Fact::Known(RtGroup::Unlimited));
        let one = one.file("/sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "0\n");
        assert_eq!(
            process(&one).rt_group,
            Fact::Known(RtGroup::Budget { runtime_us: 0 })
        );

        let two = Tree::new()
            .file("/proc/self/cgroup", "0::/a\n")
            .file(
                "/proc/self/mountinfo",
                "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file("/sys/fs/cgroup/a/cpu.max", "max 100000\n")
            .file("/proc/sys/kernel/osrelease", "6.1\n")
            .file("/boot/config-6.1", "CONFIG_RT_GROUP_SCHED=y\n");
        assert_eq!(
            process(&two).rt_group,
            Fact::Known(RtGroup::NoBudgetPossible)
        );
        let two = two.file("/proc/cmdline", "rt_group_sched=0\n");
        assert_eq!(process(&two).rt_group, Fact::Known(RtGroup::Unlimited));
    }

    const CPU: &str = "/sys/fs/cgroup/cpu";

    fn group(path: &str) -> Cgroup {
        Cgroup {
            version: CgroupVersion::One,
            mount: CPU.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn budgets_are_written_from_the_top_down_and_leave_the_siblings_theirs() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/other/cpu.rt_runtime_us"), "200000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "0\n")
            .file(&format!("{CPU}/a/b/cpu.rt_runtime_us"), "0\n")
            .file(&format!("{CPU}/a/c/cpu.rt_runtime_us"), "0\n");
        assert_eq!(
            RealTime::writes(&tree.source(), &group("/a/b")).unwrap(),
            [
                (format!("{CPU}/a"), 750_000),
                (format!("{CPU}/a/b"), 750_000)
            ]
        );
    }

    #[test]
    fn a_parent_that_has_a_budget_keeps_it() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "400000\n")
            .file(&format!("{CPU}/a/x/cpu.rt_runtime_us"), "100000\n")
            .file(&format!("{CPU}/a/b/cpu.rt_runtime_us"), "0\n");
        assert_eq!(
            RealTime::writes(&tree.source(), &group("/a/b")).unwrap(),
            [(format!("{CPU}/a/b"), 300_000)]
        );
    }

    #[test]
    fn when_siblings_hold_everything_there_is_nothing_to_write() {
        let tree = Tree::new()
            .file(&format!("{CPU}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/other/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{CPU}/a/cpu.rt_runtime_us"), "0\n");
        assert_eq!(RealTime::writes(&tree.source(), &group("/a")), None);
    }

    #[test]
    fn another_group_gets_what_those_at_the_top_leave() {
        let none = Tree::new().file("/proc/self/cgroup", "1:cpu:/a\n").file(
            "/proc/self/mountinfo",
            "1 1 0:1 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
        );
        let set = |tree: Tree, group: &str, runtime: &str, period: &str| {
            tree.file(&format!("{CPU}{group}/cpu.rt_runtime_us"), runtime)
                .file(&format!("{CPU}{group}/cpu.rt_period_us"), period)
        };
        let left = |tree: &Tree| RealTime::left(&tree.source()).map(|left| left.runtime_us);
        assert_eq!(left(&none), None);
        let tree = set(none, "", "950000\n", "1000000\n");
        assert_eq!(left(&tree), Some(950_000));
        let tree = set(set(tree, "/a", "0", "1000000"), "/b", "100000", "500000");
        assert_eq!(left(&tree), Some(750_000));
        let tree = set(tree, "/c", "750000", "1000000");
        assert_eq!(left(&tree), None);
        assert_eq!(left(&set(tree, "", "-1", "1000000")), Some(50_000));
    }
}

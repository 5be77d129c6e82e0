//! Real-time time for the control groups of containers.
//!
//! In a kernel with RT_GROUP_SCHED (Documentation/scheduler/sched-rt-group.rst) a group of version 1 has a budget of
//! real-time time, which is 0 for a new one, and no thread in it gets SCHED_FIFO then, whatever its rights.
//! The budgets of all groups below one must together fit into its own. So a container is given what the groups at
//! the top of the hierarchy leave.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use tare_guard::{CgroupVersion, Guard, GuardError, OwnedCgroup};
use tare_host::CgroupMount;
use tare_results::work::Rights;

use super::cgroup_mounts;

/// The file with the real-time time of a group in each period, in µs.
const RUNTIME: &str = "cpu.rt_runtime_us";
/// The file with the length of that period, in µs.
const PERIOD: &str = "cpu.rt_period_us";

/// How long the kernel may take to give back the time of a group that was removed: as a rule some 10 ms.
const RETURN_LIMIT: Duration = Duration::from_secs(5);

/// Real-time time that a group can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealTime {
    /// Time in each period, in µs.
    pub(crate) runtime_us: u64,
    /// The period, in µs.
    pub(crate) period_us: u64,
}

impl RealTime {
    /// Return what a container needs for its rights: nothing where no policy takes a budget, or the kernel has none.
    pub(crate) fn for_rights(rights: &Rights) -> Option<Self> {
        let takes_budget = rights.real_time?.policy.has_priority();
        takes_budget.then(Self::left)?
    }

    /// Make a group for an engine or a runtime to put a container below, with this much time: a container can't
    /// have more than the group above it.
    ///
    /// # Errors
    ///
    /// Returns [`GuardError`] if the group can't be made, or somebody else has taken the time meanwhile.
    pub(crate) fn group(self, prefix: &str, guard: &Guard) -> Result<OwnedCgroup, GuardError> {
        let group = guard.cgroup(prefix, &["cpu"])?;
        group.set(PERIOD, &self.period_us.to_string())?;
        let runtime = self.runtime_us.to_string();
        let deadline = Instant::now() + RETURN_LIMIT;
        // The time of a group that was removed comes back a little later, when nobody can see it any more.
        loop {
            match group.set(RUNTIME, &runtime) {
                Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                set => return set.map(|()| group),
            }
        }
    }

    /// Return what the groups at the top leave, if the kernel counts it and there is something.
    fn left() -> Option<Self> {
        Self::left_at(Path::new(&top(&cgroup_mounts())?.point))
    }

    fn left_at(top: &Path) -> Option<Self> {
        let whole = Self::of(top)?;
        let given: u64 = fs::read_dir(top)
            .ok()?
            .flatten()
            .filter_map(|entry| Self::of(&entry.path()))
            // A group of another period has the same share in less time or more.
            .map(|group| group.runtime_us * whole.period_us / group.period_us.max(1))
            .sum();
        let runtime_us = whole.runtime_us.saturating_sub(given);
        (runtime_us > 0).then_some(Self {
            runtime_us,
            ..whole
        })
    }

    fn of(group: &Path) -> Option<Self> {
        let number = |name| fs::read_to_string(group.join(name)).ok();
        Some(Self {
            // No limit at all is −1.
            runtime_us: match number(RUNTIME)?.trim() {
                "-1" => number(PERIOD)?.trim().parse().ok()?,
                limit => limit.parse().ok()?,
            },
            period_us: number(PERIOD)?.trim().parse().ok()?,
        })
    }
}

/// Find the mount of the `cpu` controller of version 1.
fn top(mounts: &[CgroupMount]) -> Option<&CgroupMount> {
    let is_ours =
        |mount: &&CgroupMount| mount.version == CgroupVersion::One && mount.has_option("cpu");
    mounts.iter().find(is_ours)
}

#[cfg(test)]
mod tests {
    use tare_wire::scheduling::Policy;

    use super::*;

    #[test]
    fn the_hierarchy_is_found_by_its_controller() {
        let mount = |line| CgroupMount::parse(line).unwrap();
        let mounts = [
            mount("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw"),
            mount("34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset"),
            mount("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"),
        ];
        assert_eq!(top(&mounts).unwrap().point, "/sys/fs/cgroup/cpu");
        assert_eq!(top(&mounts[..2]), None);
    }

    #[test]
    fn a_container_gets_what_the_others_leave() {
        let top = tempfile::tempdir().unwrap();
        let set = |group: &str, runtime: &str, period: &str| {
            let folder = top.path().join(group);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(RUNTIME), runtime).unwrap();
            fs::write(folder.join(PERIOD), period).unwrap();
        };
        assert_eq!(RealTime::left_at(top.path()), None);
        set("", "950000\n", "1000000\n");
        let left = || RealTime::left_at(top.path()).map(|left| left.runtime_us);
        assert_eq!(left(), Some(950_000));
        set("a", "0", "1000000");
        set("b", "100000", "500000");
        assert_eq!(left(), Some(750_000));
        set("c", "750000", "1000000");
        assert_eq!(left(), None);
        set("", "-1", "1000000");
        assert_eq!(left(), Some(50_000));
    }

    #[test]
    fn only_what_runs_under_such_a_policy_asks_for_it() {
        assert_eq!(RealTime::for_rights(&Rights::default()), None);
        let deadline = tare_results::work::RealTime {
            policy: Policy::Deadline,
            priority: 0,
        };
        let rights = Rights {
            real_time: Some(deadline),
            ..Rights::default()
        };
        assert_eq!(RealTime::for_rights(&rights), None);
    }
}

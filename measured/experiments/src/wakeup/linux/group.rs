//! The control group of this process, and its real-time budget.
//!
//! In a kernel with RT_GROUP_SCHED a thread gets SCHED_FIFO or SCHED_RR only in a group with a
//! budget (Documentation/scheduler/sched-rt-group.rst), and a new group has none. The kernel then
//! returns EPERM, even to root, without a hint at the cause.
//!
//! The laboratory reads the same files with more questions (`crates/host`); the agent runs where
//! that can't look: in containers and guests, and on other machines.

use std::fs;
use std::path::{Path, PathBuf};

/// The file with the real-time budget of a group per period, in µs.
const RUNTIME: &str = "cpu.rt_runtime_us";
/// The file with the length of the period, in µs.
const PERIOD: &str = "cpu.rt_period_us";

/// The group of the `cpu` controller that this process belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its path from the root of its hierarchy, as far as this process sees it.
    pub path: String,
    /// Its folder in the version 1 hierarchy; None if that is not mounted here or shows another
    /// part.
    folder: Option<PathBuf>,
    /// Whether the controller is of version 2, which has no configurable budgets.
    pub is_version_2: bool,
}

/// The real-time budget of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Time per period in µs; unlimited if negative.
    pub runtime_us: i64,
    /// The period in µs.
    pub period_us: u64,
}

impl Group {
    /// Finds the group of this process. None without control groups.
    pub fn own() -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::find(&groups, &mounts)
    }

    /// Finds the group in `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7), proc(5)).
    pub(super) fn find(groups: &str, mounts: &str) -> Option<Self> {
        let has_cpu = |list: &str| list.split(',').any(|name| name == "cpu");
        let lines = || groups.lines().filter_map(|line| line.split_once(':'));
        let version_1 = lines().find_map(|(_, rest)| {
            let (controllers, path) = rest.split_once(':')?;
            has_cpu(controllers).then_some(path)
        });
        let version_2 = || lines().find_map(|(number, rest)| (number == "0").then_some(&rest[1..]));
        let Some(path) = version_1 else {
            return version_2().map(|path| Self {
                path: path.to_owned(),
                folder: None,
                is_version_2: true,
            });
        };
        let mounted = mounts.lines().find_map(|line| {
            let (place, kind) = line.split_once(" - ")?;
            let mut kind = kind.split(' ');
            let is_ours = kind.next() == Some("cgroup") && has_cpu(kind.nth(1)?);
            let mut place = place.split(' ').skip(3);
            is_ours.then_some((place.next()?, place.next()?))
        });
        let folder = mounted.and_then(|(root, top)| {
            let below = Path::new(path).strip_prefix(root).ok()?;
            // An empty path would add a slash.
            let group = Path::new(top).components().chain(below.components());
            Some(group.collect())
        });
        Some(Self {
            path: path.to_owned(),
            folder,
            is_version_2: false,
        })
    }

    /// Returns the budget of the group, if the kernel limits it and the folder is visible.
    pub fn budget(&self) -> Option<Budget> {
        let folder = self.folder.as_ref()?;
        let number = |name| fs::read_to_string(folder.join(name)).ok();
        Some(Budget {
            runtime_us: number(RUNTIME)?.trim().parse().ok()?,
            period_us: number(PERIOD)?.trim().parse().ok()?,
        })
    }

    /// Returns the path of the file with the group's budget, if it is visible.
    pub fn budget_file(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(RUNTIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNT: &str = "30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn the_group_is_found_in_both_versions() {
        let groups = "9:name=systemd:/\n3:cpuset:/a\n2:cpu,cpuacct:/a/b\n0::/c\n";
        let group = Group::find(groups, MOUNT).unwrap();
        assert_eq!((group.path.as_str(), group.is_version_2), ("/a/b", false));
        let file = group.budget_file().unwrap();
        let expected = "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us";
        assert_eq!(file, Path::new(expected));

        let group = Group::find("0::/user.slice\n", "").unwrap();
        assert!(group.is_version_2 && group.budget().is_none());
        assert_eq!(group.path, "/user.slice");
        assert_eq!(Group::find("", ""), None);
    }

    #[test]
    fn a_container_sees_a_part_of_the_hierarchy_or_nothing() {
        let groups = "2:cpu:/docker/1f\n";
        let seen = MOUNT.replace(" / ", " /docker/1f ");
        let file = Group::find(groups, &seen).unwrap().budget_file().unwrap();
        let expected = "/sys/fs/cgroup/cpu,cpuacct/cpu.rt_runtime_us";
        assert_eq!(file, Path::new(expected));
        assert_eq!(Group::find(groups, "").unwrap().budget_file(), None);
    }

    #[test]
    fn the_time_of_the_group_is_read() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("a")).unwrap();
        fs::write(top.path().join("a").join(RUNTIME), "-1\n").unwrap();
        fs::write(top.path().join("a").join(PERIOD), "1000000\n").unwrap();
        let top = top.path().display();
        let mount = format!("30 25 0:26 / {top} rw - cgroup cgroup rw,cpu");
        let budget = Group::find("2:cpu:/a\n", &mount).unwrap().budget();
        let (runtime_us, period_us) = (-1, 1_000_000);
        assert_eq!(
            budget,
            Some(Budget {
                runtime_us,
                period_us
            })
        );
    }
}

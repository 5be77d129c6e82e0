//! Finds where control groups can be made: the mounted hierarchies, of version 1, 2 or a mixture.
//!
//! In version 1 a controller has its own hierarchy, or shares one; in version 2 all are in one.
//! A mixture ("hybrid") has controllers in the old hierarchies and an empty new one.

use std::fs;
use std::path::{Path, PathBuf};

use tare_host::{CgroupMount, CgroupVersion};

use crate::error::GuardError;

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: CgroupVersion,
    /// The resources that can be limited in it: `memory`, `cpuset`.
    pub(crate) controllers: Vec<String>,
    /// Folders in which a group may be made: at the top, or, without permission there, in the group
    /// of this process.
    pub(crate) parents: Vec<PathBuf>,
}

impl Hierarchy {
    /// Lists the mounted hierarchies.
    pub(crate) fn all() -> Result<Vec<Hierarchy>, GuardError> {
        let failed = |what| move |source| GuardError::host(what, source);
        let mounts = CgroupMount::all().map_err(failed("the list of mounts"))?;
        let groups = fs::read_to_string("/proc/self/cgroup")
            .map_err(failed("the control groups of this process"))?;
        let mut found = hierarchies(mounts, &groups);
        for hierarchy in &mut found {
            if hierarchy.version == CgroupVersion::Two {
                let file = hierarchy.parents[0].join("cgroup.controllers");
                let names = fs::read_to_string(file).unwrap_or_default();
                hierarchy.controllers = names.split_whitespace().map(str::to_owned).collect();
            }
        }
        Ok(found)
    }

    /// Returns whether groups in it have this controller.
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|known| known == controller)
    }
}

/// Makes one entry for each hierarchy, also if it is mounted twice.
fn hierarchies(mounts: Vec<CgroupMount>, groups: &str) -> Vec<Hierarchy> {
    let mut found: Vec<(String, Hierarchy)> = Vec::new();
    for mount in mounts {
        if found.iter().any(|(device, _)| *device == mount.device) {
            continue;
        }
        let top = Path::new(&mount.point);
        let mut parents = vec![top.to_owned()];
        // In a container the mount shows only a part of the hierarchy.
        let below = mount.own_group(groups).unwrap_or_default();
        if !below.is_empty() {
            parents.push(top.join(below.trim_start_matches('/')));
        }
        let controllers = match mount.version {
            CgroupVersion::Two => Vec::new(),
            CgroupVersion::One => mount.options.split(',').map(str::to_owned).collect(),
        };
        let hierarchy = Hierarchy {
            version: mount.version,
            controllers,
            parents,
        };
        found.push((mount.device, hierarchy));
    }
    found.into_iter().map(|(_, hierarchy)| hierarchy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(mounts: &str, groups: &str) -> Vec<Hierarchy> {
        hierarchies(
            mounts.lines().filter_map(CgroupMount::parse).collect(),
            groups,
        )
    }

    #[test]
    fn a_mixture_has_one_entry_for_each_hierarchy() {
        let mounts = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
34 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
35 31 0:30 / /elsewhere/my\\040memory rw - cgroup cgroup rw,memory
";
        let groups = "4:memory:/user/a\n2:cpu,cpuacct:/\n0::/user.slice\n";
        let found = parse(mounts, groups);
        let seen: Vec<(CgroupVersion, &[String], Vec<&str>)> = found
            .iter()
            .map(|h| {
                let parents = h.parents.iter().map(|p| p.to_str().unwrap());
                (
                    h.version,
                    &h.controllers[1.min(h.controllers.len())..],
                    parents.collect(),
                )
            })
            .collect();
        let (cpuacct, memory) = (
            ["cpu".to_owned(), "cpuacct".to_owned()],
            ["memory".to_owned()],
        );
        assert_eq!(
            seen,
            [
                (
                    CgroupVersion::One,
                    &cpuacct[..],
                    vec!["/sys/fs/cgroup/cpu,cpuacct"]
                ),
                (
                    CgroupVersion::One,
                    &memory[..],
                    vec!["/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/user/a"]
                ),
                (
                    CgroupVersion::Two,
                    &[][..],
                    vec![
                        "/sys/fs/cgroup/unified",
                        "/sys/fs/cgroup/unified/user.slice"
                    ]
                ),
            ]
        );
        assert!(found[0].has("cpuacct") && !found[0].has("cpuset"));
    }

    #[test]
    fn a_container_that_sees_a_part_has_its_own_group_below_it() {
        let mounts = "7 6 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n";
        let parents = |groups| parse(mounts, groups)[0].parents.clone();
        let top = PathBuf::from("/sys/fs/cgroup");
        assert_eq!(
            parents("0::/docker/abc\n"),
            ["/sys/fs/cgroup"].map(PathBuf::from)
        );
        assert_eq!(
            parents("0::/docker/abc/in\n"),
            [top.clone(), top.join("in")]
        );
        assert_eq!(parents("0::/../x\n"), [top]);
    }
}

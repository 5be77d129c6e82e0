//! Find the control group of this process, in version 1, version 2 or a mixture.
//!
//! A controller lives in exactly one hierarchy. `/proc/self/cgroup` says which
//! group this process is in, `/proc/self/mountinfo` where that hierarchy can be
//! seen. Inside a container the mount often shows only a subtree, so the path of
//! the group must be taken relative to the root of the mount, not glued to it.

use std::{fs, io};

use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// Which interface a controller's files follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// One hierarchy per controller: `memory.limit_in_bytes`, `cpu.cfs_quota_us`.
    One,
    /// The unified hierarchy: `memory.max`, `cpu.max`.
    Two,
}

/// The group of this process in the hierarchy of one controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// Which files to expect.
    pub(crate) version: CgroupVersion,
    /// Where the hierarchy is mounted.
    pub(crate) mount: String,
    /// The group below the mount: "" for the mount's root, else "/a/b".
    pub(crate) path: String,
}

impl Cgroup {
    /// Finds the group of this process for one controller (`cpu`, `cpuset`).
    pub(crate) fn of_self(source: &Source, controller: &str) -> Fact<Self> {
        source.text("/proc/self/cgroup").and_then(|groups| {
            let because =
                format!("no cgroup hierarchy with the {controller} controller is mounted");
            let mounts = source.text("/proc/self/mountinfo");
            mounts.find(because, |mounts| find(&groups, &mounts, controller))
        })
    }

    /// Returns the folder of the group.
    pub(crate) fn folder(&self) -> String {
        format!("{}{}", self.mount, self.path)
    }

    /// Returns the folders of the group and of all groups above it, own group first, the mount's
    /// root last.
    pub(crate) fn lineage(&self) -> Vec<String> {
        let mut folders = vec![self.folder()];
        let mut path = self.path.as_str();
        while let Some((parent, _)) = path.rsplit_once('/') {
            folders.push(format!("{}{parent}", self.mount));
            path = parent;
        }
        folders
    }
}

/// The most groups that are looked at: a machine with more has none that a search would find soon.
const MOST_GROUPS: usize = 4_096;

/// Finds a cpuset that holds one of these CPUs for itself, and is none that this process is in:
/// other groups can't have the CPU. Returns its name below the hierarchy's mount, with the CPUs.
///
/// In version 1 that is one with `cpuset.cpu_exclusive` (which the root has as well), in version 2
/// the root of a valid partition.
pub fn exclusive_cpuset(source: &Source, cpus: &Cpus) -> Option<(String, Cpus)> {
    let own = Cgroup::of_self(source, "cpuset");
    let own = own.known()?;
    let lineage = own.lineage();
    let holds = |folder: &str| {
        let is_exclusive = match own.version {
            CgroupVersion::One => {
                source
                    .value(&format!("{folder}/cpuset.cpu_exclusive"))
                    .known()
                    == Some(&1)
            }
            CgroupVersion::Two => {
                let partition = source.line(&format!("{folder}/cpuset.cpus.partition"));
                matches!(
                    partition.known().map(String::as_str),
                    Some("root" | "isolated")
                )
            }
        };
        let file = match own.version {
            CgroupVersion::One => "cpuset.cpus",
            CgroupVersion::Two => "cpuset.cpus.effective",
        };
        let held = source.value::<Cpus>(&format!("{folder}/{file}"));
        let held = held.known().filter(|_| is_exclusive)?;
        held.iter().any(|cpu| cpus.contains(cpu)).then_some(*held)
    };
    let mut folders = vec![own.mount.clone()];
    for place in 0..MOST_GROUPS {
        let folder = folders.get(place)?.clone();
        if !lineage.contains(&folder)
            && let Some(held) = holds(&folder)
        {
            return Some((folder.get(own.mount.len() + 1..)?.to_owned(), held));
        }
        let below = source.names(&folder);
        let below = below.known().into_iter().flatten();
        let groups = below.map(|name| format!("{folder}/{name}"));
        folders.extend(groups.filter(|path| source.exists(&format!("{path}/cgroup.procs"))));
    }
    None
}

/// One mount of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMount {
    /// Number of the file system, the same for all of its mounts: `0:28`.
    pub device: String,
    /// The folder of the hierarchy that is visible at the mount point.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// Which files its groups have.
    pub version: CgroupVersion,
    /// Version 1 only: the super block options, among them the controllers' names.
    pub options: String,
}

impl CgroupMount {
    /// Lists the mounts that this process sees.
    ///
    /// # Errors
    ///
    /// Returns the error of reading `/proc/self/mountinfo`.
    pub fn all() -> io::Result<Vec<Self>> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(mounts.lines().filter_map(Self::parse).collect())
    }

    /// Parses one line of mountinfo if it is a cgroup mount.
    ///
    /// `31 23 0:28 /root /mount/point rw,relatime shared:9 - cgroup cgroup rw,cpu`: any
    /// number of optional fields stands before the lone hyphen.
    pub fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(2);
        let (device, root, point) = (before.next()?, before.next()?, before.next()?);
        let mut after = after.split(' ');
        let version = match after.next()? {
            "cgroup" => CgroupVersion::One,
            "cgroup2" => CgroupVersion::Two,
            _ => return None,
        };
        Some(Self {
            device: device.to_owned(),
            root: unescape(root),
            point: unescape(point),
            version,
            options: after.nth(1).unwrap_or("").to_owned(),
        })
    }

    /// Returns whether one of the options is this one.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }

    /// Returns where the group of this process is below the mount, from the text of
    /// `/proc/self/cgroup`: "" for the mount's root, else "/a/b".
    pub fn own_group<'a>(&self, groups: &'a str) -> Option<&'a str> {
        let mut groups = groups.lines().filter_map(split_group);
        let (.., path) = groups.find(|(id, names, _)| match self.version {
            CgroupVersion::One => {
                !names.is_empty() && names.split(',').all(|name| self.has_option(name))
            }
            CgroupVersion::Two => *id == "0" && names.is_empty(),
        })?;
        Some(self.below(path))
    }

    /// Returns where a group is below the mount.
    ///
    /// A path outside the visible subtree (or above it, "/..") cannot be looked at;
    /// the root of the mount is then the nearest group that can.
    fn below<'a>(&self, path: &'a str) -> &'a str {
        path.strip_prefix(self.root.trim_end_matches('/'))
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
            .filter(|rest| !rest.split('/').any(|part| part == ".."))
            .unwrap_or("")
            .trim_end_matches('/')
    }
}

fn find(groups: &str, mounts: &str, controller: &str) -> Option<Cgroup> {
    let mut lines = groups.lines().filter_map(split_group);
    let in_version_one = lines.any(|(_, names, _)| names.split(',').any(|name| name == controller));
    let mut mounts = mounts.lines().filter_map(CgroupMount::parse);
    let mount = mounts.find(|mount| match mount.version {
        CgroupVersion::One => in_version_one && mount.has_option(controller),
        CgroupVersion::Two => !in_version_one,
    })?;
    Some(Cgroup {
        version: mount.version,
        mount: mount.point.trim_end_matches('/').to_owned(),
        path: mount.own_group(groups)?.to_owned(),
    })
}

/// Splits `4:cpu,cpuacct:/group` at its first two colons.
fn split_group(line: &str) -> Option<(&str, &str, &str)> {
    let mut parts = line.splitn(3, ':');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// Undoes the octal escapes of mountinfo (`\040` is a space).
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
            .filter(u8::is_ascii);
        if let Some(code) = code {
            out.push(char::from(code));
            rest = &after[3..];
        } else {
            out.push('\\');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::Tree;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_cpuset_that_holds_a_cpu_for_itself_is_found_in_both_versions() {
        let tree = |groups: &str, mounts: &str| {
            Tree::new().files(&[
                ("/proc/self/cgroup", groups),
                ("/proc/self/mountinfo", mounts),
            ])
        };
        let at = |cpu: u32| Cpus::from_iter([cpu]);
        let one = "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";
        let folder = "/sys/fs/cgroup/cpuset";
        let mut version_1 = tree("3:cpuset:/own\n", one);
        for (group, cpus, exclusive) in
            [("", "0-3", "1"), ("/own", "0-1", "1"), ("/rt/a", "3", "1")]
        {
            version_1 = version_1
                .file(&format!("{folder}{group}/cgroup.procs"), "")
                .file(&format!("{folder}{group}/cpuset.cpus"), cpus)
                .file(&format!("{folder}{group}/cpuset.cpu_exclusive"), exclusive);
        }
        version_1 = version_1.file(&format!("{folder}/rt/cgroup.procs"), "");
        let source = version_1.source();
        let found = Some(("rt/a".to_owned(), at(3)));
        assert_eq!(exclusive_cpuset(&source, &at(3)), found);
        assert_eq!(exclusive_cpuset(&source, &at(1)), None);

        let two = "30 25 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let folder = "/sys/fs/cgroup/apart";
        let partition = |state: &str| {
            let version_2 = tree("0::/\n", two)
                .file(&format!("{folder}/cgroup.procs"), "")
                .file(&format!("{folder}/cpuset.cpus.effective"), "2-3\n")
                .file(&format!("{folder}/cpuset.cpus.partition"), state);
            exclusive_cpuset(&version_2.source(), &at(2))
        };
        assert_eq!(
            partition("isolated\n").map(|(name, _)| name).as_deref(),
            Some("apart")
        );
        assert_eq!(partition("root invalid (no CPU is left)\n"), None);
        assert_eq!(partition("member\n"), None);
    }

    #[test]
    fn version_one_wins_where_it_has_the_controller() {
        let groups = "3:cpuset:/\n1:cpu,cpuacct:/user.slice/a\n0::/\n";
        let cpu = find(groups, HYBRID, "cpu").unwrap();
        assert_eq!(cpu.version, CgroupVersion::One);
        assert_eq!(cpu.folder(), "/sys/fs/cgroup/cpu,cpuacct/user.slice/a");
        assert_eq!(
            cpu.lineage(),
            [
                "/sys/fs/cgroup/cpu,cpuacct/user.slice/a",
                "/sys/fs/cgroup/cpu,cpuacct/user.slice",
                "/sys/fs/cgroup/cpu,cpuacct",
            ]
        );
        assert_eq!(
            find(groups, HYBRID, "cpuset").unwrap().folder(),
            "/sys/fs/cgroup/cpuset"
        );
    }

    #[test]
    fn version_two_has_everything_else() {
        let mounts = "25 20 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let group = find("0::/user.slice/user-1000.slice\n", mounts, "cpu").unwrap();
        assert_eq!(group.version, CgroupVersion::Two);
        assert_eq!(group.folder(), "/sys/fs/cgroup/user.slice/user-1000.slice");
    }

    #[test]
    fn a_container_sees_its_own_subtree_at_the_mount() {
        let mounts = "700 690 0:29 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        let group = find("1:cpu:/docker/abc/inner\n", mounts, "cpu").unwrap();
        assert_eq!(group.folder(), "/sys/fs/cgroup/cpu/inner");
        let outside = find("1:cpu:/docker/abcdef\n", mounts, "cpu").unwrap();
        assert_eq!(outside.folder(), "/sys/fs/cgroup/cpu");
    }

    #[test]
    fn escapes_of_mountinfo_are_undone() {
        assert_eq!(unescape(r"/my\040groups"), "/my groups");
        assert_eq!(unescape(r"/odd\x"), r"/odd\x");
    }
}

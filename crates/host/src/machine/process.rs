//! What this process may do and use: CPUs, CPU time, real-time policies, locked memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_line::CommandLine;
use super::kernel_config::KernelConfig;
use super::virtualisation::in_initial_namespace;
use crate::cgroup::{Cgroup, CgroupVersion};
use crate::fact::Fact;
use crate::realtime::RtGroup;
use crate::source::Source;
use tare_wire::cpus::Cpus;

/// The bit of CAP_IPC_LOCK in a capability set (capabilities(7)).
const CAP_IPC_LOCK: u32 = 14;
/// The bit of CAP_SYS_NICE.
const CAP_SYS_NICE: u32 = 23;
/// The bit of CAP_PERFMON.
const CAP_PERFMON: u32 = 38;
/// The bit of CAP_SYS_ADMIN, which did CAP_PERFMON's work before Linux 5.8.
const CAP_SYS_ADMIN: u32 = 21;

/// The limits and privileges of this process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLimits {
    /// The CPUs of the affinity mask. CPUs isolated with isolcpus= are not in the mask that
    /// processes inherit, although they may be asked for.
    pub affinity: Fact<Cpus>,
    /// The CPUs of the cpuset, the true limit of what the affinity mask may be set to.
    pub cpuset: Fact<Cpus>,
    /// The tightest CPU quota of the control groups that hold this process; null when there is
    /// none.
    pub cpu_quota: Fact<Option<CpuQuota>>,
    /// Whether the control group lets this process use real-time policies.
    pub rt_group: Fact<RtGroup>,
    /// This process runs as root (effective user 0).
    pub root: Fact<bool>,
    /// This process is in its own user namespace, where capabilities do not reach the machine.
    pub separate_user_namespace: Fact<bool>,
    /// CAP_IPC_LOCK is in force: memory can be locked without limit.
    pub may_lock_memory: Fact<bool>,
    /// How much memory may be locked without that capability, in bytes; null is without limit
    /// (RLIMIT_MEMLOCK).
    pub locked_memory_limit_bytes: Fact<Option<u64>>,
    /// CAP_SYS_NICE is in force: real-time policies can be used at any priority.
    pub may_use_realtime: Fact<bool>,
    /// The highest real-time priority without that capability; null is without limit
    /// (RLIMIT_RTPRIO).
    pub realtime_priority_limit: Fact<Option<u64>>,
    /// CAP_PERFMON or CAP_SYS_ADMIN is in force: performance counters can be used whatever
    /// perf_event_paranoid says.
    pub may_use_counters: Fact<bool>,
    /// /dev/cpu_dma_latency can be opened, which keeps cores out of deep idle states while it is
    /// held.
    pub dma_latency_opens: bool,
    /// Why it cannot be opened; null when it can.
    pub dma_latency_refusal: Option<String>,
}

/// A limit on CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuQuota {
    /// The CPU time per period, in microseconds, over all CPUs.
    pub quota_us: u64,
    /// The period in microseconds.
    pub period_us: u64,
}

impl CpuQuota {
    /// Returns the quota as a number of CPUs.
    pub fn cpus(&self) -> f64 {
        self.quota_us as f64 / self.period_us as f64
    }
}

impl ProcessLimits {
    pub(super) fn collect(
        source: &Source,
        command_line: &CommandLine,
        config: &Fact<KernelConfig>,
    ) -> Self {
        let status = source.text("/proc/self/status");
        let limits = source.text("/proc/self/limits");
        let separate_user_namespace = source
            .text("/proc/self/uid_map")
            .map(|map| map.split_ascii_whitespace().ne(["0", "0", "4294967295"]));
        let capability = |bits: &[u32]| {
            let effective = capabilities(&status);
            // A capability in a separate user namespace does not reach scheduler, mlock or
            // counters.
            let apart = separate_user_namespace.is(&true);
            effective.map(|set| !apart && bits.iter().any(|bit| set >> bit & 1 == 1))
        };
        let dma_latency = source.opens_for_writing("/dev/cpu_dma_latency");
        Self {
            affinity: status_field(&status, "Cpus_allowed_list").and_then(|list| {
                list.parse()
                    .map_err(|error| format!("/proc/self/status: {error}"))
                    .into()
            }),
            cpuset: cpuset(source).or_else(|| cpuset_without_limit(source, &status)),
            cpu_quota: tightest_quota(source).map(|found| found.map(|(_, quota)| quota)),
            rt_group: RtGroup::of_self(source, command_line, config),
            root: status_field(&status, "Uid")
                .map(|ids| ids.split_ascii_whitespace().nth(1) == Some("0")),
            may_lock_memory: capability(&[CAP_IPC_LOCK]),
            locked_memory_limit_bytes: limit(&limits, "Max locked memory"),
            may_use_realtime: capability(&[CAP_SYS_NICE]),
            realtime_priority_limit: limit(&limits, "Max realtime priority"),
            may_use_counters: capability(&[CAP_PERFMON, CAP_SYS_ADMIN]),
            separate_user_namespace,
            dma_latency_opens: dma_latency.known().is_some(),
            dma_latency_refusal: dma_latency.because().map(str::to_owned),
        }
    }
}

fn status_field(status: &Fact<String>, name: &str) -> Fact<String> {
    let because = format!("/proc/self/status has no {name}");
    status.as_ref().find(because, |text| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(key, _)| *key == name)?;
        Some(value.trim().to_owned())
    })
}

fn capabilities(status: &Fact<String>) -> Fact<u64> {
    let because = "CapEff in /proc/self/status is not a number";
    status_field(status, "CapEff").find(because, |set| u64::from_str_radix(&set, 16).ok())
}

/// Reads the soft limit of one line of `/proc/self/limits`.
fn limit(limits: &Fact<String>, name: &str) -> Fact<Option<u64>> {
    let soft = |text: &'_ String| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_ascii_whitespace().next().map(str::to_owned)
    };
    limits
        .as_ref()
        .find(format!("/proc/self/limits has no \"{name}\""), soft)
        .find(
            format!("\"{name}\" in /proc/self/limits is not a number"),
            |soft| match soft.as_str() {
                "unlimited" => Some(None),
                number => number.parse().ok().map(Some),
            },
        )
}

/// Reads the effective cpuset of the nearest group that has one.
fn cpuset(source: &Source) -> Fact<Cpus> {
    Cgroup::of_self(source, "cpuset").and_then(|group| {
        let names: &[&str] = match group.version {
            CgroupVersion::One => &["cpuset.effective_cpus", "cpuset.cpus"],
            CgroupVersion::Two => &["cpuset.cpus.effective"],
        };
        for folder in group.lineage() {
            for name in names {
                if let Fact::Known(list) = source.value::<Cpus>(&format!("{folder}/{name}"))
                    && !list.is_empty()
                {
                    return Fact::Known(list);
                }
            }
        }
        Fact::unknown(format!("there is no {}/{}", group.folder(), names[0]))
    })
}

/// Returns all online CPUs when no cpuset can limit this process although none can be read.
///
/// That is so in a kernel without cpusets, whose status files lack the memory nodes, and in the
/// root cpuset. In its own cgroup namespace a process sees `/` whatever its cpuset.
fn cpuset_without_limit(source: &Source, status: &Fact<String>) -> Fact<Cpus> {
    let no_cpusets = status_field(status, "Cpus_allowed_list").known().is_some()
        && status_field(status, "Mems_allowed_list").known().is_none();
    let root_cpuset = source
        .line("/proc/self/cpuset")
        .known()
        .is_some_and(|path| path == "/")
        && in_initial_namespace(source, "cgroup").is(&true);
    if no_cpusets || root_cpuset {
        source.value("/sys/devices/system/cpu/online")
    } else {
        Fact::unknown("the cpuset of this process cannot be read")
    }
}

/// Finds the tightest quota from this group upwards, with the file that sets it: each group limits
/// all that it holds.
pub(crate) fn tightest_quota(source: &Source) -> Fact<Option<(String, CpuQuota)>> {
    Cgroup::of_self(source, "cpu").map(|group| {
        let folders = group.lineage();
        let quotas = folders
            .iter()
            .filter_map(|folder| quota(source, group.version, folder));
        quotas.min_by(|(_, a), (_, b)| a.cpus().total_cmp(&b.cpus()))
    })
}

/// Reads the quota that one group sets. No quota, which is -1 or "max", is not an unsigned number.
fn quota(source: &Source, version: CgroupVersion, folder: &str) -> Option<(String, CpuQuota)> {
    let (file, quota_us, period_us) = match version {
        CgroupVersion::One => {
            let file = format!("{folder}/cpu.cfs_quota_us");
            let period = source.value(&format!("{folder}/cpu.cfs_period_us"));
            let quota = source.value(&file).into_known()?;
            (file, quota, period.into_known()?)
        }
        CgroupVersion::Two => {
            let file = format!("{folder}/cpu.max");
            let line = source.line(&file).into_known()?;
            let (quota, period) = line.split_once(' ')?;
            (file, quota.parse().ok()?, period.parse().ok()?)
        }
    };
    let quota = CpuQuota {
        quota_us,
        period_us,
    };
    (period_us > 0).then_some((file, quota))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::tests::fixtures::Tree;

    fn process(tree: &Tree) -> ProcessLimits {
        Machine::collect(&tree.source()).process
    }

    #[test]
    fn the_tightest_quota_of_the_lineage_counts() {
        let tree = Tree::new()
            .file("/proc/self/cgroup", "0::/a/b\n")
            .file(
                "/proc/self/mountinfo",
                "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
            .file("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        let quota = process(&tree).cpu_quota.into_known().unwrap().unwrap();
        assert_eq!(quota.cpus(), 1.5);
    }

    #[test]
    fn capabilities_of_a_separate_user_namespace_do_not_count() {
        let tree = Tree::new()
            .file(
                "/proc/self/status",
                "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
            )
            .file("/proc/self/uid_map", "         0          0 4294967295\n");
        let limits = process(&tree);
        assert_eq!(limits.may_use_realtime, Fact::Known(true));
        assert_eq!(limits.root, Fact::Known(true));
        let limits = process(&tree.file("/proc/self/uid_map", "0 1000 1\n"));
        assert_eq!(limits.may_use_realtime, Fact::Known(false));
        assert_eq!(limits.may_lock_memory, Fact::Known(false));
    }

    #[test]
    fn limits_without_bound_are_a_known_nothing() {
        let tree = Tree::new().file(
            "/proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max locked memory         8388608              unlimited            bytes     \n\
             Max realtime priority     unlimited            unlimited                      \n",
        );
        let limits = process(&tree);
        assert_eq!(limits.locked_memory_limit_bytes, Fact::Known(Some(8 << 20)));
        assert_eq!(limits.realtime_priority_limit, Fact::Known(None));
    }
}

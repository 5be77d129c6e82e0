//! CPUs set apart from the scheduler, from the tick, and from RCU's callbacks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_line::CommandLine;
use super::kernel_config::KernelConfig;
use super::topology::Topology;
use crate::fact::Fact;
use crate::source::Source;
use tare_wire::cpus::Cpus;

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

/// Which CPUs are set apart, and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// CPUs outside the scheduler's load balancing (isolcpus=).
    pub isolated: Fact<Cpus>,
    /// CPUs whose tick stops while a single task runs (nohz_full=).
    pub nohz_full: Fact<Cpus>,
    /// CPUs whose RCU callbacks run elsewhere (rcu_nocbs=, or implied by nohz_full=).
    pub rcu_nocbs: Fact<Cpus>,
    /// CPUs in isolated cpuset partitions (cgroup version 2).
    pub cpuset_isolated: Fact<Cpus>,
}

impl Isolation {
    pub(super) fn collect(
        source: &Source,
        topology: &Topology,
        command_line: &CommandLine,
        config: &Fact<KernelConfig>,
    ) -> Self {
        let isolated: Fact<Cpus> = source.value(ISOLATED);
        let nohz_full = nohz_full(source, &isolated);
        let last_cpu = topology.online.known().and_then(Cpus::last).unwrap_or(0);
        Self {
            rcu_nocbs: rcu_nocbs(&nohz_full, topology, last_cpu, command_line, config),
            cpuset_isolated: source.value("/sys/fs/cgroup/cpuset.cpus.isolated"),
            isolated,
            nohz_full,
        }
    }

    /// Returns the CPUs that somebody set apart in any way that keeps ordinary tasks or the tick
    /// away.
    pub fn set_apart(&self) -> Cpus {
        [&self.isolated, &self.nohz_full, &self.cpuset_isolated]
            .into_iter()
            .filter_map(Fact::known)
            .fold(Cpus::default(), |all, some| all.union(some))
    }
}

/// A kernel that shows `isolated` but not `nohz_full` was built without NO_HZ_FULL, so no CPU can
/// be in that state.
fn nohz_full(source: &Source, isolated: &Fact<Cpus>) -> Fact<Cpus> {
    if isolated.known().is_some() && !source.exists(NOHZ_FULL) {
        return Fact::Known(Cpus::default());
    }
    source.value(NOHZ_FULL)
}

fn rcu_nocbs(
    nohz_full: &Fact<Cpus>,
    topology: &Topology,
    last_cpu: u32,
    command_line: &CommandLine,
    config: &Fact<KernelConfig>,
) -> Fact<Cpus> {
    if let Fact::Unknown { unknown } = &command_line.words {
        return Fact::unknown(unknown.as_str());
    }
    if let Fact::Known(config) = config {
        if !config.has("RCU_NOCB_CPU") {
            return Fact::Known(Cpus::default());
        }
        if config.has("RCU_NOCB_CPU_DEFAULT_ALL") && command_line.value("rcu_nocbs").is_none() {
            return topology.online.clone();
        }
    }
    let named = match command_line.value("rcu_nocbs") {
        // The bare word prepares for offloading later and offloads nothing itself.
        None | Some("") => Cpus::default(),
        Some(text) => match command_line.cpus("rcu_nocbs", last_cpu) {
            Some(cpus) => cpus,
            None => return Fact::unknown(format!("rcu_nocbs={text} is not a list of CPUs")),
        },
    };
    let implied = nohz_full.known().cloned().unwrap_or_default();
    Fact::Known(named.union(&implied))
}

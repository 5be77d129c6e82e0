//! CPUs, the cores they share, NUMA nodes and caches.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{bytes_with_suffix, kib_line};
use crate::fact::Fact;
use crate::sample::Stat;
use crate::source::Source;
use tare_wire::cpus::Cpus;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// How the CPUs hang together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// The CPUs that are online.
    pub online: Fact<Cpus>,
    /// The CPUs that are plugged in, online or not.
    pub present: Fact<Cpus>,
    /// The CPUs of each core: more than one is simultaneous multithreading (SMT).
    pub cores: Fact<Vec<Cpus>>,
    /// The CPUs of each package, which is what a socket holds.
    #[serde(default)]
    pub packages: Fact<Vec<Cpus>>,
    /// The kernel's SMT switch: on, off, forceoff, notsupported, notimplemented.
    pub smt_control: Fact<String>,
    /// CPUs that the kernel marks as slower than others of this machine (efficiency
    /// cores); empty when all are equal or the kernel does not say.
    pub slower_cpus: Cpus,
    /// The NUMA nodes; empty when the kernel shows none.
    pub numa_nodes: Vec<NumaNode>,
    /// The caches as the processor, or the hypervisor in its name, claims them; empty when the
    /// kernel shows none.
    pub caches: Vec<Cache>,
    /// How many pages of 4 KiB each level of the TLBs for data holds, from the first level on, as
    /// claimed; empty when the processor does not tell.
    #[serde(default)]
    pub tlb_pages: Fact<Vec<u32>>,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumaNode {
    /// Its number.
    pub node: u32,
    /// Its CPUs; empty for a node that is memory only.
    pub cpus: Fact<Cpus>,
    /// Its memory in bytes.
    pub memory_bytes: Fact<u64>,
}

/// One kind of cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Its level: 1 is nearest to the core.
    pub level: u32,
    /// The kind of its content: Data, Instruction, Unified.
    pub kind: String,
    /// The size of one such cache in bytes.
    pub size_bytes: u64,
    /// The size of a line in bytes; null when the kernel does not say.
    pub line_bytes: Option<u64>,
    /// One list of CPUs per such cache: those that share it.
    pub shared_by: Vec<Cpus>,
}

impl Topology {
    pub(super) fn collect(source: &Source) -> Self {
        let online = online(source);
        let cpus = online.known().cloned().unwrap_or_default();
        Self {
            present: source.value(&format!("{CPUS}/present")),
            cores: cores(source, &online),
            packages: packages(source, &online),
            smt_control: source.words(&format!("{CPUS}/smt/control")),
            slower_cpus: slower_cpus(source, &cpus),
            numa_nodes: numa_nodes(source),
            caches: caches(source, &cpus),
            tlb_pages: source.cpuid().clone().map(|cpuid| cpuid.tlb_pages),
            online,
        }
    }

    /// Returns the other CPUs of the same core.
    pub fn siblings(&self, cpu: u32) -> Cpus {
        self.cores
            .known()
            .and_then(|cores| cores.iter().find(|core| core.contains(cpu)))
            .map(|core| core.without(&Cpus::one(cpu)))
            .unwrap_or_default()
    }

    /// Returns whether two CPUs are of one package; they are where that is not known.
    pub fn in_one_package(&self, cpu: u32, other: u32) -> bool {
        let mut packages = self.packages.known().into_iter().flatten();
        packages
            .find(|package| package.contains(cpu))
            .is_none_or(|package| package.contains(other))
    }
}

fn online(source: &Source) -> Fact<Cpus> {
    let some = |list: Cpus| (!list.is_empty()).then_some(list);
    source
        .value::<Cpus>(&format!("{CPUS}/online"))
        .find(format!("{CPUS}/online is empty"), some)
        .or_else(|| {
            source
                .text("/proc/stat")
                .find("/proc/stat names no CPU", |text| {
                    Cpus::checked(Stat::parse(&text).cpus()).and_then(some)
                })
        })
}

fn cores(source: &Source, online: &Fact<Cpus>) -> Fact<Vec<Cpus>> {
    online.as_ref().and_then(|online| {
        let mut cores = BTreeSet::new();
        for cpu in online.iter() {
            let folder = format!("{CPUS}/cpu{cpu}/topology");
            let siblings = source
                .value::<Cpus>(&format!("{folder}/thread_siblings_list"))
                .or_else(|| source.value(&format!("{folder}/core_cpus_list")));
            match siblings {
                // A list that lacks its own CPU is damaged; offline siblings do not count.
                Fact::Known(list) if list.contains(cpu) => {
                    cores.insert(list.intersection(online));
                }
                Fact::Known(list) => {
                    return Fact::unknown(format!(
                        "{folder}/thread_siblings_list holds {list}, without CPU {cpu} itself"
                    ));
                }
                Fact::Unknown { unknown } => return Fact::Unknown { unknown },
            }
        }
        Fact::Known(cores.into_iter().collect())
    })
}

fn packages(source: &Source, online: &Fact<Cpus>) -> Fact<Vec<Cpus>> {
    online.as_ref().and_then(|online| {
        let mut packages: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
        for cpu in online.iter() {
            match source.value(&format!("{CPUS}/cpu{cpu}/topology/physical_package_id")) {
                Fact::Known(package) => packages.entry(package).or_default().push(cpu),
                Fact::Unknown { unknown } => return Fact::Unknown { unknown },
            }
        }
        let packages = packages.into_values();
        Fact::Known(packages.map(Cpus::from_iter).collect())
    })
}

/// Finds efficiency cores: by the event source of Intel's hybrid processors, else by
/// a capacity below 80 % of the greatest.
fn slower_cpus(source: &Source, online: &Cpus) -> Cpus {
    if let Fact::Known(atoms) = source.value::<Cpus>("/sys/devices/cpu_atom/cpus") {
        return atoms.intersection(online);
    }
    let capacities: Vec<(u32, u64)> = online
        .iter()
        .filter_map(|cpu| {
            let capacity = source.value(&format!("{CPUS}/cpu{cpu}/cpu_capacity"));
            Some((cpu, capacity.into_known()?))
        })
        .collect();
    let greatest = capacities
        .iter()
        .map(|(_, capacity)| *capacity)
        .max()
        .unwrap_or(0);
    capacities
        .iter()
        .filter(|(_, capacity)| *capacity < greatest / 5 * 4)
        .map(|(cpu, _)| *cpu)
        .collect()
}

fn numa_nodes(source: &Source) -> Vec<NumaNode> {
    source
        .numbered(NODES, "node")
        .into_iter()
        .map(|node| {
            let meminfo = format!("{NODES}/node{node}/meminfo");
            let because = format!("{meminfo} has no MemTotal");
            NumaNode {
                node,
                cpus: source.value(&format!("{NODES}/node{node}/cpulist")),
                memory_bytes: source
                    .text(&meminfo)
                    .find(because, |text| kib_line(&text, "MemTotal")),
            }
        })
        .collect()
}

fn caches(source: &Source, online: &Cpus) -> Vec<Cache> {
    // Keyed by what makes two caches alike; sysfs has one entry per CPU and cache.
    let mut alike: BTreeMap<(u32, String, u64, Option<u64>), BTreeSet<Cpus>> = BTreeMap::new();
    for cpu in online.iter() {
        let folder = format!("{CPUS}/cpu{cpu}/cache");
        for index in source.numbered(&folder, "index") {
            let file = |name: &str| format!("{folder}/index{index}/{name}");
            let size = source.line(&file("size")).into_known();
            let (Fact::Known(level), Some(size_bytes)) = (
                source.value(&file("level")),
                size.and_then(|size| bytes_with_suffix(&size)),
            ) else {
                continue;
            };
            let kind = source.line(&file("type")).into_known();
            let kind = kind.unwrap_or_else(|| "Unified".to_owned());
            let line_bytes = source.value(&file("coherency_line_size")).into_known();
            let shared_by = source.value(&file("shared_cpu_list")).into_known();
            let shared_by = shared_by.unwrap_or_else(|| Cpus::from_iter([cpu]));
            alike
                .entry((level, kind, size_bytes, line_bytes))
                .or_default()
                .insert(shared_by);
        }
    }
    alike
        .into_iter()
        .map(|((level, kind, size_bytes, line_bytes), shared_by)| Cache {
            level,
            kind,
            size_bytes,
            line_bytes,
            shared_by: shared_by.into_iter().collect(),
        })
        .collect()
}

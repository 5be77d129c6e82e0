//! Memory, swap and huge pages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{bracketed, kib_line};
use crate::fact::Fact;
use crate::source::Source;

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";

/// Memory and how the kernel manages it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// The memory that the kernel manages, in bytes.
    pub total_bytes: Fact<u64>,
    /// All swap areas together, in bytes.
    pub swap_total_bytes: Fact<u64>,
    /// vm.swappiness, 0 to 200.
    pub swappiness: Fact<u32>,
    /// Transparent huge pages: always, madvise or never.
    pub transparent_hugepages: Fact<String>,
    /// When a fault may wait for memory to be compacted for a transparent huge page:
    /// always, defer, defer+madvise, madvise or never.
    pub transparent_hugepage_defrag: Fact<String>,
    /// The reserved pools of huge pages.
    pub huge_page_pools: Vec<HugePagePool>,
    /// kernel.numa_balancing: 0 is off.
    pub numa_balancing: Fact<u32>,
}

/// Huge pages of one size that are set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugePagePool {
    /// The size of one page in bytes.
    pub page_bytes: u64,
    /// How many are reserved.
    pub pages: Fact<u64>,
}

impl Memory {
    pub(super) fn collect(source: &Source) -> Self {
        let meminfo = source.text("/proc/meminfo");
        let line = |name: &str| {
            let because = format!("/proc/meminfo has no {name}");
            meminfo.as_ref().find(because, |text| kib_line(text, name))
        };
        Self {
            total_bytes: line("MemTotal"),
            swap_total_bytes: line("SwapTotal"),
            swappiness: source.value("/proc/sys/vm/swappiness"),
            transparent_hugepages: choice(source, &format!("{THP}/enabled")),
            transparent_hugepage_defrag: choice(source, &format!("{THP}/defrag")),
            huge_page_pools: huge_page_pools(source),
            numa_balancing: source.value("/proc/sys/kernel/numa_balancing"),
        }
    }
}

fn choice(source: &Source, path: &str) -> Fact<String> {
    let because = format!("{path} marks no choice");
    source
        .line(path)
        .find(because, |text| bracketed(&text).map(str::to_owned))
}

fn huge_page_pools(source: &Source) -> Vec<HugePagePool> {
    let names = source.names(HUGE_PAGES).into_known().unwrap_or_default();
    names
        .iter()
        .filter_map(|name| {
            let kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            Some(HugePagePool {
                page_bytes: kib.parse::<u64>().ok()?.checked_mul(1024)?,
                pages: source.value(&format!("{HUGE_PAGES}/{name}/nr_hugepages")),
            })
        })
        .collect()
}

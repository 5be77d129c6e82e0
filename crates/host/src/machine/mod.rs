//! What this machine is: everything a reader of a result needs to judge it.
//!
//! The description goes into every run folder and from there into reports that are
//! published, so it holds nothing that identifies a person or an installation: no
//! hostname, no serial numbers, no addresses, no names of control groups, and of the
//! kernel's command line only the words that matter to timing.

mod clock;
mod command_line;
mod devices;
mod isolation;
mod kernel;
mod kernel_config;
mod load;
mod memory;
mod power;
mod preemption;
mod process;
mod processor;
mod sysctls;
mod topology;
mod virtualisation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use clock::Clock;
pub use devices::{Devices, Disk, Interface, MemoryModule};
pub use isolation::Isolation;
pub use kernel::{Kernel, Vulnerability};
pub use load::{Load, LoadAverage};
pub use memory::{HugePagePool, Memory};
pub use power::{FrequencyGroup, IdleState, Power};
pub use preemption::{Preemption, PreemptionModel};
pub(crate) use process::tightest_quota;
pub use process::{CpuQuota, ProcessLimits};
pub use processor::Processor;
pub use sysctls::Sysctls;
pub use topology::{Cache, NumaNode, Topology};
pub use virtualisation::{Container, Virtualisation};

use crate::fact::Fact;
use crate::source::Source;
pub(crate) use command_line::CommandLine;
pub(crate) use kernel_config::KernelConfig;

/// A Linux machine, as far as it matters to measurements made on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The distribution's name and version, PRETTY_NAME of os-release.
    pub distribution: Fact<String>,
    /// The processor model.
    pub processor: Processor,
    /// CPUs, cores, NUMA nodes and caches.
    pub topology: Topology,
    /// Memory, swap and huge pages.
    pub memory: Memory,
    /// Memory modules, disks and network interfaces.
    #[serde(default)]
    pub devices: Devices,
    /// The kernel: version, build options and parameters that matter to timing.
    pub kernel: Kernel,
    /// The kernel's clock source and what is known of the time-stamp counter.
    pub clock: Clock,
    /// Frequency scaling and idle states.
    pub power: Power,
    /// CPUs set apart from the scheduler, the tick and RCU.
    pub isolation: Isolation,
    /// Kernel settings that can be changed at run time.
    pub sysctls: Sysctls,
    /// Hypervisor, product and container.
    pub virtualisation: Virtualisation,
    /// What this process may do and use.
    pub process: ProcessLimits,
    /// How busy the machine was when it was described.
    pub load: Load,
}

impl Machine {
    /// Describes the machine, without its name.
    pub fn collect(source: &Source) -> Self {
        let config = KernelConfig::find(source);
        let command_line = CommandLine::read(source);
        let topology = Topology::collect(source);
        let isolation = Isolation::collect(source, &topology, &command_line, &config);
        Self {
            distribution: distribution(source),
            processor: Processor::collect(source),
            memory: Memory::collect(source),
            devices: Devices::collect(source),
            kernel: Kernel::collect(source, &command_line, &config),
            clock: Clock::collect(source),
            power: Power::collect(source, &topology),
            isolation,
            sysctls: Sysctls::collect(source),
            virtualisation: Virtualisation::collect(source),
            process: ProcessLimits::collect(source, &command_line, &config),
            load: Load::collect(source),
            topology,
        }
    }
}

fn distribution(source: &Source) -> Fact<String> {
    source
        .text("/etc/os-release")
        .or_else(|| source.text("/usr/lib/os-release"))
        .find("os-release has no PRETTY_NAME", |text| {
            let mut lines = text.lines();
            let name = lines.find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches(['"', '\'']).to_owned())
        })
}

/// Returns the word in brackets, which is how the kernel marks the choice that is in force: `always
/// [madvise] never`.
fn bracketed(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    let (word, _) = rest.split_once(']')?;
    (!word.is_empty()).then_some(word)
}

/// Parses `32K`, `1M`, `2G` or a bare number into bytes.
fn bytes_with_suffix(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, factor) = match text.strip_suffix(['K', 'M', 'G', 'k']) {
        Some(digits) if text.ends_with('M') => (digits, 1 << 20),
        Some(digits) if text.ends_with('G') => (digits, 1 << 30),
        Some(digits) => (digits, 1 << 10),
        None => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Finds `Name:   123 kB` in a text such as `/proc/meminfo` and returns it in bytes.
fn kib_line(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| {
        let (before, after) = line.split_once(':')?;
        before.trim_end().ends_with(name).then_some(after)
    })?;
    let number = rest.trim().strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// Reads a switch: "0" is off, any other number is on.
fn switch(source: &Source, path: &str) -> Fact<bool> {
    source.value::<i64>(path).map(|value| value != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_notations_of_sysfs_are_read() {
        assert_eq!(bracketed("always [madvise] never\n"), Some("madvise"));
        assert_eq!(bracketed("always"), None);
        assert_eq!(bracketed("[]"), None);
        assert_eq!(bytes_with_suffix("32768K\n"), Some(32 << 20));
        assert_eq!(bytes_with_suffix("2M"), Some(2 << 20));
        assert_eq!(bytes_with_suffix("64"), Some(64));
        assert_eq!(bytes_with_suffix("K"), None);
        assert_eq!(bytes_with_suffix("99999999999999999999K"), None);
        assert_eq!(
            kib_line("MemTotal:  24684084 kB\nMemFree: 1 kB\n", "MemTotal"),
            Some(24_684_084 * 1024)
        );
        assert_eq!(
            kib_line("Node 0 MemTotal:       1024 kB\n", "MemTotal"),
            Some(1 << 20)
        );
    }
}

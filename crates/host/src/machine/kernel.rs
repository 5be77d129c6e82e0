//! The kernel: version, build options and parameters that matter to timing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_line::{CommandLine, value_of};
use super::kernel_config::KernelConfig;
use super::preemption::Preemption;
use crate::fact::Fact;
use crate::source::Source;

const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";

/// Build options for debugging that make the kernel's own paths slower by a factor.
/// Options that only compile in a switch which is off by default are not among them.
const HEAVY_OPTIONS: &str = "KASAN KCSAN KMSAN PROVE_LOCKING LOCK_STAT DEBUG_LOCK_ALLOC     DEBUG_OBJECTS DEBUG_KMEMLEAK DEBUG_PAGEALLOC_ENABLE_DEFAULT SLUB_DEBUG_ON";

/// Those that make them slower by percents.
const SLOW_OPTIONS: &str = "DEBUG_ATOMIC_SLEEP DEBUG_PREEMPT IRQSOFF_TRACER PREEMPT_TRACER";

/// The name under which lockdep is listed where only /proc shows it.
const LOCKDEP: &str = "LOCKDEP";

/// The running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// The release, such as 6.1.0-18-amd64.
    pub release: Fact<String>,
    /// The version string, such as "#1 SMP PREEMPT_DYNAMIC …".
    pub version: Fact<String>,
    /// The preemption model.
    pub preemption: Preemption,
    /// The frequency of the periodic tick in Hz (CONFIG_HZ).
    pub tick_hz: Fact<u32>,
    /// The file from which the build options were read.
    pub config: Fact<String>,
    /// Build options for debugging that slow the kernel down, without CONFIG_.
    pub debug_options: Fact<Vec<String>>,
    /// The words of the kernel's command line that matter to timing; all others are left out,
    /// because they may be secret.
    pub parameters: Fact<Vec<String>>,
    /// Known flaws of the processor and what the kernel does about them.
    pub vulnerabilities: Fact<Vec<Vulnerability>>,
}

/// One flaw of the processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vulnerability {
    /// The kernel's name for it, such as spectre_v2.
    pub name: String,
    /// The kernel's words on it: "Not affected", "Mitigation: …", "Vulnerable".
    pub state: Fact<String>,
}

impl Kernel {
    pub(super) fn collect(
        source: &Source,
        command_line: &CommandLine,
        config: &Fact<KernelConfig>,
    ) -> Self {
        let version = source.words("/proc/sys/kernel/version");
        Self {
            release: source.words("/proc/sys/kernel/osrelease"),
            preemption: Preemption::find(source, &version, command_line, config),
            version,
            tick_hz: config.as_ref().and_then(|config| {
                let hz = config.value("HZ").and_then(|hz| hz.parse().ok());
                hz.ok_or_else(|| format!("{} has no CONFIG_HZ", config.path))
                    .into()
            }),
            config: config.as_ref().map(|config| config.path.clone()),
            debug_options: debug_options(source, config),
            parameters: command_line.words.clone(),
            vulnerabilities: vulnerabilities(source),
        }
    }

    /// Returns major and minor number of the release: (6, 1) for 6.1.0-18-amd64.
    pub fn release_numbers(&self) -> Option<(u32, u32)> {
        let mut numbers = self.release.known()?.split(|c: char| !c.is_ascii_digit());
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    }

    /// Returns the last value that the kernel was booted with of a parameter that matters to timing:
    /// "" for a bare word.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        value_of(self.parameters.known()?, name)
    }

    /// Returns whether a debugging option slows the kernel by a factor rather than by percents.
    pub(crate) fn is_heavy(option: &str) -> bool {
        option == LOCKDEP || HEAVY_OPTIONS.split(' ').any(|heavy| heavy == option)
    }
}

/// Lists the slow options; lockdep shows itself in /proc even where the build options cannot be
/// read.
fn debug_options(source: &Source, config: &Fact<KernelConfig>) -> Fact<Vec<String>> {
    let visible = source.exists("/proc/lockdep_stats");
    match config {
        Fact::Known(config) => {
            let all = HEAVY_OPTIONS.split(' ').chain(SLOW_OPTIONS.split(' '));
            let is_off =
                |option| option == "DEBUG_KMEMLEAK" && config.has("DEBUG_KMEMLEAK_DEFAULT_OFF");
            let on = all.filter(|option| config.has(option) && !is_off(*option));
            let lockdep = (visible && !config.has("PROVE_LOCKING")).then_some(LOCKDEP);
            Fact::Known(on.chain(lockdep).map(str::to_owned).collect())
        }
        Fact::Unknown { .. } if visible => Fact::Known(vec![LOCKDEP.to_owned()]),
        Fact::Unknown { unknown } => Fact::unknown(unknown.as_str()),
    }
}

fn vulnerabilities(source: &Source) -> Fact<Vec<Vulnerability>> {
    source.names(VULNERABILITIES).map(|names| {
        names
            .into_iter()
            .map(|name| Vulnerability {
                state: source.words(&format!("{VULNERABILITIES}/{name}")),
                name,
            })
            .collect()
    })
}

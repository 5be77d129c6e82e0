//! When kernel code may be interrupted in favour of a task that has become ready.
//!
//! No single file tells on every kernel, so the witnesses are asked in the order of
//! their weight: a PREEMPT_RT kernel says so itself; debugfs shows the model in
//! force; the command line and the build options tell with which one the kernel
//! started; the version string tells at least whether it was built preemptible.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command_line::CommandLine;
use super::kernel_config::KernelConfig;
use crate::fact::Fact;
use crate::source::Source;

const DEBUGFS: &str = "/sys/kernel/debug/sched/preempt";
const VERSION: &str = "the kernel's version string";

/// The preemption model of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreemptionModel {
    /// Only on return to user space (PREEMPT_NONE).
    None,
    /// Also at explicit points in the kernel (PREEMPT_VOLUNTARY).
    Voluntary,
    /// Anywhere outside critical sections, but at once only for real-time tasks (PREEMPT_LAZY).
    Lazy,
    /// Anywhere outside critical sections (PREEMPT, "low latency").
    Full,
    /// Almost everywhere: interrupts run in threads, most locks can be preempted (PREEMPT_RT).
    Rt,
}

impl fmt::Display for PreemptionModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "PREEMPT_NONE",
            Self::Voluntary => "PREEMPT_VOLUNTARY",
            Self::Lazy => "PREEMPT_LAZY",
            Self::Full => "PREEMPT (full)",
            Self::Rt => "PREEMPT_RT",
        })
    }
}

impl PreemptionModel {
    fn from_word(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "voluntary" => Some(Self::Voluntary),
            "lazy" => Some(Self::Lazy),
            "full" => Some(Self::Full),
            _ => None,
        }
    }
}

/// The preemption model and how it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preemption {
    /// The model in force.
    pub model: Fact<PreemptionModel>,
    /// The kernel can change its model at boot or in debugfs (PREEMPT_DYNAMIC).
    pub dynamic: bool,
    /// The facts from which the model was concluded.
    pub evidence: String,
}

impl Preemption {
    pub(super) fn find(
        source: &Source,
        version: &Fact<String>,
        command_line: &CommandLine,
        config: &Fact<KernelConfig>,
    ) -> Self {
        let version = version.known().map_or("", String::as_str);
        let dynamic = version.contains("PREEMPT_DYNAMIC");
        let at_boot = || match dynamic {
            true => PreemptionModel::from_word(command_line.value("preempt")?),
            false => None,
        };
        let built_in_evidence = match dynamic {
            true => "the kernel's build options: the default, unless changed in debugfs since boot",
            false => "the kernel's build options",
        };
        let found = None
            .or_else(|| Some((rt_by_file(source)?, "/sys/kernel/realtime")))
            .or_else(|| Some((rt_by_version(version)?, VERSION)))
            .or_else(|| Some((in_force(source)?, DEBUGFS)))
            .or_else(|| Some((at_boot()?, "preempt= on the kernel's command line")))
            .or_else(|| Some((built_in(config.known()?)?, built_in_evidence)));
        let (model, evidence) = match found {
            Some((model, evidence)) => (Fact::Known(model), evidence),
            None => (by_version(version, dynamic), VERSION),
        };
        Self {
            model,
            dynamic,
            evidence: evidence.to_owned(),
        }
    }
}

fn rt_by_file(source: &Source) -> Option<PreemptionModel> {
    let line = source.line("/sys/kernel/realtime").into_known()?;
    (line == "1").then_some(PreemptionModel::Rt)
}

fn rt_by_version(version: &str) -> Option<PreemptionModel> {
    let is_rt = version.contains("PREEMPT_RT") || version.contains("PREEMPT RT");
    is_rt.then_some(PreemptionModel::Rt)
}

/// Returns the model that debugfs marks: `none voluntary (full) lazy`.
fn in_force(source: &Source) -> Option<PreemptionModel> {
    let line = source.line(DEBUGFS).into_known()?;
    let (_, rest) = line.split_once('(')?;
    PreemptionModel::from_word(rest.split_once(')')?.0)
}

fn built_in(config: &KernelConfig) -> Option<PreemptionModel> {
    let models = [
        ("PREEMPT_RT", PreemptionModel::Rt),
        ("PREEMPT_NONE", PreemptionModel::None),
        ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
        ("PREEMPT_LAZY", PreemptionModel::Lazy),
        ("PREEMPT", PreemptionModel::Full),
    ];
    let (_, model) = models.into_iter().find(|(option, _)| config.has(option))?;
    Some(model)
}

fn by_version(version: &str, dynamic: bool) -> Fact<PreemptionModel> {
    if dynamic {
        return Fact::unknown(
            "the kernel is PREEMPT_DYNAMIC; its model shows in /sys/kernel/debug/sched/preempt, \
             for root, with debugfs mounted",
        );
    }
    let mut words = version.split_ascii_whitespace();
    if words.any(|word| word == "PREEMPT") {
        return Fact::Known(PreemptionModel::Full);
    }
    Fact::unknown(match version {
        "" => "the kernel's version string cannot be read",
        _ => {
            "the version string names no preemption: PREEMPT_NONE or PREEMPT_VOLUNTARY, and the \
             build options cannot be read"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::Tree;

    fn find(tree: &Tree) -> Preemption {
        let source = tree.source();
        Preemption::find(
            &source,
            &source.line("/proc/sys/kernel/version"),
            &CommandLine::read(&source),
            &KernelConfig::find(&source),
        )
    }

    fn kernel(version: &str) -> Tree {
        Tree::new()
            .file("/proc/sys/kernel/version", version)
            .file("/proc/sys/kernel/osrelease", "6.1\n")
    }

    #[test]
    fn a_real_time_kernel_needs_no_other_witness() {
        let tree = kernel("#1 SMP PREEMPT_RT Debian 6.1\n");
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::Rt));
        let tree = kernel("#1 SMP\n").file("/sys/kernel/realtime", "1\n");
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::Rt));
    }

    #[test]
    fn debugfs_outweighs_the_command_line_and_that_the_build() {
        let tree = kernel("#1 SMP PREEMPT_DYNAMIC\n").file(
            "/boot/config-6.1",
            "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPTION=y\n",
        );
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::Voluntary));
        let tree = tree.file("/proc/cmdline", "ro preempt=full\n");
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::Full));
        let tree = tree.file(DEBUGFS, "(none) voluntary full\n");
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::None));
        assert!(find(&tree).dynamic);
    }

    #[test]
    fn a_kernel_without_dynamic_preemption_ignores_the_parameter() {
        let tree = kernel("#1 SMP PREEMPT\n").file("/proc/cmdline", "preempt=none\n");
        assert_eq!(find(&tree).model, Fact::Known(PreemptionModel::Full));
    }

    #[test]
    fn without_a_witness_it_is_unknown() {
        assert!(
            find(&kernel("#1 SMP PREEMPT_DYNAMIC\n"))
                .model
                .because()
                .is_some()
        );
        assert!(find(&kernel("#1 SMP Debian\n")).model.because().is_some());
        assert!(find(&Tree::new()).model.because().is_some());
    }
}

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
    /// What the model was concluded from.
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
        let (model, evidence) = Witnesses {
            source,
            version,
            dynamic,
            command_line,
            config,
        }
        .model();
        Self {
            model,
            dynamic,
            evidence: evidence.to_owned(),
        }
    }
}

struct Witnesses<'a> {
    source: &'a Source,
    version: &'a str,
    dynamic: bool,
    command_line: &'a CommandLine,
    config: &'a Fact<KernelConfig>,
}

impl Witnesses<'_> {
    fn model(&self) -> (Fact<PreemptionModel>, &'static str) {
        if self
            .source
            .line("/sys/kernel/realtime")
            .known()
            .is_some_and(|line| line == "1")
        {
            return (Fact::Known(PreemptionModel::Rt), "/sys/kernel/realtime");
        }
        if self.version.contains("PREEMPT_RT") || self.version.contains("PREEMPT RT") {
            return (
                Fact::Known(PreemptionModel::Rt),
                "the kernel's version string",
            );
        }
        if let Some(model) = self.in_force() {
            return (Fact::Known(model), DEBUGFS);
        }
        if self.dynamic
            && let Some(model) = self
                .command_line
                .value("preempt")
                .and_then(PreemptionModel::from_word)
        {
            return (Fact::Known(model), "preempt= on the kernel's command line");
        }
        if let Some(model) = self.built_in() {
            let evidence = if self.dynamic {
                "the kernel's build options: the default, unless changed in debugfs since boot"
            } else {
                "the kernel's build options"
            };
            return (Fact::Known(model), evidence);
        }
        self.by_version()
    }

    /// The model that debugfs marks: `none voluntary (full) lazy`.
    fn in_force(&self) -> Option<PreemptionModel> {
        let line = self.source.line(DEBUGFS).into_known()?;
        let (_, rest) = line.split_once('(')?;
        PreemptionModel::from_word(rest.split_once(')')?.0)
    }

    fn built_in(&self) -> Option<PreemptionModel> {
        let config = self.config.known()?;
        [
            ("PREEMPT_RT", PreemptionModel::Rt),
            ("PREEMPT_NONE", PreemptionModel::None),
            ("PREEMPT_VOLUNTARY", PreemptionModel::Voluntary),
            ("PREEMPT_LAZY", PreemptionModel::Lazy),
            ("PREEMPT", PreemptionModel::Full),
        ]
        .into_iter()
        .find(|(option, _)| config.has(option))
        .map(|(_, model)| model)
    }

    fn by_version(&self) -> (Fact<PreemptionModel>, &'static str) {
        if self.dynamic {
            let why = "the kernel is PREEMPT_DYNAMIC; its model shows in \
                /sys/kernel/debug/sched/preempt, for root, with debugfs mounted";
            return (Fact::unknown(why), "the kernel's version string");
        }
        if self
            .version
            .split_ascii_whitespace()
            .any(|word| word == "PREEMPT")
        {
            return (
                Fact::Known(PreemptionModel::Full),
                "the kernel's version string",
            );
        }
        let why = if self.version.is_empty() {
            "the kernel's version string cannot be read"
        } else {
            "the version string names no preemption: PREEMPT_NONE or PREEMPT_VOLUNTARY, and the \
             build options cannot be read"
        };
        (Fact::unknown(why), "the kernel's version string")
    }
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

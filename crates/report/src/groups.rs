//! Which group a target belongs to: the one mapping from a target's name to its group.
//!
//! A report starts at the run folder, where a target is only the text that was written on the
//! command line. Its first word names the group; one option tells a whole distribution from an
//! initramfs.

use schemars::JsonSchema;
use serde::Serialize;

/// Is a kind of place. Targets of one group stand together, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Under this machine's kernel, with nothing between: `process`.
    Process,
    /// Under this machine's kernel, in namespaces and control groups: `docker`, `podman`, `runc`,
    /// `crun`.
    Container,
    /// Under a kernel of its own, the agent being the only program there: `linux`.
    LinuxGuest,
    /// Under a kernel of its own with a whole distribution around it: `linux,root=debian`.
    DebianGuest,
    /// Under no kernel: `unikernel`.
    Unikernel,
    /// On another machine: `ssh`, `bmc`, `slurm`.
    Remote,
    /// Somebody else's system: `guest`, and whatever this version does not know.
    Foreign,
}

impl Group {
    /// Tells the group of a target from the text by which it was asked for.
    #[must_use]
    pub fn of(target: &str) -> Self {
        match target.split(',').next().unwrap_or_default() {
            "process" => Self::Process,
            "docker" | "podman" | "runc" | "crun" => Self::Container,
            "linux" if option(target, "root") == Some("debian") => Self::DebianGuest,
            "linux" => Self::LinuxGuest,
            "unikernel" => Self::Unikernel,
            "ssh" | "bmc" | "slurm" => Self::Remote,
            _ => Self::Foreign,
        }
    }

    /// Returns the group's name in files.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "container",
            Self::LinuxGuest => "linux_guest",
            Self::DebianGuest => "debian_guest",
            Self::Unikernel => "unikernel",
            Self::Remote => "remote",
            Self::Foreign => "foreign",
        }
    }

    /// Names the group as a heading does.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "Process",
            Self::Container => "Containers",
            Self::LinuxGuest => "Linux guests, initramfs only",
            Self::DebianGuest => "Linux guests, whole Debian",
            Self::Unikernel => "Unikernel",
            Self::Remote => "Other machines",
            Self::Foreign => "Foreign guests",
        }
    }

    /// Names the group within a sentence.
    #[must_use]
    pub fn in_a_sentence(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Container => "containers",
            Self::LinuxGuest => "Linux guests with an initramfs",
            Self::DebianGuest => "Linux guests with a whole Debian",
            Self::Unikernel => "unikernel",
            Self::Remote => "other machines",
            Self::Foreign => "foreign guests",
        }
    }

    /// Says whether its targets run under a kernel, or none, of its own on this machine.
    #[must_use]
    pub fn is_guest(self) -> bool {
        matches!(
            self,
            Self::LinuxGuest | Self::DebianGuest | Self::Unikernel | Self::Foreign
        )
    }
}

/// Returns the value of an option in a target's text.
pub(crate) fn option<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    target
        .split(',')
        .skip(1)
        .filter_map(|option| option.split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_s_first_word_tells_its_group() {
        for (target, group) in [
            ("process", Group::Process),
            ("crun", Group::Container),
            ("docker,cpus=1", Group::Container),
            ("linux,kernel=debian-rt,preempt=full", Group::LinuxGuest),
            ("linux,root=debian,cpus=2", Group::DebianGuest),
            ("unikernel,irq=off", Group::Unikernel),
            ("ssh,host=lab", Group::Remote),
            ("guest,image=a.elf", Group::Foreign),
            ("processor", Group::Foreign),
            ("", Group::Foreign),
        ] {
            assert_eq!(Group::of(target), group, "{target}");
        }
        assert_eq!(option("unikernel,irq=off,mem=2", "irq"), Some("off"));
        assert_eq!(option("unikernel", "irq"), None);
    }
}

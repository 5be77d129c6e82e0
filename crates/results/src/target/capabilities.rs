//! The table of capabilities: one row for each kind of place.
//!
//! Planning, execution and reports ask this table instead of comparing kinds, so that a new kind is
//! one more row. A run folder stores the group and the kind alone, and the row is found by them:
//! a folder stays readable while the table grows.

use serde::Serialize;

use super::{Group, TargetSpec};
use crate::model::LoadPlace;

/// The properties of a kind of target that others depend on.
#[derive(Debug)]
pub struct Capabilities {
    group: Group,
    /// The kind that the row is for; any kind of the group if None.
    kind: Option<&'static str>,
    /// The group's name in files and gates.
    pub id: &'static str,
    /// The group's heading in tables and pictures.
    pub heading: &'static str,
    /// The kernel under which measured code runs.
    pub kernel: Kernel,
    /// Whether nothing lies between it and this machine's kernel: it has the user's own limits, and
    /// other targets are compared with it.
    pub is_direct: bool,
    /// The daemon without which it cannot be used.
    pub engine: Option<Engine>,
    /// The place where a load for it runs.
    pub load_place: LoadPlace,
    /// Whether the agent or its equivalent runs in it, which takes plans and prints records.
    /// Without one, only starting and ending can be measured.
    pub runs_plans: bool,
    /// Whether many instances can be started.
    pub many_instances: bool,
    /// Whether a network service can be started there.
    pub serves: bool,
    /// Whether it starts a command of the user's.
    pub own_commands: bool,
    /// Whether the events of its kernel can be recorded.
    pub kernel_events: bool,
    /// Typical seconds to start, between those of a fast machine and those of an emulator.
    pub start_seconds: f64,
    /// The name of its kind in studies that were published.
    pub study_kind: Option<&'static str>,
    /// The measure that a published study calls its latency to start: `ready` or `exit`.
    pub study_latency: &'static str,
}

/// The kernel under which measured code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// This machine's.
    Host,
    /// A Linux guest's, on this machine.
    Guest,
    /// None: the image runs without one.
    None,
    /// Another machine's.
    Remote,
    /// That of somebody else's guest.
    Foreign,
    /// An unknown one, on an unknown machine: another tool measured there.
    Unknown,
}

impl Kernel {
    /// Returns whether it is this machine's, so that CPUs and clock are too.
    pub fn is_host(self) -> bool {
        self == Self::Host
    }

    /// Returns whether a virtual machine on this machine runs it.
    pub fn is_guest(self) -> bool {
        matches!(self, Self::Guest | Self::None | Self::Foreign)
    }

    /// Returns whether it is another machine's.
    pub fn is_remote(self) -> bool {
        self == Self::Remote
    }
}

/// A daemon without which a target cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Docker's.
    Docker,
}

const PROCESS: Capabilities = Capabilities {
    group: Group::Process,
    kind: None,
    id: "process",
    heading: "Process",
    kernel: Kernel::Host,
    is_direct: true,
    engine: None,
    load_place: LoadPlace::Beside,
    runs_plans: true,
    many_instances: true,
    serves: true,
    own_commands: true,
    kernel_events: true,
    start_seconds: 0.0,
    study_kind: Some("process"),
    study_latency: "ready",
};

const CONTAINER: Capabilities = Capabilities {
    group: Group::Container,
    id: "container",
    heading: "Containers",
    is_direct: false,
    own_commands: false,
    // A container has no tracefs.
    kernel_events: false,
    start_seconds: 0.5,
    study_kind: None,
    study_latency: "exit",
    ..PROCESS
};

const LINUX: Capabilities = Capabilities {
    group: Group::LinuxGuest,
    id: "linux_guest",
    heading: "Linux guests, initramfs only",
    kernel: Kernel::Guest,
    load_place: LoadPlace::Inside,
    kernel_events: true,
    start_seconds: 4.0,
    study_latency: "ready",
    ..CONTAINER
};

const FOREIGN: Capabilities = Capabilities {
    group: Group::Foreign,
    id: "foreign",
    heading: "Foreign guests",
    kernel: Kernel::Foreign,
    runs_plans: false,
    study_latency: "ready",
    ..CONTAINER
};

/// The container of an image that has no agent.
const IMAGE: Capabilities = Capabilities {
    kernel: Kernel::Host,
    serves: false,
    own_commands: true,
    ..FOREIGN
};

/// The rows. Of a group's rows, those of a kind come first.
static TABLE: &[Capabilities] = &[
    PROCESS,
    Capabilities {
        kind: Some("docker"),
        engine: Some(Engine::Docker),
        study_kind: Some("docker"),
        ..CONTAINER
    },
    CONTAINER,
    LINUX,
    Capabilities {
        group: Group::DebianGuest,
        id: "debian_guest",
        heading: "Linux guests, whole Debian",
        start_seconds: 20.0,
        serves: false,
        study_kind: Some("linux"),
        ..LINUX
    },
    Capabilities {
        group: Group::Unikernel,
        id: "unikernel",
        heading: "Unikernel",
        kernel: Kernel::None,
        study_kind: Some("unikernel"),
        ..CONTAINER
    },
    Capabilities {
        group: Group::Remote,
        id: "remote",
        heading: "Other machines",
        kernel: Kernel::Remote,
        // Beside this machine's end of the connection a load would disturb the network at most.
        load_place: LoadPlace::Inside,
        // Each instance would be a call of ssh.
        many_instances: false,
        serves: false,
        kernel_events: true,
        study_latency: "ready",
        ..CONTAINER
    },
    Capabilities {
        kind: Some("docker"),
        engine: Some(Engine::Docker),
        ..IMAGE
    },
    Capabilities {
        kind: Some("podman"),
        ..IMAGE
    },
    FOREIGN,
    Capabilities {
        group: Group::Imported,
        id: "imported",
        heading: "Imported results",
        kernel: Kernel::Unknown,
        many_instances: false,
        ..FOREIGN
    },
];

fn find(group: Group, kind: &str) -> &'static Capabilities {
    let mut rows = TABLE.iter().filter(|row| row.group == group);
    let row = rows.find(|row| row.kind.is_none_or(|of| of == kind));
    row.expect("each group has a row for any kind")
}

impl Group {
    /// Returns the capabilities that all targets of the group have.
    pub fn capabilities(self) -> &'static Capabilities {
        find(self, "")
    }
}

impl TargetSpec {
    /// Returns the capabilities of the target's kind.
    pub fn capabilities(&self) -> &'static Capabilities {
        find(self.group, &self.kind)
    }

    /// Returns the kernel under which measured code runs.
    pub fn kernel(&self) -> Kernel {
        self.capabilities().kernel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_of_the_user_s_is_a_container_and_no_guest() {
        let of = |kind| TargetSpec::new(kind, Vec::new(), Group::Foreign);
        assert!(of("docker").kernel().is_host() && of("guest").kernel().is_guest());
        assert!(of("podman").capabilities().own_commands);
        assert!(!of("guest").capabilities().own_commands);
        let imported = TargetSpec::imported("cyclictest").kernel();
        assert!(!imported.is_host() && !imported.is_guest() && !imported.is_remote());
    }
}

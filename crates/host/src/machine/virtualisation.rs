//! What lies between the kernel and the hardware, and between this process and the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpuid::hypervisor_name;
use crate::fact::Fact;
use crate::machine::processor;
use crate::source::Source;

const DMI: &str = "/sys/class/dmi/id";

/// The inode numbers that the kernel gives to the namespaces it creates at boot
/// (include/linux/proc_ns.h). A process in others was put there by somebody.
const INITIAL_NAMESPACES: [(&str, &str); 4] = [
    ("ipc", "ipc:[4026531839]"),
    ("uts", "uts:[4026531838]"),
    ("pid", "pid:[4026531836]"),
    ("cgroup", "cgroup:[4026531835]"),
];

/// Hypervisor, product and container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Virtualisation {
    /// The hypervisor under this kernel; null on bare metal.
    pub hypervisor: Fact<Option<String>>,
    /// The maker of the machine (DMI); for a guest often the cloud.
    pub vendor: Fact<String>,
    /// The product's name (DMI); for a guest often the hypervisor.
    pub product: Fact<String>,
    /// Maker, version and date of the firmware (DMI), which matter for system-management
    /// interrupts.
    pub firmware: Fact<String>,
    /// Whether this process runs in a container.
    pub container: Container,
}

/// The signs of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Container {
    /// This process is in a container: a runtime left its mark, and the process is in namespaces of
    /// its own.
    pub inside: bool,
    /// Marks that container runtimes leave. A guest that boots from a container's image has them
    /// too.
    pub marks: Vec<String>,
    /// The kinds of namespace in which this process is apart from the rest of the system (ipc, uts,
    /// pid, cgroup).
    pub separate_namespaces: Fact<Vec<String>>,
}

impl Virtualisation {
    pub(super) fn collect(source: &Source) -> Self {
        Self {
            hypervisor: hypervisor(source),
            vendor: dmi(source, "sys_vendor"),
            product: dmi(source, "product_name"),
            firmware: firmware(source),
            container: Container::find(source),
        }
    }

    /// Returns the hypervisor's name if there is known to be one.
    pub fn guest_of(&self) -> Option<&str> {
        self.hypervisor.known()?.as_deref()
    }
}

/// Asks CPUID, then the `hypervisor` flag, then Xen's file.
fn hypervisor(source: &Source) -> Fact<Option<String>> {
    source
        .cpuid()
        .clone()
        .map(|cpuid| cpuid.hypervisor.map(|name| hypervisor_name(&name)))
        .or_else(|| {
            processor::flags(source).map(|flags| {
                flags.iter().any(|flag| flag == "hypervisor").then(|| {
                    source
                        .words("/sys/hypervisor/type")
                        .into_known()
                        .unwrap_or_else(|| hypervisor_name(""))
                })
            })
        })
}

fn dmi(source: &Source, name: &str) -> Fact<String> {
    source.words(&format!("{DMI}/{name}"))
}

fn firmware(source: &Source) -> Fact<String> {
    dmi(source, "bios_vendor").map(|mut firmware| {
        for name in ["bios_version", "bios_date"] {
            if let Fact::Known(part) = dmi(source, name) {
                firmware += &format!(" {part}");
            }
        }
        firmware
    })
}

impl Container {
    fn find(source: &Source) -> Self {
        let marks = marks(source);
        let separate_namespaces = separate_namespaces(source);
        let apart = separate_namespaces
            .known()
            .is_none_or(|apart| !apart.is_empty());
        Self {
            inside: !marks.is_empty() && apart,
            marks,
            separate_namespaces,
        }
    }
}

fn marks(source: &Source) -> Vec<String> {
    let files = [
        "/.dockerenv",
        "/run/.containerenv",
        "/run/systemd/container",
    ];
    let words = ["docker", "kubepods", "libpod", "lxc", "containerd"];
    let groups = source.text("/proc/self/cgroup").into_known();
    let groups = groups.unwrap_or_default();
    let files = files.iter().filter(|path| source.exists(path));
    let words = words.iter().filter(|word| groups.contains(**word));
    files
        .map(|path| path.to_string())
        .chain(words.map(|word| format!("{word} in /proc/self/cgroup")))
        .collect()
}

fn separate_namespaces(source: &Source) -> Fact<Vec<String>> {
    let mut separate = Vec::new();
    for (kind, _) in INITIAL_NAMESPACES {
        match in_initial_namespace(source, kind) {
            Fact::Known(true) => {}
            Fact::Known(false) => separate.push(kind.to_owned()),
            Fact::Unknown { unknown } => return Fact::Unknown { unknown },
        }
    }
    Fact::Known(separate)
}

/// Returns whether this process is in the namespace of this kind that the kernel made at boot.
pub(super) fn in_initial_namespace(source: &Source, kind: &str) -> Fact<bool> {
    source
        .link(&format!("/proc/self/ns/{kind}"))
        .map(|link| INITIAL_NAMESPACES.contains(&(kind, link.as_str())))
}

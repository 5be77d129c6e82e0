//! The little that only the processor itself can tell: CPUID.
//!
//! Two things are read: whether a hypervisor announces itself (leaf 1, ECX bit 31)
//! and under which name (leaf 0x4000_0000), and whether the time-stamp counter is
//! invariant (leaf 0x8000_0007, EDX bit 8). Everything else is taken from
//! `/proc/cpuinfo`. CPUID is executed once per [`Source`](crate::Source): in a guest
//! it exits to the hypervisor and takes microseconds.

use crate::fact::Fact;

/// What CPUID says about the ground under the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpuid {
    /// The 12-byte signature of leaf 0x4000_0000, without trailing zeros and
    /// spaces, such as `KVMKVMKVM`; `None` when no hypervisor announces itself.
    pub hypervisor: Option<String>,
    /// The time-stamp counter runs at one rate in all P-, C- and T-states.
    pub invariant_tsc: bool,
}

impl Cpuid {
    /// Execute CPUID on this processor.
    #[cfg(target_arch = "x86_64")]
    pub fn read() -> Fact<Self> {
        use std::arch::x86_64::__cpuid;

        let hypervisor_bit = __cpuid(1).ecx >> 31 & 1 == 1;
        let hypervisor = hypervisor_bit.then(|| {
            let leaf = __cpuid(0x4000_0000);
            signature([leaf.ebx, leaf.ecx, leaf.edx])
        });
        let highest = __cpuid(0x8000_0000).eax;
        let invariant_tsc = highest >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        Fact::Known(Self {
            hypervisor,
            invariant_tsc,
        })
    }

    /// Say that this processor has no CPUID.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn read() -> Fact<Self> {
        Fact::unknown("CPUID exists on x86-64 only")
    }
}

/// Put the three registers of leaf 0x4000_0000 together.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn signature(registers: [u32; 3]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|it| it.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes)
        .trim_matches(['\0', ' '])
        .replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?")
}

/// Translate a signature of leaf 0x4000_0000 into the product's name.
pub fn hypervisor_name(signature: &str) -> String {
    let name = match signature {
        "KVMKVMKVM" => "KVM",
        "TCGTCGTCGTCG" => "QEMU TCG",
        "Microsoft Hv" => "Microsoft Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "VBoxVBoxVBox" => "VirtualBox",
        "ACRNACRNACRN" => "ACRN",
        "bhyve bhyve" => "bhyve",
        "lrpepyh  vr" => "Parallels",
        "QNXQVMBSQG" => "QNX",
        "OpenBSDVMM58" => "OpenBSD vmm",
        "Jailhouse" => "Jailhouse",
        "" => "a hypervisor without a name",
        other => other,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_put_together_in_register_order() {
        assert_eq!(
            signature([0x4b4d_564b, 0x564b_4d56, 0x0000_004d]),
            "KVMKVMKVM"
        );
        assert_eq!(
            signature([0x7263_694d, 0x666f_736f, 0x7648_2074]),
            "Microsoft Hv"
        );
        assert_eq!(signature([0, 0, 0]), "");
    }

    #[test]
    fn an_unheard_of_hypervisor_keeps_its_signature() {
        assert_eq!(hypervisor_name("KVMKVMKVM"), "KVM");
        assert_eq!(hypervisor_name("NewThing"), "NewThing");
    }
}

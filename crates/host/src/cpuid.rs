//! The little that only the processor itself can tell: CPUID.
//!
//! Three things are read: whether a hypervisor announces itself (leaf 1, ECX bit 31) and under
//! which name (leaf 0x4000_0000), whether the time-stamp counter is invariant (leaf 0x8000_0007,
//! EDX bit 8), and how many pages of 4 KiB the TLBs for data hold. Everything else is taken from
//! `/proc/cpuinfo`. CPUID is executed once per [`Source`](crate::Source): in a guest it exits to
//! the hypervisor and takes microseconds.

use crate::fact::Fact;

/// What CPUID says about the ground under the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpuid {
    /// The 12-byte signature of leaf 0x4000_0000, without trailing zeros and
    /// spaces, such as `KVMKVMKVM`; `None` when no hypervisor announces itself.
    pub hypervisor: Option<String>,
    /// The time-stamp counter runs at one rate in all P-, C- and T-states.
    pub invariant_tsc: bool,
    /// How many pages of 4 KiB each level of the TLBs for data holds, from the first level on;
    /// empty when that is not told.
    pub tlb_pages: Vec<u32>,
}

impl Cpuid {
    /// Executes CPUID on this processor.
    #[cfg(target_arch = "x86_64")]
    pub fn read() -> Fact<Self> {
        use std::arch::x86_64::{__cpuid, __cpuid_count};

        let hypervisor_bit = __cpuid(1).ecx >> 31 & 1 == 1;
        let hypervisor = hypervisor_bit.then(|| {
            let leaf = __cpuid(0x4000_0000);
            signature([leaf.ebx, leaf.ecx, leaf.edx])
        });
        let highest = __cpuid(0x8000_0000).eax;
        let invariant_tsc = highest >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        let leaf = |leaf, part| {
            let highest = __cpuid(leaf & 0x8000_0000).eax;
            let it = __cpuid_count(leaf, part);
            if leaf <= highest {
                [it.eax, it.ebx, it.ecx, it.edx]
            } else {
                [0; 4]
            }
        };
        Fact::Known(Self {
            hypervisor,
            invariant_tsc,
            tlb_pages: tlb_pages(leaf),
        })
    }

    /// Says that this processor has no CPUID.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn read() -> Fact<Self> {
        Fact::unknown("CPUID exists on x86-64 only")
    }
}

/// Finds how many pages of 4 KiB each level of the TLBs for data holds, given the registers EAX to
/// EDX of a leaf and a part of it.
///
/// AMD reports it in leaves 0x8000_0005 and 0x8000_0006, newer processors of Intel in leaf 0x18,
/// older ones by bytes in leaf 2 (Intel's Software Developer's Manual, volume 2, CPUID).
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn tlb_pages(leaf: impl Fn(u32, u32) -> [u32; 4]) -> Vec<u32> {
    /// Bytes of leaf 2, each with level and entries.
    const BYTES: [(u8, usize, u32); 9] = [
        (0x03, 1, 64),
        (0x57, 1, 16),
        (0x64, 1, 512),
        (0xa0, 1, 32),
        (0xb3, 1, 128),
        (0xba, 1, 64),
        (0xc1, 2, 1024),
        (0xc3, 2, 1536),
        (0xca, 2, 512),
    ];
    let mut levels = [0; 2];
    let [highest_part, ..] = leaf(0x18, 0);
    for part in 0..=highest_part.min(64) {
        let [_, ebx, sets, edx] = leaf(0x18, part);
        // Data, both, and for loads only; processors with a part for stores only have it in
        // addition.
        let is_for_loads = [1, 3, 4].contains(&(edx & 31));
        let level = (edx >> 5 & 7) as usize;
        if is_for_loads && ebx & 1 == 1 && (1..=2).contains(&level) {
            levels[level - 1] = levels[level - 1].max((ebx >> 16).saturating_mul(sets));
        }
    }
    if levels == [0; 2] {
        // The lowest byte of EAX counts; a register whose highest bit is set holds nothing.
        let registers = leaf(2, 0);
        let registers = registers.iter().filter(|register| *register >> 31 == 0);
        for byte in registers.flat_map(|register| register.to_le_bytes()) {
            for (_, level, entries) in BYTES.iter().filter(|(own, ..)| *own == byte) {
                levels[level - 1] = levels[level - 1].max(*entries);
            }
        }
    }
    if levels == [0; 2] {
        levels = [
            leaf(0x8000_0005, 0)[1] >> 16 & 0xff,
            leaf(0x8000_0006, 0)[1] >> 16 & 0xfff,
        ];
    }
    levels.into_iter().take_while(|pages| *pages > 0).collect()
}

/// Puts the three registers of leaf 0x4000_0000 together.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
fn signature(registers: [u32; 3]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|it| it.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes)
        .trim_matches(['\0', ' '])
        .replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?")
}

/// The signature of QEMU's emulation.
pub const TCG_SIGNATURE: &str = "TCGTCGTCGTCG";

/// Translates a signature of leaf 0x4000_0000 into the product's name.
pub fn hypervisor_name(signature: &str) -> String {
    let name = match signature {
        "KVMKVMKVM" => "KVM",
        TCG_SIGNATURE => "QEMU TCG",
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
    fn the_reach_of_the_tlbs_is_read_as_each_maker_tells_it() {
        let amd = |leaf, _| match leaf {
            0x8000_0005 => [0xff40_ff40, 0xff40_ff40, 0, 0],
            0x8000_0006 => [0x4800_2200, 0x6800_4200, 0, 0],
            _ => [0; 4],
        };
        assert_eq!(tlb_pages(amd), [64, 2_048]);
        // A first level for loads and a larger one for huge pages only, then a second one for both.
        let intel = |leaf, part| match (leaf, part) {
            (0x18, 0) => [3, 0, 0, 0],
            (0x18, 1) => [0, 0x0004_0001, 16, 1 << 5 | 4],
            (0x18, 2) => [0, 0x0008_0002, 64, 1 << 5 | 1],
            (0x18, 3) => [0, 0x0008_0003, 128, 2 << 5 | 3],
            (2, 0) => [0x00ff_ff01, 0, 0, 0],
            _ => [0; 4],
        };
        assert_eq!(tlb_pages(intel), [64, 1_024]);
        let older = |leaf, _| match leaf {
            2 => [0x7603_6301, 0x00f0_b6ff, 0x8000_00c1, 0x00c3_0000],
            _ => [0; 4],
        };
        assert_eq!(tlb_pages(older), [64, 1_536]);
        assert!(tlb_pages(|_, _| [0; 4]).is_empty());
    }

    #[test]
    fn an_unheard_of_hypervisor_keeps_its_signature() {
        assert_eq!(hypervisor_name("KVMKVMKVM"), "KVM");
        assert_eq!(hypervisor_name("NewThing"), "NewThing");
    }
}

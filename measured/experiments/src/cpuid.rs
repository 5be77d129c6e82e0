//! The TSC's frequency according to CPUID.
//!
//! The instruction may exit to a hypervisor and take microseconds; it is never used in a timed
//! region.

use core::arch::x86_64::__cpuid;

/// The uncertainty of the hypervisor's figure: it is in whole kHz, so off by up to half a kHz.
pub const HYPERVISOR_PPM: f64 = 0.5;

/// Returns the frequency from the first leaf that reports it.
pub fn hz() -> Option<f64> {
    crystal_hz().or_else(hypervisor_hz)
}

/// Returns the frequency by leaf 0x15: the crystal's frequency times a ratio (Intel SDM, volume 3,
/// "Determining the processor base frequency"). None where the leaf is absent or incomplete, as
/// on AMD.
pub fn crystal_hz() -> Option<f64> {
    if __cpuid(0).eax < 0x15 {
        return None;
    }
    let leaf = __cpuid(0x15);
    let known = leaf.eax != 0 && leaf.ebx != 0 && leaf.ecx != 0;
    known.then(|| f64::from(leaf.ecx) * f64::from(leaf.ebx) / f64::from(leaf.eax))
}

/// Returns the frequency by leaf 0x40000010, in which hypervisors following VMware's convention
/// give kHz. None without hypervisor, or without the leaf.
pub fn hypervisor_hz() -> Option<f64> {
    let has_hypervisor = __cpuid(1).ecx >> 31 != 0;
    if !has_hypervisor || __cpuid(0x4000_0000).eax < 0x4000_0010 {
        return None;
    }
    let khz = __cpuid(0x4000_0010).eax;
    (khz != 0).then(|| f64::from(khz) * 1e3)
}

//! CPU instructions without a Rust equivalent, and CPU features.

use core::arch::asm;
use core::arch::x86_64::__cpuid;

/// Writes a byte to a port.
///
/// # Safety
///
/// The effect on the device must not break memory safety.
pub unsafe fn out8(port: u16, value: u8) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    };
}

/// Writes 16 bits to a port.
///
/// # Safety
///
/// As for [`out8`].
pub unsafe fn out16(port: u16, value: u16) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
    };
}

/// Writes 32 bits to a port.
///
/// # Safety
///
/// As for [`out8`].
pub unsafe fn out32(port: u16, value: u32) {
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("out dx, eax", in("dx") port, in("eax") value, options(nomem, nostack, preserves_flags))
    };
}

/// Reads a byte from a port.
///
/// # Safety
///
/// As for [`out8`].
#[must_use]
pub unsafe fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    };
    value
}

/// Reads 32 bits from a port.
///
/// # Safety
///
/// As for [`out8`].
#[must_use]
pub unsafe fn in32(port: u16) -> u32 {
    let value;
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("in eax, dx", in("dx") port, out("eax") value, options(nomem, nostack, preserves_flags))
    };
    value
}

/// Reads a model-specific register.
///
/// # Safety
///
/// The CPU must have it: otherwise the access faults.
#[must_use]
pub unsafe fn read_msr(register: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: passed on to the caller.
    unsafe {
        asm!("rdmsr", in("ecx") register, out("eax") low, out("edx") high,
             options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Writes a model-specific register.
///
/// # Safety
///
/// The CPU must have it, and the change must not break memory safety.
pub unsafe fn write_msr(register: u32, value: u64) {
    // SAFETY: passed on to the caller. Memory may be affected, so no `nomem`.
    unsafe {
        asm!("wrmsr", in("ecx") register, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

/// Reads the time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Enables interrupts.
pub fn enable_interrupts() {
    // SAFETY: every vector has a handler on its own stack (`interrupts`), installed before the
    // image's main function.
    unsafe { asm!("sti", options(nostack)) };
}

/// Disables interrupts.
pub fn disable_interrupts() {
    // SAFETY: only prevents events.
    unsafe { asm!("cli", options(nostack)) };
}

/// Takes pending interrupts, and disables interrupts again.
pub fn serve_interrupts() {
    // They are taken after the instruction that follows `sti` at the earliest. It must not be
    // `pause`, before which QEMU's TCG would resume. SAFETY: as in `enable_interrupts`.
    unsafe { asm!("sti", "nop", "cli", options(nostack)) };
}

/// Disables interrupts during `work`, and enables them again if they were enabled before.
pub fn without_interrupts<T>(work: impl FnOnce() -> T) -> T {
    const INTERRUPTS: u64 = 1 << 9;
    let flags: u64;
    // SAFETY: reads the flags through the stack.
    unsafe { asm!("pushfq", "pop {}", out(reg) flags, options(preserves_flags)) };
    disable_interrupts();
    let done = work();
    if flags & INTERRUPTS != 0 {
        enable_interrupts();
    }
    done
}

/// Enables interrupts and halts until one has been handled, then disables them.
///
/// `sti` takes effect after the instruction that follows it, so none is missed in between.
pub fn wait_for_interrupt() {
    // SAFETY: as for `enable_interrupts`.
    unsafe { asm!("sti", "hlt", "cli", options(nostack)) };
}

/// Halts forever, with interrupts enabled.
pub fn idle() -> ! {
    loop {
        wait_for_interrupt();
    }
}

/// Halts with interrupts disabled: nothing more happens on this CPU.
pub fn stop() -> ! {
    loop {
        // SAFETY: halts.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}

/// Returns whether the CPU has RDTSCP.
pub fn has_rdtscp() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0001 && __cpuid(0x8000_0001).edx >> 27 & 1 != 0
}

/// Returns whether the CPU has AVX, which is then enabled.
pub fn has_avx() -> bool {
    const XSAVE_AVX: u32 = 1 << 26 | 1 << 28;
    __cpuid(1).ecx & XSAVE_AVX == XSAVE_AVX
}

/// Returns whether the APIC's timer can fire at a given TSC.
pub fn has_tsc_deadline() -> bool {
    __cpuid(1).ecx >> 24 & 1 != 0
}

/// Returns 64 random bits from the CPU's generator. None if it has none, or it fails.
#[must_use]
pub fn random() -> Option<u64> {
    /// The number of attempts that the manual recommends (Intel SDM, volume 1, "Random Number
    /// Generator Instructions").
    const TRIES: u32 = 10;
    if __cpuid(1).ecx >> 30 & 1 == 0 {
        return None;
    }
    for _ in 0..TRIES {
        let (value, good): (u64, u8);
        // SAFETY: the CPU has the instruction, which changes a register and flags.
        unsafe {
            asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) good, options(nomem, nostack));
        }
        if good != 0 {
            return Some(value);
        }
    }
    None
}

/// Returns the hypervisor's name for itself, if there is one.
pub fn hypervisor() -> Option<[u8; 12]> {
    if __cpuid(1).ecx >> 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut name = [0; 12];
    for (part, register) in name.chunks_exact_mut(4).zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        part.copy_from_slice(&register.to_le_bytes());
    }
    Some(name)
}

/// Returns the number by which the interrupt controller addresses this CPU.
pub fn apic_id() -> u8 {
    (__cpuid(1).ebx >> 24) as u8
}

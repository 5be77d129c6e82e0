//! Time stamps, and the loop that puts two of them around a body.
//!
//! There are two kinds. *Fenced* is the default: `lfence; rdtsc; lfence` before the body and
//! `rdtscp; lfence` after it, so that the body cannot start before the first stamp is taken, and
//! the second stamp cannot be taken before the body's instructions have completed.
//! *Published* is two bare `rdtscp`, as in the study kot-2019: the second one waits for the body,
//! but the body's first instructions may overlap the first one.
//!
//! `lfence` always waits for earlier instructions on Intel, and on AMD if `DE_CFG[1]` is set, which
//! Linux does at boot. Neither kind waits for the body's *stores* to leave the store buffer.

use core::arch::asm;

/// The time stamps around one repetition, in TSC ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stamp {
    /// TSC before the body.
    pub start: u64,
    /// TSC after the body.
    pub end: u64,
}

impl Stamp {
    /// Returns the duration in TSC ticks.
    pub fn cycles(self) -> u64 {
        self.end.wrapping_sub(self.start)
    }
}

/// A kind of time stamps.
pub trait Timing {
    /// Reads the TSC before the body.
    fn before() -> u64;
    /// Reads the TSC after the body.
    fn after() -> u64;
}

/// Stamps with fences on both sides of the body.
#[derive(Clone, Copy, Debug)]
pub struct Fenced;

/// Two bare `rdtscp`, as in kot-2019.
#[derive(Clone, Copy, Debug)]
pub struct Published;

impl Timing for Fenced {
    #[inline(always)]
    fn before() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: reads a counter and touches no memory. Without `nomem` the compiler keeps the
        // body's memory accesses on their side of the stamp.
        unsafe {
            asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high,
                 options(nostack, preserves_flags));
        }
        (high << 32) | low
    }

    #[inline(always)]
    fn after() -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: as above; `rdtscp` also writes ecx.
        unsafe {
            asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _,
                 options(nostack, preserves_flags));
        }
        (high << 32) | low
    }
}

impl Timing for Published {
    #[inline(always)]
    fn before() -> u64 {
        bare_rdtscp()
    }

    #[inline(always)]
    fn after() -> u64 {
        bare_rdtscp()
    }
}

/// Runs `body` `repetitions` times and stores one [`Stamp`] for each.
///
/// The store is outside the timed region, after the second stamp.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[inline(always)]
pub unsafe fn batch<T: Timing>(repetitions: u64, out: *mut Stamp, mut body: impl FnMut()) {
    let mut slot = out;
    let mut left = repetitions;
    while left != 0 {
        let start = T::before();
        body();
        let end = T::after();
        // SAFETY: the caller guarantees room for `repetitions` stamps, and `slot` advances once
        // each.
        unsafe {
            (*slot).start = start;
            (*slot).end = end;
            slot = slot.add(1);
        }
        left -= 1;
    }
}

/// Reads the TSC by a bare `rdtsc`, without ordering.
#[inline(always)]
pub fn bare_rdtsc() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter and touches no memory.
    unsafe {
        asm!("rdtsc", out("rax") low, out("rdx") high, options(nostack, nomem, preserves_flags));
    }
    (high << 32) | low
}

#[inline(always)]
fn bare_rdtscp() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter and touches no memory. Without `nomem` the compiler keeps the
    // body's memory accesses on their side of the stamp.
    unsafe {
        asm!("rdtscp", out("rax") low, out("rdx") high, out("rcx") _,
             options(nostack, preserves_flags));
    }
    (high << 32) | low
}

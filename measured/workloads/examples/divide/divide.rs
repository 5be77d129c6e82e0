//! `divide`: divides one number by another a number of times, in registers only.
//!
//! # When the method lies
//!
//! Many CPUs divide small numbers faster than large ones: compare counts, not CPUs.

use core::arch::asm;

use tare_workloads::noise::{Code, Kind, Size, Timed, Workload};
use tare_workloads::timing::{Fenced, Published, Stamp, Timing, batch};

/// The descriptor.
pub const WORKLOAD: Workload = Workload {
    code: Code {
        id: "divide",
        size: Some(Size {
            key: "divisions",
            least: 1,
            most: 1_000_000,
            default: 100,
            meaning: "Divide N times",
        }),
        kind: Kind::Timed(Timed {
            fenced: tare_divide_fenced,
            published: tare_divide_published,
            room: |_| 0,
            prepare: |_| (),
            steps: |divisions| divisions,
        }),
    },
    symbols: &["tare_divide_fenced", "tare_divide_published"],
    repetitions: 100_000,
    ns: |divisions| divisions as f64 * 8.0,
    keywords: "the divider",
    does: "divides in registers",
    method: "divides one number by another, in registers only, and times every repetition.",
    steps: "64-bit divisions in one repetition",
    is_linear: true,
    uses_memory: false,
};

/// Divides between fenced stamps, and returns the quotient.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_divide_fenced(
    divisions: u64,
    _room: *mut u64,
    repetitions: u64,
    out: *mut Stamp,
) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { run::<Fenced>(divisions, repetitions, out) }
}

/// Divides between the bare stamps of kot-2019, and returns the quotient.
///
/// # Safety
///
/// As for [`tare_divide_fenced`].
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_divide_published(
    divisions: u64,
    _room: *mut u64,
    repetitions: u64,
    out: *mut Stamp,
) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { run::<Published>(divisions, repetitions, out) }
}

#[inline(always)]
unsafe fn run<T: Timing>(divisions: u64, repetitions: u64, out: *mut Stamp) -> u64 {
    let mut quotient = 0;
    // SAFETY: passed on to the caller.
    unsafe { batch::<T>(repetitions, out, || quotient = divide(divisions)) };
    quotient
}

#[inline(always)]
fn divide(divisions: u64) -> u64 {
    let quotient: u64;
    // SAFETY: works in registers only; the divisor is not 0, and the quotient fits.
    unsafe {
        asm!(
            "2:",
            "mov rax, {dividend}",
            "xor edx, edx",
            "div {divisor}",
            "dec {left}",
            "jnz 2b",
            left = inout(reg) divisions => _,
            dividend = in(reg) 7_000_000_007_u64,
            divisor = in(reg) 7_u64,
            out("rax") quotient,
            out("rdx") _,
            options(nostack, nomem),
        );
    }
    quotient
}

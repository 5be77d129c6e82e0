//! The cost of the stamps and of the loop, so that it can be reported and subtracted.
//!
//! These are measured symbols too: their bytes are the same on every target, and the empty region
//! is the loop of [`crate::timing::batch`] around nothing.

use core::arch::asm;

use crate::timing::{Fenced, Published, Stamp, bare_rdtsc, batch};

/// The symbol of the empty region between fenced stamps.
pub const EMPTY_FENCED_SYMBOL: &str = "tare_empty_fenced";
/// The symbol of the empty region between bare `rdtscp`.
pub const EMPTY_PUBLISHED_SYMBOL: &str = "tare_empty_published";
/// The symbol of the unrolled timer reads.
pub const UNROLLED_TIMER_SYMBOL: &str = "tare_unrolled_timer";
/// The symbol of the additions.
pub const ADDITIONS_SYMBOL: &str = "tare_additions";
/// The symbol of the empty loop.
pub const LOOP_SYMBOL: &str = "tare_loop";

/// The number of `rdtsc` that one pass of [`tare_unrolled_timer`] executes.
pub const UNROLLED_READS: u64 = 64;

/// The number of additions that one pass of [`tare_additions`] executes.
pub const ADDITIONS: u64 = 64;

/// Measures nothing `repetitions` times between fenced stamps.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_empty_fenced(repetitions: u64, out: *mut Stamp) {
    // SAFETY: passed on to the caller.
    unsafe { batch::<Fenced>(repetitions, out, || ()) }
}

/// Measures nothing `repetitions` times between bare `rdtscp`.
///
/// # Safety
///
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_empty_published(repetitions: u64, out: *mut Stamp) {
    // SAFETY: passed on to the caller.
    unsafe { batch::<Published>(repetitions, out, || ()) }
}

/// Reads the timer `passes` × [`UNROLLED_READS`] times and returns the TSC ticks that took.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tare_unrolled_timer(passes: u64) -> u64 {
    let start = bare_rdtsc();
    let mut left = passes;
    while left != 0 {
        // SAFETY: reads a counter and touches no memory.
        unsafe {
            asm!(".rept 64", "rdtsc", ".endr", out("rax") _, out("rdx") _,
                 options(nostack, nomem, preserves_flags));
        }
        left -= 1;
    }
    bare_rdtsc().wrapping_sub(start)
}

/// Runs an empty loop `iterations` times and returns the TSC ticks that took.
///
/// The loop is one decrement and one jump, as in cse221-2022's loop overhead.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tare_loop(iterations: u64) -> u64 {
    let start = bare_rdtsc();
    // SAFETY: counts down in a register. Zero iterations are skipped.
    unsafe {
        asm!(
            "test {left}, {left}",
            "jz 3f",
            "2:",
            "dec {left}",
            "jnz 2b",
            "3:",
            left = inout(reg) iterations => _,
            options(nostack, nomem),
        );
    }
    bare_rdtsc().wrapping_sub(start)
}

/// Adds `passes` × [`ADDITIONS`] times to one register and returns the TSC ticks that took: each
/// addition waits for the previous one, and takes one cycle of the core's clock.
///
/// The addend is in a register, since some CPUs carry out additions of constants while they rename
/// registers.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn tare_additions(passes: u64) -> u64 {
    let start = bare_rdtsc();
    // SAFETY: works in registers only. Zero passes are skipped.
    unsafe {
        asm!(
            "test {left}, {left}",
            "jz 3f",
            "2:",
            ".rept 64",
            "add {sum}, {left}",
            ".endr",
            "dec {left}",
            "jnz 2b",
            "3:",
            left = inout(reg) passes => _,
            sum = inout(reg) 0_u64 => _,
            options(nostack, nomem),
        );
    }
    bare_rdtsc().wrapping_sub(start)
}

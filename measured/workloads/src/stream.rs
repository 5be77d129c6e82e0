//! `stream`: reads, writes and copies arrays from one end to the other, after STREAM (McCalpin,
//! 1995) and cse221-2022.
//!
//! A pass returns its TSC ticks between fenced stamps. Bytes are counted as in STREAM, from the
//! program's requests: lines that are fetched before a write are not counted.
//!
//! Each array is read by a separate load, as by compilers that don't know how it is aligned:
//! additions that read memory themselves made Triad 4 % faster.
//!
//! # When the method lies
//!
//! An array that fits into a cache shows the cache. Stores may still be in the store buffer when
//! the second stamp is taken: some kB of a pass.

use core::arch::asm;

use crate::timing::{Fenced, Timing};

/// The measured symbol that reads.
pub const READ_SYMBOL: &str = "tare_stream_read";
/// The measured symbol that writes.
pub const WRITE_SYMBOL: &str = "tare_stream_write";
/// The measured symbol that copies.
pub const COPY_SYMBOL: &str = "tare_stream_copy";
/// The measured symbol that scales.
pub const SCALE_SYMBOL: &str = "tare_stream_scale";
/// The measured symbol that adds.
pub const ADD_SYMBOL: &str = "tare_stream_add";
/// The measured symbol of the triad.
pub const TRIAD_SYMBOL: &str = "tare_stream_triad";

/// The number of elements per iteration: the lengths of arrays are multiples of it.
pub const UNROLLED: u64 = 32;

/// Generates a loop over arrays, 256 bytes of each at a time, from the instructions for one offset.
macro_rules! pass {
    ($begin:literal, [$($each:literal),*], $($operand:tt)*) => {
        pass!("0, 16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240", $begin, [$($each),*], $($operand)*)
    };
    ($offsets:literal, $begin:literal, [$($each:literal),*], $($operand:tt)*) => {
        asm!(
            $begin,
            "jmp 3f",
            "2:",
            concat!(".irp i, ", $offsets),
            $($each,)*
            ".endr",
            "add {at}, 256",
            "sub {left}, 32",
            "3:",
            "test {left}, {left}",
            "jnz 2b",
            at = inout(reg) 0_usize => _,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            $($operand)*
        )
    };
}

/// Adds up `elements` of an array, in four sums: a single sum would be limited by the latency of
/// its additions.
///
/// # Safety
///
/// `a` must be valid for reading `elements` values, a multiple of [`UNROLLED`], and aligned to 16
/// bytes.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_read(a: *const u64, elements: u64) -> u64 {
    let begin = Fenced::before();
    // SAFETY: the offset stays within the array, which the caller guarantees.
    unsafe {
        pass!("0, 64, 128, 192", "",
            ["paddq xmm0, [{a} + {at} + \\i]", "paddq xmm1, [{a} + {at} + \\i + 16]",
             "paddq xmm2, [{a} + {at} + \\i + 32]", "paddq xmm3, [{a} + {at} + \\i + 48]"],
            a = in(reg) a, left = inout(reg) elements => _, options(nostack, readonly));
    }
    Fenced::after().wrapping_sub(begin)
}

/// Writes a value to `elements` of an array.
///
/// # Safety
///
/// `a` must be valid for writing `elements` values, a multiple of [`UNROLLED`], and aligned to 16
/// bytes.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_write(a: *mut u64, elements: u64, value: u64) -> u64 {
    let begin = Fenced::before();
    // SAFETY: as above.
    unsafe {
        pass!("movq xmm0, {value}\npunpcklqdq xmm0, xmm0", ["movaps [{a} + {at} + \\i], xmm0"],
            a = in(reg) a, value = in(reg) value, left = inout(reg) elements => _, options(nostack));
    }
    Fenced::after().wrapping_sub(begin)
}

/// Copies `elements` from one array to another: STREAM's Copy.
///
/// # Safety
///
/// `a` must be valid for reading and `c` for writing `elements` values, a multiple of [`UNROLLED`];
/// both are aligned to 16 bytes, and they do not overlap.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_copy(a: *const f64, c: *mut f64, elements: u64) -> u64 {
    let begin = Fenced::before();
    // SAFETY: as above.
    unsafe {
        pass!("", ["movaps xmm0, [{a} + {at} + \\i]", "movaps [{c} + {at} + \\i], xmm0"],
            a = in(reg) a, c = in(reg) c, left = inout(reg) elements => _, options(nostack));
    }
    Fenced::after().wrapping_sub(begin)
}

/// Writes `scalar` times one array to another: STREAM's Scale, `b[j] = scalar * c[j]`.
///
/// # Safety
///
/// `b` must be valid for writing, `c` for reading `elements` values, a multiple of [`UNROLLED`];
/// both are aligned to 16 bytes, and they do not overlap.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_scale(
    b: *mut f64,
    c: *const f64,
    elements: u64,
    scalar: f64,
) -> u64 {
    let begin = Fenced::before();
    // SAFETY: as above.
    unsafe {
        pass!("movq xmm2, {scalar}\nunpcklpd xmm2, xmm2",
            ["movaps xmm0, [{c} + {at} + \\i]", "mulpd xmm0, xmm2", "movaps [{b} + {at} + \\i], xmm0"],
            b = in(reg) b, c = in(reg) c, scalar = in(reg) scalar.to_bits(),
            left = inout(reg) elements => _, options(nostack));
    }
    Fenced::after().wrapping_sub(begin)
}

/// Adds two arrays: STREAM's Add, `c[j] = a[j] + b[j]`.
///
/// # Safety
///
/// `a` and `b` must be valid for reading, `c` for writing `elements` values, a multiple of
/// [`UNROLLED`]; all are aligned to 16 bytes, and they do not overlap.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_add(
    a: *const f64,
    b: *const f64,
    c: *mut f64,
    elements: u64,
) -> u64 {
    let begin = Fenced::before();
    // SAFETY: as above.
    unsafe {
        pass!("",
            ["movaps xmm0, [{a} + {at} + \\i]", "movaps xmm1, [{b} + {at} + \\i]",
             "addpd xmm0, xmm1", "movaps [{c} + {at} + \\i], xmm0"],
            a = in(reg) a, b = in(reg) b, c = in(reg) c, left = inout(reg) elements => _, options(nostack));
    }
    Fenced::after().wrapping_sub(begin)
}

/// Adds `scalar` times one array to another: STREAM's Triad, `a[j] = b[j] + scalar * c[j]`.
///
/// # Safety
///
/// `a` must be valid for writing, `b` and `c` for reading `elements` values, a multiple of
/// [`UNROLLED`]; all are aligned to 16 bytes, and they do not overlap.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_stream_triad(
    a: *mut f64,
    b: *const f64,
    c: *const f64,
    elements: u64,
    scalar: f64,
) -> u64 {
    let begin = Fenced::before();
    // SAFETY: as above.
    unsafe {
        pass!("movq xmm2, {scalar}\nunpcklpd xmm2, xmm2",
            ["movaps xmm0, [{c} + {at} + \\i]", "movaps xmm1, [{b} + {at} + \\i]", "mulpd xmm0, xmm2",
             "addpd xmm0, xmm1", "movaps [{a} + {at} + \\i], xmm0"],
            a = in(reg) a, b = in(reg) b, c = in(reg) c, scalar = in(reg) scalar.to_bits(),
            left = inout(reg) elements => _, options(nostack));
    }
    Fenced::after().wrapping_sub(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Array<T>([T; 128]);

    #[test]
    fn each_does_what_stream_does() {
        let mut a = Array([0.0; 128]);
        let mut b = Array([0.0; 128]);
        let mut c = Array([0.0; 128]);
        for j in 0..128 {
            b.0[j] = j as f64;
        }
        // SAFETY: the arrays have 128 elements.
        unsafe {
            tare_stream_copy(b.0.as_ptr(), c.0.as_mut_ptr(), 96);
            tare_stream_triad(a.0.as_mut_ptr(), b.0.as_ptr(), c.0.as_ptr(), 64, 3.0);
        }
        for j in 0..128 {
            assert_eq!(c.0[j], if j < 96 { j as f64 } else { 0.0 });
            assert_eq!(a.0[j], if j < 64 { 4.0 * j as f64 } else { 0.0 });
        }
        // SAFETY: likewise.
        unsafe {
            tare_stream_scale(a.0.as_mut_ptr(), b.0.as_ptr(), 64, 2.0);
            tare_stream_add(a.0.as_ptr(), b.0.as_ptr(), c.0.as_mut_ptr(), 32);
        }
        for j in 0..96 {
            assert_eq!(a.0[j], if j < 64 { 2.0 * j as f64 } else { 0.0 });
            assert_eq!(c.0[j], if j < 32 { 3.0 } else { 1.0 } * j as f64);
        }
        let mut words = Array([1_u64; 128]);
        // SAFETY: likewise.
        unsafe {
            tare_stream_write(words.0.as_mut_ptr(), 32, 7);
            tare_stream_write(words.0.as_mut_ptr(), 0, 9);
            tare_stream_read(words.0.as_ptr(), 128);
        }
        for j in 0..128 {
            assert_eq!(words.0[j], if j < 32 { 7 } else { 1 });
        }
    }
}

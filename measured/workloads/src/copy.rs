//! `copy`: copies one array to another and increments the source, after STREAM's Copy.
//!
//! One repetition is one pass over the first n elements of two `u64` arrays: `c[j] = a[j]`, then
//! `a[j] += 1`. It moves 24 bytes per element (two reads, of which one is of a line just written,
//! and two writes), as in kot-2019.
//!
//! # When the method lies
//!
//! The arrays are virtual memory: their physical pages determine which cache sets they fill, and
//! change from launch to launch. Compare medians over runs, never two single runs. Stores may still
//! be in the store buffer when the second stamp is taken.

use crate::noise::{Code, Kind, Size, Timed, Workload};
use crate::timing::{Fenced, Published, Stamp, Timing, batch};

/// The descriptor.
pub const WORKLOAD: Workload = Workload {
    code: Code {
        id: "copy",
        size: Some(Size {
            key: "size",
            least: 1,
            // Two arrays of 128 MiB.
            most: 1 << 24,
            // The single run of kot-2019: 800 bytes.
            default: 100,
            meaning: "Copy N elements of 8 bytes",
        }),
        kind: Kind::Timed(Timed {
            fenced,
            published,
            room: |elements| 2 * from_line_to_line(elements),
            prepare: |arrays| {
                let (a, _) = arrays.split_at_mut(arrays.len() / 2);
                (0..).zip(a).for_each(|(value, element)| *element = value);
            },
            steps: |elements| elements,
        }),
    },
    symbols: &["tare_copy_fenced", "tare_copy_published"],
    repetitions: 1_000_000,
    // An element takes about 0.5 ns.
    ns: |elements| elements as f64 * 0.5,
    keywords: "memory",
    does: "works on memory",
    method: "copies an array of 8-byte numbers, adds one to each element of the source, and times every repetition. It \
             meets caches and memory, which work in registers does not.",
    steps: "array elements of 8 bytes",
    is_linear: false,
    uses_memory: true,
};

/// Returns the distance between two arrays in elements, so that the second starts at a cache line.
fn from_line_to_line(elements: u64) -> u64 {
    elements.next_multiple_of(8)
}

unsafe extern "C" fn fenced(elements: u64, a: *mut u64, repetitions: u64, out: *mut Stamp) -> u64 {
    // SAFETY: the memory holds both arrays; the rest is up to the caller.
    unsafe {
        let c = a.add(from_line_to_line(elements) as usize);
        tare_copy_fenced(a, c, elements, repetitions, out);
    }
    0
}

unsafe extern "C" fn published(
    elements: u64,
    a: *mut u64,
    repetitions: u64,
    out: *mut Stamp,
) -> u64 {
    // SAFETY: the memory holds both arrays; the rest is up to the caller.
    unsafe {
        let c = a.add(from_line_to_line(elements) as usize);
        tare_copy_published(a, c, elements, repetitions, out);
    }
    0
}

/// Passes over two arrays `repetitions` times between fenced stamps.
///
/// # Safety
///
/// `a` and `c` must each be valid for reading and writing `elements` values and must not overlap,
/// `out` must be valid for writing `repetitions` stamps.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_copy_fenced(
    a: *mut u64,
    c: *mut u64,
    elements: u64,
    repetitions: u64,
    out: *mut Stamp,
) {
    // SAFETY: passed on to the caller.
    unsafe { run::<Fenced>(a, c, elements, repetitions, out) }
}

/// Passes over two arrays `repetitions` times between bare `rdtscp`.
///
/// # Safety
///
/// As for [`tare_copy_fenced`].
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_copy_published(
    a: *mut u64,
    c: *mut u64,
    elements: u64,
    repetitions: u64,
    out: *mut Stamp,
) {
    // SAFETY: passed on to the caller.
    unsafe { run::<Published>(a, c, elements, repetitions, out) }
}

#[inline(always)]
unsafe fn run<T: Timing>(
    a: *mut u64,
    c: *mut u64,
    elements: u64,
    repetitions: u64,
    out: *mut Stamp,
) {
    let pass = || {
        let mut j = 0;
        while j < elements as usize {
            // SAFETY: j stays below `elements`, which the caller guarantees.
            unsafe {
                *c.add(j) = *a.add(j);
                *a.add(j) = (*a.add(j)).wrapping_add(1);
            }
            j += 1;
        }
    };
    // SAFETY: passed on to the caller.
    unsafe { batch::<T>(repetitions, out, pass) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_then_increments_exactly_the_first_elements() {
        for elements in [0_usize, 1, 2, 3, 7, 25, 63] {
            let mut a = [0_u64; 64];
            let mut c = [u64::MAX; 64];
            for (j, value) in a.iter_mut().enumerate() {
                *value = j as u64 * 10;
            }
            let mut out = [Stamp::default(); 3];
            // SAFETY: all three arrays are large enough.
            unsafe {
                tare_copy_fenced(
                    a.as_mut_ptr(),
                    c.as_mut_ptr(),
                    elements as u64,
                    3,
                    out.as_mut_ptr(),
                );
            }
            for j in 0..64 {
                let touched = j < elements;
                assert_eq!(a[j], j as u64 * 10 + if touched { 3 } else { 0 });
                assert_eq!(c[j], if touched { j as u64 * 10 + 2 } else { u64::MAX });
            }
        }
    }
}

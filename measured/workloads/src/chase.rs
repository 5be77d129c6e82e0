//! `chase`: follows pointers through memory, each of which must arrive before the next load can
//! start.
//!
//! [`tare_chase`] only loads. The visited addresses are written to the memory in advance: a random
//! cycle through all lines ([`link`]) shows the latency of the level that a working set of that
//! size fits into; a cycle with a stride shows how the hardware handles a pattern.
//!
//! # When the method lies
//!
//! Prefetchers predict strides: up to a page the figure is that of a pattern, not of memory.
//! Without huge pages, a working set beyond the TLB's reach also pays for page walks.

use core::arch::asm;

use crate::timing::{Fenced, Timing};

/// The measured symbol.
pub const SYMBOL: &str = "tare_chase";

/// The number of loads in one pass.
pub const LOADS: u64 = 32;

/// Follows pointers for `passes` × [`LOADS`] loads from `start`, and returns the TSC ticks that
/// took. The end is written to `start`.
///
/// # Safety
///
/// `start` must point to a pointer into a cycle of valid pointers.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_chase(start: *mut usize, passes: u64) -> u64 {
    // SAFETY: the caller guarantees that the pointer is valid.
    let first = unsafe { *start };
    let begin = Fenced::before();
    let last: usize;
    // SAFETY: every pointer of the cycle is valid. Zero passes are skipped.
    unsafe {
        asm!(
            "test {left}, {left}",
            "jz 3f",
            "2:",
            ".rept 32",
            "mov {at}, [{at}]",
            ".endr",
            "dec {left}",
            "jnz 2b",
            "3:",
            at = inout(reg) first => last,
            left = inout(reg) passes => _,
            options(nostack, readonly),
        );
    }
    let ticks = Fenced::after().wrapping_sub(begin);
    // SAFETY: as above.
    unsafe { *start = last };
    ticks
}

/// The order in which a cycle visits the places of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending, and from the last to the first.
    Rising,
    /// At random: one cycle through all.
    Random,
}

/// Links the places of a memory, `stride` bytes apart, to one cycle, of which the first `linked`
/// exist already, and returns the address of the first.
///
/// Each place is inserted after an earlier one; if all of these are equally likely, the result is a
/// random cycle, as in Sattolo's algorithm. So a cycle grows without being linked again, and every
/// place is visited once before any is visited again.
///
/// # Panics
///
/// Panics if the stride is no multiple of the size of a pointer, or there is no place.
pub fn link(memory: &mut [usize], stride: usize, order: Order, linked: usize) -> usize {
    let step = stride / size_of::<usize>();
    assert!(step > 0 && stride.is_multiple_of(size_of::<usize>()));
    let places = memory.len() / step;
    assert!(places > 0);
    let base = memory.as_ptr().addr();
    if linked == 0 {
        memory[0] = base;
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ linked as u64;
    for place in linked.max(1)..places {
        let before = match order {
            Order::Rising => place - 1,
            Order::Random => below(&mut state, place),
        };
        memory[place * step] = memory[before * step];
        memory[before * step] = base + place * stride;
    }
    base
}

/// Returns a number below `bound` by xorshift64*: Vigna, "An experimental exploration of
/// Marsaglia's xorshift generators", 2016. The bias of the division is below 2⁻⁴⁰ for any memory
/// size.
fn below(state: &mut u64, bound: usize) -> usize {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
    ((u128::from(random) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;

    use super::*;

    #[test]
    fn a_cycle_visits_every_place_once() {
        for (places, stride) in [(1, 64), (2, 8), (1_000, 64), (513, 128), (100, 4096)] {
            for order in [Order::Rising, Order::Random] {
                let mut memory = vec![0_usize; places * stride / size_of::<usize>()];
                let part = places / 3 * (stride / size_of::<usize>());
                if part > 0 {
                    link(&mut memory[..part], stride, order, 0);
                }
                let first = link(&mut memory, stride, order, places / 3);
                let base = memory.as_ptr().addr();
                let mut seen = vec![false; places];
                let mut at = first;
                for _ in 0..places {
                    let place = (at - base) / stride;
                    assert!(!seen[place]);
                    seen[place] = true;
                    at = memory[(at - base) / size_of::<usize>()];
                }
                assert_eq!(at, first);
            }
        }
    }

    #[test]
    fn a_random_cycle_is_no_pattern() {
        const PLACES: usize = 4_096;
        let mut memory = vec![0_usize; PLACES * 8];
        link(&mut memory, 64, Order::Random, 0);
        let base = memory.as_ptr().addr();
        let near = (0..PLACES).filter(|place| {
            let next = (memory[place * 8] - base) / 64;
            next.abs_diff(*place) <= 2
        });
        assert!(near.count() < PLACES / 100);
    }

    #[test]
    fn the_chase_goes_as_far_as_it_is_told() {
        let mut memory = vec![0_usize; 100 * 8];
        let first = link(&mut memory, 64, Order::Rising, 0);
        let mut at = first;
        // SAFETY: a cycle through the memory.
        unsafe { tare_chase(&raw mut at, 3) };
        assert_eq!(at, first + 96 * 64);
        // SAFETY: as above.
        unsafe { tare_chase(&raw mut at, 0) };
        assert_eq!(at, first + 96 * 64);
    }
}

//! Typed pieces of the platform's memory.
//!
//! A bump allocator over one block: the measured code must not allocate, and a block that is
//! mapped, touched and locked at once leaves nothing to fault in during the batch.

use core::mem::{align_of, size_of};

use tare_workloads::gap::Gap;
use tare_workloads::timing::Stamp;

/// The alignment of every piece: a cache line.
const LINE: usize = 64;

/// A bump allocator over one block of memory.
#[derive(Debug)]
pub struct Arena {
    rest: &'static mut [u8],
}

/// A type that is valid when zeroed.
///
/// # Safety
///
/// The type must be valid for all-zero bytes, without padding that matters, and need no drop.
pub unsafe trait Zeroed {}

// SAFETY: plain integers.
unsafe impl Zeroed for u8 {}
// SAFETY: plain integers.
unsafe impl Zeroed for u32 {}
// SAFETY: plain integers.
unsafe impl Zeroed for u64 {}
// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Stamp {}
// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Gap {}

impl Arena {
    /// Takes over a block of zeroed memory.
    ///
    /// # Panics
    ///
    /// Panics if the block does not start at a cache line.
    pub fn new(memory: &'static mut [u8]) -> Self {
        assert_eq!(memory.as_ptr().addr() % LINE, 0, "a block within a line");
        Self { rest: memory }
    }

    /// Returns the number of free bytes.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// Returns how many bytes [`Arena::take`] uses for `count` values.
    pub fn bytes<T: Zeroed>(count: usize) -> usize {
        (count * size_of::<T>()).next_multiple_of(LINE)
    }

    /// Allocates `count` zeroed values and writes to each, so that every page is mapped.
    ///
    /// # Panics
    ///
    /// Panics if the block is too small: the caller sized it with [`Arena::bytes`].
    pub fn take<T: Zeroed>(&mut self, count: usize) -> &'static mut [T] {
        const { assert!(align_of::<T>() <= LINE) };
        let bytes = Self::bytes::<T>(count);
        let (piece, rest) = core::mem::take(&mut self.rest).split_at_mut(bytes);
        self.rest = rest;
        for byte in piece.iter_mut().step_by(LINE) {
            // SAFETY: a byte within the piece. Volatile, since the compiler knows that it is 0
            // already.
            unsafe { core::ptr::write_volatile(byte, 0) };
        }
        let start = piece.as_mut_ptr().cast::<T>();
        // SAFETY: the block starts at a line and every piece a multiple of `LINE` long, so `start`
        // is aligned; the piece holds `count` values, all zero, and is given out once.
        unsafe { core::slice::from_raw_parts_mut(start, count) }
    }
}

#[cfg(test)]
mod tests {
    use std::boxed::Box;
    use std::vec;

    use super::*;

    #[test]
    fn pieces_are_aligned_disjoint_and_fit_what_was_asked() {
        #[repr(align(4096))]
        struct Page([u8; 4096]);
        let page = Box::leak(Box::new(Page([0; 4096])));
        let wanted = Arena::bytes::<u32>(3) + Arena::bytes::<Stamp>(5) + Arena::bytes::<u64>(1);
        let mut arena = Arena::new(&mut page.0[..wanted]);
        let numbers = arena.take::<u32>(3);
        let stamps = arena.take::<Stamp>(5);
        let last = arena.take::<u64>(1);
        numbers.fill(u32::MAX);
        last.fill(u64::MAX);
        assert_eq!(stamps, vec![Stamp::default(); 5]);
        assert_eq!(stamps.as_ptr().addr() % LINE, 0);
        assert_eq!(arena.bytes_left(), 0);
    }
}

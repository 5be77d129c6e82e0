//! The allocator, on the machine's free memory.

use core::alloc::{GlobalAlloc, Layout};

use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;
use tare_unikernel::memory;

use crate::lock::SpinLock;

/// Minimum number of bytes taken from the free memory at once.
const PIECE: usize = 64 << 10;

/// An allocator for a program's `#[global_allocator]`.
pub struct Heap(TalcLock<SpinLock, FreeMemory>);

impl Heap {
    /// Returns an empty heap.
    pub const fn new() -> Self {
        Self(TalcLock::new(FreeMemory))
    }

    /// Returns the number of allocated bytes.
    pub fn allocated(&self) -> usize {
        self.0.lock().counters().allocated_bytes
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: forwards to an allocator behind a lock.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on to the caller.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { self.0.dealloc(start, layout) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: passed on to the caller.
        unsafe { self.0.realloc(start, layout, bytes) }
    }
}

/// The source of further memory for the allocator.
#[derive(Debug)]
struct FreeMemory;

// SAFETY: the memory is unused, and `acquire` allocates nothing.
unsafe impl Source for FreeMemory {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        // The allocator stores some words with each allocation, and a table in its first piece.
        const OVERHEAD: usize = 8 << 10;
        let least = layout.size() + layout.align() + OVERHEAD;
        let piece = memory::take_unset(least.max(PIECE))
            .or_else(|| memory::take_unset(least))
            .ok_or(())?;
        // SAFETY: the piece belongs to this function, and is never freed.
        unsafe { talc.claim(piece.as_mut_ptr().cast(), piece.len()) }
            .map(|_| ())
            .ok_or(())
    }
}

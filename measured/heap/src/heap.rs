//! The allocator, with the machine's free memory beneath.

use core::alloc::{GlobalAlloc, Layout};

use talc::TalcLock;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;
use tare_unikernel::memory;

use crate::lock::SpinLock;

/// How much memory is taken at once, in bytes, unless one allocation needs more.
const PIECE: usize = 64 << 10;

/// Allocates from the machine's free memory.
pub struct Heap(TalcLock<SpinLock, FreeMemory>);

impl Heap {
    /// Makes an empty heap.
    #[must_use]
    pub const fn new() -> Self {
        Self(TalcLock::new(FreeMemory))
    }

    /// Returns how many bytes are allocated from it.
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.0.lock().counters().allocated_bytes
    }
}

impl Default for Heap {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: passed on to an allocator behind a lock.
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

/// Gives the allocator more memory when it has none left.
#[derive(Debug)]
struct FreeMemory;

// SAFETY: gives memory that belongs to nobody else, and allocates nothing itself.
unsafe impl Source for FreeMemory {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        // The allocator keeps some words beside each allocation and one table in its first piece.
        const OVERHEAD: usize = 8 << 10;
        let least = layout.size() + layout.align() + OVERHEAD;
        let piece = memory::take(least.max(PIECE))
            .or_else(|| memory::take(least))
            .ok_or(())?;
        // SAFETY: the piece was given out to this function alone, for ever.
        unsafe { talc.claim(piece.as_mut_ptr(), piece.len()) }
            .map(|_| ())
            .ok_or(())
    }
}

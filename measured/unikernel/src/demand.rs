//! Memory that is mapped when it is touched: what a page fault costs that is handled.
//!
//! One region of 2 MiB, whose pages are not mapped at first. The first access to each faults; the handler clears the page,
//! maps it, counts, and returns to the access. Everything else that faults is reported as without it.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::interrupts;
use crate::local::PAGE;
use crate::memory;
use crate::paging::{self, LARGE_PAGE};

/// Where the region starts; 0 as long as there is none. Read by the handler.
pub(crate) static START: AtomicU64 = AtomicU64::new(0);
/// Its page table. Read by the handler.
pub(crate) static TABLE: AtomicU64 = AtomicU64::new(0);
/// How many faults were handled. Written by the handler.
pub(crate) static FAULTS: AtomicU64 = AtomicU64::new(0);

/// The region.
#[derive(Debug)]
pub struct Demand {
    start: *mut u8,
}

impl Demand {
    /// Makes it, and takes over page faults; the same region again if there is one. None if there is no memory for it.
    #[must_use]
    pub fn new() -> Option<Self> {
        let mut start = START.load(Ordering::Relaxed);
        if start == 0 {
            // Twice as much, so that a large page is in it as a whole.
            let block = memory::take(2 * LARGE_PAGE as usize)?.as_ptr() as u64;
            start = block.next_multiple_of(LARGE_PAGE);
            // SAFETY: free memory of our own.
            let table = unsafe { paging::small_pages(start)? };
            TABLE.store(table as u64, Ordering::Relaxed);
            START.store(start, Ordering::Relaxed);
            interrupts::map_on_demand();
        }
        let start = start as *mut u8;
        Some(Self { start })
    }

    /// Takes all pages away again.
    pub fn forget(&self) {
        let table = TABLE.load(Ordering::Relaxed) as *mut u64;
        for (index, page) in self.pages().enumerate() {
            // SAFETY: the table of the region, which is nobody else's.
            unsafe { paging::hide(table.wrapping_add(index), page as u64) };
        }
    }

    /// Lists the addresses of its pages.
    pub fn pages(&self) -> impl Iterator<Item = *mut u8> + use<> {
        let start = self.start;
        (0..LARGE_PAGE as usize)
            .step_by(PAGE)
            .map(move |offset| start.wrapping_add(offset))
    }

    /// Returns how many faults were handled up to now.
    #[must_use]
    pub fn faults(&self) -> u64 {
        FAULTS.load(Ordering::Relaxed)
    }
}

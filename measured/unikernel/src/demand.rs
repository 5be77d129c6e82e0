//! Demand-mapped memory, to measure the cost of a handled page fault.
//!
//! One region of 2 MiB, whose pages are not mapped at first. The first access to each faults; the
//! handler clears the page, maps it, counts the fault, and returns to the access. Other faults are
//! reported as usual.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::interrupts;
use crate::local::PAGE;
use crate::memory;
use crate::paging::{self, LARGE_PAGE};

/// The start of the region; 0 if there is none. Read by the handler.
pub(crate) static START: AtomicU64 = AtomicU64::new(0);
/// The region's page table. Read by the handler.
pub(crate) static TABLE: AtomicU64 = AtomicU64::new(0);
/// The number of handled faults. Written by the handler.
pub(crate) static FAULTS: AtomicU64 = AtomicU64::new(0);

/// The region.
#[derive(Debug)]
pub struct Demand {
    start: *mut u8,
}

impl Demand {
    /// Creates the region, and handles its page faults; later calls return the same region. None if
    /// there is not enough memory.
    pub fn new() -> Option<Self> {
        let mut start = START.load(Ordering::Relaxed);
        if start == 0 {
            // Twice the size, so that it contains a whole large page.
            let block = memory::take(2 * LARGE_PAGE as usize)?.as_ptr() as u64;
            start = block.next_multiple_of(LARGE_PAGE);
            // SAFETY: free memory, used only here.
            let table = unsafe { paging::small_pages(start)? };
            TABLE.store(table as u64, Ordering::Relaxed);
            START.store(start, Ordering::Relaxed);
            interrupts::map_on_demand();
        }
        let start = start as *mut u8;
        Some(Self { start })
    }

    /// Unmaps all pages again.
    pub fn forget(&self) {
        let table = TABLE.load(Ordering::Relaxed) as *mut u64;
        for (index, page) in self.pages().enumerate() {
            // SAFETY: the table belongs to this region alone.
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

    /// Returns the number of handled faults.
    pub fn faults(&self) -> u64 {
        FAULTS.load(Ordering::Relaxed)
    }
}

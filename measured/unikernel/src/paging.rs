//! Changes to the page tables that `entry.s` made: guard pages for the stacks of other CPUs.

use core::arch::asm;
use core::ptr::{read_volatile, write_volatile};

use crate::local::PAGE;
use crate::memory;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const LARGE: u64 = 1 << 7;
const ENTRIES: usize = 512;
pub(crate) const LARGE_PAGE: u64 = 2 << 20;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

unsafe extern "C" {
    static page_directories: u8;
}

/// Unmaps one page. None if a page table is needed for that, and there is no memory for it.
///
/// # Safety
///
/// The page must be below 4 GiB and unused, and no other CPU may run.
pub(crate) unsafe fn unmap(page: u64) -> Option<()> {
    // SAFETY: passed on to the caller.
    unsafe {
        let table = small_pages(page)?;
        let index = (page % LARGE_PAGE) as usize / PAGE;
        write_volatile(table.add(index), 0);
        asm!("invlpg [{}]", in(reg) page, options(nostack, preserves_flags));
    }
    Some(())
}

/// Returns the table of the small pages around an address; creates one where a large page is
/// mapped. None if there is no memory for it.
///
/// # Safety
///
/// The address must be below 4 GiB.
pub(crate) unsafe fn small_pages(address: u64) -> Option<*mut u64> {
    let directory = (&raw const page_directories) as *mut u64;
    // SAFETY: the four page directories are one array of 2,048 entries, words that only these
    // functions write after the start.
    unsafe {
        let entry = directory.add((address / LARGE_PAGE) as usize);
        if read_volatile(entry) & LARGE != 0 {
            split(entry)?;
        }
        Some((read_volatile(entry) & ADDRESS) as *mut u64)
    }
}

/// Marks a page as not present, but keeps its address.
///
/// # Safety
///
/// `entry` must be the entry of an unused page.
pub(crate) unsafe fn hide(entry: *mut u64, page: u64) {
    // SAFETY: passed on to the caller.
    unsafe {
        write_volatile(entry, read_volatile(entry) & !PRESENT);
        asm!("invlpg [{}]", in(reg) page, options(nostack, preserves_flags));
    }
}

/// Replaces a large page by a table of small ones with the same rights.
///
/// # Safety
///
/// `entry` must be a page directory's entry for a large page.
unsafe fn split(entry: *mut u64) -> Option<()> {
    let table = memory::take(PAGE)?.as_mut_ptr().cast::<u64>();
    // SAFETY: a fresh page holds 512 entries. They map the same memory as the large page, so nobody
    // sees the change.
    unsafe {
        let large = read_volatile(entry) & !LARGE;
        for index in 0..ENTRIES {
            write_volatile(table.add(index), large + (index * PAGE) as u64);
        }
        write_volatile(entry, table as u64 | PRESENT | WRITABLE);
    }
    Some(())
}

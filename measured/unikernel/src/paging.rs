//! Changes to the page tables that `entry.s` made: guard pages for the stacks of other CPUs.

use core::arch::asm;
use core::ptr::{read_volatile, write_volatile};

use crate::local::PAGE;
use crate::memory;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const LARGE: u64 = 1 << 7;
const ENTRIES: usize = 512;
const LARGE_PAGE: u64 = 2 << 20;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

unsafe extern "C" {
    static page_directories: u8;
}

/// Takes one page away from what is mapped. None if a page table is needed for that, and there is
/// no memory for it.
///
/// # Safety
///
/// The page must lie below 4 GiB, be in nobody's use, and no other CPU may run.
pub(crate) unsafe fn unmap(page: u64) -> Option<()> {
    let directory = (&raw const page_directories) as *mut u64;
    // SAFETY: the four page directories are one array of 2,048 entries.
    let entry = unsafe { directory.add((page / LARGE_PAGE) as usize) };
    // SAFETY: entries are words that only this function writes after the start.
    unsafe {
        if read_volatile(entry) & LARGE != 0 {
            split(entry)?;
        }
        let table = (read_volatile(entry) & ADDRESS) as *mut u64;
        let index = (page % LARGE_PAGE) as usize / PAGE;
        write_volatile(table.add(index), 0);
        asm!("invlpg [{}]", in(reg) page, options(nostack, preserves_flags));
    }
    Some(())
}

/// Replaces a large page by a table of small ones with the same rights.
///
/// # Safety
///
/// `entry` must be a page directory's entry for a large page.
unsafe fn split(entry: *mut u64) -> Option<()> {
    let table = memory::take(PAGE)?.as_mut_ptr().cast::<u64>();
    // SAFETY: a fresh page holds 512 entries. They say the same as the large page did, so the
    // change is seen by nobody.
    unsafe {
        let large = read_volatile(entry) & !LARGE;
        for index in 0..ENTRIES {
            write_volatile(table.add(index), large + (index * PAGE) as u64);
        }
        write_volatile(entry, table as u64 | PRESENT | WRITABLE);
    }
    Some(())
}

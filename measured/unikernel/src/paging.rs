//! Changes to the page tables that `entry.s` made: guard pages for the stacks of other CPUs, and
//! memory in pages of another size.

use core::arch::asm;
use core::ptr::{read_volatile, write_volatile};

use crate::local::PAGE;
use crate::memory;

const PRESENT: u64 = 1;
const WRITABLE: u64 = 1 << 1;
const LARGE: u64 = 1 << 7;
const ENTRIES: usize = 512;
pub(crate) const LARGE_PAGE: u64 = 2 << 20;
const GIANT_PAGE: u64 = 1 << 30;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const NO_EXECUTE: u64 = 1 << 63;

unsafe extern "C" {
    static page_directories: u8;
    static page_pointers: u8;
}

/// The size of the pages that map memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Large,
    /// 1 GiB.
    Giant,
}

impl PageSize {
    /// Returns the bytes of the blocks that memory in such pages is taken in. The first 4 MiB are
    /// always mapped in small pages.
    const fn block(self) -> u64 {
        match self {
            Self::Small | Self::Large => 2 * LARGE_PAGE,
            Self::Giant => GIANT_PAGE,
        }
    }

    /// Returns whether this CPU has such pages.
    fn is_there(self) -> bool {
        /// CPUID leaf 0x8000_0001, EDX: pages of 1 GiB.
        const GIANT_PAGES: u32 = 1 << 26;
        let features = || core::arch::x86_64::__cpuid(0x8000_0001).edx;
        self != Self::Giant || features() & GIANT_PAGES != 0
    }
}

/// Returns the bytes that are free for pages of this size.
pub fn left(pages: PageSize) -> usize {
    if !pages.is_there() {
        return 0;
    }
    let (next, end) = memory::free();
    let first = next.next_multiple_of(pages.block());
    (end.saturating_sub(first) & !(pages.block() - 1)) as usize
}

/// Returns the size of the page that maps an address, as the page tables have it.
///
/// # Panics
///
/// Panics if the address is not below 4 GiB.
pub fn size_at(address: usize) -> PageSize {
    let address = address as u64;
    assert!(address >> 32 == 0, "an address that is never mapped");
    let pointers = (&raw const page_pointers).cast::<u64>();
    let directory = (&raw const page_directories).cast::<u64>();
    // SAFETY: the tables are in place from the start on, and hold an entry for every address below
    // 4 GiB.
    let entries = unsafe {
        [
            read_volatile(pointers.add((address / GIANT_PAGE) as usize)),
            read_volatile(directory.add((address / LARGE_PAGE) as usize)),
        ]
    };
    match entries.map(|entry| entry & LARGE != 0) {
        [true, _] => PageSize::Giant,
        [_, true] => PageSize::Large,
        _ => PageSize::Small,
    }
}

/// Allocates memory as [`memory::take`] does, mapped in pages of one size for the CPU that calls.
/// None if there is not enough, or if the CPU has no such pages.
///
/// The mapping of an address stays the same, so another CPU may use it at any time, through the
/// page that it knows.
#[must_use]
pub fn take(bytes: usize, pages: PageSize) -> Option<&'static mut [u8]> {
    if !pages.is_there() {
        return None;
    }
    let memory = memory::take_aligned(bytes, pages.block() as usize)?;
    let start = memory.as_ptr().addr() as u64;
    let end = start + bytes as u64;
    // SAFETY: the addresses are those of memory, below 4 GiB; what is written maps each as before.
    unsafe {
        match pages {
            PageSize::Small => {
                for address in (start..end).step_by(LARGE_PAGE as usize) {
                    small_pages(address)?;
                }
            }
            PageSize::Large => {}
            PageSize::Giant => {
                let pointers = (&raw const page_pointers) as *mut u64;
                for address in (start..end).step_by(GIANT_PAGE as usize) {
                    let entry = pointers.add((address / GIANT_PAGE) as usize);
                    write_volatile(entry, address | PRESENT | WRITABLE | LARGE | NO_EXECUTE);
                }
            }
        }
        // Loading the address of the tables forgets all translations.
        asm!("mov {0}, cr3", "mov cr3, {0}", out(reg) _, options(nostack, preserves_flags));
    }
    Some(memory)
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

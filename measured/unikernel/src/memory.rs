//! A bump allocator over the free memory after the image; nothing is freed.

use core::mem::MaybeUninit;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::boot;
use crate::local::PAGE;

unsafe extern "C" {
    static image_constants_start: u8;
    static image_constants_end: u8;
    static image_code_start: u8;
    static image_code_end: u8;
    #[link_name = "image_end"]
    static image_end_symbol: u8;
}

/// Returns the range of the image's code.
pub(crate) fn image_code() -> Range<u64> {
    (&raw const image_code_start) as u64..(&raw const image_code_end) as u64
}

/// Returns the range of the image's constants.
pub(crate) fn image_constants() -> Range<u64> {
    (&raw const image_constants_start) as u64..(&raw const image_constants_end) as u64
}

/// Returns the first address after the image.
pub(crate) fn image_end() -> u64 {
    (&raw const image_end_symbol) as u64
}

/// Returns whether addresses are mapped as memory, not as device registers.
pub(crate) fn is_readable(addresses: Range<u64>) -> bool {
    const DEVICES: u64 = 0xe000_0000;
    addresses.start >= PAGE as u64 && addresses.end <= DEVICES
}

static NEXT: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);

/// Returns the end of the free memory. The first call determines it, before there is a second CPU,
/// whose stack is allocated here.
fn end() -> u64 {
    if END.load(Ordering::Relaxed) == 0 {
        let (start, end) = boot::free_memory();
        NEXT.store(start, Ordering::Relaxed);
        END.store(end, Ordering::Relaxed);
    }
    END.load(Ordering::Relaxed)
}

/// Returns the number of free bytes.
pub fn left() -> usize {
    let (next, end) = free();
    (end - next) as usize
}

/// Returns the bounds of what is free.
pub(crate) fn free() -> (u64, u64) {
    let end = end();
    (NEXT.load(Ordering::Relaxed), end)
}

/// Allocates `bytes` bytes, rounded up to whole pages, zeroed. None if there is not enough memory.
#[must_use]
pub fn take(bytes: usize) -> Option<&'static mut [u8]> {
    take_aligned(bytes, PAGE)
}

/// Allocates `bytes` bytes, zeroed, in whole blocks of `block` bytes, a power of two, at a multiple
/// of it. None if there is not enough memory.
pub(crate) fn take_aligned(bytes: usize, block: usize) -> Option<&'static mut [u8]> {
    let piece = reserve(bytes, block)?;
    piece.fill(MaybeUninit::new(0));
    // SAFETY: it has just been written.
    Some(unsafe { piece.assume_init_mut() })
}

/// Allocates as [`take`] does, without zeros: for memory that is written before it is read.
pub fn take_unset(bytes: usize) -> Option<&'static mut [MaybeUninit<u8>]> {
    reserve(bytes, PAGE)
}

fn reserve(bytes: usize, block: usize) -> Option<&'static mut [MaybeUninit<u8>]> {
    let rounded = bytes.checked_next_multiple_of(block)? as u64;
    let end = end();
    let aligned = |next: u64| next.next_multiple_of(block as u64);
    let next = NEXT
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            aligned(next)
                .checked_add(rounded)
                .filter(|behind| *behind <= end)
        })
        .ok()?;
    let start = aligned(next);
    // SAFETY: free memory, mapped, of which every byte is allocated once.
    Some(unsafe { core::slice::from_raw_parts_mut(start as *mut MaybeUninit<u8>, bytes) })
}

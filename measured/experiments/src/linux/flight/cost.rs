//! How long the kernel takes to record an event.

use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munlock, munmap};

use super::ring::Ring;
use super::tracepoint::{Point, Tracepoint};
use crate::linux::clock::now_ns;

/// The size of the buffer into which is recorded; the newest event overwrites the oldest.
const RING_BYTES: usize = 64 << 10;

/// Measures how long the kernel takes to record an event without a stack, in ns, by page faults
/// that are recorded and others that are not: the difference of the least of several times.
pub fn cost_ns(cpu: u32, tracepoints: &[Tracepoint]) -> Option<u64> {
    const TRIES: usize = 16;
    let is_fault = |point: &&Tracepoint| point.point == Point::PageFault;
    let fault = tracepoints.iter().find(is_fault)?;
    let least = || {
        let all = (0..TRIES).map(|_| fault_ns());
        all.collect::<Option<Vec<_>>>()?.into_iter().min()
    };
    let ring = Ring::open(cpu, std::slice::from_ref(fault), RING_BYTES).ok()?;
    let recorded = least()?;
    ring.stop();
    Some(recorded.saturating_sub(least()?))
}

/// Returns the time that a page takes that was not there, in ns, of several.
fn fault_ns() -> Option<u64> {
    const PAGES: usize = 64;
    let bytes = PAGES * rustix::param::page_size();
    let (read, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let map = unsafe { mmap_anonymous(ptr::null_mut(), bytes, read, private) }.ok()?;
    // Where all memory is locked, the pages are there at once.
    // SAFETY: of the mapping made above, which holds nothing.
    let gone =
        unsafe { munlock(map, bytes).and_then(|()| madvise(map, bytes, Advice::LinuxDontNeed)) };
    let began = now_ns();
    for page in 0..PAGES {
        // SAFETY: within the mapping, which nothing else uses.
        unsafe {
            map.cast::<u8>()
                .add(page * (bytes / PAGES))
                .write_volatile(1)
        };
    }
    let took = now_ns() - began;
    // SAFETY: the mapping made above, no longer used.
    let _ = unsafe { munmap(map, bytes) };
    gone.ok().map(|()| took / PAGES as u64)
}

//! Page faults and mappings.
//!
//! The time of a pass over untouched pages is divided by the faults that the kernel counted for it,
//! never by the number of pages: a kernel may map several pages in one fault.

use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::ptr;

use crate::primitives::bench::{Bench, Of, Why, why};
use crate::primitives::{Area, Need, Pages, Primitive};
use libc::{c_int, c_void};
use tare_workloads::timing::{Fenced, Timing};

use super::kernel::{self, Folder, checked, close, error, faults};

const FAULT: Primitive = Primitive {
    area: Area::Fault,
    method: "passes over untouched pages, divided by the faults that the kernel counted",
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
const PAGE: usize = 4_096;
const HUGE: usize = 2 << 20;
/// The bytes of a pass.
const BYTES: usize = 4 << 20;
/// The file of cse221-2022, in bytes: one access in every ten pages, 256 of them.
const FILE: usize = 10 << 20;
/// The distance between two accesses.
const APART: usize = 10 * PAGE;

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    FAULT.named("fault-anonymous", "minor fault of anonymous memory, written")
        .by(|bench, _| {
            counted(bench, Touch::Write, (BYTES, PAGE), || {
                kernel::map_untouched(BYTES, Pages::Small)
            })
        }),
    FAULT.named("fault-zero", "minor fault of anonymous memory, read: the zero page")
        .by(|bench, _| {
            counted(bench, Touch::Read, (BYTES, PAGE), || {
                kernel::map_untouched(BYTES, Pages::Small)
            })
        }),
    FAULT.named("fault-huge", "minor fault of a huge page")
        .method("first writes to blocks of 2 MiB, which the kernel clears; it counted one fault for each")
        .by(|bench, _| {
            counted(bench, Touch::Write, (8 * HUGE, HUGE), || {
                kernel::map_untouched(8 * HUGE, Pages::Huge)
            })
        }),
    FAULT.named("fault-file", "minor fault of a file in memory")
        .needs(&[Need::Kernel, Need::Folder])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = File::written(&folder, BYTES)?;
            counted(bench, Touch::Read, (BYTES, PAGE), || file.map())
        }),
    FAULT.named("fault-major", "major fault of a file")
        .needs(&[Need::Kernel, Need::Folder])
        .method("one access in every ten pages of a file of 10 MB of which nothing is in memory (fsync, POSIX_FADV_DONTNEED, \
                 mincore); the kernel counted a major fault for each")
        .tags(&["published"])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = File::written(&folder, FILE)?;
            major(bench, &file)
        }),
    FAULT.named("mmap", "mmap of anonymous memory")
        .method("each one between two stamps; the label size is the length")
        .by(|bench, _| mapped(bench, Timed::Map)),
    FAULT.named("munmap", "munmap of memory that was written")
        .method("each one between two stamps; the label size is the length")
        .by(|bench, _| mapped(bench, Timed::Unmap)),
    FAULT.named("mprotect", "mprotect of memory that was written")
        .method("to read-only and back, half of which is one; the label size is the length")
        .by(|bench, _| mapped(bench, Timed::Protect)),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Touch {
    Read,
    Write,
}

/// Passes over untouched mappings, and divides the time of each pass by its number of faults.
fn counted(
    bench: &mut Bench<'_>,
    touch: Touch,
    (bytes, apart): (usize, usize),
    map: impl Fn() -> Result<*mut u8, Why>,
) -> Result<(), Why> {
    let (mut least, mut sum, mut all) = (f64::INFINITY, 0.0, 0_u64);
    let begin = Fenced::before();
    let mut passes = 0_u64;
    while passes < 5 || Fenced::after().wrapping_sub(begin) < bench.budget() {
        let start = map()?;
        let before = faults().0;
        let first = Fenced::before();
        for at in (0..bytes).step_by(apart) {
            // SAFETY: within the mapping.
            unsafe {
                match touch {
                    Touch::Read => drop(start.add(at).read_volatile()),
                    Touch::Write => start.add(at).write_volatile(1),
                }
            }
        }
        let ticks = Fenced::after().wrapping_sub(first) as f64;
        let seen = faults().0.saturating_sub(before);
        // SAFETY: it is no longer used.
        unsafe { libc::munmap(start.cast(), bytes) };
        if seen == 0 {
            return Err(why(
                "the kernel counted no minor fault: it had mapped the pages before",
            ));
        }
        least = least.min(ticks / seen as f64);
        (sum, all, passes) = (sum + ticks, all + seen, passes + 1);
    }
    let touched = passes * (bytes / apart) as u64;
    if apart == HUGE && all > 2 * touched {
        return Err(why(format_args!(
            "the kernel gave no huge pages: it counted {all} faults for {touched} blocks of 2 MiB"
        )));
    }
    bench.value(Of::Cost, "", least);
    bench.value(Of::Mean, "", sum / all as f64);
    bench.value(Of::Number, "of=faults", all as f64);
    bench.value(Of::Number, "of=touched", touched as f64);
    Ok(())
}

/// A file with its descriptor.
struct File {
    descriptor: c_int,
    bytes: usize,
}

impl File {
    /// Writes a file of `bytes` bytes.
    fn written(folder: &Folder, bytes: usize) -> Result<Self, Why> {
        let path = folder.path("mapped");
        let path: &CStr = &path;
        std::fs::write(path.to_string_lossy().as_ref(), vec![1_u8; bytes])
            .map_err(|error| why(format_args!("the file can't be written: {error}")))?;
        // SAFETY: a NUL-terminated path.
        let descriptor = unsafe { libc::open(path.as_ptr(), libc::O_RDWR) };
        let descriptor = checked(descriptor, "the file can't be opened")?;
        Ok(Self { descriptor, bytes })
    }

    fn map(&self) -> Result<*mut u8, Why> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                self.bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                self.descriptor,
                0,
            )
        };
        match start {
            libc::MAP_FAILED => Err(error("the file can't be mapped")),
            start => Ok(start.cast()),
        }
    }

    /// Drops the file from the page cache.
    fn purge(&self) {
        // SAFETY: our own descriptor.
        unsafe {
            libc::fsync(self.descriptor);
            libc::posix_fadvise(self.descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        close(self.descriptor);
    }
}

fn major(bench: &mut Bench<'_>, file: &File) -> Result<(), Why> {
    const TRIALS: usize = 10;
    let mut times = Vec::new();
    for _ in 0..TRIALS {
        file.purge();
        let start = file.map()?;
        // SAFETY: the mapping is that long. Without read-ahead, an access loads only its own page.
        unsafe { libc::madvise(start.cast(), file.bytes, libc::MADV_RANDOM) };
        gone(in_memory(start, file.bytes)?)?;
        let before = faults().1;
        for at in (0..file.bytes).step_by(APART) {
            let begin = Fenced::before();
            // SAFETY: within the mapping.
            unsafe { start.add(at).read_volatile() };
            times.push(Fenced::after().wrapping_sub(begin));
        }
        let seen = faults().1.saturating_sub(before);
        // SAFETY: it is no longer used.
        unsafe { libc::munmap(start.cast(), file.bytes) };
        let accesses = file.bytes.div_ceil(APART) as u64;
        if seen != accesses {
            return Err(why(format_args!(
                "the kernel counted {seen} major faults for {accesses} accesses"
            )));
        }
        bench.value(
            Of::Number,
            format_args!("of=faults trial={}", times.len() as u64 / accesses),
            seen as f64,
        );
    }
    let mut times = times.into_iter();
    let least = bench.keep(Of::Time, "", || times.next());
    bench.value(Of::Cost, "", least as f64);
    Ok(())
}

/// Drops a file from the cache, and checks that it is gone.
pub(crate) fn drop_from_cache(descriptor: c_int, bytes: usize) -> Result<(), Why> {
    let file = ManuallyDrop::new(File { descriptor, bytes });
    file.purge();
    let start = file.map()?;
    let there = in_memory(start, bytes);
    // SAFETY: it is no longer used.
    unsafe { libc::munmap(start.cast(), bytes) };
    gone(there?)
}

/// Checks that no page is in memory.
fn gone(there: usize) -> Result<(), Why> {
    match there {
        0 => Ok(()),
        _ => Err(why(format_args!(
            "{there} pages of the file stay in memory (mincore): its folder is no disk, or keeps pages; name another one (--dir)"
        ))),
    }
}

/// Counts the pages of a mapping that are in memory.
fn in_memory(start: *mut u8, bytes: usize) -> Result<usize, Why> {
    let mut pages = vec![0_u8; bytes.div_ceil(PAGE)];
    // SAFETY: the mapping is that long, and there is a byte for each page.
    let told = unsafe { libc::mincore(start.cast::<c_void>(), bytes, pages.as_mut_ptr()) };
    checked(told, "it is unknown which pages are in memory (mincore)")?;
    Ok(pages.iter().filter(|page| **page & 1 == 1).count())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Timed {
    Map,
    Unmap,
    Protect,
}

fn mapped(bench: &mut Bench<'_>, timed: Timed) -> Result<(), Why> {
    let region = bench.region();
    for (label, bytes) in [("4K", PAGE), ("1M", 1 << 20), ("64M", 64 << 20)] {
        let mut kept: *mut u8 = ptr::null_mut();
        bench.single(format_args!("size={label}"), || {
            let begin = Fenced::before();
            let start = match kept.is_null() {
                true => kernel::map(bytes, libc::MAP_PRIVATE)?,
                false => kept,
            };
            let mut ticks = Fenced::after().wrapping_sub(begin);
            // Overrides the system's default. SAFETY: our own mapping. A kernel without huge pages
            // returns EINVAL.
            unsafe { libc::madvise(start.cast(), bytes, libc::MADV_NOHUGEPAGE) };
            if timed != Timed::Map && kept.is_null() {
                for at in (0..bytes).step_by(PAGE) {
                    // SAFETY: within the mapping.
                    unsafe { start.add(at).write_volatile(1) };
                }
            }
            if timed == Timed::Protect {
                kept = start;
                let mut done = 0;
                let begin = Fenced::before();
                for how in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
                    // SAFETY: our own mapping, which nobody writes to in between.
                    done |= unsafe { libc::mprotect(start.cast(), bytes, how) };
                }
                // The stamps enclose both calls, so their cost is subtracted twice.
                let ticks = (Fenced::after().wrapping_sub(begin) + region) / 2;
                return checked(done, "no other access (mprotect)").map(|_| ticks);
            }
            let begin = Fenced::before();
            // SAFETY: it is no longer used.
            unsafe { libc::munmap(start.cast(), bytes) };
            if timed == Timed::Unmap {
                ticks = Fenced::after().wrapping_sub(begin);
            }
            Ok(ticks)
        })?;
        if !kept.is_null() {
            // SAFETY: as above.
            unsafe { libc::munmap(kept.cast(), bytes) };
        }
    }
    Ok(())
}

//! Files: creating and removing them, reads from the page cache and from the disk, and contention.

use std::ffi::CStr;

use crate::primitives::bench::{Bench, Of, PLAIN, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use libc::c_int;
use tare_workloads::timing::{Fenced, Timing};

use super::fault::drop_from_cache;
use super::kernel::{Folder, Partner, SharedWord, checked, close, error};

const FILE: Primitive = Primitive {
    area: Area::File,
    needs: &[Need::Kernel, Need::Folder],
    ..Primitive::NEW
};
const SINGLE: &str = "each call between two stamps; what has to be done in between is not timed";
const PAGE: usize = 4_096;
const BLOCK: usize = 1 << 20;
/// The sizes of the files that are read.
const SIZES: [usize; 4] = [64 << 10, 1 << 20, 16 << 20, 64 << 20];
/// The size in bytes of the file for direct and remote reads.
const DIRECT: usize = 16 << 20;
/// The greatest number of competing processes.
const MOST_PROCESSES: u32 = 8;

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    FILE.named("file-create", "creating an empty file")
        .method(SINGLE)
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let path = folder.path("made");
            bench.single(PLAIN, || {
                let begin = Fenced::before();
                let file = open(&path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?;
                close(file);
                let ticks = Fenced::after().wrapping_sub(begin);
                unlink(&path)?;
                Ok(ticks)
            })
        }),
    FILE.named("file-unlink", "removing an empty file")
        .method(SINGLE)
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let path = folder.path("made");
            bench.single(PLAIN, || {
                close(open(&path, libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL)?);
                let begin = Fenced::before();
                unlink(&path)?;
                Ok(Fenced::after().wrapping_sub(begin))
            })
        }),
    FILE.named("file-fsync", "fsync after a write of 4 KiB")
        .method(SINGLE)
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = open(&folder.path("synced"), libc::O_RDWR | libc::O_CREAT)?;
            let block = [1_u8; PAGE];
            let synced = bench.single(PLAIN, || {
                // SAFETY: the buffer has that length.
                let put = unsafe { libc::pwrite(file, block.as_ptr().cast(), PAGE, 0) };
                checked(put as c_int, "the file can't be written")?;
                let begin = Fenced::before();
                // SAFETY: no pointers are passed.
                let done = unsafe { libc::fsync(file) };
                let ticks = Fenced::after().wrapping_sub(begin);
                checked(done, "the file can't be brought to the disk (fsync)")?;
                Ok(ticks)
            });
            close(file);
            synced
        }),
    FILE.named("file-read-sequential", "sequential read of a file in the cache")
        .method("a file that was just read, in blocks of 1 MiB from its beginning to its end; the label size is its size")
        .tags(&["published", "bandwidth"])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            for size in SIZES {
                let file = Read::new(&folder, size, 0)?;
                bench.passes(format_args!("size={size}"), size as u64, || file.whole())?;
            }
            Ok(())
        }),
    FILE.named("file-read-random", "random read of 4 KiB of a file in the cache")
        .method("pread at random multiples of 4 KiB of a file that was just read; the label size is its size")
        .tags(&["published"])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            for size in SIZES {
                let file = Read::new(&folder, size, 0)?;
                bench.single(format_args!("size={size}"), || file.once())?;
            }
            Ok(())
        }),
    FILE.named("file-direct-sequential", "sequential read of a file past the cache")
        .method("O_DIRECT in blocks of 1 MiB, of a file of 16 MiB")
        .tags(&["bandwidth", "direct"])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = Read::new(&folder, DIRECT, libc::O_DIRECT)?;
            bench.passes(format_args!("size={DIRECT}"), DIRECT as u64, || {
                file.whole()
            })
        }),
    FILE.named("file-direct-random", "random read of 4 KiB of a file past the cache")
        .method("O_DIRECT at random multiples of 4 KiB, of a file of 16 MiB")
        .tags(&["direct"])
        .by(|bench, around| {
            let folder = Folder::new(around)?;
            let file = Read::new(&folder, DIRECT, libc::O_DIRECT)?;
            bench.single(format_args!("size={DIRECT}"), || file.once())
        }),
    FILE.named("file-contention", "random read of 4 KiB past the cache, by number of processes")
        .method("each process reads its own file with O_DIRECT; the label processes is their number")
        .tags(&["published", "direct"])
        .by(contention),
    FILE.named("file-cache", "reading a file again, by its size")
        .method("a file is read twice; the time of the second reading shows whether it was in the cache. Files are doubled up to \
                 the largest (--largest-file), or to half of what the disk has room for")
        .tags(&["published", "bandwidth", "curve"])
        .by(cache),
    FILE.named("remote-read-sequential", "sequential read of a file on another machine")
        .needs(&[Need::Kernel, Need::RemoteFolder])
        .method("a file of 16 MiB in the folder of another machine, dropped from this machine's cache before each pass")
        .tags(&["published", "bandwidth"])
        .by(|bench, around| {
            let (_folder, file) = remote(around)?;
            bench.passes("at=remote", DIRECT as u64, || {
                drop_from_cache(file.descriptor, file.size)?;
                file.whole()
            })
        }),
    FILE.named("remote-read-random", "random read of 4 KiB of a file on another machine")
        .needs(&[Need::Kernel, Need::RemoteFolder])
        .method("pread at random multiples of 4 KiB of a file of 16 MiB in the folder of another machine, which is dropped from this machine's \
                 cache before each")
        .tags(&["published"])
        .by(|bench, around| {
            let (_folder, file) = remote(around)?;
            bench.single("at=remote", || {
                drop_from_cache(file.descriptor, file.size)?;
                file.once()
            })
        }),
];

/// Writes a file in the folder of another machine. The file comes second in the pair, so that it is
/// closed first: NFS renames a file that is removed while open, and the folder would not be empty.
fn remote(around: &Context<'_>) -> Result<(Folder, Read), Why> {
    let dir = around.plan.remote;
    let dir = dir.ok_or_else(|| why("no folder of another machine was named (--remote-dir)"))?;
    let folder = Folder::in_folder(dir)?;
    let file = Read::new(&folder, DIRECT, 0)?;
    Ok((folder, file))
}

fn open(path: &CStr, how: c_int) -> Result<c_int, Why> {
    // SAFETY: a NUL-terminated path.
    let file = unsafe { libc::open(path.as_ptr(), how | libc::O_CLOEXEC, 0o600) };
    checked(file, "the file can't be opened")
}

fn unlink(path: &CStr) -> Result<(), Why> {
    // SAFETY: a NUL-terminated path.
    let removed = unsafe { libc::unlink(path.as_ptr()) };
    checked(removed, "the file can't be removed").map(drop)
}

/// An open file with a buffer to read into.
struct Read {
    descriptor: c_int,
    size: usize,
    buffer: *mut u8,
    state: std::cell::Cell<u64>,
}

impl Read {
    /// Writes a file of `size` bytes, and opens it.
    fn new(folder: &Folder, size: usize, how: c_int) -> Result<Self, Why> {
        let path = folder.path(&format!("read-{size}"));
        let buffer = crate::primitives::linux::kernel::map(BLOCK, libc::MAP_PRIVATE)?;
        // Random data: file systems that compress, and disks of guests, do not store zeros.
        for (place, at) in (0..BLOCK).step_by(size_of::<u64>()).enumerate() {
            let word = (place as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // SAFETY: within the mapping, which is aligned to a page.
            unsafe { buffer.add(at).cast::<u64>().write(word) };
        }
        let file = open(&path, libc::O_RDWR | libc::O_CREAT)?;
        for at in (0..size).step_by(BLOCK) {
            let bytes = BLOCK.min(size - at);
            // SAFETY: the buffer has that length.
            let put = unsafe { libc::pwrite(file, buffer.cast(), bytes, at as libc::off_t) };
            if usize::try_from(put) != Ok(bytes) {
                close(file);
                return Err(error(format_args!(
                    "the file of {} MiB can't be written",
                    size >> 20
                )));
            }
        }
        // SAFETY: no pointers are passed.
        unsafe { libc::fsync(file) };
        close(file);
        let descriptor = open(&path, libc::O_RDONLY | how).map_err(|told| match how {
            0 => told,
            _ => why(format_args!(
                "{told}: this file system has no direct I/O; name another folder (--dir)"
            )),
        })?;
        // The open file stays readable, and disappears however this process ends.
        unlink(&path)?;
        Ok(Self {
            descriptor,
            size,
            buffer,
            state: std::cell::Cell::new(0x9e37_79b9_7f4a_7c15),
        })
    }

    /// Reads `bytes` bytes.
    fn at(&self, offset: usize, bytes: usize) -> Result<(), Why> {
        let offset = offset as libc::off_t;
        // SAFETY: the buffer is a block long.
        let got = unsafe { libc::pread(self.descriptor, self.buffer.cast(), bytes, offset) };
        match usize::try_from(got) == Ok(bytes) {
            true => Ok(()),
            false => Err(error("the file can't be read")),
        }
    }

    /// Reads the file from its beginning to its end.
    fn whole(&self) -> Result<u64, Why> {
        let begin = Fenced::before();
        for at in (0..self.size).step_by(BLOCK) {
            self.at(at, BLOCK.min(self.size - at))?;
        }
        Ok(Fenced::after().wrapping_sub(begin))
    }

    /// Reads 4 KiB at a random offset.
    fn once(&self) -> Result<u64, Why> {
        // xorshift64: Marsaglia, "Xorshift RNGs", 2003.
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        let at = (state >> 11) as usize % (self.size / PAGE) * PAGE;
        let begin = Fenced::before();
        self.at(at, PAGE)?;
        Ok(Fenced::after().wrapping_sub(begin))
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        close(self.descriptor);
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.buffer.cast(), BLOCK) };
    }
}

fn contention(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    let folder = Folder::new(around)?;
    let file = Read::new(&folder, DIRECT, libc::O_DIRECT)?;
    let mut others = Vec::new();
    let mut processes = 1;
    let going = SharedWord::new()?;
    let cpus = super::kernel::allowed_cpus(around.plan);
    while processes <= MOST_PROCESSES {
        while others.len() + 1 < processes as usize {
            let number = others.len() + 1;
            let own = Read::new(&folder, DIRECT + number * BLOCK, libc::O_DIRECT)?;
            // Spread over the CPUs, so that they contend for the disk.
            let cpu = cpus.get(number % cpus.len().max(1)).copied();
            others.push(Partner::start(cpu, || {
                going.add();
                while own.once().is_ok() {}
            })?);
        }
        if !going.wait_for(others.len() as u32, 5_000) {
            return Err(why("the other processes did not begin"));
        }
        bench.single(format_args!("processes={processes}"), || file.once())?;
        processes *= 2;
    }
    Ok(())
}

/// Returns the free space of a file's file system, in bytes.
fn free_bytes(path: &CStr) -> Result<u64, Why> {
    let told = rustix::fs::statvfs(path).map_err(|error| {
        why(format_args!(
            "the free space of the disk is unknown (statvfs): {error}"
        ))
    })?;
    Ok(told.f_bavail * told.f_frsize)
}

fn cache(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    let folder = Folder::new(around)?;
    let most = (free_bytes(&folder.path(""))? / 2).min(around.plan.largest);
    let mut size = 8 << 20;
    while size as u64 <= most {
        let file = Read::new(&folder, size, 0)?;
        drop_from_cache(file.descriptor, file.size)?;
        for reading in ["first", "second"] {
            let mut once = Some(file.whole()?);
            let labels = format_args!("reading={reading} size={size}");
            bench.keep(Of::Pass, labels, || once.take());
            bench.value(Of::Bytes, labels, size as f64);
        }
        size *= 2;
    }
    Ok(())
}

//! The kernel's buffer of trace events of one CPU.
//!
//! The kernel writes it backwards: the newest record has the lowest address, followed by older
//! ones. It never waits for a reader; when the buffer is full, the newest record overwrites the
//! oldest ones. So the newest part can be copied while the kernel continues to write, if the
//! position of the kernel is checked afterwards.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::{
    PERF_FLAG_FD_CLOEXEC, PERF_RECORD_SAMPLE, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IDENTIFIER,
    PERF_SAMPLE_RAW, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_TRACEPOINT, perf_event_attr,
    perf_event_mmap_page,
};
use perf_event_open_sys::{ioctls, perf_event_open};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::error::FlightError;
use super::tracepoint::{Tracepoint, When};

/// The usual size of a buffer, a power of two; with its first page it is the default limit for every
/// user (kernel.perf_event_mlock_kb).
pub const SIZE: usize = 512 << 10;

/// The maximum number of functions of a stack. In an interrupt's, the first three are its own.
const DEPTH: u16 = 8;

/// The offset of the part that every record has after its header: identifier, the process and the
/// thread that ran, time.
const IDENTIFIER_AT: u64 = 8;
const TASK_AT: u64 = 16;
const TIME_AT: u64 = 24;
/// The offset of the part that depends on the event.
pub const BODY_AT: usize = 32;

/// The threads whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// All.
    Everyone,
    /// The calling thread, and the threads and processes that it starts from then on, and those
    /// that these start.
    Descendants,
}

/// The buffer of one CPU, with the events that write to it.
pub struct Ring {
    cpu: u32,
    /// The events; the first one owns the buffer.
    events: Vec<Event>,
    map: *mut u8,
    map_bytes: usize,
    data: *const u8,
    size: u64,
}

/// One event of one CPU.
pub struct Event {
    file: OwnedFd,
    /// The identifier in its records.
    identifier: u64,
    /// The index of its tracepoint.
    place: usize,
    /// Whether its records have a stack.
    with_stack: bool,
}

// SAFETY: the mapping is only read, belongs to this value alone, and stays in place until it is
// dropped. `newest` handles concurrent writes of the kernel, in any thread.
unsafe impl Send for Ring {}
// SAFETY: as above; no method changes this value.
unsafe impl Sync for Ring {}

/// The extent of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of bytes, newest record first. The last record may be truncated.
    pub bytes: usize,
    /// Whether they reach back to the requested time.
    pub complete: bool,
}

impl Ring {
    /// Starts recording events on a CPU into a buffer of `bytes`, a power of two.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] with the kernel's reason if it refuses.
    pub fn open(cpu: u32, tracepoints: &[Tracepoint], bytes: usize) -> Result<Self, FlightError> {
        Self::of(Whose::Everyone, cpu, tracepoints, bytes)
    }

    /// Starts recording the events of some threads on a CPU into a buffer of `bytes`, a power of
    /// two.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] with the kernel's reason if it refuses.
    pub fn of(
        whose: Whose,
        cpu: u32,
        tracepoints: &[Tracepoint],
        bytes: usize,
    ) -> Result<Self, FlightError> {
        let mut events: Vec<Event> = Vec::new();
        let mut mapped = None;
        let all = tracepoints
            .iter()
            .enumerate()
            .flat_map(|(place, tracepoint)| {
                let whens = tracepoint.whens().into_iter();
                whens.map(move |when| (place, tracepoint, when))
            });
        for (place, tracepoint, when) in all {
            let opened = Event::open((whose, cpu), tracepoint, place, &when).and_then(|event| {
                if let Some(first) = events.first() {
                    event.write_into(first)?;
                }
                Ok(event)
            });
            events.push(opened.map_err(|source| refused(tracepoint, cpu, source))?);
            if mapped.is_none() {
                let file = &events[0].file;
                mapped =
                    Some(map(file, bytes).map_err(|source| FlightError::Buffer { cpu, source })?);
            }
        }
        let Some((map, map_bytes)) = mapped else {
            let source = io::Error::other("no events");
            return Err(FlightError::Buffer { cpu, source });
        };
        // SAFETY: the mapping begins with this structure, filled in by the kernel.
        let (offset, size) = unsafe {
            let page = map.cast::<perf_event_mmap_page>();
            ((*page).data_offset as usize, (*page).data_size)
        };
        let ring = Self {
            cpu,
            events,
            map,
            map_bytes,
            // SAFETY: the data begin there, within the mapping.
            data: unsafe { map.add(offset) },
            size,
        };
        ring.touch();
        ring.start(tracepoints)?;
        Ok(ring)
    }

    /// Starts recording, also again after [`Ring::stop`].
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] with the kernel's reason if it refuses.
    pub fn start(&self, tracepoints: &[Tracepoint]) -> Result<(), FlightError> {
        for event in &self.events {
            let enabled = event.enable();
            enabled.map_err(|source| refused(&tracepoints[event.place], self.cpu, source))?;
        }
        Ok(())
    }

    /// Returns the size of the buffer.
    pub fn bytes(&self) -> usize {
        self.size as usize
    }

    /// Returns the number of bytes that were written since it was opened.
    pub fn written(&self) -> u64 {
        // The head starts at 0 and decreases.
        0_u64.wrapping_sub(self.head())
    }

    /// Returns the CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Returns the index of the tracepoint with this identifier, and whether its records have a
    /// stack.
    pub fn event_of(&self, identifier: u64) -> Option<(usize, bool)> {
        let mut events = self.events.iter();
        let event = events.find(|event| event.identifier == identifier)?;
        Some((event.place, event.with_stack))
    }

    /// Stops recording.
    pub fn stop(&self) {
        for event in &self.events {
            // SAFETY: an ioctl without pointers, on an open file.
            let _ = unsafe { ioctls::DISABLE(event.file.as_raw_fd(), 0) };
        }
    }

    /// Copies the newest records, back to the first one older than `since_ns`, as far as there is
    /// room. Makes no system call.
    pub fn newest(&self, since_ns: u64, into: &mut [u8]) -> Copied {
        let head = self.head();
        // The head starts at 0 and decreases.
        let written = 0_u64.wrapping_sub(head);
        let readable = written.min(self.size);
        let mut bytes = 0;
        let mut complete = false;
        loop {
            if bytes + BODY_AT as u64 > readable {
                complete = written <= self.size;
                break;
            }
            let at = head.wrapping_add(bytes);
            // struct perf_event_header: type in the lower 32 bits, size in the upper 16.
            let header = self.word(at);
            let length = header >> 48;
            if length < BODY_AT as u64
                || bytes + length > readable
                || bytes + length > into.len() as u64
            {
                break;
            }
            bytes += length;
            let is_sample = header as u32 == PERF_RECORD_SAMPLE;
            if is_sample && self.word(at.wrapping_add(TIME_AT)) < since_ns {
                complete = true;
                break;
            }
        }
        self.copy(head, &mut into[..bytes as usize]);
        // The kernel's writes since then replaced the oldest records.
        let overwritten = head.wrapping_sub(self.head());
        let intact = self.size.saturating_sub(overwritten).min(bytes);
        Copied {
            bytes: intact as usize,
            complete: complete && intact == bytes,
        }
    }

    /// Returns the offset of the newest record. Everything that the kernel wrote before is visible
    /// afterwards.
    fn head(&self) -> u64 {
        // SAFETY: the mapping begins with this structure; the field is aligned, and the kernel
        // writes it atomically.
        let head = unsafe {
            let page = self.map.cast::<perf_event_mmap_page>();
            AtomicU64::from_ptr(&raw mut (*page).data_head)
        };
        head.load(Ordering::Acquire)
    }

    /// Reads eight bytes. Records are aligned to eight, so they do not cross the buffer's end.
    fn word(&self, at: u64) -> u64 {
        let offset = (at & (self.size - 1) & !7) as usize;
        // SAFETY: within the buffer, and aligned. The kernel may write there concurrently, which
        // the caller detects.
        unsafe { ptr::read_volatile(self.data.add(offset).cast()) }
    }

    fn copy(&self, from: u64, into: &mut [u8]) {
        let offset = (from & (self.size - 1)) as usize;
        let first = into.len().min(self.size as usize - offset);
        let (before, after) = into.split_at_mut(first);
        // SAFETY: both parts are within the buffer and as long as their destinations, which do not
        // overlap them. The kernel may write there concurrently, which the caller detects.
        unsafe {
            ptr::copy_nonoverlapping(self.data.add(offset), before.as_mut_ptr(), before.len());
            ptr::copy_nonoverlapping(self.data, after.as_mut_ptr(), after.len());
        }
    }

    /// Reads every page once, so that a late thread causes no faults.
    fn touch(&self) {
        for at in (0..self.size).step_by(4_096) {
            self.word(at);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and no longer used.
        let _ = unsafe { munmap(self.map.cast(), self.map_bytes) };
    }
}

fn refused(tracepoint: &Tracepoint, cpu: u32, source: io::Error) -> FlightError {
    let name = tracepoint.name.clone();
    FlightError::Refused { name, cpu, source }
}

impl Event {
    /// Opens an event without a buffer, and does not record it.
    ///
    /// # Errors
    ///
    /// Returns [`FlightError`] with the kernel's reason if it refuses.
    pub fn unrecorded(cpu: u32, tracepoint: &Tracepoint) -> Result<Self, FlightError> {
        let opened = Self::open((Whose::Everyone, cpu), tracepoint, 0, &When::ALWAYS);
        opened.map_err(|source| refused(tracepoint, cpu, source))
    }

    fn open(
        (whose, cpu): (Whose, u32),
        tracepoint: &Tracepoint,
        place: usize,
        when: &When,
    ) -> io::Result<Self> {
        let mut asked = perf_event_attr {
            type_: PERF_TYPE_TRACEPOINT,
            size: size_of::<perf_event_attr>() as u32,
            config: tracepoint.id,
            sample_type: u64::from(
                PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
            ),
            clockid: libc::CLOCK_MONOTONIC,
            ..perf_event_attr::default()
        };
        asked.sample_period = 1;
        asked.set_disabled(1);
        asked.set_use_clockid(1);
        asked.set_write_backward(1);
        asked.set_inherit((whose == Whose::Descendants).into());
        // Without this, the kernel would interrupt the CPU whenever the buffer is half full.
        asked.set_watermark(1);
        asked.wakeup_watermark = u32::MAX;
        if when.with_stack {
            asked.sample_type |= u64::from(PERF_SAMPLE_CALLCHAIN);
            asked.set_exclude_callchain_user(1);
            asked.sample_max_stack = DEPTH;
        }
        let flags = PERF_FLAG_FD_CLOEXEC.into();
        let pid = match whose {
            Whose::Everyone => -1,
            Whose::Descendants => 0,
        };
        // SAFETY: a live value that contains its size; the call only creates a file.
        let file = unsafe { perf_event_open(&raw mut asked, pid, cpu as i32, -1, flags) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let mut identifier = 0;
        // SAFETY: the kernel writes eight bytes into a live value.
        check(unsafe { ioctls::ID(file.as_raw_fd(), &raw mut identifier) })?;
        if let Some(filter) = &when.filter {
            let text = filter.as_ptr().cast_mut();
            // SAFETY: the kernel only reads the NUL-terminated text.
            check(unsafe { ioctls::SET_FILTER(file.as_raw_fd(), text) })?;
        }
        Ok(Self {
            file,
            identifier,
            place,
            with_stack: when.with_stack,
        })
    }

    /// Makes the kernel write to the buffer of another event.
    fn write_into(&self, other: &Self) -> io::Result<()> {
        // SAFETY: an ioctl without pointers, on open files.
        check(unsafe { ioctls::SET_OUTPUT(self.file.as_raw_fd(), other.file.as_raw_fd()) })
    }

    fn enable(&self) -> io::Result<()> {
        // SAFETY: an ioctl without pointers, on an open file.
        check(unsafe { ioctls::ENABLE(self.file.as_raw_fd(), 0) })
    }
}

/// Maps a buffer. Without PROT_WRITE the kernel does not wait for a reader.
fn map(file: &OwnedFd, bytes: usize) -> io::Result<(*mut u8, usize)> {
    let bytes = rustix::param::page_size() + bytes;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let map = unsafe {
        mmap(
            ptr::null_mut(),
            bytes,
            ProtFlags::READ,
            MapFlags::SHARED,
            file,
            0,
        )
    }?;
    Ok((map.cast(), bytes))
}

fn check(result: i32) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Splits a copy into records: identifier, time, the number of the process that ran, body. Newest
/// first. An ending process has lost its number: 0 or [`u32::MAX`].
pub fn records(mut bytes: &[u8]) -> impl Iterator<Item = (u64, u64, u32, &[u8])> {
    let word = |bytes: &[u8], at: u64| {
        let at = at as usize;
        let eight = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(eight.try_into().ok()?))
    };
    std::iter::from_fn(move || {
        loop {
            let header = word(bytes, 0)?;
            let length = (header >> 48) as usize;
            let record = bytes.get(..length).filter(|_| length >= BODY_AT)?;
            bytes = &bytes[length..];
            if header as u32 == PERF_RECORD_SAMPLE {
                let identifier = word(record, IDENTIFIER_AT)?;
                let (time, task) = (word(record, TIME_AT)?, word(record, TASK_AT)?);
                return Some((identifier, time, task as u32, &record[BODY_AT..]));
            }
        }
    })
}

//! A queue: the rings in which driver and device pass buffers to each other.
//!
//! The layout is that of split virtqueues (Virtio 1.2, 2.7). Each side suppresses notifications
//! that it does not need: by an event index if [`crate::device`] has negotiated it, otherwise by a
//! flag.
//!
//! Each side writes, and then reads what the other one wrote. QEMU before 8.1 leaves out the fence
//! between the two in a guest with one CPU, although the device runs on another thread: three of
//! four runs of three name servers, each flooded with 3 million packets on two cores, hung (QEMU
//! 7.2). So the driver also reads the TSC, for which QEMU takes a lock; 15 such runs ended well.

use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{Ordering, fence};

/// One buffer.
#[repr(C)]
struct Descriptor {
    address: u64,
    bytes: u32,
    flags: u16,
    next: u16,
}

const NEXT: u16 = 1;
const WRITABLE: u16 = 2;
/// The flag of a ring that suppresses notifications by the other side.
const NO_NOTIFICATION: u16 = 1;

/// Time limit for a device before a service starts, in ticks of the TSC: about 20 s.
pub const PATIENCE_TICKS: u64 = 1 << 36;

/// Returns the time-stamp counter.
#[cfg(not(test))]
pub(crate) fn tsc() -> u64 {
    // SAFETY: every x86-64 CPU has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
pub(crate) use crate::machine::tsc;

/// Orders earlier writes before later reads, as seen by the device.
///
/// QEMU before 8.1 omits fences in the code of a guest with one CPU, although its devices run on
/// other threads; reading the TSC takes a lock there.
fn write_before_reading() {
    fence(Ordering::SeqCst);
    let _ = tsc();
}

/// What the driver knows of a descriptor, in memory of its own: what comes back from the device is
/// compared with that.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The next free descriptor, or the next one of the chain.
    next: u16,
    state: State,
}

/// Who may use a descriptor. The first one of a chain has the number of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    /// Of a chain, behind its first.
    Behind,
    InFlight(u16),
    Returned(u16),
}

/// The memory of a queue: the three parts that driver and device share in sequence, and what the
/// driver knows.
#[derive(Debug)]
pub struct Rings {
    start: *mut u8,
    size: u16,
}

impl Rings {
    /// The alignment of the memory, in bytes.
    pub const ALIGNMENT: usize = 16;

    /// Returns the number of bytes that a queue of a size takes.
    pub fn bytes(size: u16) -> usize {
        Self::shared(size) + usize::from(size) * size_of::<Link>()
    }

    /// Returns the number of bytes that are shared.
    fn shared(size: u16) -> usize {
        (usize::from(size) * (16 + 2 + 8) + 6 + 2 + 6).next_multiple_of(align_of::<Link>())
    }

    /// Makes the rings of a queue.
    ///
    /// # Safety
    ///
    /// The size is a power of two. The memory is zero, has [`Rings::bytes`] bytes and
    /// [`Rings::ALIGNMENT`], and only the queue and its device use it.
    #[must_use]
    pub unsafe fn new(start: *mut u8, size: u16) -> Self {
        let rings = Self { start, size };
        for index in 0..size {
            let link = Link {
                next: index + 1,
                state: State::Free,
            };
            // SAFETY: behind the shared part there is one for each descriptor.
            unsafe { rings.link(index).write(link) };
        }
        rings
    }

    /// Returns the number of entries in each part.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// Returns the slot of an index, which runs on: the size divides 65,536.
    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.size - 1))
    }

    /// Returns the offsets of the descriptors, the driver's part and the device's part.
    fn parts(&self) -> [usize; 3] {
        let driver = 16 * usize::from(self.size);
        let device = driver + 6 + 2 * usize::from(self.size);
        [0, driver, device.next_multiple_of(4)]
    }

    /// Returns the addresses of the descriptors, the driver's part and the device's part.
    pub fn addresses(&self) -> [u64; 3] {
        self.parts()
            .map(|part| self.start.wrapping_add(part) as u64)
    }

    fn link(&self, index: u16) -> *mut Link {
        let links = self.start.wrapping_add(Self::shared(self.size));
        links.cast::<Link>().wrapping_add(index.into())
    }

    fn descriptor(&self, index: u16) -> *mut Descriptor {
        self.start.cast::<Descriptor>().wrapping_add(index.into())
    }

    /// Returns a word of the driver's part: flags, index, ring, event.
    fn driver(&self, word: usize) -> *mut u16 {
        let [_, driver, _] = self.parts();
        self.start
            .wrapping_add(driver)
            .cast::<u16>()
            .wrapping_add(word)
    }

    /// Returns a word of the device's part: flags, index, entries of four words, event.
    fn device(&self, word: usize) -> *mut u16 {
        let [.., device] = self.parts();
        self.start
            .wrapping_add(device)
            .cast::<u16>()
            .wrapping_add(word)
    }

    /// Returns the word of the driver's part that names the next event.
    fn driver_event(&self) -> *mut u16 {
        self.driver(2 + usize::from(self.size))
    }

    /// Returns the word of the device's part that names the next event.
    fn device_event(&self) -> *mut u16 {
        self.device(2 + 4 * usize::from(self.size))
    }
}

/// A buffer for the device.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Its address.
    pub address: u64,
    /// Its length.
    pub bytes: u32,
    /// Whether the device writes to it; otherwise it reads.
    pub is_writable: bool,
}

/// The register that notifies a device of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Bell {
    /// Its address.
    pub register: u64,
    /// Whether it has 32 bits, as with MMIO, not the 16 of PCI.
    pub is_wide: bool,
    /// The number of the queue, which is written to it.
    pub number: u16,
}

/// A queue of a device.
///
/// Whatever the device writes, a buffer comes back once, and only if the device had it: other
/// entries are passed over, and a device that claims more than it got is not heard any more.
#[derive(Debug)]
pub struct Queue {
    rings: Rings,
    bell: Bell,
    has_events: bool,
    /// The first free descriptor; each names the next one.
    free: u16,
    free_count: u16,
    /// The numbers of chains put in, announced to the device, and read back; and that of chains that
    /// the device has.
    put: u16,
    announced: u16,
    taken: u16,
    in_flight: u16,
    notifications: u64,
    /// The entries that were passed over, and whether the device is not heard any more.
    faults: u64,
    is_broken: bool,
}

impl Queue {
    /// Makes a queue. `has_events` says whether the device has agreed on event indices.
    pub fn over(rings: Rings, bell: Bell, has_events: bool) -> Self {
        let mut queue = Self {
            free: 0,
            free_count: rings.size,
            rings,
            bell,
            has_events,
            put: 0,
            announced: 0,
            taken: 0,
            in_flight: 0,
            notifications: 0,
            faults: 0,
            is_broken: false,
        };
        queue.disable_interrupt();
        queue
    }

    /// Returns the number of entries.
    pub fn size(&self) -> u16 {
        self.rings.size
    }

    /// Returns the number of free descriptors.
    pub fn room(&self) -> u16 {
        self.free_count
    }

    /// Returns the number of chains that the device owns.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Returns the number of notifications of the device.
    pub fn notifications(&self) -> u64 {
        self.notifications
    }

    /// Returns how often the device returned what it did not have.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Returns the descriptor that [`Queue::put`] will use next. None if all are in use.
    pub fn next(&self) -> Option<u16> {
        (self.free_count > 0).then_some(self.free)
    }

    /// Returns what is known of a descriptor.
    fn link(&mut self, index: u16) -> &mut Link {
        assert!(index < self.rings.size);
        // SAFETY: one of the links, which only this queue uses.
        unsafe { &mut *self.rings.link(index) }
    }

    /// Passes a chain of buffers to the device. Returns its first descriptor, which identifies it
    /// when it comes back. None if there are too few free descriptors.
    ///
    /// # Safety
    ///
    /// The buffers must stay valid until they come back, and those that the device writes to must
    /// not be accessed.
    pub unsafe fn put(&mut self, buffers: &[Buffer]) -> Option<u16> {
        let head = self.free;
        let count = u16::try_from(buffers.len()).ok()?;
        if count == 0 || self.free_count < count {
            return None;
        }
        for (place, buffer) in (1..).zip(buffers) {
            let this = self.free;
            let link = self.link(this);
            link.state = State::Behind;
            let next = link.next;
            let more = if place < count { NEXT } else { 0 };
            let access = if buffer.is_writable { WRITABLE } else { 0 };
            let descriptor = Descriptor {
                address: buffer.address,
                bytes: buffer.bytes,
                flags: more | access,
                next,
            };
            // SAFETY: a free descriptor, which the device does not read.
            unsafe { self.rings.descriptor(this).write(descriptor) };
            self.free = next;
        }
        self.link(head).state = State::InFlight(count);
        self.free_count -= count;
        self.in_flight += 1;
        let slot = 2 + self.rings.slot(self.put);
        self.put = self.put.wrapping_add(1);
        // SAFETY: words of the driver's part. The device must see the entry before the index.
        unsafe {
            write_volatile(self.rings.driver(slot), head);
            fence(Ordering::Release);
            write_volatile(self.rings.driver(1), self.put);
        }
        Some(head)
    }

    /// Passes a chain of buffers to the device, waits for it, and returns the number of bytes
    /// written. None if something is in the queue, or if the device takes longer than
    /// `patience_ticks` of the TSC; in that case it still owns the buffers.
    ///
    /// # Safety
    ///
    /// As for [`Queue::put`].
    pub unsafe fn ask(&mut self, buffers: &[Buffer], patience_ticks: u64) -> Option<u32> {
        if self.in_flight > 0 {
            return None;
        }
        // SAFETY: passed on to the caller.
        unsafe { self.put(buffers)? };
        self.notify();
        let start = tsc();
        while tsc().wrapping_sub(start) < patience_ticks {
            if let Some(bytes) = self.take_back() {
                return Some(bytes);
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Takes back and frees the next chain. Returns the number of bytes written.
    pub fn take_back(&mut self) -> Option<u32> {
        let (name, bytes) = self.take()?;
        self.release(name);
        Some(bytes)
    }

    /// Notifies the device of new buffers, if it needs that.
    pub fn notify(&mut self) {
        if self.put == self.announced {
            return;
        }
        // The index must be written before the device's event or flag is read.
        write_before_reading();
        // SAFETY: words of the device's part.
        let wants = unsafe {
            if self.has_events {
                let event = read_volatile(self.rings.device_event());
                let ahead = self.put.wrapping_sub(event).wrapping_sub(1);
                ahead < self.put.wrapping_sub(self.announced)
            } else {
                read_volatile(self.rings.device(0)) & NO_NOTIFICATION == 0
            }
        };
        self.announced = self.put;
        if wants {
            self.notifications += 1;
            let Bell {
                register, number, ..
            } = self.bell;
            // SAFETY: the notification register of the queue.
            unsafe {
                if self.bell.is_wide {
                    write_volatile(register as *mut u32, number.into());
                } else {
                    write_volatile(register as *mut u16, number);
                }
            }
        }
    }

    /// Returns the number of entries that the device has written and the driver has not read.
    fn come(&self) -> u16 {
        if self.is_broken {
            return 0;
        }
        // SAFETY: a word of the device's part.
        unsafe { read_volatile(self.rings.device(1)) }.wrapping_sub(self.taken)
    }

    /// Returns whether a chain has come back.
    pub fn has_come(&self) -> bool {
        self.come() > 0
    }

    /// Takes back the next chain: its first descriptor, and the number of bytes written. Its
    /// descriptors are in use until [`Queue::release`].
    pub fn take(&mut self) -> Option<(u16, u32)> {
        // A device that goes on writing what it does not have keeps nobody here for longer.
        for _ in 0..self.rings.size {
            let come = self.come();
            // More than it can have: the ring was overwritten, or was never one.
            if come > self.in_flight {
                self.faults += 1;
                self.is_broken = true;
            }
            if come == 0 || self.is_broken {
                return None;
            }
            // The entry must be read after the index.
            fence(Ordering::Acquire);
            let place = 2 + 4 * self.rings.slot(self.taken);
            self.taken = self.taken.wrapping_add(1);
            // SAFETY: an entry of the device's part: name and length, of 32 bits each.
            let (name, bytes) = unsafe {
                let entry = self.rings.device(place).cast::<u32>();
                (read_volatile(entry), read_volatile(entry.wrapping_add(1)))
            };
            if let Ok(name) = u16::try_from(name)
                && name < self.rings.size
                && let State::InFlight(count) = self.link(name).state
            {
                self.link(name).state = State::Returned(count);
                self.in_flight -= 1;
                return Some((name, bytes));
            }
            self.faults += 1;
        }
        None
    }

    /// Frees the descriptors of a chain that came back; others are left alone.
    pub fn release(&mut self, name: u16) {
        let State::Returned(count) = self.link(name).state else {
            return;
        };
        let mut last = name;
        for place in 1..=count {
            let link = self.link(last);
            link.state = State::Free;
            if place < count {
                last = link.next;
            }
        }
        self.link(last).next = self.free;
        self.free = name;
        self.free_count += count;
    }

    /// Enables the interrupt for the time when `more` further chains have come back. Returns false
    /// if they have already: then it will not come.
    pub fn enable_interrupt(&mut self, more: u16) -> bool {
        let event = self.taken.wrapping_add(more - 1);
        // SAFETY: words of the driver's part.
        unsafe {
            if self.has_events {
                write_volatile(self.rings.driver_event(), event);
            } else {
                write_volatile(self.rings.driver(0), 0);
            }
        }
        // The event must be written before the index is read.
        write_before_reading();
        self.come() < more
    }

    /// Disables the interrupt.
    pub fn disable_interrupt(&mut self) {
        // SAFETY: words of the driver's part. An event as far away as possible is not reached
        // before this is called again.
        unsafe {
            if self.has_events {
                let far = self.taken.wrapping_sub(1);
                write_volatile(self.rings.driver_event(), far);
            } else {
                write_volatile(self.rings.driver(0), NO_NOTIFICATION);
            }
        }
    }
}

#[cfg(any(test, feature = "model"))]
pub mod model;
#[cfg(test)]
mod tests;

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

use tare_unikernel::{cpu, memory};

use crate::device::{Device, DeviceError, EVENT_IDX};

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

/// Orders earlier writes before later reads, as seen by the device.
///
/// QEMU before 8.1 omits fences in the code of a guest with one CPU, although its devices run on
/// other threads; reading the TSC takes a lock there.
fn write_before_reading() {
    fence(Ordering::SeqCst);
    let _ = cpu::tsc();
}

/// The memory shared by driver and device: one block with the three parts in sequence.
#[derive(Debug)]
pub struct Rings {
    start: u64,
    size: u16,
}

impl Rings {
    fn new(size: u16) -> Option<Self> {
        let bytes = usize::from(size) * (16 + 2 + 8) + 6 + 2 + 6;
        let start = memory::take(bytes)?.as_mut_ptr() as u64;
        Some(Self { start, size })
    }

    /// Returns the number of entries in each part.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Returns the addresses of the descriptors, the driver's part and the device's part.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        let driver = self.start + 16 * u64::from(self.size);
        let device = driver + 6 + 2 * u64::from(self.size);
        [self.start, driver, device.next_multiple_of(4)]
    }

    fn descriptor(&self, index: u16) -> *mut Descriptor {
        let [descriptors, ..] = self.addresses();
        (descriptors as *mut Descriptor).wrapping_add((index % self.size).into())
    }

    /// Returns a word of the driver's part: flags, index, ring, event.
    fn driver(&self, word: u16) -> *mut u16 {
        let [_, driver, _] = self.addresses();
        (driver as *mut u16).wrapping_add(word.into())
    }

    /// Returns a word of the device's part: flags, index, entries of four words, event.
    fn device(&self, word: u16) -> *mut u16 {
        let [.., device] = self.addresses();
        (device as *mut u16).wrapping_add(word.into())
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

/// A queue of a device.
#[derive(Debug)]
pub struct Queue {
    number: u16,
    rings: Rings,
    bell: u64,
    is_in_memory: bool,
    has_events: bool,
    /// The first free descriptor; each names the next one.
    free: u16,
    free_count: u16,
    /// The numbers of buffers put in, announced to the device, and taken back.
    put: u16,
    announced: u16,
    taken: u16,
    notifications: u64,
}

impl Queue {
    /// Makes a queue of a device, with at most `most` entries. `message` is the index of its
    /// interrupt.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if there is no such queue, or no memory.
    pub fn new(device: &Device, number: u16, most: u16, message: u16) -> Result<Self, DeviceError> {
        let offered = device
            .queue_most(number)
            .ok_or(DeviceError::NoQueue(number))?;
        let size = 1 << most.clamp(1, offered.get()).ilog2();
        let rings = Rings::new(size).ok_or(DeviceError::Memory)?;
        for index in 0..size {
            // SAFETY: a descriptor of fresh memory.
            unsafe { (*rings.descriptor(index)).next = index + 1 };
        }
        let bell = device.set_up(number, &rings, message);
        let mut queue = Self {
            number,
            rings,
            bell,
            is_in_memory: device.is_in_memory(),
            has_events: device.has(EVENT_IDX),
            free: 0,
            free_count: size,
            put: 0,
            announced: 0,
            taken: 0,
            notifications: 0,
        };
        queue.disable_interrupt();
        Ok(queue)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn size(&self) -> u16 {
        self.rings.size
    }

    /// Returns the number of free descriptors.
    #[must_use]
    pub fn room(&self) -> u16 {
        self.free_count
    }

    /// Returns the number of buffers that the device owns.
    #[must_use]
    pub fn in_flight(&self) -> u16 {
        self.put.wrapping_sub(self.taken)
    }

    /// Returns the number of notifications of the device.
    #[must_use]
    pub fn notifications(&self) -> u64 {
        self.notifications
    }

    /// Returns the descriptor that [`Queue::put`] will use next. None if all are in use.
    #[must_use]
    pub fn next(&self) -> Option<u16> {
        (self.free_count > 0).then_some(self.free)
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
        let (last, count) = (buffers.len().checked_sub(1)?, buffers.len() as u16);
        if self.free_count < count {
            return None;
        }
        for (place, buffer) in buffers.iter().enumerate() {
            // SAFETY: a free descriptor, which the device does not read.
            let descriptor = unsafe { &mut *self.rings.descriptor(self.free) };
            descriptor.address = buffer.address;
            descriptor.bytes = buffer.bytes;
            descriptor.flags = if buffer.is_writable { WRITABLE } else { 0 };
            if place < last {
                descriptor.flags |= NEXT;
            }
            self.free = descriptor.next;
        }
        self.free_count -= count;
        let slot = 2 + self.put % self.rings.size;
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
    /// written. None if there are too few free descriptors, or if the device takes longer than
    /// `patience_ticks` of the TSC; in that case it still owns the buffers. For queues with nothing
    /// else in them.
    ///
    /// # Safety
    ///
    /// As for [`Queue::put`].
    pub unsafe fn ask(&mut self, buffers: &[Buffer], patience_ticks: u64) -> Option<u32> {
        // SAFETY: passed on to the caller.
        unsafe { self.put(buffers)? };
        self.notify();
        let start = cpu::tsc();
        while cpu::tsc().wrapping_sub(start) < patience_ticks {
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
                let event = read_volatile(self.rings.device(2 + 4 * self.rings.size));
                let ahead = self.put.wrapping_sub(event).wrapping_sub(1);
                ahead < self.put.wrapping_sub(self.announced)
            } else {
                read_volatile(self.rings.device(0)) & NO_NOTIFICATION == 0
            }
        };
        self.announced = self.put;
        if wants {
            self.notifications += 1;
            // SAFETY: the notification register of the queue: 32 bits with MMIO, 16 on PCI.
            unsafe {
                if self.is_in_memory {
                    write_volatile(self.bell as *mut u32, self.number.into());
                } else {
                    write_volatile(self.bell as *mut u16, self.number);
                }
            }
        }
    }

    /// Returns whether a chain has come back.
    #[must_use]
    pub fn has_come(&self) -> bool {
        // SAFETY: a word of the device's part.
        unsafe { read_volatile(self.rings.device(1)) != self.taken }
    }

    /// Takes back the next chain: its first descriptor, and the number of bytes written. Its
    /// descriptors are in use until [`Queue::release`].
    pub fn take(&mut self) -> Option<(u16, u32)> {
        if !self.has_come() {
            return None;
        }
        // The entry must be read after the index.
        fence(Ordering::Acquire);
        let place = 2 + 4 * (self.taken % self.rings.size);
        self.taken = self.taken.wrapping_add(1);
        // SAFETY: an entry of the device's part: name and length, of 32 bits each.
        let (name, bytes) = unsafe {
            let entry = self.rings.device(place).cast::<u32>();
            (read_volatile(entry), read_volatile(entry.wrapping_add(1)))
        };
        Some((name as u16 % self.rings.size, bytes))
    }

    /// Frees the descriptors of a chain that came back.
    pub fn release(&mut self, name: u16) {
        let mut last = name;
        loop {
            self.free_count += 1;
            // SAFETY: a descriptor that the device has returned.
            let descriptor = unsafe { &mut *self.rings.descriptor(last) };
            if descriptor.flags & NEXT == 0 || self.free_count >= self.rings.size {
                descriptor.next = self.free;
                break;
            }
            last = descriptor.next;
        }
        self.free = name;
    }

    /// Enables the interrupt for the time when `more` further chains have come back. Returns false
    /// if they have already: then it will not come.
    pub fn enable_interrupt(&mut self, more: u16) -> bool {
        let event = self.taken.wrapping_add(more - 1);
        // SAFETY: words of the driver's part.
        unsafe {
            if self.has_events {
                write_volatile(self.rings.driver(2 + self.rings.size), event);
            } else {
                write_volatile(self.rings.driver(0), 0);
            }
        }
        // The event must be written before the index is read.
        write_before_reading();
        // SAFETY: a word of the device's part.
        let come = unsafe { read_volatile(self.rings.device(1)) };
        come.wrapping_sub(self.taken) < more
    }

    /// Disables the interrupt.
    pub fn disable_interrupt(&mut self) {
        // SAFETY: words of the driver's part. An event as far away as possible is not reached
        // before this is called again.
        unsafe {
            if self.has_events {
                let far = self.taken.wrapping_sub(1);
                write_volatile(self.rings.driver(2 + self.rings.size), far);
            } else {
                write_volatile(self.rings.driver(0), NO_NOTIFICATION);
            }
        }
    }
}

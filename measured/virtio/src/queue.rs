//! A queue: the rings in which driver and device hand buffers to each other.
//!
//! The layout is that of split virtqueues (Virtio 1.2, 2.7). Each side tells the other from when on it wants to hear of more:
//! by an index where [`crate::device`] agreed on that, else by a flag. So nobody is told what he would see anyway.

use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{Ordering, fence};

use tare_unikernel::{cpu, memory};

use crate::device::{Device, DeviceError, EVENTS};

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
/// Asks the other side in its ring's flags to keep quiet.
const QUIET: u16 = 1;

/// How long a device may take that something depends on before a service starts, in ticks of the TSC: some 20 s.
pub const PATIENCE_TICKS: u64 = 1 << 36;

/// Lets the device see what was written before anything of its own is read.
///
/// QEMU before 8.1 leaves fences out of the code of a guest that has one CPU, though its devices run beside that; but it takes a lock to read
/// the TSC.
fn write_before_reading() {
    fence(Ordering::SeqCst);
    let _ = cpu::tsc();
}

/// The memory that driver and device share: one block, in which the three parts lie one behind the other.
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

    /// Returns how many entries each part has.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Returns where the descriptors, the driver's and the device's part start.
    pub(crate) fn addresses(&self) -> [u64; 3] {
        let driver = self.start + 16 * u64::from(self.size);
        let device = driver + 6 + 2 * u64::from(self.size);
        [self.start, driver, device.next_multiple_of(4)]
    }

    fn descriptor(&self, index: u16) -> *mut Descriptor {
        let [descriptors, ..] = self.addresses();
        (descriptors as *mut Descriptor).wrapping_add((index % self.size).into())
    }

    /// Returns a word of the driver's part: flags, index, ring, and the event behind it.
    fn driver(&self, word: u16) -> *mut u16 {
        let [_, driver, _] = self.addresses();
        (driver as *mut u16).wrapping_add(word.into())
    }

    /// Returns a word of the device's part: flags, index, entries of four words, and the event behind them.
    fn device(&self, word: u16) -> *mut u16 {
        let [.., device] = self.addresses();
        (device as *mut u16).wrapping_add(word.into())
    }
}

/// A piece of memory for the device.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where it starts.
    pub address: u64,
    /// Its length.
    pub bytes: u32,
    /// Whether the device writes to it, instead of reading.
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
    /// The first descriptor that is free; each names the next one.
    free: u16,
    free_count: u16,
    /// How many were put in, how many the device was told of, how many came back.
    put: u16,
    told: u16,
    taken: u16,
    notifications: u64,
}

impl Queue {
    /// Makes a queue of a device, with at most `most` entries. `message` is the place in the list
    /// of its interrupts.
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
            has_events: device.has(EVENTS),
            free: 0,
            free_count: size,
            put: 0,
            told: 0,
            taken: 0,
            notifications: 0,
        };
        queue.want_none();
        Ok(queue)
    }

    /// Returns how many entries it has.
    #[must_use]
    pub fn size(&self) -> u16 {
        self.rings.size
    }

    /// Returns how many descriptors are free.
    #[must_use]
    pub fn room(&self) -> u16 {
        self.free_count
    }

    /// Returns how many buffers the device has.
    #[must_use]
    pub fn in_flight(&self) -> u16 {
        self.put.wrapping_sub(self.taken)
    }

    /// Returns how often the device was notified.
    #[must_use]
    pub fn notifications(&self) -> u64 {
        self.notifications
    }

    /// Returns the descriptor that [`Queue::put`] will name next. None if all are in use.
    #[must_use]
    pub fn next(&self) -> Option<u16> {
        (self.free_count > 0).then_some(self.free)
    }

    /// Hands buffers to the device as one, and returns its name, by which it comes back. None, and nothing is done, if there are not so many
    /// descriptors.
    ///
    /// # Safety
    ///
    /// The buffers must stay where they are, and nobody else may touch what the device writes to, until they come back.
    pub unsafe fn put(&mut self, buffers: &[Buffer]) -> Option<u16> {
        let head = self.free;
        let (last, count) = (buffers.len().checked_sub(1)?, buffers.len() as u16);
        if self.free_count < count {
            return None;
        }
        for (place, buffer) in buffers.iter().enumerate() {
            // SAFETY: a free descriptor, which the device does not look at.
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

    /// Hands buffers to the device as one, waits for them without doing anything else, and returns how many bytes were written.
    /// None, and nothing is done, if there are not so many descriptors; None, too, if the device keeps them for so many ticks of the TSC, and
    /// then it has them still. It is for queues that nothing else is in.
    ///
    /// # Safety
    ///
    /// As for [`Queue::put`].
    pub unsafe fn ask(&mut self, buffers: &[Buffer], patience_ticks: u64) -> Option<u32> {
        // SAFETY: passed on to the caller.
        unsafe { self.put(buffers)? };
        self.tell();
        let start = cpu::tsc();
        while cpu::tsc().wrapping_sub(start) < patience_ticks {
            if let Some(bytes) = self.take_back() {
                return Some(bytes);
            }
            core::hint::spin_loop();
        }
        None
    }

    /// Frees what came back first, and returns how many bytes were written to it.
    pub fn take_back(&mut self) -> Option<u32> {
        let (name, bytes) = self.take()?;
        self.release(name);
        Some(bytes)
    }

    /// Notifies the device of what was put in, if it wants to hear of that.
    pub fn tell(&mut self) {
        if self.put == self.told {
            return;
        }
        // The index must be written before the other side's wish is read.
        write_before_reading();
        // SAFETY: words of the device's part.
        let wants = unsafe {
            if self.has_events {
                let event = read_volatile(self.rings.device(2 + 4 * self.rings.size));
                let ahead = self.put.wrapping_sub(event).wrapping_sub(1);
                ahead < self.put.wrapping_sub(self.told)
            } else {
                read_volatile(self.rings.device(0)) & QUIET == 0
            }
        };
        self.told = self.put;
        if wants {
            self.notifications += 1;
            // SAFETY: the queue's bell, which takes 32 bits in memory and 16 on PCI.
            unsafe {
                if self.is_in_memory {
                    write_volatile(self.bell as *mut u32, self.number.into());
                } else {
                    write_volatile(self.bell as *mut u16, self.number);
                }
            }
        }
    }

    /// Tells whether something has come back.
    #[must_use]
    pub fn has_come(&self) -> bool {
        // SAFETY: a word of the device's part.
        unsafe { read_volatile(self.rings.device(1)) != self.taken }
    }

    /// Returns what came back first: its name, and how many bytes were written. Its descriptors are in use until
    /// [`Queue::release`].
    pub fn take(&mut self) -> Option<(u16, u32)> {
        if !self.has_come() {
            return None;
        }
        // The entry must be read behind the index.
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

    /// Frees the descriptors of what came back.
    pub fn release(&mut self, name: u16) {
        let mut last = name;
        loop {
            self.free_count += 1;
            // SAFETY: a descriptor that the device has given back.
            let descriptor = unsafe { &mut *self.rings.descriptor(last) };
            if descriptor.flags & NEXT == 0 || self.free_count >= self.rings.size {
                descriptor.next = self.free;
                break;
            }
            last = descriptor.next;
        }
        self.free = name;
    }

    /// Asks for an interrupt when `more` further buffers have come back. Returns false if they have already: then there will be
    /// none.
    pub fn want(&mut self, more: u16) -> bool {
        let event = self.taken.wrapping_add(more - 1);
        // SAFETY: words of the driver's part.
        unsafe {
            if self.has_events {
                write_volatile(self.rings.driver(2 + self.rings.size), event);
            } else {
                write_volatile(self.rings.driver(0), 0);
            }
        }
        // The wish must be written before it is looked at what came in the meantime.
        write_before_reading();
        // SAFETY: a word of the device's part.
        let come = unsafe { read_volatile(self.rings.device(1)) };
        come.wrapping_sub(self.taken) < more
    }

    /// Asks for no interrupts.
    pub fn want_none(&mut self) {
        // SAFETY: words of the driver's part. With events, one lies so far away that it will not come before this is called
        // again.
        unsafe {
            if self.has_events {
                let far = self.taken.wrapping_sub(1);
                write_volatile(self.rings.driver(2 + self.rings.size), far);
            } else {
                write_volatile(self.rings.driver(0), QUIET);
            }
        }
    }
}

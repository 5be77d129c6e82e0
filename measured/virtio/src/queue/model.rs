//! A device that writes anything to its part of the rings, and a model of who has which descriptors:
//! for tests, and for the fuzzer in `measured/fuzz`.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;

/// A source of numbers.
pub trait Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64;
}

/// Memory for a queue, and its notification register.
#[derive(Debug)]
pub struct Memory {
    words: Vec<u128>,
    register: u32,
}

impl Memory {
    /// Makes memory for a queue of a size.
    pub fn new(size: u16) -> Self {
        let words = Rings::bytes(size).div_ceil(size_of::<u128>());
        Self {
            words: std::vec![0; words],
            register: 0,
        }
    }

    /// Makes a queue in memory that is zero again. It must not outlive the memory.
    pub(crate) fn queue(&mut self, size: u16, has_events: bool) -> (Queue, Device) {
        self.words.fill(0);
        let start = self.words.as_mut_ptr().cast();
        let bell = Bell {
            register: &raw mut self.register as u64,
            is_wide: true,
            number: 0,
        };
        let device = Rings { start, size };
        // SAFETY: zero, of that many bytes, and aligned as its words.
        let rings = unsafe { Rings::new(start, size) };
        (
            Queue::over(rings, bell, has_events),
            Device {
                rings: device,
                used: 0,
            },
        )
    }
}

/// The other side.
pub(crate) struct Device {
    rings: Rings,
    used: u16,
}

impl Device {
    /// Returns whether the driver has put something into the queue.
    #[cfg(test)]
    pub(crate) fn has_request(&self) -> bool {
        // SAFETY: the index of the driver's part.
        unsafe { read_volatile(self.rings.driver(1)) != 0 }
    }

    pub(crate) fn returns(&mut self, name: u32, bytes: u32) {
        let place = 2 + 4 * usize::from(self.used % self.rings.size);
        let entry = self.rings.device(place).cast::<u32>();
        // SAFETY: an entry of the device's part.
        unsafe {
            write_volatile(entry, name);
            write_volatile(entry.wrapping_add(1), bytes);
        }
        self.jumps(1);
    }

    pub(super) fn jumps(&mut self, by: u16) {
        self.used = self.used.wrapping_add(by);
        // SAFETY: the index of the device's part.
        unsafe { write_volatile(self.rings.device(1), self.used) };
    }

    /// Writes anything to a word that the device may read or write, or may not.
    fn scribbles(&mut self, numbers: &mut impl Numbers) {
        let words = Rings::shared(self.rings.size) / 2;
        let at = numbers.below(words as u64) as usize;
        let word = self.rings.start.cast::<u16>().wrapping_add(at);
        // SAFETY: a word of the shared part.
        unsafe { write_volatile(word, numbers.below(1 << 16) as u16) };
    }
}

pub(super) fn buffers(count: u64) -> Vec<Buffer> {
    let buffer = |number| Buffer {
        address: number,
        bytes: 1,
        is_writable: number % 2 == 0,
    };
    (0..count).map(buffer).collect()
}

/// Runs a number of steps of driver and device, and checks after each who has which descriptors.
///
/// # Panics
///
/// Panics if a descriptor has two owners or none.
pub fn run(memory: &mut Memory, size: u16, numbers: &mut impl Numbers, steps: u64) {
    let (mut queue, mut device) = memory.queue(size, numbers.below(2) == 0);
    // Chains by their first descriptor, with their lengths.
    let (mut in_flight, mut taken) = (BTreeMap::new(), BTreeMap::new());
    let scribbles = numbers.below(4) == 0;
    for _ in 0..steps {
        match numbers.below(if scribbles { 12 } else { 11 }) {
            0..3 => {
                let count = numbers.below(4);
                let expected = queue.next();
                // SAFETY: nothing reads these buffers.
                let head = unsafe { queue.put(&buffers(count)) };
                let fits = count > 0 && count <= queue.room().into();
                if let Some(head) = head {
                    assert_eq!(Some(head), expected);
                    let is_new = in_flight.insert(head, count).is_none();
                    assert!(is_new && !taken.contains_key(&head));
                } else {
                    assert!(!fits);
                }
            }
            3..5 => {
                // A chain that it has.
                let at = numbers.below(in_flight.len().max(1) as u64) as usize;
                if let Some(head) = in_flight.keys().nth(at) {
                    device.returns((*head).into(), 7);
                }
            }
            5 => device.returns(numbers.below(u64::from(size) + 2) as u32, 0),
            6 => {
                let name = numbers.below(1 << 32) as u32;
                device.returns(
                    [name, name & 0xffff, name | 1 << 16][name as usize % 3],
                    name,
                );
            }
            7 if numbers.below(20) == 0 => device.jumps(numbers.below(1 << 16) as u16),
            7 => queue.notify(),
            8 => {
                while let Some((name, _)) = queue.take() {
                    // What it had, and once.
                    let count = in_flight.remove(&name).expect("a chain that is in flight");
                    assert!(taken.insert(name, count).is_none());
                }
            }
            9 => {
                // One that was taken, or any other.
                let name = match numbers.below(4) {
                    0 => numbers.below(size.into()) as u16,
                    _ => *taken.keys().next().unwrap_or(&0),
                };
                queue.release(name);
                taken.remove(&name);
            }
            10 if numbers.below(2) == 0 => queue.disable_interrupt(),
            10 => {
                queue.enable_interrupt(1 + numbers.below(size.into()) as u16);
            }
            _ => device.scribbles(numbers),
        }
        let used: u64 = in_flight.values().chain(taken.values()).sum();
        assert_eq!(u64::from(queue.room()) + used, size.into());
        assert_eq!(usize::from(queue.in_flight()), in_flight.len());
    }
}

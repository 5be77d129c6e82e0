//! A device that writes anything to its part of the rings.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::*;

/// The number of sequences of the property test. A debug build is slower.
const SEQUENCES: u64 = if cfg!(debug_assertions) {
    50_000
} else {
    1_000_000
};

/// A reproducible random number generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// Memory for a queue, and its notification register.
struct Memory {
    words: Vec<u128>,
    register: u32,
}

impl Memory {
    fn new(size: u16) -> Self {
        let words = Rings::bytes(size).div_ceil(size_of::<u128>());
        Self {
            words: std::vec![0; words],
            register: 0,
        }
    }

    /// Makes a queue in memory that is zero again. It must not outlive the memory.
    fn queue(&mut self, size: u16, has_events: bool) -> (Queue, Device) {
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
struct Device {
    rings: Rings,
    used: u16,
}

impl Device {
    fn returns(&mut self, name: u32, bytes: u32) {
        let place = 2 + 4 * usize::from(self.used % self.rings.size);
        let entry = self.rings.device(place).cast::<u32>();
        // SAFETY: an entry of the device's part.
        unsafe {
            write_volatile(entry, name);
            write_volatile(entry.wrapping_add(1), bytes);
        }
        self.jumps(1);
    }

    fn jumps(&mut self, by: u16) {
        self.used = self.used.wrapping_add(by);
        // SAFETY: the index of the device's part.
        unsafe { write_volatile(self.rings.device(1), self.used) };
    }

    /// Writes anything to a word that the device may read or write, or may not.
    fn scribbles(&mut self, random: &mut Random) {
        let words = Rings::shared(self.rings.size) / 2;
        let at = random.below(words as u64) as usize;
        let word = self.rings.start.cast::<u16>().wrapping_add(at);
        // SAFETY: a word of the shared part.
        unsafe { write_volatile(word, random.below(1 << 16) as u16) };
    }
}

fn buffers(count: u64) -> Vec<Buffer> {
    let buffer = |number| Buffer {
        address: number,
        bytes: 1,
        is_writable: number % 2 == 0,
    };
    (0..count).map(buffer).collect()
}

/// Runs one sequence, and checks after each step who has which descriptors.
fn run(memory: &mut Memory, size: u16, random: &mut Random) {
    let (mut queue, mut device) = memory.queue(size, random.below(2) == 0);
    // Chains by their first descriptor, with their lengths.
    let (mut in_flight, mut taken) = (BTreeMap::new(), BTreeMap::new());
    let scribbles = random.below(4) == 0;
    for _ in 0..random.below(40) {
        match random.below(if scribbles { 12 } else { 11 }) {
            0..3 => {
                let count = random.below(4);
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
                let at = random.below(in_flight.len().max(1) as u64) as usize;
                if let Some(head) = in_flight.keys().nth(at) {
                    device.returns((*head).into(), 7);
                }
            }
            5 => device.returns(random.below(u64::from(size) + 2) as u32, 0),
            6 => {
                let name = random.below(1 << 32) as u32;
                device.returns(
                    [name, name & 0xffff, name | 1 << 16][name as usize % 3],
                    name,
                );
            }
            7 if random.below(20) == 0 => device.jumps(random.below(1 << 16) as u16),
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
                let name = match random.below(4) {
                    0 => random.below(size.into()) as u16,
                    _ => *taken.keys().next().unwrap_or(&0),
                };
                queue.release(name);
                taken.remove(&name);
            }
            10 if random.below(2) == 0 => queue.disable_interrupt(),
            10 => {
                queue.enable_interrupt(1 + random.below(size.into()) as u16);
            }
            _ => device.scribbles(random),
        }
        let used: u64 = in_flight.values().chain(taken.values()).sum();
        assert_eq!(u64::from(queue.room()) + used, size.into());
        assert_eq!(usize::from(queue.in_flight()), in_flight.len());
    }
}

#[test]
fn whatever_the_device_returns_each_buffer_has_one_owner() {
    let sequences = std::env::var("TARE_SEQUENCES");
    let sequences = sequences.map_or(SEQUENCES, |text| text.parse().unwrap());
    let mut sizes = [1, 2, 4, 8, 64].map(|size| (size, Memory::new(size)));
    for seed in 0..sequences {
        let (size, memory) = &mut sizes[seed as usize % 5];
        run(memory, *size, &mut Random(seed << 20));
    }
}

#[test]
fn an_honest_device_gets_everything_through_rings_of_any_size() {
    for size in (0..16).map(|bit| 1_u16 << bit) {
        let mut memory = Memory::new(size);
        let (mut queue, mut device) = memory.queue(size, true);
        // Past the wrap of the indices.
        let rounds = (1 << 17_u32) / u32::from(size) + 2;
        for _ in 0..rounds.min(if size > 64 { 5_000 } else { 70_000 }) {
            let names: Vec<u16> = std::iter::from_fn(|| {
                // SAFETY: nothing reads this buffer.
                unsafe { queue.put(&buffers(1)) }
            })
            .collect();
            assert_eq!((names.len(), queue.room()), (size.into(), 0));
            assert!(!queue.has_come() && queue.enable_interrupt(1));
            for name in names.iter().rev() {
                device.returns((*name).into(), 5);
            }
            assert!(queue.has_come() && !queue.enable_interrupt(size));
            for name in names.iter().rev() {
                assert_eq!(queue.take(), Some((*name, 5)));
                queue.release(*name);
            }
            assert!(!queue.has_come());
        }
        assert_eq!(queue.faults(), 0);
    }
}

#[test]
fn what_comes_twice_or_was_never_put_is_passed_over() {
    let mut memory = Memory::new(4);
    let (mut queue, mut device) = memory.queue(4, false);
    // SAFETY: nothing reads these buffers.
    let [one, two] = [(); 2].map(|()| unsafe { queue.put(&buffers(1)) }.unwrap());
    device.returns(one.into(), 1);
    device.returns(one.into(), 1);
    assert_eq!(queue.take(), Some((one, 1)));
    assert_eq!((queue.take(), queue.faults()), (None, 1));
    // Beyond the ring; with the same low bits; a free one; one that is taken.
    for name in [4, 1 << 16 | u32::from(two), 3, one.into()] {
        device.returns(name, 0);
        assert_eq!(queue.take(), None);
    }
    assert_eq!((queue.faults(), queue.in_flight()), (5, 1));
    queue.release(two);
    assert_eq!(queue.room(), 2);
    queue.release(one);
    queue.release(one);
    assert_eq!(queue.room(), 3);
    device.returns(two.into(), 9);
    assert_eq!(queue.take_back(), Some(9));
    // More than it has: nothing counts any more.
    device.jumps(2);
    assert!(queue.take().is_none() && !queue.has_come() && queue.enable_interrupt(1));
}

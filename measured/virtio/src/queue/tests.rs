//! Queues with honest devices and others.

use std::vec::Vec;

use super::model::{Memory, Numbers, buffers, run};

/// The number of sequences of the property test. A debug build is slower.
const SEQUENCES: u64 = if cfg!(debug_assertions) {
    50_000
} else {
    1_000_000
};

/// A reproducible random number generator (splitmix64).
struct Random(u64);

impl Numbers for Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

#[test]
fn whatever_the_device_returns_each_buffer_has_one_owner() {
    let sequences = std::env::var("TARE_SEQUENCES");
    let sequences = sequences.map_or(SEQUENCES, |text| text.parse().unwrap());
    let mut sizes = [1, 2, 4, 8, 64].map(|size| (size, Memory::new(size)));
    for seed in 0..sequences {
        let (size, memory) = &mut sizes[seed as usize % 5];
        let mut random = Random(seed << 20);
        let steps = random.below(40);
        run(memory, *size, &mut random, steps);
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
    // More than it has: nothing counts any more, not even what it has.
    device.jumps(2);
    assert!(queue.take().is_none() && !queue.has_come() && queue.enable_interrupt(1));
    // SAFETY: nothing reads this buffer.
    let three = unsafe { queue.put(&buffers(1)) }.unwrap();
    device.returns(three.into(), 1);
    assert_eq!((queue.take(), queue.faults()), (None, 6));
}

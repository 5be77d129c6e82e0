//! Drives a queue together with a device that writes anything: the bytes say what each of them does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tare_virtio::queue::model::{Memory, Numbers, run};

/// Numbers made of bytes; 0 when all are used.
struct Bytes<'a>(&'a [u8]);

impl Numbers for Bytes<'_> {
    fn below(&mut self, end: u64) -> u64 {
        let bytes = match end {
            ..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let (taken, rest) = self.0.split_at(self.0.len().min(bytes));
        self.0 = rest;
        let number = taken
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        number % end
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, steps)) = bytes.split_first() else {
        return;
    };
    let size = [1, 2, 4, 8, 64][usize::from(*first) % 5];
    // Each step takes a byte at least.
    run(
        &mut Memory::new(size),
        size,
        &mut Bytes(steps),
        steps.len() as u64,
    );
});

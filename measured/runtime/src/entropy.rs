//! Random numbers: from the CPU's generator, or from a virtio device. Never from a clock, never a constant.

use tare_unikernel::{cpu, memory};
use tare_virtio::device::{self, Kind};
use tare_virtio::queue::{Buffer, Queue};

/// Returns 64 random bits. None where nothing gives any.
#[must_use]
pub fn random(command_line: &str) -> Option<u64> {
    cpu::random().or_else(|| from_device(command_line))
}

/// Asks a virtio device, and waits for its answer.
fn from_device(command_line: &str) -> Option<u64> {
    let mut device = device::find(Kind::Entropy, command_line)?;
    device.agree(0).ok()?;
    let mut queue = Queue::new(&device, 0, 1, 0).ok()?;
    let place = memory::take(size_of::<u64>())?.as_mut_ptr();
    device.start();
    let buffer = Buffer {
        address: place as u64,
        bytes: size_of::<u64>() as u32,
        is_writable: true,
    };
    // The device may give less than it was asked for.
    loop {
        // SAFETY: memory that was given out for this, and is read when it has come back.
        let bytes = unsafe { queue.ask(&[buffer])? };
        if bytes >= buffer.bytes {
            // SAFETY: page-aligned memory that the device has given back.
            return Some(unsafe { place.cast::<u64>().read_volatile() });
        }
    }
}

//! Random numbers: from the CPU's generator, or from a virtio device; never from a clock.

use tare_unikernel::{cpu, memory};
use tare_virtio::device::{self, Kind};
use tare_virtio::queue::{Buffer, PATIENCE_TICKS};

/// Returns 64 random bits. None if there is no source.
#[must_use]
pub fn random(command_line: &str) -> Option<u64> {
    cpu::random().or_else(|| from_device(command_line))
}

/// Reads a virtio device. None if it delivers nothing in time.
fn from_device(command_line: &str) -> Option<u64> {
    let mut device = device::find(Kind::Entropy, command_line)?;
    device.negotiate(0).ok()?;
    let mut queue = device.queue(0, 1, 0).ok()?;
    let place = memory::take(size_of::<u64>())?.as_mut_ptr();
    device.start();
    // The device may deliver less than requested, but at least a byte (Virtio 1.2, 5.4.6.2).
    let mut got = 0;
    while got < size_of::<u64>() as u32 {
        let buffer = Buffer {
            address: place as u64 + u64::from(got),
            bytes: size_of::<u64>() as u32 - got,
            is_writable: true,
        };
        // SAFETY: memory reserved for this, which is read after the device has returned it.
        let bytes = unsafe { queue.ask(&[buffer], PATIENCE_TICKS)? };
        if bytes == 0 {
            return None;
        }
        got += bytes.min(buffer.bytes);
    }
    // SAFETY: page-aligned memory that the device has returned.
    Some(unsafe { place.cast::<u64>().read_volatile() })
}

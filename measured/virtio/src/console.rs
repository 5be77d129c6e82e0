//! A console (Virtio 1.2, 5.3), write-only. Writing waits until the other side has read the bytes;
//! if it reads nothing for a second, output is lost until it does.

use core::cell::RefCell;

use tare_unikernel::memory;

use crate::device::{Device, DeviceError};
use crate::queue::{Buffer, Queue};

/// The queue to the other side of the first port.
const TRANSMIT: u16 = 1;
/// Time limit for the other side, in ticks of the TSC: about a second.
const PATIENCE_TICKS: u64 = 1 << 32;
/// The number of bytes sent at once.
const PIECE: usize = 4096;

/// A console in use.
#[derive(Debug)]
pub struct VirtioConsole {
    queue: RefCell<Queue>,
    memory: u64,
}

impl VirtioConsole {
    /// Initialises a console.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if the console can't be used.
    pub fn new(mut device: Device) -> Result<Self, DeviceError> {
        device.negotiate(0)?;
        let queue = device.queue(TRANSMIT, 1, 0)?;
        let memory = memory::take(PIECE).ok_or(DeviceError::Memory)?;
        device.start();
        Ok(Self {
            queue: RefCell::new(queue),
            memory: memory.as_mut_ptr() as u64,
        })
    }

    /// Writes bytes.
    pub fn write(&self, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            // The output of a panic during a write is lost.
            let Ok(mut queue) = self.queue.try_borrow_mut() else {
                return;
            };
            // The device may still own the last piece.
            if queue.in_flight() > 0 && queue.take_back().is_none() {
                return;
            }
            let buffer = Buffer {
                address: self.memory,
                bytes: piece.len() as u32,
                is_writable: false,
            };
            // SAFETY: memory reserved for this, which the device does not own.
            unsafe {
                core::slice::from_raw_parts_mut(self.memory as *mut u8, piece.len())
                    .copy_from_slice(piece);
                queue.ask(&[buffer], PATIENCE_TICKS);
            }
        }
    }
}

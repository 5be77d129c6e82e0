//! A disk, read-only. Reading blocks, so it is for the time before a service starts.

use core::cell::RefCell;

use crate::device::{Device, DeviceError};
use crate::machine::memory;
use crate::queue::{Buffer, PATIENCE_TICKS, Queue};

/// The size of a sector in bytes, the unit of the device for any size of its blocks.
pub const SECTOR: usize = 512;

/// The number of bytes read at once.
const PIECE: usize = 32 << 10;
/// The offset of the status, behind the request: its type, a reserved number, the first sector.
const STATUS: usize = 16;
/// The offset of the data, on its own page.
const DATA: usize = 4096;

/// A disk in use.
#[derive(Debug)]
pub struct Disk {
    sectors: u64,
    queue: RefCell<Queue>,
    memory: u64,
}

/// The error for a sector that can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The first sector of the read.
    pub sector: u64,
}

impl core::fmt::Display for ReadError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "the disk does not read sector {}", self.sector)
    }
}

impl core::error::Error for ReadError {}

impl Disk {
    /// Initialises a disk.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if the disk can't be used.
    pub fn new(mut device: Device) -> Result<Self, DeviceError> {
        device.negotiate(0)?;
        let queue = device.queue(0, 4, 0)?;
        let memory = memory::take(DATA + PIECE).ok_or(DeviceError::Memory)?;
        device.start();
        Ok(Self {
            sectors: u64::from_le_bytes(device.own(0)?),
            queue: RefCell::new(queue),
            memory: memory.as_mut_ptr() as u64,
        })
    }

    /// Returns the number of sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Reads whole sectors.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the disk fails or is too small.
    ///
    /// # Panics
    ///
    /// Panics if `to` is not a whole number of sectors.
    pub fn read(&self, first: u64, to: &mut [u8]) -> Result<(), ReadError> {
        assert!(
            to.len().is_multiple_of(SECTOR),
            "only whole sectors are read"
        );
        let pieces = to.chunks_mut(PIECE);
        for (sector, piece) in (first..).step_by(PIECE / SECTOR).zip(pieces) {
            self.read_piece(sector, piece).ok_or(ReadError { sector })?;
        }
        Ok(())
    }

    fn read_piece(&self, sector: u64, to: &mut [u8]) -> Option<()> {
        const READ: u64 = 0;
        const DONE: u8 = 0;
        let place = |offset: usize| self.memory + offset as u64;
        let buffer = |offset, bytes, is_writable| Buffer {
            address: place(offset),
            bytes: bytes as u32,
            is_writable,
        };
        let buffers = [
            buffer(0, STATUS, false),
            buffer(DATA, to.len(), true),
            buffer(STATUS, 1, true),
        ];
        // SAFETY: memory reserved for this, which belongs to the driver again when the queue
        // returns.
        unsafe {
            (place(0) as *mut [u64; 2]).write_volatile([READ, sector]);
            (place(STATUS) as *mut u8).write_volatile(!DONE);
            let written = self.queue.borrow_mut().ask(&buffers, PATIENCE_TICKS)?;
            // The data and the status: what it left out, it has not read.
            if written as usize <= to.len() {
                return None;
            }
            let status = (place(STATUS) as *const u8).read_volatile();
            let data = core::slice::from_raw_parts(place(DATA) as *const u8, to.len());
            to.copy_from_slice(data);
            (status == DONE).then_some(())
        }
    }
}

#[cfg(test)]
mod tests;

//! The functions on PCI bus 0: their configuration, registers and interrupts.
//!
//! Configuration is accessed through the ports that every PC has, or through memory if those are
//! missing (QEMU's microvm with `pcie=on`). Firmware assigns addresses to registers; if it does not
//! (qboot), this module does, from the window that QEMU's machines reserve for PCI.

use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::apic;
use crate::cpu::{in32, out32};

const ADDRESS_PORT: u16 = 0xcf8;
const DATA_PORT: u16 = 0xcfc;
const ENABLE: u32 = 1 << 31;
/// The address of the configuration space on QEMU's microvm.
const CONFIGURATION: u64 = 0xe000_0000;
/// The window for addresses: all machine types of QEMU reserve this part for PCI.
const WINDOW: u32 = 0xc800_0000;
const WINDOW_END: u32 = 0xd000_0000;

const COMMAND: u8 = 4;
/// Bits of the command: registers in memory, access to memory, no interrupt by line.
const COMMAND_MEMORY: u32 = 1 << 1;
const COMMAND_USE: u32 = COMMAND_MEMORY | 1 << 2 | 1 << 10;
const STATUS_CAPABILITIES: u32 = 1 << 20;
const BASES: u8 = 0x10;
const CAPABILITIES: u8 = 0x34;
/// The id of the MSI-X capability.
const MSI_X: u8 = 0x11;

/// A function of a device.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    number: u8,
    by_memory: bool,
}

/// The messages of a function, as which it sends interrupts.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// The offset of their capability.
    offset: u8,
    /// The address of their table, and the number of its entries.
    entries: u64,
    count: u32,
}

/// Returns the functions that are present.
pub fn functions() -> impl Iterator<Item = Function> {
    // SAFETY: selects a register of the configuration.
    let by_memory = unsafe {
        out32(ADDRESS_PORT, ENABLE);
        in32(ADDRESS_PORT) != ENABLE
    };
    (0..=u8::MAX)
        .map(move |number| Function { number, by_memory })
        .filter(|function| !matches!(function.read(0) & 0xffff, 0 | 0xffff))
}

impl Function {
    /// Returns the vendor and the device.
    pub fn id(&self) -> (u16, u16) {
        let id = self.read(0);
        (id as u16, (id >> 16) as u16)
    }

    /// Reads the 32 bits around an offset of the configuration.
    pub fn read(&self, offset: u8) -> u32 {
        if self.by_memory {
            // SAFETY: configuration, mapped uncached.
            return unsafe { read_volatile(self.memory(offset)) };
        }
        // SAFETY: reads the configuration, which has no effect.
        unsafe {
            out32(ADDRESS_PORT, self.address(offset));
            in32(DATA_PORT)
        }
    }

    /// Writes 32 bits of the configuration.
    fn write(&self, offset: u8, value: u32) {
        if self.by_memory {
            // SAFETY: configuration, mapped uncached; this module's functions document the effect.
            return unsafe { write_volatile(self.memory(offset), value) };
        }
        // SAFETY: as above.
        unsafe {
            out32(ADDRESS_PORT, self.address(offset));
            out32(DATA_PORT, value);
        }
    }

    fn memory(&self, offset: u8) -> *mut u32 {
        (CONFIGURATION + (u64::from(self.number) << 12) + u64::from(offset & !3)) as *mut u32
    }

    fn address(&self, offset: u8) -> u32 {
        ENABLE | u32::from(self.number) << 8 | u32::from(offset & !3)
    }

    /// Lists the capabilities: each one's kind and offset.
    pub fn capabilities(&self) -> impl Iterator<Item = (u8, u8)> {
        /// The maximum number of capabilities, so that a cyclic list ends.
        const MOST: usize = 48;
        let first = match self.read(COMMAND) & STATUS_CAPABILITIES {
            0 => 0,
            _ => self.read(CAPABILITIES) as u8,
        };
        let next = |offset: &u8| Some((self.read(*offset) >> 8) as u8);
        core::iter::successors(Some(first), next)
            .take_while(|offset| *offset != 0)
            .take(MOST)
            .map(|offset| (self.read(offset) as u8, offset))
    }

    /// Enables the function's registers and its access to memory.
    pub fn enable(&self) {
        // The upper half holds flags that a one would clear.
        self.write(COMMAND, self.read(COMMAND) & 0xffff | COMMAND_USE);
    }

    /// Returns the address of one of its six ranges of registers, and how many bytes it has at most;
    /// assigns an address if it has none that is mapped. None if it is not in memory, or there is no
    /// room.
    pub fn registers(&self, range: u8) -> Option<(u64, u32)> {
        const PORTS: u32 = 1;
        const WIDE: u32 = 4;
        if range > 5 {
            return None;
        }
        let offset = BASES + 4 * range;
        let low = self.read(offset);
        if low & PORTS != 0 {
            return None;
        }
        let is_wide = low & WIDE != 0;
        let is_high = is_wide && self.read(offset + 4) != 0;
        let command = self.read(COMMAND) & 0xffff;
        let mapped = low & !0xf;
        if command & COMMAND_MEMORY != 0 && mapped != 0 && !is_high {
            // It is aligned to its length. To ask for that, the function would have to be disabled,
            // which takes QEMU 0.4 ms, and 0.8 ms when it is enabled again.
            return Some((mapped.into(), 1 << mapped.trailing_zeros()));
        }
        // The function must not respond while its address is half written.
        self.write(COMMAND, command & !COMMAND_USE);
        self.write(offset, u32::MAX);
        let bytes = (!(self.read(offset) & !0xf)).wrapping_add(1);
        let place = match mapped {
            1.. if !is_high => Some(mapped),
            _ => take(bytes),
        };
        self.write(offset, place.unwrap_or(low));
        if is_wide && place.is_some() {
            self.write(offset + 4, 0);
        }
        self.write(COMMAND, command);
        Some((place?.into(), bytes))
    }

    /// Finds the messages (MSI-X) of the function. None if it has none.
    pub fn messages(&self) -> Option<Messages> {
        let (_, offset) = self.capabilities().find(|(kind, _)| *kind == MSI_X)?;
        let control = self.read(offset);
        let table = self.read(offset.wrapping_add(4));
        let count = (control >> 16 & 0x7ff) + 1;
        let (start, bytes) = self.registers((table & 7) as u8)?;
        let begin = table & !7;
        let is_inside = u64::from(begin) + 16 * u64::from(count) <= bytes.into();
        is_inside.then_some(Messages {
            offset,
            entries: start + u64::from(begin),
            count,
        })
    }

    /// Assigns these vectors on this CPU to the first messages of the function. None if it has too
    /// few.
    #[must_use]
    pub fn route(&self, messages: &Messages, vectors: &[u8]) -> Option<()> {
        const ON: u32 = 1 << 31;
        if (messages.count as usize) < vectors.len() {
            return None;
        }
        for (index, vector) in vectors.iter().enumerate() {
            let (address, data) = apic::device_message(*vector);
            let entry = (messages.entries as *mut u32).wrapping_add(4 * index);
            let words = [address as u32, (address >> 32) as u32, data, 0];
            for (place, word) in words.into_iter().enumerate() {
                // SAFETY: the table of messages, of which the function has that many; the vectors
                // have handlers.
                unsafe { write_volatile(entry.wrapping_add(place), word) };
            }
        }
        self.write(messages.offset, self.read(messages.offset) | ON);
        Some(())
    }
}

/// Allocates a range of the window, aligned to its size. None if it is too large.
fn take(bytes: u32) -> Option<u32> {
    static NEXT: AtomicU32 = AtomicU32::new(WINDOW);
    let end = |next: u32| {
        if bytes == 0 {
            return None;
        }
        let end = next.checked_next_multiple_of(bytes)?.checked_add(bytes)?;
        (end <= WINDOW_END).then_some(end)
    };
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end)
        .ok()
        .and_then(|before| before.checked_next_multiple_of(bytes))
}

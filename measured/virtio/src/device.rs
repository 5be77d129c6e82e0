//! Devices: finding and initialising them.

use core::cell::Cell;
use core::fmt;
use core::num::NonZeroU16;

use crate::machine::pci::{Function, Messages};
use crate::machine::{apic, interrupts, io_apic, local, memory, pci, read, write};
use crate::queue::{Bell, PATIENCE_TICKS, Queue, Rings, tsc};

/// A kind of device, with its number in the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// A network card.
    Net = 1,
    /// A disk.
    Block = 2,
    /// A console.
    Console = 3,
    /// A source of random bytes.
    Entropy = 4,
}

/// VIRTIO_F_VERSION_1.
const VERSION_1: u64 = 1 << 32;
/// VIRTIO_F_EVENT_IDX: each side names the entry at which it wants the next notification.
pub(crate) const EVENT_IDX: u64 = 1 << 29;

const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;

/// The reason why a device can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// It supports an older version only.
    Legacy,
    /// It rejects the features that it has offered.
    Features,
    /// It has no queue of this number.
    NoQueue(u16),
    /// All vectors are in use, or it has no MSI-X.
    NoInterrupts,
    /// There is no memory for its queues.
    Memory,
    /// It does not end its reset.
    Reset,
    /// Its configuration changes whenever it is read.
    Changing,
    /// Its hardware address is that of a group, or none.
    Address([u8; 6]),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Legacy => {
                "it does not support virtio 1 (QEMU: -global virtio-mmio.force-legacy=false)"
            }
            Self::Features => "it rejects the features that it has offered",
            Self::NoQueue(number) => return write!(f, "it has no queue {number}"),
            Self::NoInterrupts => "it has no MSI-X, or all interrupt vectors are in use",
            Self::Memory => "there is not enough memory for its queues",
            Self::Reset => "it does not complete its reset",
            Self::Changing => "its configuration changes whenever it is read",
            Self::Address(address) => {
                f.write_str("its hardware address, ")?;
                for (place, byte) in address.iter().enumerate() {
                    let colon = if place > 0 { ":" } else { "" };
                    write!(f, "{colon}{byte:02x}")?;
                }
                ", is that of a group or of no host"
            }
        };
        f.write_str(text)
    }
}

impl core::error::Error for DeviceError {}

/// The transport of a device.
#[derive(Clone, Copy, Debug)]
enum Registers {
    /// The structures of a PCI device.
    Pci {
        function: Function,
        common: u64,
        /// The notification registers, and their length in bytes.
        notify: u64,
        notify_length: u32,
        multiplier: u32,
        /// The device-specific configuration, with its length.
        own: (u64, u32),
        messages: Option<Messages>,
    },
    /// The registers of the MMIO transport.
    Mmio { base: u64, line: u32 },
}

/// A device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    registers: Registers,
    features: u64,
}

/// The interrupts of one vector, and how many of them were seen.
#[derive(Debug)]
pub struct Interrupts {
    vector: u8,
    seen: Cell<u64>,
}

impl Interrupts {
    fn new() -> Result<Self, DeviceError> {
        let vector = interrupts::take_vector().ok_or(DeviceError::NoInterrupts)?;
        let seen = Cell::new(0);
        Ok(Self { vector, seen })
    }

    /// Returns their number.
    pub fn count(&self) -> u64 {
        local().interrupts(self.vector)
    }

    /// Returns whether one has come since the last call.
    pub fn came(&self) -> bool {
        let count = self.count();
        self.seen.replace(count) != count
    }
}

/// Returns the first device of a kind: on PCI, or named on the command line in Linux's form,
/// `virtio_mmio.device=512@0xfeb00e00:12`.
#[must_use]
pub fn find(kind: Kind, command_line: &str) -> Option<Device> {
    let in_memory = command_line
        .split_ascii_whitespace()
        .filter_map(mmio)
        .find(|device| device.kind() == kind as u32);
    let on_pci = || pci::functions().find_map(|function| on_pci(function, kind));
    in_memory.or_else(on_pci)
}

/// Reads a word that names a device.
pub(crate) fn mmio(word: &str) -> Option<Device> {
    let (_, place) = word.strip_prefix("virtio_mmio.device=")?.split_once('@')?;
    let mut parts = place.split(':');
    let base = number(parts.next()?.strip_prefix("0x")?, 16)?;
    let line = number(parts.next()?, 10)?;
    // Other addresses are not mapped as registers.
    if !(0xe000_0000..0xffff_f000).contains(&base) || line >= 48 {
        return None;
    }
    let line = line as u32;
    let registers = Registers::Mmio { base, line };
    Some(Device {
        registers,
        features: 0,
    })
}

/// Reads a number.
#[inline(never)]
fn number(text: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(text, radix).ok()
}

/// Returns the device of a PCI function if it is of this kind and of version 1.
fn on_pci(function: Function, kind: Kind) -> Option<Device> {
    const VENDOR: u16 = 0x1af4;
    const MODERN: u16 = 0x1040;
    const TRANSITIONAL: [(Kind, u16); 4] = [
        (Kind::Net, 0x1000),
        (Kind::Block, 0x1001),
        (Kind::Console, 0x1003),
        (Kind::Entropy, 0x1005),
    ];
    let (vendor, device) = function.id();
    let is_kind = device == MODERN + kind as u16 || TRANSITIONAL.contains(&(kind, device));
    if vendor != VENDOR || !is_kind {
        return None;
    }
    const VENDOR_SPECIFIC: u8 = 9;
    const COMMON: u8 = 1;
    const NOTIFY: u8 = 2;
    const OWN: u8 = 4;
    // Each with its length: what is not inside of its range of registers is none.
    let structure = |wanted: u8| {
        let mut all = function
            .capabilities()
            .filter(|(kind, _)| *kind == VENDOR_SPECIFIC);
        let (_, at) = all.find(|(_, at)| (function.read(*at) >> 24) as u8 == wanted)?;
        let field = |offset| function.read(at.wrapping_add(offset));
        let (start, bytes) = function.registers(field(4) as u8)?;
        let (offset, length) = (field(8), field(12));
        let is_inside = offset.checked_add(length)? <= bytes;
        is_inside.then_some((start + u64::from(offset), length, field(16)))
    };
    let (common, length, _) = structure(COMMON)?;
    let (notify, notify_length, multiplier) = structure(NOTIFY)?;
    if length < common::BYTES {
        return None;
    }
    let registers = Registers::Pci {
        function,
        common,
        notify,
        notify_length,
        multiplier,
        own: structure(OWN).map_or((0, 0), |(address, length, _)| (address, length)),
        messages: function.messages(),
    };
    function.enable();
    Some(Device {
        registers,
        features: 0,
    })
}

/// Offsets in the common structure of a PCI device.
mod common {
    pub const OFFERED_SELECT: u64 = 0;
    pub const OFFERED: u64 = 4;
    pub const ACCEPTED_SELECT: u64 = 8;
    pub const ACCEPTED: u64 = 12;
    pub const CHANGE_MESSAGE: u64 = 16;
    pub const STATUS: u64 = 20;
    pub const GENERATION: u64 = 21;
    pub const QUEUE: u64 = 22;
    pub const QUEUE_SIZE: u64 = 24;
    pub const QUEUE_MESSAGE: u64 = 26;
    pub const QUEUE_ENABLE: u64 = 28;
    pub const QUEUE_NOTIFY: u64 = 30;
    pub const QUEUE_ADDRESSES: [u64; 3] = [32, 40, 48];
    /// The length of the structure.
    pub const BYTES: u32 = 56;
}

/// Registers of the MMIO transport.
mod mmio {
    pub const MAGIC: u64 = 0;
    pub const VERSION: u64 = 4;
    pub const KIND: u64 = 8;
    pub const OFFERED: u64 = 0x10;
    pub const OFFERED_SELECT: u64 = 0x14;
    pub const ACCEPTED: u64 = 0x20;
    pub const ACCEPTED_SELECT: u64 = 0x24;
    pub const QUEUE: u64 = 0x30;
    pub const QUEUE_MOST: u64 = 0x34;
    pub const QUEUE_SIZE: u64 = 0x38;
    pub const QUEUE_READY: u64 = 0x44;
    pub const NOTIFY: u64 = 0x50;
    pub const CAUSE: u64 = 0x60;
    pub const ACKNOWLEDGE: u64 = 0x64;
    pub const STATUS: u64 = 0x70;
    pub const QUEUE_ADDRESSES: [u64; 3] = [0x80, 0x90, 0xa0];
    pub const GENERATION: u64 = 0xfc;
    pub const OWN: u64 = 0x100;
}

impl Device {
    fn kind(&self) -> u32 {
        const MAGIC: u32 = 0x7472_6976;
        match self.registers {
            Registers::Mmio { base, .. } if read::<u32>(base + mmio::MAGIC) == MAGIC => {
                read(base + mmio::KIND)
            }
            _ => 0,
        }
    }

    /// Resets the device and negotiates the features `wanted`, as far as it offers them.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if the device does not support version 1, or rejects the features.
    pub fn negotiate(&mut self, wanted: u64) -> Result<(), DeviceError> {
        if let Registers::Mmio { base, .. } = self.registers
            && read::<u32>(base + mmio::VERSION) != 2
        {
            return Err(DeviceError::Legacy);
        }
        self.set_status(0);
        let start = tsc();
        while self.status() != 0 {
            if tsc().wrapping_sub(start) > PATIENCE_TICKS {
                return Err(DeviceError::Reset);
            }
        }
        self.set_status(ACKNOWLEDGE);
        self.set_status(ACKNOWLEDGE | DRIVER);
        let offered = self.offered();
        if offered & VERSION_1 == 0 {
            return Err(DeviceError::Legacy);
        }
        self.features = offered & (wanted | VERSION_1 | EVENT_IDX);
        self.accept();
        self.set_status(ACKNOWLEDGE | DRIVER | FEATURES_OK);
        let is_accepted = self.status() & FEATURES_OK != 0;
        is_accepted.then_some(()).ok_or(DeviceError::Features)
    }

    /// Returns whether a feature was negotiated.
    pub fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// Starts the device.
    pub fn start(&self) {
        self.set_status(ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
    }

    /// Sets up interrupts: three vectors on PCI, the first for changes of the configuration; only
    /// one vector, for all events, with MMIO.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError::NoInterrupts`] if there are none.
    pub fn interrupts(&self) -> Result<[Option<Interrupts>; 3], DeviceError> {
        apic::enable();
        let mut all = [const { None }; 3];
        match &self.registers {
            Registers::Pci {
                function,
                common,
                messages,
                ..
            } => {
                let messages = messages.as_ref().ok_or(DeviceError::NoInterrupts)?;
                let mut vectors = [0; 3];
                for (slot, vector) in all.iter_mut().zip(&mut vectors) {
                    let interrupts = Interrupts::new()?;
                    *vector = interrupts.vector;
                    *slot = Some(interrupts);
                }
                let routed = function.route(messages, &vectors);
                routed.ok_or(DeviceError::NoInterrupts)?;
                write(common + common::CHANGE_MESSAGE, 0_u16);
            }
            Registers::Mmio { line, .. } => {
                let interrupts = Interrupts::new()?;
                io_apic::route(*line, interrupts.vector);
                all[0] = Some(interrupts);
            }
        }
        Ok(all)
    }

    /// Returns whether the device uses MMIO.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.registers, Registers::Mmio { .. })
    }

    /// Acknowledges an interrupt of an MMIO device, which sends no other before. Returns whether
    /// its configuration has changed.
    pub fn acknowledge(&self) -> bool {
        const CHANGE: u32 = 2;
        let Registers::Mmio { base, .. } = self.registers else {
            return false;
        };
        let cause: u32 = read(base + mmio::CAUSE);
        write(base + mmio::ACKNOWLEDGE, cause);
        cause & CHANGE != 0
    }

    /// Reads bytes of the device-specific configuration, of one state of it; 0 for those that it
    /// lacks.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError::Changing`] if it has changed during each of 100 attempts.
    pub fn own<const N: usize>(&self, offset: u32) -> Result<[u8; N], DeviceError> {
        let mut bytes = [0; N];
        let is_whole = self.read_own(offset, &mut bytes);
        is_whole.then_some(bytes).ok_or(DeviceError::Changing)
    }

    /// Reads such bytes, and returns whether they are of one state. Compiled once, not for each
    /// number of them.
    #[inline(never)]
    fn read_own(&self, offset: u32, bytes: &mut [u8]) -> bool {
        /// How often a configuration that changes is read again.
        const ATTEMPTS: u8 = 100;
        let (start, length) = match self.registers {
            Registers::Pci { own, .. } => own,
            Registers::Mmio { base, .. } => (base + mmio::OWN, u32::MAX),
        };
        (0..ATTEMPTS).any(|_| {
            let before = self.generation();
            for (place, byte) in (offset..length).zip(&mut *bytes) {
                *byte = read(start + u64::from(place));
            }
            self.generation() == before
        })
    }

    /// Returns a number that changes with the device-specific configuration.
    fn generation(&self) -> u32 {
        match self.registers {
            Registers::Pci { common, .. } => read::<u8>(common + common::GENERATION).into(),
            Registers::Mmio { base, .. } => read(base + mmio::GENERATION),
        }
    }

    /// Makes a queue, with at most `most` entries. `message` is the index of its interrupt.
    ///
    /// # Errors
    ///
    /// Returns [`DeviceError`] if there is no such queue, or no memory.
    pub fn queue(&self, number: u16, most: u16, message: u16) -> Result<Queue, DeviceError> {
        let no_queue = DeviceError::NoQueue(number);
        let offered = self.queue_most(number).ok_or(no_queue)?;
        let size = 1 << most.clamp(1, offered.get()).ilog2();
        let memory = memory::take(Rings::bytes(size)).ok_or(DeviceError::Memory)?;
        // SAFETY: a power of two, and whole pages that are zero and nobody else has.
        let rings = unsafe { Rings::new(memory.as_mut_ptr().cast(), size) };
        let register = self.set_up(&rings, message).ok_or(no_queue)?;
        let bell = Bell {
            register,
            is_wide: self.is_in_memory(),
            number,
        };
        Ok(Queue::over(rings, bell, self.has(EVENT_IDX)))
    }

    /// Selects a queue, and returns the maximum number of entries in it.
    fn queue_most(&self, queue: u16) -> Option<NonZeroU16> {
        self.select(queue);
        let most = match self.registers {
            Registers::Pci { common, .. } => read(common + common::QUEUE_SIZE),
            Registers::Mmio { base, .. } => read::<u32>(base + mmio::QUEUE_MOST) as u16,
        };
        NonZeroU16::new(most)
    }

    /// Sets the addresses of the selected queue and the message for its interrupts. Returns the
    /// address of its notification register. None if that is not among the device's.
    fn set_up(&self, rings: &Rings, message: u16) -> Option<u64> {
        let (start, registers) = match self.registers {
            Registers::Pci { common, .. } => {
                write(common + common::QUEUE_SIZE, rings.size());
                write(common + common::QUEUE_MESSAGE, message);
                (common, common::QUEUE_ADDRESSES)
            }
            Registers::Mmio { base, .. } => {
                write(base + mmio::QUEUE_SIZE, u32::from(rings.size()));
                (base, mmio::QUEUE_ADDRESSES)
            }
        };
        for (register, address) in registers.into_iter().zip(rings.addresses()) {
            write(start + register, address as u32);
            write(start + register + 4, (address >> 32) as u32);
        }
        match self.registers {
            Registers::Pci {
                common,
                notify,
                notify_length,
                multiplier,
                ..
            } => {
                write(common + common::QUEUE_ENABLE, 1_u16);
                let offset: u16 = read(common + common::QUEUE_NOTIFY);
                let offset = u64::from(offset) * u64::from(multiplier);
                (offset + 2 <= notify_length.into()).then_some(notify + offset)
            }
            Registers::Mmio { base, .. } => {
                write(base + mmio::QUEUE_READY, 1_u32);
                Some(base + mmio::NOTIFY)
            }
        }
    }

    fn select(&self, queue: u16) {
        match self.registers {
            Registers::Pci { common, .. } => write(common + common::QUEUE, queue),
            Registers::Mmio { base, .. } => write(base + mmio::QUEUE, u32::from(queue)),
        }
    }

    fn offered(&self) -> u64 {
        let half = |which: u32| -> u32 {
            match self.registers {
                Registers::Pci { common, .. } => {
                    write(common + common::OFFERED_SELECT, which);
                    read(common + common::OFFERED)
                }
                Registers::Mmio { base, .. } => {
                    write(base + mmio::OFFERED_SELECT, which);
                    read(base + mmio::OFFERED)
                }
            }
        };
        u64::from(half(0)) | u64::from(half(1)) << 32
    }

    fn accept(&self) {
        for which in [0, 1_u32] {
            let half = (self.features >> (32 * which)) as u32;
            match self.registers {
                Registers::Pci { common, .. } => {
                    write(common + common::ACCEPTED_SELECT, which);
                    write(common + common::ACCEPTED, half);
                }
                Registers::Mmio { base, .. } => {
                    write(base + mmio::ACCEPTED_SELECT, which);
                    write(base + mmio::ACCEPTED, half);
                }
            }
        }
    }

    fn status(&self) -> u8 {
        match self.registers {
            Registers::Pci { common, .. } => read(common + common::STATUS),
            Registers::Mmio { base, .. } => read::<u32>(base + mmio::STATUS) as u8,
        }
    }

    fn set_status(&self, status: u8) {
        match self.registers {
            Registers::Pci { common, .. } => write(common + common::STATUS, status),
            Registers::Mmio { base, .. } => write(base + mmio::STATUS, u32::from(status)),
        }
    }
}

#[cfg(test)]
mod tests;

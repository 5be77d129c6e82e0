//! A machine for tests on the host: its registers are those of one fake device.

use core::cell::{Cell, RefCell};
use core::fmt::Debug;
use std::boxed::Box;

/// A device behind registers.
pub(crate) trait Fake {
    /// Returns the value of a register.
    fn read(&mut self, address: u64) -> u32;
    /// Takes a value for a register.
    fn write(&mut self, _address: u64, _value: u32) {}
    /// Does what it does by itself, each time that the driver looks at the clock.
    fn act(&mut self) {}
}

std::thread_local! {
    static DEVICE: RefCell<Option<Box<dyn Fake>>> = const { RefCell::new(None) };
    static TICKS: Cell<u64> = const { Cell::new(0) };
}

/// Makes a device that of the calling thread.
pub(crate) fn plug(device: impl Fake + 'static) {
    DEVICE.set(Some(Box::new(device)));
}

/// Returns the time-stamp counter, which has moved on by a quarter of a second.
pub(crate) fn tsc() -> u64 {
    DEVICE.with_borrow_mut(|device| device.as_mut().map(|device| device.act()));
    TICKS.set(TICKS.get() + (1 << 30));
    TICKS.get()
}

/// A width of registers.
pub(crate) trait Word: Copy + Into<u32> + TryFrom<u32, Error: Debug> {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}

pub(crate) fn read<W: Word>(address: u64) -> W {
    let value = DEVICE.with_borrow_mut(|device| device.as_mut().unwrap().read(address));
    W::try_from(value).unwrap()
}

pub(crate) fn write<W: Word>(address: u64, value: W) {
    DEVICE.with_borrow_mut(|device| device.as_mut().unwrap().write(address, value.into()));
}

pub(crate) mod memory {
    pub(crate) fn take(bytes: usize) -> Option<&'static mut [u8]> {
        let words = std::vec![0_u128; bytes.div_ceil(16)].leak();
        // SAFETY: the words have that many bytes.
        Some(unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), bytes) })
    }
}

pub(crate) mod pci {
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Messages;

    /// A function of a device: its id, its virtio capabilities, and the length of each range of
    /// registers.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Function {
        pub(crate) id: (u16, u16),
        pub(crate) structures: &'static [[u32; 5]],
        pub(crate) bytes: u32,
    }

    impl Function {
        pub(crate) fn id(&self) -> (u16, u16) {
            self.id
        }

        pub(crate) fn read(&self, offset: u8) -> u32 {
            self.structures.as_flattened()[usize::from(offset) / 4]
        }

        pub(crate) fn capabilities(&self) -> impl Iterator<Item = (u8, u8)> {
            (0..self.structures.len() as u8).map(|place| (9, 20 * place))
        }

        pub(crate) fn registers(&self, range: u8) -> Option<(u64, u32)> {
            (range < 6).then_some((u64::from(range) << 32, self.bytes))
        }

        pub(crate) fn messages(&self) -> Option<Messages> {
            None
        }

        pub(crate) fn route(&self, _: &Messages, _: &[u8]) -> Option<()> {
            None
        }

        pub(crate) fn enable(&self) {}
    }

    pub(crate) fn functions() -> impl Iterator<Item = Function> {
        core::iter::empty()
    }
}

pub(crate) mod interrupts {
    pub(crate) fn take_vector() -> Option<u8> {
        None
    }
}

pub(crate) mod apic {
    pub(crate) fn enable() {}
}

pub(crate) mod io_apic {
    pub(crate) fn route(_line: u32, _vector: u8) {}
}

pub(crate) struct Local;

pub(crate) fn local() -> Local {
    Local
}

impl Local {
    pub(crate) fn interrupts(&self, _vector: u8) -> u64 {
        0
    }
}

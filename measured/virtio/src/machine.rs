//! What drivers need of the machine. Tests on the host have none to link with: they get
//! `machine/fake.rs`.

use core::ptr::{read_volatile, write_volatile};

pub(crate) use tare_unikernel::local::local;
pub(crate) use tare_unikernel::{apic, interrupts, io_apic, memory, pci};

/// A width of registers.
pub(crate) trait Word: Copy {}
impl Word for u8 {}
impl Word for u16 {}
impl Word for u32 {}

pub(crate) fn read<W: Word>(address: u64) -> W {
    // SAFETY: a register of a device, used by this driver only, and without effect when read.
    unsafe { read_volatile(address as *const W) }
}

pub(crate) fn write<W: Word>(address: u64, value: W) {
    // SAFETY: a register of a device. The memory whose addresses it gets is reserved for it.
    unsafe { write_volatile(address as *mut W, value) };
}

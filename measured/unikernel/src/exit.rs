//! The ways to end the machine.

use crate::{console, cpu};

/// An exit status. The host sees QEMU's exit status: twice the number, plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done; the host sees 33.
    Done = 16,
    /// Failed; a record or line has the reason. The host sees 35.
    Failed = 17,
    /// The command line is invalid. The host sees 37.
    Misused = 18,
    /// The image panicked or faulted. The host sees 39.
    Crashed = 19,
}

/// The port of QEMU's isa-debug-exit device: `-device isa-debug-exit,iobase=0xf4,iosize=0x04`.
const DEBUG_EXIT: u16 = 0xf4;
/// The ACPI power management control register of QEMU's `pc` and `q35`.
const POWER: u16 = 0x604;
/// The value that requests the state S5, soft off.
const POWER_OFF: u16 = 0x2000;

/// The sleep control register of QEMU's `microvm` (ACPI, generic event device).
const MICROVM_SLEEP: *mut u8 = 0xfea0_0200 as *mut u8;
/// The value that requests the same: sleep type 5, sleep enable.
const MICROVM_POWER_OFF: u8 = 5 << 2 | 1 << 5;

/// Ends the machine: by isa-debug-exit, else by power-off if supported, else by halting.
///
/// The last two don't pass on the status: the host must use the records.
pub fn exit(status: Status) -> ! {
    cpu::disable_interrupts();
    console::drain();
    // SAFETY: ends the machine, or does nothing.
    unsafe { cpu::out32(DEBUG_EXIT, status as u32) };
    if cpu::hypervisor().is_some() {
        // SAFETY: the same; on bare metal another device may use the port, so only in a guest.
        unsafe { cpu::out16(POWER, POWER_OFF) };
        // SAFETY: the same; mapped as device registers.
        unsafe { MICROVM_SLEEP.write_volatile(MICROVM_POWER_OFF) };
    }
    cpu::stop()
}

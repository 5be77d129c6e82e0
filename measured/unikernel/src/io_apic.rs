//! The interrupt controller for the lines of devices: each line becomes a message to a CPU.

use core::ptr::{read_volatile, write_volatile};

use crate::local::local;

/// The addresses of the first controller of every PC, and of the second one of QEMU's microvm.
const BASES: [u64; 2] = [0xfec0_0000, 0xfec1_0000];
/// The number of lines of each controller in QEMU.
const LINES: u32 = 24;
const SELECT: u64 = 0;
const WINDOW: u64 = 0x10;
/// The lower half of the entry of line 0; two registers an entry.
const FIRST_ENTRY: u32 = 0x10;

/// Makes a line raise a vector on this CPU whenever it becomes active.
///
/// By its edge, not its level, so that a handler only needs to count. A device that holds its line
/// until it is acknowledged makes another edge afterwards.
///
/// # Panics
///
/// Panics for a line that no controller has.
pub fn route(line: u32, vector: u8) {
    let base = BASES[(line / LINES) as usize];
    let entry = FIRST_ENTRY + 2 * (line % LINES);
    write(base, entry + 1, u32::from(local().apic_id()) << 24);
    write(base, entry, vector.into());
    // Some controllers apply an entry only at the next access.
    let _ = read(base, entry);
}

fn select(base: u64, register: u32) {
    // SAFETY: a register of the controller, mapped uncached.
    unsafe { write_volatile((base + SELECT) as *mut u32, register) };
}

fn read(base: u64, register: u32) -> u32 {
    select(base, register);
    // SAFETY: as above.
    unsafe { read_volatile((base + WINDOW) as *const u32) }
}

fn write(base: u64, register: u32, value: u32) {
    select(base, register);
    // SAFETY: as above. Vectors that a line may raise all have handlers.
    unsafe { write_volatile((base + WINDOW) as *mut u32, value) };
}

//! The interrupt controller of each CPU, by its memory-mapped registers (xAPIC).

use core::ptr::{read_volatile, write_volatile};

use crate::cpu;
use crate::interrupts::SPURIOUS;
use crate::local::local;

/// The default address of the registers.
const BASE: u64 = 0xfee0_0000;
const BASE_REGISTER: u32 = 0x1b;
/// The MSR with the TSC at which the timer fires.
pub const TSC_DEADLINE: u32 = 0x6e0;

const TASK_PRIORITY: u64 = 0x80;
const END_OF_INTERRUPT: u64 = 0xb0;
const SPURIOUS_VECTOR: u64 = 0xf0;
const COMMAND_LOW: u64 = 0x300;
const COMMAND_HIGH: u64 = 0x310;
const TIMER_VECTOR: u64 = 0x320;
const LINE_0: u64 = 0x350;
const LINE_1: u64 = 0x360;
const INITIAL_COUNT: u64 = 0x380;
const CURRENT_COUNT: u64 = 0x390;
const DIVIDE: u64 = 0x3e0;

/// The register's address in the second mapping (see entry.s), as the 32-bit displacement that
/// the CPU extends to it.
pub(crate) const HIGH_END_OF_INTERRUPT: i32 = (BASE + END_OF_INTERRUPT) as u32 as i32;
/// The same for the register that starts the timer's count.
pub(crate) const HIGH_INITIAL_COUNT: i32 = (BASE + INITIAL_COUNT) as u32 as i32;

const MASKED: u32 = 1 << 16;
const DIVIDE_BY_1: u32 = 0b1011;

/// The mode of the timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Counts down once.
    OneShot = 0,
    /// Fires when the TSC reaches a value.
    Deadline = 2 << 17,
}

/// Enables the controller of this CPU, with everything masked.
///
/// # Panics
///
/// Panics if firmware has switched to x2APIC, or moved the registers.
pub fn enable() {
    // SAFETY: every CPU with 64-bit mode has this register.
    let state = unsafe { cpu::read_msr(BASE_REGISTER) };
    assert!(
        state & 1 << 10 == 0,
        "firmware left the APIC in x2APIC mode"
    );
    assert!(
        state & 0xf_ffff_f000 == BASE,
        "firmware moved the APIC's registers"
    );
    write(TASK_PRIORITY, 0);
    for line in [TIMER_VECTOR, LINE_0, LINE_1] {
        write(line, MASKED);
    }
    write(SPURIOUS_VECTOR, 1 << 8 | u32::from(SPURIOUS));
}

/// Unmasks NMIs on this CPU's second local interrupt pin, LINT1, where QEMU injects them.
pub fn let_nmi_in() {
    const DELIVER_NMI: u32 = 4 << 8;
    write(LINE_1, DELIVER_NMI);
}

/// Sets the timer's mode and vector; None masks it.
pub fn set_timer(mode: Mode, vector: Option<u8>) {
    let vector = vector.map_or(MASKED, u32::from);
    write(DIVIDE, DIVIDE_BY_1);
    write(TIMER_VECTOR, mode as u32 | vector);
}

/// Starts the timer's countdown; 0 stops it.
pub fn set_count(count: u32) {
    write(INITIAL_COUNT, count);
}

/// Returns the timer's current count.
pub fn count() -> u32 {
    read(CURRENT_COUNT)
}

/// Makes the timer fire when the TSC reaches `tsc`, in deadline mode. A CPU without that mode
/// faults (QEMU's own emulation does nothing).
pub fn set_deadline(tsc: u64) {
    // SAFETY: the fence keeps the write of the mode, to memory, before this one (Intel SDM, volume
    // 3, "TSC-Deadline Mode"). The vector has a handler; a fault is reported.
    unsafe {
        core::arch::x86_64::_mm_mfence();
        cpu::write_msr(TSC_DEADLINE, tsc);
    }
}

/// A message from one CPU to others.
#[derive(Clone, Copy, Debug)]
pub enum Message {
    /// Resets all other CPUs; they wait for a start-up message.
    ResetOthers,
    /// Starts all other CPUs that wait in real mode, at the start of this page below 1 MiB.
    StartOthers {
        /// Number of the page.
        page: u8,
    },
    /// Interrupts one CPU.
    Interrupt {
        /// The CPU.
        apic_id: u8,
        /// The vector.
        vector: u8,
    },
}

/// Sends a message and waits until it is on its way.
pub fn send(message: Message) {
    const OTHERS: u32 = 3 << 18;
    const ASSERT: u32 = 1 << 14;
    const PENDING: u32 = 1 << 12;
    let (target, command) = match message {
        Message::ResetOthers => (0, OTHERS | ASSERT | 5 << 8),
        Message::StartOthers { page } => (0, OTHERS | ASSERT | 6 << 8 | u32::from(page)),
        Message::Interrupt { apic_id, vector } => (apic_id, ASSERT | u32::from(vector)),
    };
    write(COMMAND_HIGH, u32::from(target) << 24);
    write(COMMAND_LOW, command);
    while read(COMMAND_LOW) & PENDING != 0 {}
}

/// Returns the address and the data by which a device interrupts this CPU with a message
/// (Intel SDM, volume 3, "Message Signalled Interrupts").
pub fn device_message(vector: u8) -> (u64, u32) {
    (BASE | u64::from(local().apic_id()) << 12, u32::from(vector))
}

fn read(register: u64) -> u32 {
    // SAFETY: a register of this CPU's controller, mapped uncached.
    unsafe { read_volatile((BASE + register) as *const u32) }
}

fn write(register: u64, value: u32) {
    // SAFETY: as above. The functions of this module describe the effect of each register; all
    // vectors that they may raise have handlers.
    unsafe { write_volatile((BASE + register) as *mut u32, value) };
}

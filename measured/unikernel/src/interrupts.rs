//! The interrupt descriptor table, and the handler of each vector.
//!
//! | vectors | what | stack |
//! |---|---|---|
//! | 0 ‥ 31 | exceptions: all but 2 end in [`crate::fault`] | fault; last for 8, 18 |
//! | 2 | NMI: the host asks the image to end ([`asked_to_end`]) | NMI |
//! | 32 ‥ 47 | counted individually and acknowledged | interrupts |
//! | 48, 49 | tick by deadline, by count: sets the next one, counts as vector 32 | interrupts |
//! | 50 ‥ 254 | unused: counted together and acknowledged | interrupts |
//! | 255 | spurious: nothing | interrupts |
//!
//! Every vector switches to a separate stack: code for this target keeps data below the stack
//! pointer (the red zone), which an interrupt on the same stack would overwrite. The handlers for
//! interrupts use no register that they don't restore, so they need not save the vector registers.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::apic;
use crate::cpu;
use crate::demand;
use crate::fault;
use crate::local::{
    COUNTED, FAULT_IST, INTERRUPT_IST, LAST_IST, Local, NMI_IST, TablePointer, local,
};

/// The vector that counts the timer's ticks.
pub const TIMER: u8 = 32;
/// The vector by which one CPU wakes another.
pub const WAKE: u8 = 33;
/// The first vector for a device.
const FIRST_DEVICE: u8 = 34;
/// The vector of the timer's tick in deadline mode.
pub const DEADLINE: u8 = 48;
/// The vector of the timer's tick by its own count.
pub const ONE_SHOT: u8 = 49;
/// The vector of spurious interrupts.
pub const SPURIOUS: u8 = 255;

/// The vector of an NMI.
const NMI: usize = 2;
/// The vector of a page fault.
const PAGE_FAULT: usize = 14;
const EXCEPTIONS: usize = 32;
const FIRST_UNCOUNTED: usize = EXCEPTIONS + COUNTED;
/// The distance from one stub to the next.
const STUB: usize = 16;

global_asm!(
    include_str!("interrupts.s"),
    fault = sym fault::faulted,
    demand_start = sym demand::START,
    demand_table = sym demand::TABLE,
    demand_faults = sym demand::FAULTS,
    counted = const COUNTED,
    unexpected = const offset_of!(Local, unexpected),
    asked = const offset_of!(Local, asked),
    deadline = const offset_of!(Local, deadline),
    period = const offset_of!(Local, period),
    missed = const offset_of!(Local, missed),
    tsc_deadline = const apic::TSC_DEADLINE,
    // As displacements, which are sign-extended: see entry.s.
    initial_count = const apic::HIGH_INITIAL_COUNT,
    end_of_interrupt = const apic::HIGH_END_OF_INTERRUPT,
);

unsafe extern "C" {
    static exception_stubs: u8;
    static interrupt_stubs: u8;
    static demand_stub: u8;
    static nmi_stub: u8;
    static deadline_stub: u8;
    static one_shot_stub: u8;
    static unexpected_stub: u8;
    static spurious_stub: u8;
}

/// One entry of the table (Intel SDM, volume 3, figure 7-8).
#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    fn new(handler: u64, stack: u8) -> Self {
        const CODE64: u64 = 8;
        const INTERRUPT_GATE: u64 = 0x8e;
        Self {
            low: handler & 0xffff
                | CODE64 << 16
                | u64::from(stack) << 32
                | INTERRUPT_GATE << 40
                | (handler >> 16 & 0xffff) << 48,
            high: handler >> 32,
        }
    }
}

/// The table, the same for all CPUs.
#[repr(align(16))]
struct Table(UnsafeCell<[Gate; 256]>);

// SAFETY: written by the first CPU before others start, then read by CPUs only.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([Gate { low: 0, high: 0 }; 256]));

/// Fills the table, loads it, and silences the old interrupt controllers and timer.
///
/// # Safety
///
/// Must be called once, by the first CPU, after its [`crate::local::install`] and before any other
/// CPU runs.
pub(crate) unsafe fn start() {
    // SAFETY: there is no other reference yet.
    let table = unsafe { &mut *TABLE.0.get() };
    for (vector, gate) in table.iter_mut().enumerate() {
        *gate = Gate::new(handler(vector), stack(vector));
    }
    // SAFETY: the table is complete.
    unsafe { load() };
    // SAFETY: masks all lines of the two 8259, which would use the vectors of exceptions, and stops
    // channel 0 of the PIT, whose unused ticks would cost QEMU work, 36 times a second.
    unsafe {
        cpu::out8(0x21, 0xff);
        cpu::out8(0xa1, 0xff);
        cpu::out8(0x43, 0b0011_0000);
    }
}

/// Installs the handler for page faults of the demand-mapped region ([`crate::demand`]).
pub(crate) fn map_on_demand() {
    // SAFETY: the entry of one vector, which no other function changes after the start.
    unsafe {
        let gate = TABLE.0.get().cast::<Gate>().add(PAGE_FAULT);
        gate.write_volatile(Gate::new(
            (&raw const demand_stub) as u64,
            stack(PAGE_FAULT),
        ));
    }
}

/// Loads the table on this CPU.
///
/// # Safety
///
/// [`start`] must have filled it.
pub(crate) unsafe fn load() {
    let pointer = TablePointer::new(TABLE.0.get() as u64, size_of::<[Gate; 256]>());
    // SAFETY: the table stays in place; the caller guarantees that it is complete.
    unsafe {
        asm!("lidt [{}]", in(reg) &raw const pointer, options(readonly, nostack, preserves_flags));
    }
}

/// Allocates a vector for a device, permanently: its interrupts are counted
/// ([`crate::local::Local::interrupts`]). None if all are in use.
pub fn take_vector() -> Option<u8> {
    static NEXT: AtomicU8 = AtomicU8::new(FIRST_DEVICE);
    let next = |vector: u8| (usize::from(vector) < FIRST_UNCOUNTED).then_some(vector + 1);
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .ok()
}

/// Returns whether the host has requested the end on this CPU, by an NMI, which only arrives after
/// [`apic::let_nmi_in`].
#[inline]
pub fn asked_to_end() -> bool {
    local().asked.load(Ordering::Relaxed) > 0
}

fn handler(vector: usize) -> u64 {
    let exceptions = (&raw const exception_stubs) as usize;
    let counted = (&raw const interrupt_stubs) as usize;
    let address = match vector {
        NMI => (&raw const nmi_stub) as usize,
        _ if vector < EXCEPTIONS => exceptions + vector * STUB,
        _ if vector < FIRST_UNCOUNTED => counted + (vector - EXCEPTIONS) * STUB,
        _ if vector == DEADLINE.into() => (&raw const deadline_stub) as usize,
        _ if vector == ONE_SHOT.into() => (&raw const one_shot_stub) as usize,
        _ if vector == SPURIOUS.into() => (&raw const spurious_stub) as usize,
        _ => (&raw const unexpected_stub) as usize,
    };
    address as u64
}

fn stack(vector: usize) -> u8 {
    match vector {
        NMI => NMI_IST,
        8 | 18 => LAST_IST,
        _ if vector < EXCEPTIONS => FAULT_IST,
        _ => INTERRUPT_IST,
    }
}

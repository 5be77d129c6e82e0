//! The data of each CPU: stacks, descriptor tables, counters.
//!
//! ```text
//! Area   guard page      not mapped
//!        stack           the image's main function, or the CPU's task
//!        guard page      not mapped
//!        fault stack     exceptions
//!        guard page      not mapped
//!        last stack      double fault, machine check
//!        interrupts      handlers that only count: they hold a few words
//!        NMI             the same, but it comes during any other handler
//!        Local           GS points here
//! ```

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::cpu;

/// The size of a page.
pub const PAGE: usize = 4096;

/// The number of interrupt vectors that are counted individually, from vector 32 on.
pub const COUNTED: usize = 16;

/// The size of the main stack, in bytes. In debug builds, the network stack is copied several times
/// on its way to its destination.
const STACK: usize = if cfg!(debug_assertions) {
    512 << 10
} else {
    64 << 10
};
const FAULT_STACK: usize = 16 << 10;
const LAST_STACK: usize = 8 << 10;
const INTERRUPT_STACK: usize = 1 << 10;

/// The memory of one CPU. It is never constructed: the first is in the image, others are in free
/// memory.
#[repr(C, align(4096))]
pub(crate) struct Area {
    guard_0: [u8; PAGE],
    stack: [u8; STACK],
    guard_1: [u8; PAGE],
    fault_stack: [u8; FAULT_STACK],
    guard_2: [u8; PAGE],
    last_stack: [u8; LAST_STACK],
    interrupt_stack: [u8; INTERRUPT_STACK],
    nmi_stack: [u8; INTERRUPT_STACK],
    local: Local,
}

/// The end of the main stack in an area.
pub(crate) const STACK_TOP: usize = offset_of!(Area, guard_1);
/// The offsets of the guard pages in an area.
pub(crate) const GUARDS: [usize; 3] = [
    offset_of!(Area, guard_0),
    offset_of!(Area, guard_1),
    offset_of!(Area, guard_2),
];

/// The area of the first CPU.
#[repr(transparent)]
pub(crate) struct First(UnsafeCell<core::mem::MaybeUninit<Area>>);

// SAFETY: only the first CPU uses it, once, by its address.
unsafe impl Sync for First {}

#[unsafe(link_section = ".bss.stacks")]
pub(crate) static FIRST: First = First(UnsafeCell::new(core::mem::MaybeUninit::uninit()));

impl First {
    /// Returns the address of the first CPU's area.
    pub(crate) fn address(&self) -> usize {
        self.0.get() as usize
    }
}

/// The data that GS points to. Interrupt handlers reach the fields by their offsets.
#[repr(C)]
pub struct Local {
    /// Interrupts per vector, from 32 on.
    pub(crate) counts: [AtomicU64; COUNTED],
    /// Interrupts of all vectors above those.
    pub(crate) unexpected: AtomicU64,
    /// NMIs, by which the host requests the end.
    pub(crate) asked: AtomicU64,
    /// TSC at which the next tick is due, in deadline mode.
    pub(crate) deadline: AtomicU64,
    /// Steps of the TSC, or of the APIC's timer, from one tick to the next.
    pub(crate) period: AtomicU64,
    /// Ticks that were skipped because they had passed before they could be set, in deadline mode.
    pub(crate) missed: AtomicU64,
    this: *const Local,
    /// Number of the CPU, from 0.
    number: AtomicU32,
    apic_id: u8,
    area: usize,
    /// Task to run, as the address of a function; 0 for none.
    pub(crate) task: AtomicUsize,
    tables: Tables,
}

/// The tables that the CPU reads.
#[repr(C)]
struct Tables {
    gdt: [u64; 6],
    tss: Tss,
}

/// The 64-bit task state segment (Intel SDM, volume 3, figure 9-11), in halves, since its addresses
/// are not aligned.
#[repr(C)]
struct Tss {
    words: [u32; 26],
}

/// The entry for interrupts in the TSS's interrupt stack table.
pub(crate) const INTERRUPT_IST: u8 = 1;
/// The entry for exceptions.
pub(crate) const FAULT_IST: u8 = 2;
/// The entry for exceptions while another exception is handled.
pub(crate) const LAST_IST: u8 = 3;
/// The entry for NMIs.
pub(crate) const NMI_IST: u8 = 4;

impl Tss {
    fn new(stacks: [u64; 4]) -> Self {
        let mut words = [0; 26];
        for (index, top) in stacks.into_iter().enumerate() {
            words[9 + 2 * index] = top as u32;
            words[10 + 2 * index] = (top >> 32) as u32;
        }
        // The permission bitmap for ports would be after the segment: there is none.
        words[25] = (size_of::<Self>() as u32) << 16;
        Self { words }
    }
}

const CODE64: u64 = 0x00af_9b00_0000_ffff;
const DATA: u64 = 0x00cf_9300_0000_ffff;
const TSS_SELECTOR: u16 = 4 * 8;

/// Returns the two entries of the GDT for a TSS at `base`.
fn tss_descriptor(base: u64) -> [u64; 2] {
    let limit = size_of::<Tss>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56;
    [low, base >> 32]
}

/// Sets up an area for the current CPU: GS, GDT, TSS.
///
/// # Safety
///
/// `area` must be the address of memory for an [`Area`], aligned, and used by this CPU alone,
/// permanently.
pub(crate) unsafe fn install(area: usize, number: u32) {
    let local = (area + offset_of!(Area, local)) as *mut Local;
    let top = |offset: usize| (area + offset) as u64;
    let fresh = Local {
        counts: [const { AtomicU64::new(0) }; COUNTED],
        unexpected: AtomicU64::new(0),
        asked: AtomicU64::new(0),
        deadline: AtomicU64::new(0),
        period: AtomicU64::new(0),
        missed: AtomicU64::new(0),
        this: local,
        number: AtomicU32::new(number),
        apic_id: cpu::apic_id(),
        area,
        task: AtomicUsize::new(0),
        tables: Tables {
            gdt: [0, CODE64, DATA, 0, 0, 0],
            tss: Tss::new([
                top(offset_of!(Area, nmi_stack)),
                top(GUARDS[2]),
                top(offset_of!(Area, interrupt_stack)),
                top(offset_of!(Area, local)) & !0xf,
            ]),
        },
    };
    // SAFETY: the caller guarantees the memory. The descriptor tables stay in place, their entries
    // are the same flat segments as those in use, and the TSS holds valid stacks.
    unsafe {
        local.write(fresh);
        let tss = (&raw const (*local).tables.tss) as u64;
        let [low, high] = tss_descriptor(tss);
        (*local).tables.gdt[4] = low;
        (*local).tables.gdt[5] = high;
        let gdt = &raw const (*local).tables.gdt;
        let pointer = TablePointer::new(gdt as u64, size_of::<[u64; 6]>());
        asm!("lgdt [{}]", in(reg) &raw const pointer, options(readonly, nostack, preserves_flags));
        asm!("ltr {:x}", in(reg) TSS_SELECTOR, options(nostack, preserves_flags));
        cpu::write_msr(GS_BASE, local as u64);
    }
}

const GS_BASE: u32 = 0xc000_0101;

/// The operand of `lgdt` and `lidt`.
#[repr(C, packed)]
pub(crate) struct TablePointer {
    limit: u16,
    base: u64,
}

impl TablePointer {
    pub(crate) fn new(base: u64, bytes: usize) -> Self {
        Self {
            limit: (bytes - 1) as u16,
            base,
        }
    }
}

/// Returns the data of this CPU.
pub fn local() -> &'static Local {
    let this: *const Local;
    // SAFETY: `install` ran on this CPU before any other code of the image, and the data change
    // through atomics only.
    unsafe {
        asm!("mov {}, gs:[{offset}]", out(reg) this, offset = const offset_of!(Local, this),
             options(nostack, preserves_flags, readonly));
        &*this
    }
}

/// Returns the data of the CPU with the area at `area`.
///
/// # Safety
///
/// [`install`] must have run for that area.
pub(crate) unsafe fn of(area: usize) -> &'static Local {
    // SAFETY: passed on to the caller.
    unsafe { &*((area + offset_of!(Area, local)) as *const Local) }
}

impl Local {
    /// Returns the number of the CPU, from 0.
    pub fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    pub(crate) fn set_number(&self, number: u32) {
        self.number.store(number, Ordering::Relaxed);
    }

    /// Returns the CPU's APIC id.
    pub fn apic_id(&self) -> u8 {
        self.apic_id
    }

    /// Returns the CPU's number of interrupts by a vector from 32 to 47.
    ///
    /// # Panics
    ///
    /// Panics for another vector.
    pub fn interrupts(&self, vector: u8) -> u64 {
        self.counts[usize::from(vector) - 32].load(Ordering::Relaxed)
    }

    /// Returns the CPU's number of interrupts by unused vectors.
    pub fn unexpected_interrupts(&self) -> u64 {
        self.unexpected.load(Ordering::Relaxed)
    }

    /// Returns the part of the stack above `pointer`, for any of the CPU's stacks; for a pointer to
    /// a guard page, the whole stack above that. Empty for other pointers.
    pub(crate) fn stack_above(&self, pointer: u64) -> Range<u64> {
        let at = |offset: usize| (self.area + offset) as u64;
        let stacks = [
            (at(0), at(STACK_TOP)),
            (at(GUARDS[1]), at(GUARDS[2])),
            (at(GUARDS[2]), at(offset_of!(Area, local))),
        ];
        stacks
            .into_iter()
            .find(|(guard, top)| (*guard..*top).contains(&pointer))
            .map_or(0..0, |(guard, top)| {
                pointer.next_multiple_of(8).max(guard + PAGE as u64)..top
            })
    }

    /// Returns the guard pages of the CPU's stacks.
    pub(crate) fn guards(&self) -> [Range<u64>; 3] {
        GUARDS.map(|offset| {
            let start = (self.area + offset) as u64;
            start..start + PAGE as u64
        })
    }
}

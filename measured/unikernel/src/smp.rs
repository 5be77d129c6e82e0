//! All other CPUs: one task each, on a separate stack, permanently pinned.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::apic::{self, Message};
use crate::cpu;
use crate::interrupts::{self, WAKE};
use crate::local::{self, Area, GUARDS, PAGE};
use crate::{memory, paging};

/// The greatest number of CPUs, limited by the APIC ids.
pub const MOST: u32 = 255;

/// The page below 1 MiB in which other CPUs start, in real mode. PC firmware leaves it free.
const PAGE_NUMBER: u8 = 8;

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static others_started: AtomicU32;
    static others_end: AtomicU32;
    static others_areas: AtomicU32;
}

/// The reason why CPUs could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmpError {
    /// 0 or more than [`MOST`] were requested.
    Count,
    /// There is no memory for their stacks.
    Memory,
    /// Only this many started.
    Started(u32),
}

/// The address of the contiguous areas of all other CPUs.
static AREAS: AtomicUsize = AtomicUsize::new(0);
/// The number of CPUs, including the first.
static COUNT: AtomicU32 = AtomicU32::new(1);
/// The number of other CPUs that wait for their task.
static READY: AtomicU32 = AtomicU32::new(0);

/// Starts CPUs until there are `count`, including the first. Must be called once, by the first CPU.
///
/// If the machine has more, those that start last halt. CPUs are numbered in the order of their
/// APIC ids, so that a number always refers to the same CPU.
///
/// # Errors
///
/// Returns [`SmpError`] if there are too few.
pub fn start(count: u32) -> Result<(), SmpError> {
    if !(1..=MOST).contains(&count) {
        return Err(SmpError::Count);
    }
    if count == 1 {
        return Ok(());
    }
    let others = count as usize - 1;
    let areas = memory::take(others * size_of::<Area>()).ok_or(SmpError::Memory)?;
    let areas = areas.as_mut_ptr() as usize;
    for guard in
        (0..others).flat_map(|k| GUARDS.map(|offset| areas + k * size_of::<Area>() + offset))
    {
        // SAFETY: an unused page of the areas, and no other CPU runs yet.
        unsafe { paging::unmap(guard as u64) }.ok_or(SmpError::Memory)?;
    }
    AREAS.store(areas, Ordering::Release);
    // SAFETY: the assembly's words, read only by CPUs that are woken below. They are numbered from
    // 1 on, and find their stacks that many areas after this address.
    unsafe {
        others_areas.store((areas - size_of::<Area>()) as u32, Ordering::Release);
        others_started.store(1, Ordering::Release);
        others_end.store(count, Ordering::Release);
    }
    reset_others();
    wait(others as u32)
}

/// Installs the trampoline and resets all other CPUs, which then wait for the start-up message
/// (Intel SDM, volume 3, "MP initialization protocol").
fn reset_others() {
    let page = (usize::from(PAGE_NUMBER) * PAGE) as *mut u8;
    let code = &raw const trampoline_start;
    let bytes = (&raw const trampoline_end) as usize - code as usize;
    // SAFETY: the page is unused conventional memory, and larger than the code.
    unsafe { core::ptr::copy_nonoverlapping(code, page, bytes) };
    apic::enable();
    apic::send(Message::ResetOthers);
    pause();
}

/// Waits for some ten µs: a port access takes about one.
fn pause() {
    for _ in 0..20 {
        // SAFETY: the port for power-on self-test codes, which does nothing.
        unsafe { cpu::out8(0x80, 0) };
    }
}

/// Sends the start-up message until this many other CPUs are ready. Running ones ignore it, so the
/// manual's fixed delays between its two messages are not needed.
fn wait(others: u32) -> Result<(), SmpError> {
    /// The time limit for CPUs to start, in pauses: about a second or more.
    const PATIENCE: u32 = 50_000;
    /// The number of pauses between two messages.
    const REPEAT: u32 = 500;
    for attempt in 0..PATIENCE {
        if attempt % REPEAT == 0 {
            apic::send(Message::StartOthers { page: PAGE_NUMBER });
        }
        if READY.load(Ordering::Acquire) == others {
            number_by_apic_id(others);
            COUNT.store(others + 1, Ordering::Release);
            return Ok(());
        }
        pause();
    }
    Err(SmpError::Started(READY.load(Ordering::Acquire) + 1))
}

fn number_by_apic_id(others: u32) {
    // SAFETY: all have installed their areas.
    let all = || (1..=others).map(|slot| unsafe { local::of(area(slot)) });
    for one in all() {
        let before = all().filter(|other| other.apic_id() < one.apic_id());
        one.set_number(1 + before.count() as u32);
    }
}

/// Continues on another CPU, in 64-bit mode, with SSE, on its stack.
pub(crate) extern "C" fn start_other(slot: u32) -> ! {
    let area = area(slot);
    // SAFETY: only this CPU uses the area, and the interrupt table is filled.
    unsafe {
        local::install(area, slot);
        interrupts::load();
    }
    apic::enable();
    READY.fetch_add(1, Ordering::Release);
    loop {
        cpu::wait_for_interrupt();
        let task = local::local().task.swap(0, Ordering::Acquire);
        if task != 0 {
            // SAFETY: only `on_cpu` stores here, and only functions of this type.
            let task: fn() = unsafe { core::mem::transmute(task) };
            task();
        }
    }
}

/// Returns the area of the CPU that started as number `slot`, from 1 on.
fn area(slot: u32) -> usize {
    AREAS.load(Ordering::Acquire) + (slot as usize - 1) * size_of::<Area>()
}

/// Returns the number of CPUs.
pub fn count() -> u32 {
    COUNT.load(Ordering::Acquire)
}

/// The reason why a task can't run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskError {
    /// The CPU was not started.
    NoSuchCpu,
    /// It is the caller's own, or the first one, which runs the image's main function.
    OwnCpu,
    /// It has a task that it has not yet begun.
    Busy,
}

/// Runs `task` on another CPU, with interrupts disabled at first.
///
/// # Errors
///
/// Returns [`TaskError`] if the CPU can't.
pub fn on_cpu(number: u32, task: fn()) -> Result<(), TaskError> {
    if number == local::local().number() || number == 0 {
        return Err(TaskError::OwnCpu);
    }
    // SAFETY: all have installed their areas before they were counted.
    let other = (1..count())
        .map(|slot| unsafe { local::of(area(slot)) })
        .find(|other| other.number() == number)
        .ok_or(TaskError::NoSuchCpu)?;
    other
        .task
        .compare_exchange(0, task as usize, Ordering::Release, Ordering::Relaxed)
        .map_err(|_| TaskError::Busy)?;
    apic::send(Message::Interrupt {
        apic_id: other.apic_id(),
        vector: WAKE,
    });
    Ok(())
}

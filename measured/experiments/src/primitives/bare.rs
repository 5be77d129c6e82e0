//! Primitives on the bare machine: those of the processor and of memory, and the bare counterparts
//! of an operating system's.

use core::cell::Cell;
use core::hint::black_box;

use tare_unikernel::apic::{self, Message};
use tare_unikernel::demand::Demand;
use tare_unikernel::interrupts::WAKE;
use tare_unikernel::local::local;
use tare_unikernel::paging::{self, PageSize};
use tare_unikernel::{cpu, memory as machine_memory};
use tare_wire::image;
use tare_workloads::timing::{Fenced, Timing};

use super::bench::{Bench, Of, PLAIN, Results, Why, why};
use super::{Area, Context, Ending, NAME, Pages, Plan, Primitive, memory, processor, tell};
use crate::arena::Arena;
use crate::bare::Bare;
use crate::session::{self, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};

/// The size of a huge page, to which the room is aligned.
const HUGE: usize = 2 << 20;

/// The bare counterparts of an operating system's primitives.
const OWN: &[Primitive] = &[
    Primitive::NEW
        .named("getpid", "asking the kernel for a number: here a call")
        .area(Area::Syscall)
        .by(|bench, _| bench.each(PLAIN, || black_box(local()).number())),
    Primitive::NEW
        .named("wake-to-run", "interrupt of a waiting CPU, until it runs")
        .area(Area::Scheduling)
        .by(|bench, _| {
            let message = Message::Interrupt {
                apic_id: local().apic_id(),
                vector: WAKE,
            };
            // The interrupt stays pending until the CPU waits.
            let wake = || {
                let begin = Fenced::before();
                apic::send(message);
                cpu::wait_for_interrupt();
                Fenced::after().wrapping_sub(begin)
            };
            bench.single("cpu=same", || Ok(cpu::without_interrupts(wake)))
        }),
    Primitive::NEW
        .named(
            "fault-anonymous",
            "page fault, written: the handler clears a page and maps it",
        )
        .area(Area::Fault)
        .by(|bench, _| faults(bench)),
];

/// Returns the experiment on a machine without a kernel.
pub fn on<P: Bare>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu())),
        run: |words, machine| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, machine).map_err(Failure::Measurement)
        },
    }
}

/// Measures the primitives of a plan.
fn run(plan: &Plan<'_>, machine: &mut impl Bare) -> Result<(), Stop> {
    let room = match plan.area {
        // The rest is for page tables and preparation.
        Area::Memory => {
            let left = match machine.settings().pages {
                Some(image::Pages::Giant) => paging::left(PageSize::Giant),
                // The tables of small pages are in the rest, too.
                Some(image::Pages::Small) => machine_memory::left() / 512 * 511,
                _ => machine_memory::left(),
            };
            left.saturating_sub(2 * HUGE + size_of::<Results>()) & !(HUGE - 1)
        }
        _ => 0,
    };
    // Without a tick, the interrupt controller is still disabled.
    if machine.settings().timer_hz.is_none() {
        apic::enable();
    }
    let wanted = Wanted {
        plan,
        allowed: Ok(()),
        cpu: plan.cpu(),
        bytes: Arena::bytes::<Results>(1) + room,
    };
    session::run(wanted, machine, Ok, |output, mut given| {
        let hz = given.hz.ok_or(Stop::Place(
            "the TSC's frequency is unknown, so time limits can't be kept",
        ))?;
        let results = &mut given.arena.take::<Results>(1)[0];
        let words = given.arena.bytes_left() / size_of::<u64>();
        let start = given.arena.take::<u64>(words).as_mut_ptr();
        let space = words * size_of::<u64>();
        // The memory belongs to one primitive at a time.
        let is_taken = Cell::new(false);
        let mapped = output
            .platform
            .settings()
            .pages
            .unwrap_or(image::Pages::Large);
        let give = |bytes: usize, pages: Pages| match is_taken.get() {
            true => Err(why("the memory has been given")),
            false => {
                mapped_in(mapped, pages)?;
                give(start.cast(), space, bytes).inspect(|_| is_taken.set(true))
            }
        };
        let around = Context {
            plan,
            hz,
            room: &give,
        };
        let budget = (hz * plan.budget_ns as f64 / 1e9) as u64;
        let region = given.costs.fenced_region_cycles;
        let mut number = 0;
        let all = processor::TABLE.iter().chain(OWN).chain(memory::TABLE);
        for primitive in all.filter(|primitive| plan.has(primitive)) {
            is_taken.set(false);
            let ending = match super::measure(primitive, &around, results, (budget, region)) {
                Ok(()) => Ending::Measured,
                Err(why) => Ending::Absent(why),
            };
            tell(output, &mut number, primitive, &ending, results)?;
        }
        Ok(())
    })
}

/// Refuses pages of a size that the memory is not mapped in.
fn mapped_in(mapped: image::Pages, wanted: Pages) -> Result<(), Why> {
    match (mapped, wanted) {
        (image::Pages::Small, Pages::Small) | (image::Pages::Large, Pages::Huge) => Ok(()),
        _ => Err(why(format_args!(
            "the unikernel maps all memory in pages of {}iB (pages=)",
            mapped.word()
        ))),
    }
}

/// Lends the memory, once to each primitive.
#[inline]
fn give<'a>(start: *mut u8, space: usize, bytes: usize) -> Result<&'a mut [usize], Why> {
    let skipped = start.align_offset(HUGE);
    if skipped.saturating_add(bytes) > space {
        return Err(why("the guest has less free memory below 4 GiB (QEMU: -m)"));
    }
    // SAFETY: within the block, aligned, and earlier primitives no longer use it.
    let words = unsafe {
        core::slice::from_raw_parts_mut(
            start.wrapping_add(skipped).cast::<usize>(),
            bytes / size_of::<usize>(),
        )
    };
    Ok(words)
}

#[inline]
fn faults(bench: &mut Bench<'_>) -> Result<(), Why> {
    let demand = Demand::new().ok_or_else(|| why("there is no memory for a page table"))?;
    let (mut least, mut sum, mut all) = (f64::INFINITY, 0.0, 0);
    let begin = Fenced::before();
    let mut passes = 0;
    while passes < 5 || Fenced::after().wrapping_sub(begin) < bench.budget() {
        demand.forget();
        let before = demand.faults();
        let first = Fenced::before();
        for page in demand.pages() {
            // SAFETY: the region is this function's; the fault maps the page.
            unsafe { page.write_volatile(1) };
        }
        let ticks = Fenced::after().wrapping_sub(first) as f64;
        let seen = demand.faults() - before;
        if seen == 0 {
            return Err(why("no page fault was counted: the pages were mapped"));
        }
        least = least.min(ticks / seen as f64);
        (sum, all, passes) = (sum + ticks, all + seen, passes + 1);
    }
    bench.value(Of::Cost, PLAIN, least);
    bench.value(Of::Mean, PLAIN, sum / all as f64);
    bench.value(Of::Number, "of=faults", all as f64);
    bench.value(
        Of::Number,
        "of=touched",
        (passes * demand.pages().count() as u64) as f64,
    );
    Ok(())
}

//! Spins on several CPUs at the same time: one thread and one list for each.
//!
//! The threads begin together, and what they saw is only asked for when the last one has ended. Each
//! does the reads of the plan, so one that loses more time ends later; the others then sleep.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::{self, Builder};

use rustix::thread::sched_setaffinity;
use tare_load_driver::cpus::{current, mask};
use tare_wire::cpus::Cpus;
use tare_workloads::gap::{Gap, Totals};
use tare_workloads::noise::Kind;

use super::batch::{Spins, Values, list_length, report_spin, spin};
use super::linux::Events;
use super::witness::Witness;
use super::{Plan, threshold, wanted};
use crate::arena::Arena;
use crate::linux::pinned::Pinned;
use crate::output::Output;
use crate::platform::Platform;
use crate::session::{self, Resources, Stop};

/// The size of a thread's stack, which is locked in memory where that is permitted.
const STACK_BYTES: usize = 256 << 10;

const NO_CPU_LEFT: Stop = Stop::Place(
    "real-time threads would take every CPU that this process may use, and nothing could end them: leave out a CPU, or measure without chrt",
);
const NOT_STARTED: Stop = Stop::Place(
    "the kernel can't start a thread for each CPU, whose stacks are locked in memory: raise `ulimit -l` or `ulimit -u`",
);
const NOT_PINNED: Stop = Stop::Place(
    "one of the CPUs asked for is offline or outside of this process's cpuset: choose CPUs from Cpus_allowed_list in \
     /proc/self/status",
);

/// Runs the plan on all of its CPUs, and writes the records of everything that happened.
///
/// # Errors
///
/// Returns [`Stop`] as [`session::run`] does.
pub(super) fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let cpus = Vec::from_iter(plan.cpus.iter().flat_map(Cpus::iter));
    // Preparing pins this thread.
    let all = current().unwrap_or_default();
    let is_taken = all.iter().all(|cpu| cpus.contains(&cpu)) && is_real_time();
    session::run(
        wanted(plan, Ok(())),
        platform,
        |given| (!is_taken).then_some(given).ok_or(NO_CPU_LEFT),
        |output, mut given: Resources| {
            let step = given.costs.step_cycles;
            let threshold = threshold::threshold_cycles(plan, given.hz, step)?;
            measure(plan, &cpus, output, &mut given.arena, threshold)
        },
    )
}

fn is_real_time() -> bool {
    // SAFETY: no pointers are passed.
    let policy = unsafe { libc::sched_getscheduler(0) };
    [libc::SCHED_FIFO, libc::SCHED_RR].contains(&(policy & !libc::SCHED_RESET_ON_FORK))
}

fn measure(
    plan: &Plan,
    cpus: &[u32],
    output: &mut Output<'_, impl Platform>,
    arena: &mut Arena,
    threshold: u64,
) -> Result<(), Stop> {
    let Kind::Clock(spins) = plan.workload.kind else {
        unreachable!("the bounds allow other workloads one CPU")
    };
    let lists = cpus.iter().map(|_| arena.take(list_length(plan)));
    let mut lists: Vec<&mut [Gap]> = lists.collect();
    let spun = on_cpus(plan, (spins, threshold), cpus, &mut lists)?;
    let mut values = Values::new(threshold);
    let mut written = 0;
    for ((number, list), (totals, mut events)) in (0..).zip(lists).zip(spun) {
        events.written = written;
        let (set, labels) = ((threshold, list, totals), events.labels.clone());
        values.fold_cycles +=
            report_spin(plan, (number, &labels), set, output, arena, &mut events)?;
        written = events.written;
    }
    Ok(values.write(output)?)
}

/// The number of threads that are still to come before all begin, when one of them never will.
const NEVER: i64 = i64::MIN / 2;

/// Spins on each of the CPUs, with a list for each.
fn on_cpus(
    plan: &Plan,
    how: (Spins, u64),
    cpus: &[u32],
    lists: &mut [&mut [Gap]],
) -> Result<Vec<(Totals, Events)>, Stop> {
    let (coming, end) = &(AtomicI64::new(cpus.len() as i64), Barrier::new(cpus.len()));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (cpu, list) in cpus.iter().zip(lists) {
            let thread = Builder::new().name(format!("tare-measure/{cpu}"));
            let own = || on_cpu(plan, how, (*cpu, list), coming, end);
            let started = thread.stack_size(STACK_BYTES).spawn_scoped(scope, own);
            threads.push(started.map_err(|_| {
                coming.store(NEVER, Ordering::Release);
                NOT_STARTED
            })?);
        }
        // With `panic = "abort"` a panic in a thread ends the process.
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().expect("it can't have panicked"));
        joined.collect()
    })
}

/// Spins on one CPU as soon as the threads of all others are there, unless one can't be.
fn on_cpu(
    plan: &Plan,
    how: (Spins, u64),
    (cpu, list): (u32, &mut [Gap]),
    coming: &AtomicI64,
    end: &Barrier,
) -> Result<(Totals, Events), Stop> {
    let mask = mask(&Cpus::one(cpu)).ok();
    if mask.is_none_or(|mask| sched_setaffinity(None, &mask).is_err()) {
        coming.store(NEVER, Ordering::Release);
    }
    let pinned = Pinned::to(cpu);
    let mut events = Events::of(plan, Some(cpu));
    events.begin();
    coming.fetch_sub(1, Ordering::AcqRel);
    // Awake, so that all begin within microseconds. The thread that starts the others may wait for
    // this CPU.
    while coming.load(Ordering::Acquire) > 0 {
        thread::yield_now();
    }
    if coming.load(Ordering::Acquire) < 0 {
        return Err(NOT_PINNED);
    }
    let totals = spin(plan, how, list, &mut || ());
    // None stops its events while another one spins.
    end.wait();
    events.end();
    pinned.stayed()?;
    Ok((totals, events))
}

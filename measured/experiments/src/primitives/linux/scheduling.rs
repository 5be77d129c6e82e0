//! The CPU scheduler: wake-up latency, length of time slices, fairness, and their cost for waiting
//! processes.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::primitives::bench::{Bench, Of, PLAIN, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use tare_workloads::timing::{Fenced, Timing, bare_rdtsc};

use super::kernel::{Partner, Shared, SharedWord, placements};
use super::switch::{Party, yields};

const SCHEDULING: Primitive = Primitive {
    area: Area::Scheduling,
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
/// The number of competing processes.
const RIVALS: usize = 4;
/// The time for which they compete, in seconds.
const SECONDS: f64 = 0.4;

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    SCHEDULING.named("wake-to-run", "waking a sleeping process, until it runs")
        .method("from the stamp before the call that wakes (FUTEX_WAKE) to the first stamp of the process that was woken")
        .by(|bench, around| {
            for (label, cpu) in placements(around.plan) {
                wake(bench, label, cpu)?;
            }
            Ok(())
        }),
    SCHEDULING.named("time-slice", "time that a process runs while another one waits")
        .method("two processes that spin on one CPU; from the end of one pause of at least 100 µs, in which the kernel counted an involuntary \
                 switch, to the next")
        .by(slices),
    SCHEDULING.named("fairness", "share of the CPU among four processes")
        .method("four processes that spin on one CPU for 0.4 s; the least and the greatest share, where a quarter is fair")
        .tags(&["share"])
        .by(fairness),
    SCHEDULING.named("runnable", "context switch by number of runnable threads")
        .method("threads on one CPU that do nothing but yield; the time divided by the switches that they saw. runnable=each is what one \
                 more adds")
        .by(|bench, around| {
            let (fewest, most) = (2, 32);
            let mut ends = [0.0; 2];
            for runnable in [fewest, 4, 8, 16, most] {
                let cost = yields(bench, around, Party::Thread, runnable - 1)?;
                bench.value(Of::Cost, format_args!("runnable={runnable}"), cost);
                ends[usize::from(runnable > fewest)] = cost;
            }
            let each = (ends[1] - ends[0]) / f64::from(most - fewest);
            if each <= 0.0 {
                return Err(why("more of them cost no more: there is no cost of each"));
            }
            bench.value(Of::Cost, "runnable=each", each);
            Ok(())
        }),
];

/// The number of attempts to find a process asleep before giving up.
const TRIES: u32 = 1_000;

fn wake(bench: &mut Bench<'_>, label: &str, cpu: Option<u32>) -> Result<(), Why> {
    // SAFETY: a number.
    let ran = unsafe { Shared::<AtomicU64>::new()? };
    // SAFETY: mapped as long as `ran`.
    let stamp = unsafe { &*ran.get() };
    let (word, answer) = (SharedWord::new()?, SharedWord::new()?);
    let _sleeper = Partner::start(cpu, || {
        loop {
            word.sleep_while(0);
            stamp.store(Fenced::after(), Ordering::Release);
            word.set(0);
            answer.set(1);
            answer.wake();
        }
    })?;
    bench.single(format_args!("cpu={label}"), || {
        for _ in 0..TRIES {
            // The process has gone to sleep again: on the same CPU because this one slept, else
            // after a while. SAFETY: no pointers are passed.
            unsafe { libc::usleep(20) };
            answer.set(0);
            let begin = Fenced::before();
            word.set(1);
            let slept = word.wake();
            answer.sleep_while(0);
            // A difference between the CPUs' clocks would show here.
            let took = stamp.load(Ordering::Acquire).checked_sub(begin);
            let took = took.ok_or_else(|| {
                why("the process ran before it was woken: the TSCs of the CPUs differ")
            })?;
            // If it was still awake, nothing was measured.
            if slept {
                return Ok(took);
            }
        }
        Err(why("the other process does not go to sleep"))
    })
}

/// The shortest pause that is not an interrupt, in seconds.
const PAUSE: f64 = 100e-6;

fn slices(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    let _rival = Partner::start(around.plan.cpu(), || {
        loop {
            std::hint::spin_loop();
        }
    })?;
    let pause = (around.hz * PAUSE) as u64;
    let end = bare_rdtsc() + (around.hz * SECONDS) as u64;
    let mut last = bare_rdtsc();
    let mut begin = None;
    let mut slices = Vec::new();
    let mut switches = taken_away();
    while last < end {
        let now = bare_rdtsc();
        // An interrupt or a hypervisor may take as long, so the kernel's count must have grown,
        // too.
        if now.wrapping_sub(last) >= pause && taken_away() > switches {
            switches = taken_away();
            slices.extend(begin.map(|begin: u64| last.wrapping_sub(begin)));
            begin = Some(now);
        }
        last = now;
    }
    if slices.len() < 3 {
        return Err(why("the two processes hardly took turns in 0.4 s"));
    }
    let mut slices = slices.into_iter();
    bench.keep(Of::Time, PLAIN, || slices.next());
    Ok(())
}

/// Returns how often the kernel preempted this process.
fn taken_away() -> i64 {
    // SAFETY: zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the value is our own.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_nivcsw
}

fn fairness(bench: &mut Bench<'_>, around: &Context<'_>) -> Result<(), Why> {
    // SAFETY: numbers.
    let had = unsafe { Shared::<[AtomicU64; RIVALS]>::new()? };
    // SAFETY: mapped as long as `had`.
    let had = unsafe { &*had.get() };
    let step = (around.hz * 10e-6) as u64;
    let mut rivals = Vec::new();
    for own in had {
        rivals.push(Partner::start(around.plan.cpu(), || {
            let mut last = bare_rdtsc();
            loop {
                let now = bare_rdtsc();
                let ran = now.wrapping_sub(last);
                if ran < step {
                    own.fetch_add(ran, Ordering::Relaxed);
                }
                last = now;
            }
        })?);
    }
    // SAFETY: no pointers are passed.
    unsafe { libc::usleep((SECONDS * 1e6) as u32) };
    let ticks: Vec<f64> = had
        .iter()
        .map(|own| own.load(Ordering::Relaxed) as f64)
        .collect();
    drop(rivals);
    let sum: f64 = ticks.iter().sum();
    let least = ticks.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ticks.iter().copied().fold(0.0, f64::max);
    if sum <= 0.0 {
        return Err(why("none of the processes ran in 0.4 s"));
    }
    bench.value(Of::Share, "of=least", least / sum);
    bench.value(Of::Share, "of=greatest", most / sum);
    Ok(())
}

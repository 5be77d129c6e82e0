//! Context switches.
//!
//! A token goes round a ring of pipes, so each process runs when the previous one has passed it on.
//! The cost of passing the token without a switch is measured separately, with the same memory
//! touched, and subtracted.

use std::sync::{Arc, mpsc};
use std::thread;

use crate::primitives::bench::{Bench, Measured, Of, PLAIN, Why, why};
use crate::primitives::{Area, Context, Need, Primitive};
use libc::c_int;
use tare_workloads::timing::{Fenced, Timing};

use super::kernel::{self, Pair, Partner, SharedWord, checked, placements, put, take};

const SWITCH: Primitive = Primitive {
    area: Area::Switch,
    needs: &[Need::Kernel],
    ..Primitive::NEW
};
const PUBLISHED: &[&str] = &["published"];
/// The rings: number of members, and bytes that each of them touches.
const RINGS: [(usize, usize); 6] = [
    (2, 0),
    (2, 16 << 10),
    (2, 64 << 10),
    (10, 0),
    (10, 16 << 10),
    (10, 64 << 10),
];
const FUTEX: &str =
    "two that wake each other and sleep; half of a round trip, with its system calls";
const EVENTFD: &str = "two that write to each other's and read their own; half of a round trip, with its system calls";
const YIELD: &str =
    "two on one CPU that do nothing but yield; the time divided by the switches that they saw";
const RING: &str = "a token in a ring of pipes; what a pipe and the touched memory cost without a switch is taken off";

/// The primitives.
pub(crate) const TABLE: &[Primitive] = &[
    SWITCH
        .named("switch-overhead", "passing a token without a switch")
        .method(
            "a byte through a pipe within one process, with the memory touched that a ring touches",
        )
        .by(|bench, _| {
            for memory in [0, 16 << 10, 64 << 10] {
                let pipe = Pair::pipe()?;
                let labels = format_args!("memory={memory}");
                bench.cost_in(ROUNDS, labels, 1, token(pipe.0, memory));
            }
            Ok(())
        }),
    SWITCH
        .named("switch-process", "context switch between processes")
        .method(RING)
        .tags(PUBLISHED)
        .by(|bench, around| rings(bench, around, Party::Process)),
    SWITCH
        .named("switch-thread", "context switch between threads")
        .method(RING)
        .tags(PUBLISHED)
        .by(|bench, around| rings(bench, around, Party::Thread)),
    SWITCH
        .named(
            "switch-futex-process",
            "hand-over between processes by futex",
        )
        .method(FUTEX)
        .by(|bench, around| futex(bench, around, Party::Process)),
    SWITCH
        .named("switch-futex-thread", "hand-over between threads by futex")
        .method(FUTEX)
        .by(|bench, around| futex(bench, around, Party::Thread)),
    SWITCH
        .named(
            "switch-eventfd-process",
            "hand-over between processes by eventfd",
        )
        .method(EVENTFD)
        .by(|bench, around| eventfd(bench, around, Party::Process)),
    SWITCH
        .named(
            "switch-eventfd-thread",
            "hand-over between threads by eventfd",
        )
        .method(EVENTFD)
        .by(|bench, around| eventfd(bench, around, Party::Thread)),
    SWITCH
        .named(
            "switch-yield-process",
            "context switch between processes by sched_yield",
        )
        .method(YIELD)
        .by(|bench, around| {
            let cost = yields(bench, around, Party::Process, 1)?;
            bench.value(Of::Cost, PLAIN, cost);
            Ok(())
        }),
    SWITCH
        .named(
            "switch-yield-thread",
            "context switch between threads by sched_yield",
        )
        .method(YIELD)
        .by(|bench, around| {
            let cost = yields(bench, around, Party::Thread, 1)?;
            bench.value(Of::Cost, PLAIN, cost);
            Ok(())
        }),
];

/// The kind of the other members of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// Processes.
    Process,
    /// Threads of the measuring process.
    Thread,
}

impl Party {
    /// Starts a member, pinned if a CPU is given. A process ends when the returned value is
    /// dropped, a thread with the program.
    fn start(
        self,
        cpu: Option<u32>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<Option<Partner>, Why> {
        if self == Self::Process {
            return Partner::start(cpu, work).map(Some);
        }
        let (tell, pinned) = mpsc::channel();
        thread::spawn(move || {
            let is_there = cpu.is_none_or(kernel::pin);
            if tell.send(is_there).is_ok() && is_there {
                work();
            }
        });
        match (pinned.recv(), cpu) {
            (Ok(false), Some(cpu)) => {
                Err(why(format_args!("the other side can't run on CPU {cpu}")))
            }
            _ => Ok(None),
        }
    }
}

fn futex(bench: &mut Bench<'_>, around: &Context<'_>, party: Party) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        let word = Arc::new(SharedWord::new()?);
        let own = Arc::clone(&word);
        let _partner = party.start(cpu, move || {
            loop {
                own.sleep_while(0);
                own.set(0);
                own.wake();
            }
        })?;
        let (mut all, mut slept) = (0_u64, 0_u64);
        let measured = bench.measured(1, ROUNDS, 2, |rounds| {
            all += rounds;
            timed(rounds, || {
                word.set(1);
                slept += u64::from(word.wake());
                word.sleep_while(1);
            })
        });
        // On one CPU, neither can run without the other sleeping.
        if cpu != around.plan.cpu() && slept * 10 < all * 9 {
            return Err(why(format_args!(
                "with the other side on CPU {}, it slept in {slept} of {all} rounds only: the rest were no hand-overs",
                cpu.unwrap_or_default()
            )));
        }
        bench.value(Of::Cost, format_args!("cpu={label}"), measured.cost);
        bench.value(Of::Mean, format_args!("cpu={label}"), measured.mean);
    }
    Ok(())
}

fn eventfd(bench: &mut Bench<'_>, around: &Context<'_>, party: Party) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        let (there, back) = (event()?, event()?);
        let answer = move || while take_event(there) && put_event(back) {};
        let _partner = party.start(cpu, answer)?;
        bench.cost(format_args!("cpu={label}"), 2, |rounds| {
            timed(rounds, || {
                put_event(there);
                take_event(back);
            })
        })?;
    }
    Ok(())
}

fn rings(bench: &mut Bench<'_>, around: &Context<'_>, party: Party) -> Result<(), Why> {
    for (label, cpu) in placements(around.plan) {
        // Between CPUs, a longer ring adds nothing to one of two.
        let rings = if label == "same" {
            &RINGS[..]
        } else {
            &RINGS[..1]
        };
        for (parties, memory) in rings.iter().copied() {
            let [all, lost] = ring(bench, party, (parties, memory), cpu)?;
            let labels = format_args!("cpu={label} memory={memory} ring={parties}");
            bench.value(Of::Cost, labels, (all.cost - lost.cost).max(0.0));
            bench.value(Of::Mean, labels, (all.mean - lost.mean).max(0.0));
        }
    }
    Ok(())
}

/// Returns the cost of a hop in a ring, including the pipe and the touched memory, and the cost of
/// these two without a switch.
fn ring(
    bench: &mut Bench<'_>,
    party: Party,
    (parties, memory): (usize, usize),
    cpu: Option<u32>,
) -> Result<[Measured; 2], Why> {
    let alone = Pair::pipe()?;
    let pipes: Result<Vec<Pair>, Why> = (0..parties).map(|_| Pair::pipe()).collect();
    let pipes = pipes?;
    let mut partners = Vec::new();
    for next in 1..parties {
        let (from, to) = (pipes[next - 1].0[0], pipes[next].0[1]);
        let pass_on = move || {
            let mut touched = vec![0_u64; memory / size_of::<u64>()];
            while take(from) {
                touch(&mut touched);
                put(to);
            }
        };
        partners.push(party.start(cpu, pass_on)?);
    }
    let (from, to) = (pipes[parties - 1].0[0], pipes[0].0[1]);
    let costs = bench.in_turns(
        1,
        ROUNDS,
        [
            (parties as u64, &mut token([from, to], memory)),
            (1, &mut token(alone.0, memory)),
        ],
    );
    // Threads continue to read from the pipes.
    if party == Party::Thread {
        std::mem::forget(pipes);
    }
    Ok(costs)
}

/// The part of a budget that a round takes at least: a few hundred microseconds, so that some
/// rounds are not interrupted.
const ROUNDS: u64 = 1_000;

/// Returns a function that sends a token through a pipe and receives it, a number of times.
fn token([from, to]: [c_int; 2], memory: usize) -> impl FnMut(u64) -> u64 {
    let mut touched = vec![0_u64; memory / size_of::<u64>()];
    move |times| {
        timed(times, || {
            put(to);
            take(from);
            touch(&mut touched);
        })
    }
}

/// Writes to every cache line.
fn touch(memory: &mut [u64]) {
    for word in memory.iter_mut().step_by(8) {
        *word = std::hint::black_box(*word).wrapping_add(1);
    }
}

/// Repeats an operation, and returns the ticks that took.
pub(crate) fn timed(times: u64, mut operation: impl FnMut()) -> u64 {
    let begin = Fenced::before();
    for _ in 0..times {
        operation();
    }
    Fenced::after().wrapping_sub(begin)
}

fn event() -> Result<c_int, Why> {
    // SAFETY: no pointers are passed.
    checked(unsafe { libc::eventfd(0, 0) }, "no eventfd")
}

fn put_event(event: c_int) -> bool {
    let one = 1_u64;
    // SAFETY: eight bytes are there.
    unsafe { libc::write(event, (&raw const one).cast(), 8) == 8 }
}

fn take_event(event: c_int) -> bool {
    let mut number = 0_u64;
    // SAFETY: there is room for eight bytes.
    unsafe { libc::read(event, (&raw mut number).cast(), 8) == 8 }
}

/// Returns the cost of a switch among processes that only yield: this one and its partners.
pub(crate) fn yields(
    bench: &mut Bench<'_>,
    around: &Context<'_>,
    party: Party,
    partners: u32,
) -> Result<f64, Why> {
    const YIELDS: u32 = 1_000;
    // The member that ran last, the number of switches, and the end.
    let words = Arc::new([SharedWord::new()?, SharedWord::new()?, SharedWord::new()?]);
    let give_way = |[last, switches, _]: &[SharedWord; 3], own: u32| {
        if last.get() != own {
            last.set(own);
            switches.add();
        }
        // SAFETY: no pointers are passed.
        unsafe { libc::sched_yield() };
    };
    let partner = |own: u32| {
        let words = Arc::clone(&words);
        party.start(around.plan.cpu(), move || {
            while words[2].get() == 0 {
                give_way(&words, own);
            }
        })
    };
    let _partners: Vec<Option<Partner>> = (1..=partners).map(partner).collect::<Result<_, _>>()?;
    let mut least = f64::INFINITY;
    let begin = Fenced::before();
    let mut rounds = 0;
    while rounds < 5 || Fenced::after().wrapping_sub(begin) < bench.budget() {
        let before = words[1].get();
        let ticks = timed(YIELDS.into(), || give_way(&words, 0));
        let seen = words[1].get().wrapping_sub(before);
        if seen >= YIELDS / 10 * 9 {
            least = least.min(ticks as f64 / f64::from(seen));
        }
        rounds += 1;
    }
    // Threads would continue.
    words[2].set(1);
    match least.is_finite() {
        true => Ok(least),
        false => Err(why(
            "this scheduler let who yielded go on more than one time of ten: a yield was not a switch",
        )),
    }
}

//! The measured side of docs/adding-an-experiment.md: the cost of reading each clock.
//!
//! In the product it would be a file of `measured/experiments` with a line in its table; here it is
//! a separate program.

use std::process::ExitCode;

use tare_agent::Linux;
use tare_measured::platform::Platform;
use tare_measured::session::{self, Resources, Stop, Wanted};
use tare_measured::table::{Failure, Measurement, Threads};
use tare_measured::words::{self, Form, Put, Slot, Word};
use tare_wire::record::{Set, Unit};
use tare_wire::words::PlanError;
use tare_workloads::timing::bare_rdtsc;

/// The plan, in words: `workload=clocks clock=tsc reads=1000 cpu=1`.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    clock: Clock,
    reads: u64,
    cpu: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Clock {
    #[default]
    Tsc,
    Monotonic,
    Reference,
}

const WORDS: &[Word<Plan>] = &[
    ("clock", |plan| Slot::Form(&mut plan.clock)),
    ("reads", |plan| Slot::Number(&mut plan.reads)),
    ("cpu", |plan| Slot::AnySmall(&mut plan.cpu)),
];

impl Plan {
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, PlanError<'a>> {
        let mut plan = Self::default();
        words::read(&mut plan, WORDS, words, &["clock", "reads"])?;
        Ok(plan)
    }
}

impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("workload=clocks ")?;
        words::write(*self, WORDS, f)
    }
}

impl Form for Clock {
    fn read(&mut self, text: &str) -> Result<(), &'static str> {
        *self = match text {
            "tsc" => Self::Tsc,
            "monotonic" => Self::Monotonic,
            "reference" => Self::Reference,
            _ => return Err("tsc, monotonic or reference"),
        };
        Ok(())
    }

    fn write(&self, put: Put<'_>) -> std::fmt::Result {
        put(&format!("{self:?}").to_lowercase())
    }
}

/// Reads a clock, in its native unit.
fn read(clock: Clock, platform: &impl Platform) -> u64 {
    let time = match clock {
        Clock::Tsc => Some(bare_rdtsc()),
        Clock::Monotonic => platform.monotonic_ns(),
        Clock::Reference => platform.reference_ns(),
    };
    time.unwrap_or_default()
}

/// Measures, and writes the records: a set with the cost of each read, and one value.
fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let wanted = Wanted {
        plan,
        allowed: Ok(()),
        cpu: plan.cpu,
        bytes: plan.reads as usize * size_of::<u64>(),
    };
    session::run(wanted, platform, Ok, |output, mut given: Resources| {
        let costs = given.arena.take::<u64>(plan.reads as usize);
        let begin = bare_rdtsc();
        for cost in costs.iter_mut() {
            let before = bare_rdtsc();
            std::hint::black_box(read(plan.clock, &*output.platform));
            *cost = bare_rdtsc().wrapping_sub(before);
        }
        let end = bare_rdtsc();
        // Figures from another CPU are discarded.
        output.platform.stayed()?;
        let mut distinct = 0;
        let mut last = read(plan.clock, &*output.platform);
        for _ in 0..plan.reads {
            let next = read(plan.clock, &*output.platform);
            distinct += u64::from(next != last);
            last = next;
        }
        costs.sort_unstable();
        let set = Set {
            measure: "read",
            unit: Unit::Cycles,
            first: begin,
            last: end,
            ..Set::default()
        };
        output.sorted(set, costs)?;
        output.values("", &[("distinct", "", distinct)])?;
        Ok(())
    })
}

fn main() -> ExitCode {
    let clocks = Measurement::<Linux> {
        has: |id| id == "clocks",
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform).map_err(|stop| Failure::Measurement(stop.into()))
        },
    };
    tare_agent::main(&[clocks])
}

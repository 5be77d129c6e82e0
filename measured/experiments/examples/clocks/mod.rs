//! The measured side of docs/adding-an-experiment.md: what reading each clock costs.

mod plan;

use tare_measured::platform::Platform;
use tare_measured::session::{self, Resources, Stop, Wanted};
use tare_measured::table::{Failure, Measurement, Threads};
use tare_wire::record::{Set, Unit};
use tare_workloads::timing::bare_rdtsc;

use self::plan::{Clock, NAME, Plan};

/// Returns the experiment on a platform.
pub fn on<P: Platform>() -> Measurement<P> {
    Measurement {
        has: |id| id == NAME,
        threads: |words| Ok(Threads::one(Plan::parse(words)?.cpu)),
        run: |words, platform| {
            let plan = Plan::parse(words).map_err(Failure::Plan)?;
            run(&plan, platform).map_err(|stop| Failure::Measurement(stop.into()))
        },
    }
}

/// Reads a clock, in its own unit; `None` if the platform has no such clock.
fn read(clock: Clock, platform: &impl Platform) -> Option<u64> {
    match clock {
        Clock::Tsc => Some(bare_rdtsc()),
        Clock::Monotonic => platform.monotonic_ns(),
        Clock::Reference => platform.reference_ns(),
    }
}

/// Measures, and writes the records: one set of what each read took, and one value.
fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let wanted = Wanted {
        plan: &format_args!("workload={NAME} {plan}"),
        allowed: Ok(()),
        cpu: plan.cpu,
        bytes: plan.buffer_bytes() as usize,
    };
    session::run(wanted, platform, Ok, |output, mut given: Resources| {
        let no_clock = Stop::Place("this platform has no such clock: choose clock=tsc");
        let mut last = read(plan.clock, &*output.platform).ok_or(no_clock)?;
        let costs = given.arena.take::<u64>(plan.reads as usize);
        let mut distinct = 0;
        let begin = bare_rdtsc();
        for cost in costs.iter_mut() {
            let before = bare_rdtsc();
            let now = core::hint::black_box(read(plan.clock, &*output.platform));
            *cost = bare_rdtsc().wrapping_sub(before);
            let now = now.unwrap_or_default();
            distinct += u64::from(now != last);
            last = now;
        }
        let end = bare_rdtsc();
        // Samples of another CPU are rejected.
        output.platform.stayed()?;
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

//! The processor itself: reading its timer, looping, calling.

use core::arch::x86_64::__rdtscp;

use tare_workloads::calibration::{
    ADDITIONS, UNROLLED_READS, tare_additions, tare_loop, tare_unrolled_timer,
};
use tare_workloads::call::{CALLS, FUNCTIONS};
use tare_workloads::timing::{Fenced, Timing};

use super::Primitive;
use super::bench::{Of, PLAIN};

const TIMER: &[&str] = &["timer"];
const IN_A_ROW: &str = "many in a row, by the difference of two numbers of them";

/// The primitives.
pub const TABLE: &[Primitive] = &[
    Primitive::NEW
        .named("rdtsc", "timer read: bare rdtsc")
        .method(IN_A_ROW)
        .tags(TIMER)
        .by(|bench, _| bench.cost(PLAIN, UNROLLED_READS, |passes| tare_unrolled_timer(passes))),
    Primitive::NEW
        .named("rdtscp-bare", "timer read: bare rdtscp")
        .tags(TIMER)
        .by(|bench, _| {
            let mut cpu = 0;
            // SAFETY: every processor with a usable TSC has the instruction; the number is our own.
            bench.each(PLAIN, || unsafe { __rdtscp(&raw mut cpu) })
        }),
    Primitive::NEW
        .named("rdtscp", "timer read: rdtscp; lfence")
        .tags(TIMER)
        .by(|bench, _| bench.each(PLAIN, Fenced::after)),
    Primitive::NEW
        .named("rdtsc-fenced", "timer read: lfence; rdtsc; lfence")
        .tags(TIMER)
        .by(|bench, _| bench.each(PLAIN, Fenced::before)),
    Primitive::NEW
        .named("timer-read", "difference of two timer reads")
        .method("two fenced reads, one after the other, as the study has them")
        .tags(&["timer", "published"])
        .by(|bench, _| {
            let least = bench.series(Of::Time, PLAIN, || {
                let first = Fenced::before();
                Ok(Fenced::before().wrapping_sub(first))
            })?;
            bench.value(Of::Cost, PLAIN, least as f64);
            Ok(())
        }),
    Primitive::NEW
        .named("loop", "iteration of an empty loop")
        .method(IN_A_ROW)
        .tags(&["published"])
        .by(|bench, _| bench.cost(PLAIN, 1, |iterations| tare_loop(iterations))),
    call::<0>("call-0", "procedure call without arguments"),
    call::<1>("call-1", "procedure call with 1 argument"),
    call::<2>("call-2", "procedure call with 2 arguments"),
    call::<3>("call-3", "procedure call with 3 arguments"),
    call::<4>("call-4", "procedure call with 4 arguments"),
    call::<5>("call-5", "procedure call with 5 arguments"),
    call::<6>("call-6", "procedure call with 6 arguments"),
    call::<7>("call-7", "procedure call with 7 arguments"),
    Primitive::NEW
        .named("core-cycle", "cycle of the core's clock")
        .method("additions that wait for each other, by the difference of two numbers of them")
        .by(|bench, _| bench.cost(PLAIN, ADDITIONS, |passes| tare_additions(passes))),
];

const fn call<const ARGUMENTS: usize>(id: &'static str, title: &'static str) -> Primitive {
    Primitive::NEW
        .named(id, title)
        .method(IN_A_ROW)
        .tags(&["published", "call"])
        .by(|bench, _| bench.cost(PLAIN, CALLS, |passes| FUNCTIONS[ARGUMENTS](passes)))
}

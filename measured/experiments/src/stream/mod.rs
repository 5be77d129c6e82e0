//! `stream`: the bandwidth of memory, by STREAM's four kernels (McCalpin, 1995), timed by the TSC.
//!
//! A pass is Copy, Scale, Add and Triad, in this order, as in STREAM; the first one is dropped. A
//! data set is accepted if the passes of its two halves agree for Triad, as includeos-2015 has it:
//! Welch's t-test between them has p > 0.1. If not, the next one is measured, and the last is kept.
//!
//! # When the method lies
//!
//! A test that is repeated until it passes is a filter, not a proof: halves that always differ a
//! little pass in the attempt in which chance hides the difference. The number of attempts is
//! reported.

mod plan;

use tare_wire::record::{Set, Unit};
use tare_wire::rows::Sample;
use tare_workloads::stream::{
    tare_stream_add, tare_stream_copy, tare_stream_scale, tare_stream_triad,
};
use tare_workloads::timing::bare_rdtsc;

pub use self::plan::{ATTEMPTS, KIB, NAME, PASSES, Plan, USAGE};
use crate::counted::Counted;
use crate::output::Output;
use crate::platform::Platform;
use crate::session::{self, Resources, Stop, Wanted};
use crate::table::{Failure, Measurement, Threads};

/// The names of the kernels, each with the arrays that it moves.
pub const KERNELS: [(&str, u64); 4] = [("copy", 2), ("scale", 2), ("add", 3), ("triad", 3)];
/// The kernel whose halves decide.
const DECIDING: usize = 3;
/// The factor, √2 − 1: a pass turns `a` into `a (2 s + s²)`, so it leaves `a` as it was.
const SCALAR: f64 = core::f64::consts::SQRT_2 - 1.0;

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

/// The three arrays, of as many elements each.
struct Arrays {
    a: *mut f64,
    b: *mut f64,
    c: *mut f64,
    elements: u64,
}

impl Arrays {
    /// Runs one pass. Returns the ticks of each kernel.
    fn pass(&self) -> [u64; KERNELS.len()] {
        let Self { a, b, c, elements } = *self;
        // SAFETY: the arrays are pieces of the arena of `elements` values, a multiple of 128, each
        // aligned to a line, and do not overlap.
        unsafe {
            [
                tare_stream_copy(a, c, elements),
                tare_stream_scale(b, c, elements, SCALAR),
                tare_stream_add(a, b, c, elements),
                tare_stream_triad(a, b, c, elements, SCALAR),
            ]
        }
    }

    /// Returns whether the arrays hold what the passes should have left, to one part in 10⁸, as
    /// STREAM checks it.
    fn is_right(&self) -> bool {
        let wanted = [1.0, SCALAR, 1.0 + SCALAR];
        let arrays = [self.a, self.b, self.c];
        let mut all = arrays.into_iter().zip(wanted);
        all.all(|(array, wanted)| {
            (0..self.elements as usize).all(|index| {
                // SAFETY: as above.
                let value = unsafe { array.add(index).read() };
                let off = (value - wanted) / wanted;
                (-1e-8..=1e-8).contains(&off)
            })
        })
    }
}

/// Measures, and writes the records: a set for each kernel, with its passes in their order.
fn run(plan: &Plan, platform: &mut impl Platform) -> Result<(), Stop> {
    let allowed = plan.check();
    let wanted = Wanted {
        plan: &format_args!("workload={NAME} {plan}"),
        cpu: plan.cpu,
        bytes: allowed.map_or(0, |()| plan.buffer_bytes() as usize),
        allowed,
    };
    session::run(wanted, platform, Ok, |output, mut given: Resources| {
        let elements = plan.elements();
        let [a, b, c] = [(); 3].map(|()| {
            let array = given.arena.take::<u64>(elements as usize);
            array.as_mut_ptr().cast::<f64>()
        });
        let arrays = Arrays { a, b, c, elements };
        for index in 0..elements as usize {
            // SAFETY: within the array.
            unsafe { a.add(index).write(1.0) };
        }
        let passes = plan.passes as usize;
        let mut ticks = [(); KERNELS.len()].map(|()| given.arena.take::<u64>(passes));
        let sorted = given.arena.take::<u64>(passes);
        arrays.pass();
        let mut attempts = 0;
        let (span, counted) = loop {
            let ((first, last), counted) = Counted::around(output.platform, || {
                let first = bare_rdtsc();
                for number in 0..passes {
                    let each = arrays.pass();
                    ticks
                        .iter_mut()
                        .zip(each)
                        .for_each(|(all, own)| all[number] = own);
                }
                (first, bare_rdtsc())
            })?;
            attempts += 1;
            if attempts == plan.attempts || agree(ticks[DECIDING]) {
                break ((first, last), counted);
            }
        };
        if !arrays.is_right() {
            return Err(Stop::Place(
                "the arrays do not hold what Copy, Scale, Add and Triad should have left there: \
                 this processor or its memory computes wrongly",
            ));
        }
        if !agree(ticks[DECIDING]) {
            output.notice(
                "the two halves of no data set agreed for Triad (Welch's test, p > 0.1): the last \
                 one is kept. Something else used the memory, or the clock of the CPU changed",
            )?;
        }
        write(output, &ticks, sorted, elements * 8, span)?;
        output.values("", &[("attempts", "", attempts)])?;
        Ok(counted.write(output)?)
    })
}

/// Writes the sets, each with all its passes one by one.
fn write(
    output: &mut Output<'_, impl Platform>,
    ticks: &[&mut [u64]; KERNELS.len()],
    sorted: &mut [u64],
    array_bytes: u64,
    (first, last): (u64, u64),
) -> Result<(), Stop> {
    for ((number, (kernel, arrays)), ticks) in (0..).zip(KERNELS).zip(ticks) {
        sorted.copy_from_slice(ticks);
        sorted.sort_unstable();
        let mut labels = heapless::String::<24>::new();
        let _ = core::fmt::write(&mut labels, format_args!("kernel={kernel}"));
        let set = Set {
            number,
            measure: "pass",
            labels: &labels,
            unit: Unit::Cycles,
            first,
            last,
            raw: ticks.len() as u64,
            ..Set::default()
        };
        output.sorted(set, sorted)?;
        let mut time = 0;
        let samples = (0..).zip(ticks.iter()).map(|(index, value)| {
            let sample = Sample {
                set: number,
                index,
                time,
                value: *value,
            };
            time += value;
            sample
        });
        output.raw(0, samples)?;
        output.values(&labels, &[("bytes", "bytes", arrays * array_bytes)])?;
    }
    Ok(())
}

/// Returns whether Welch's t-test between the first and the second half of some times has a
/// p-value above 0.1.
fn agree(times: &[u64]) -> bool {
    let (first, second) = times.split_at(times.len() / 2);
    let [(n, mean, variance), other] = [first, second].map(moments);
    let (own, others) = (variance / n, other.2 / other.0);
    let both = own + others;
    let difference = mean - other.1;
    if both == 0.0 {
        return difference == 0.0;
    }
    let freedom = both * both / (own * own / (n - 1.0) + others * others / (other.0 - 1.0));
    let critical = critical(freedom);
    difference * difference < critical * critical * both
}

/// Returns the number of some times, their mean and their variance.
fn moments(times: &[u64]) -> (f64, f64, f64) {
    let n = times.len() as f64;
    let mean = times.iter().sum::<u64>() as f64 / n;
    let squares = times.iter().map(|time| {
        let off = *time as f64 - mean;
        off * off
    });
    (n, mean, squares.sum::<f64>() / (n - 1.0))
}

/// Returns the value that Student's t exceeds in size with a probability of 0.1, to some parts in
/// 10³ from 3 degrees of freedom on: the expansion by Fisher (Abramowitz and Stegun, 26.7.5).
fn critical(freedom: f64) -> f64 {
    const Z: f64 = 1.644_853_626_951;
    const Z2: f64 = Z * Z;
    let terms = [
        (Z2 + 1.0) / 4.0,
        ((5.0 * Z2 + 16.0) * Z2 + 3.0) / 96.0,
        (((3.0 * Z2 + 19.0) * Z2 + 17.0) * Z2 - 15.0) / 384.0,
    ];
    let mut power = 1.0;
    let series = terms.map(|term| {
        power /= freedom;
        term * power
    });
    Z * (1.0 + series.iter().sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_value_is_student_s() {
        for (freedom, wanted) in [(3.0, 2.353), (5.0, 2.015), (10.0, 1.812), (38.0, 1.686)] {
            let off = critical(freedom) / wanted - 1.0;
            assert!(off.abs() < 0.01, "{freedom}: {}", critical(freedom));
        }
    }

    #[test]
    fn halves_agree_unless_one_is_faster() {
        let same: [u64; 12] = core::array::from_fn(|n| 1_000 + n as u64 % 3);
        assert!(agree(&same));
        let slower: [u64; 12] = core::array::from_fn(|n| same[n] + if n < 6 { 0 } else { 5 });
        assert!(!agree(&slower));
        assert!(agree(&[7; 4]));
        assert!(!agree(&[7, 7, 8, 8]));
    }

    /// Returns the share of simulated cells with halves that agree. Times are normally distributed,
    /// each correlated with the one before; those of the second half are longer by some standard
    /// deviations.
    fn share_that_agrees(apart: f64, correlation: f64, attempts: usize) -> f64 {
        const CELLS: usize = 20_000;
        let mut state = 1_u64;
        let mut normal = || {
            let uniform = (0..12).map(|_| {
                // Knuth's MMIX generator.
                state = state.wrapping_mul(6_364_136_223_846_793_005);
                state = state.wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1_u64 << 53) as f64
            });
            uniform.sum::<f64>() - 6.0
        };
        let mut is_kept = || {
            let mut last = normal();
            agree(&core::array::from_fn::<u64, 40, _>(|pass| {
                last = correlation * last + (1.0 - correlation * correlation).sqrt() * normal();
                let later = if pass < 20 { 0.0 } else { apart };
                (1e6 + 1e3 * (last + later)) as u64
            }))
        };
        let kept = (0..CELLS).filter(|_| (0..attempts).any(|_| is_kept()));
        kept.count() as f64 / CELLS as f64
    }

    /// `docs/stream.md` has these shares.
    #[test]
    fn the_test_is_a_filter_and_no_proof() {
        for (apart, correlation, attempts, wanted) in [
            (0.0, 0.0, 1, 0.90),
            (0.0, 0.5, 1, 0.67),
            (1.0, 0.0, 1, 0.07),
            (1.0, 0.0, 5, 0.31),
            (0.5, 0.0, 5, 0.98),
        ] {
            let share = share_that_agrees(apart, correlation, attempts);
            let case = (apart, correlation, attempts);
            assert!((share - wanted).abs() < 0.015, "{case:?}: {share}");
        }
    }

    #[test]
    fn passes_leave_the_arrays_as_they_should_be() {
        #[repr(align(64))]
        struct Array([f64; 128]);
        let (mut a, mut b, mut c) = (Array([1.0; 128]), Array([0.0; 128]), Array([0.0; 128]));
        let arrays = Arrays {
            a: a.0.as_mut_ptr(),
            b: b.0.as_mut_ptr(),
            c: c.0.as_mut_ptr(),
            elements: 128,
        };
        for _ in 0..2_000 {
            arrays.pass();
        }
        assert!(arrays.is_right());
        // SAFETY: within the array.
        unsafe { arrays.b.add(77).write(SCALAR + 1e-6) };
        assert!(!arrays.is_right());
    }
}

//! Runs the workloads, folds what they left and writes it.

use tare_wire::record::{Batch, Record};
use tare_workloads::gap::{Buffers, Gap, Totals, tare_gap};
use tare_workloads::timing::{Stamp, bare_rdtsc};
use tare_workloads::{copy, prime};

use super::fold;
use super::plan::{Plan, Timing, Workload};
use crate::arena::Arena;
use crate::counted::Counted;
use crate::envelope::{Bin, Envelope};
use crate::output::Output;
use crate::platform::{Platform, WriteError};

/// Returns how much memory the buffers of a plan within its bounds take, in bytes.
#[must_use]
pub fn arena_bytes(plan: &Plan) -> usize {
    let lists = Arena::bytes::<Gap>(list_length(plan)) + Arena::bytes::<Bin>(bins(plan));
    let stamped =
        Arena::bytes::<Stamp>(plan.repetitions as usize) + Arena::bytes::<u32>(fold::TABLE);
    match plan.workload {
        Workload::Gap => lists,
        Workload::Prime { .. } => lists + stamped,
        Workload::Copy { size } => lists + stamped + 2 * Arena::bytes::<u64>(size as usize),
    }
}

/// Runs the plan's workload and writes its batch.
pub fn run(
    plan: &Plan,
    platform: &mut impl Platform,
    output: &mut Output,
    arena: &mut Arena,
    threshold_cycles: u64,
) -> Result<(), WriteError> {
    let begun = Batch {
        repetitions: plan.repetitions,
        threshold_cycles,
        work: 1,
        ..Batch::default()
    };
    let repetitions = plan.repetitions as usize;
    match plan.workload {
        Workload::Gap => spin(plan, platform, output, arena, begun),
        Workload::Prime { limit } => {
            let stamps = arena.take::<Stamp>(repetitions);
            let (primes, counted) = count_primes(plan, platform, limit, stamps);
            let begun = Batch {
                result: primes.into(),
                work: prime::divisions(limit),
                ..begun
            };
            report(plan, platform, output, arena, stamps, begun)?;
            counted.write(platform, output)
        }
        Workload::Copy { size } => {
            let stamps = arena.take::<Stamp>(repetitions);
            let (a, c) = (arena.take(size as usize), arena.take(size as usize));
            let counted = copy_array(plan, platform, a, c, stamps);
            let begun = Batch {
                work: size,
                ..begun
            };
            report(plan, platform, output, arena, stamps, begun)?;
            counted.write(platform, output)
        }
    }
}

fn count_primes(
    plan: &Plan,
    platform: &impl Platform,
    limit: u32,
    stamps: &mut [Stamp],
) -> (u32, Counted) {
    let measured = match plan.timing {
        Timing::Fenced => prime::tare_prime_fenced,
        Timing::Published => prime::tare_prime_published,
    };
    let out = stamps.as_mut_ptr();
    // SAFETY: never more repetitions than there is room for stamps.
    warmed_up(plan, platform, |repetitions| unsafe {
        measured(limit, repetitions, out)
    })
}

fn copy_array(
    plan: &Plan,
    platform: &impl Platform,
    a: &mut [u64],
    c: &mut [u64],
    stamps: &mut [Stamp],
) -> Counted {
    let measured = match plan.timing {
        Timing::Fenced => copy::tare_copy_fenced,
        Timing::Published => copy::tare_copy_published,
    };
    for (value, slot) in (0..).zip(a.iter_mut()) {
        *slot = value;
    }
    let elements = a.len() as u64;
    let (a, c, out) = (a.as_mut_ptr(), c.as_mut_ptr(), stamps.as_mut_ptr());
    // SAFETY: both arrays hold `elements` values, and never more repetitions are asked for than
    // there is room for stamps.
    let ((), counted) = warmed_up(plan, platform, |repetitions| unsafe {
        measured(a, c, elements, repetitions, out);
    });
    counted
}

/// Calls `measured` for the warm-up, in pieces no longer than the batch, and then for the batch.
fn warmed_up<R>(
    plan: &Plan,
    platform: &impl Platform,
    mut measured: impl FnMut(u64) -> R,
) -> (R, Counted) {
    let mut left = plan.warmup;
    while left > 0 {
        let piece = left.min(plan.repetitions);
        measured(piece);
        left -= piece;
    }
    Counted::around(platform, || measured(plan.repetitions))
}

fn report(
    plan: &Plan,
    platform: &mut impl Platform,
    output: &mut Output,
    arena: &mut Arena,
    stamps: &mut [Stamp],
    begun: Batch,
) -> Result<(), WriteError> {
    let table = arena.take::<u32>(fold::TABLE);
    let list = arena.take::<Gap>(list_length(plan));
    let bins = arena.take::<Bin>(bins(plan));
    let (first_tsc, last_tsc) = (stamps[0].start, stamps[stamps.len() - 1].end);

    let begin = bare_rdtsc();
    let sums = fold::Sums::of(stamps);
    let (envelope, delays) = fold::delays(stamps, &sums, begun.threshold_cycles, list, bins);
    let mut fold_cycles = bare_rdtsc().wrapping_sub(begin);
    // The counts are made in the stamps' place, so the window is written first.
    output.window(platform, first_tsc, window(stamps, plan.window))?;
    let begin = bare_rdtsc();
    let counts = fold::count(stamps, sums.shortest, table);
    fold_cycles += bare_rdtsc().wrapping_sub(begin);

    let batch = Batch {
        first_tsc,
        last_tsc,
        sum_cycles: sums.sum,
        delays_seen: delays.seen,
        delays_kept: delays.kept as u64,
        unkept_longest: delays.unkept_longest,
        unkept_cycles: delays.unkept_cycles,
        backwards: sums.backwards,
        bin_cycles: envelope.width,
        fold_cycles,
        ..begun
    };
    put(platform, output, batch)?;
    output.counts(platform, counts.iter())?;
    output.delays(platform, first_tsc, &list[..delays.kept])?;
    output.envelope(platform, envelope.bins)
}

/// Returns `length` consecutive samples around the middle of the batch.
fn window(stamps: &[Stamp], length: u32) -> impl Iterator<Item = Gap> {
    let length = stamps.len().min(length as usize);
    let from = (stamps.len() - length) / 2;
    (from as u64..)
        .zip(&stamps[from..from + length])
        .filter_map(|(index, stamp)| {
            Some(Gap {
                index,
                start: stamp.start,
                length: fold::duration(*stamp)?,
            })
        })
}

fn spin(
    plan: &Plan,
    platform: &mut impl Platform,
    output: &mut Output,
    arena: &mut Arena,
    begun: Batch,
) -> Result<(), WriteError> {
    let list = arena.take::<Gap>(list_length(plan));
    let bins = arena.take::<Bin>(bins(plan));
    let buffers = Buffers {
        gaps: list.as_mut_ptr(),
        capacity: list.len() as u64,
    };
    let mut totals = Totals::default();
    // SAFETY: `list` has room for `capacity` gaps; both pointers are to live values.
    let mut measured = |reads| unsafe {
        tare_gap(
            reads,
            begun.threshold_cycles,
            &raw const buffers,
            &raw mut totals,
        )
    };
    measured(plan.warmup);
    let ((), counted) = Counted::around(platform, || measured(plan.repetitions));

    let begin = bare_rdtsc();
    let recorded = list.len().min(totals.seen as usize);
    let kept = fold::forwards(&mut list[..recorded]);
    let backwards = (recorded - kept) as u64;
    let list = &mut list[..kept];
    let wall = totals.last.wrapping_sub(totals.first);
    let envelope = Envelope::of_gaps(totals.first, wall, list, bins);
    let batch = Batch {
        first_tsc: totals.first,
        last_tsc: totals.last,
        sum_cycles: wall,
        quiet_squares: Some(totals.quiet_squares),
        delays_seen: totals.seen - backwards,
        delays_kept: kept as u64,
        backwards,
        unkept_longest: totals.unkept_longest,
        unkept_cycles: totals.unkept_cycles,
        bin_cycles: envelope.width,
        fold_cycles: bare_rdtsc().wrapping_sub(begin),
        ..begun
    };
    put(platform, output, batch)?;
    counted.write(platform, output)?;
    output.delays(platform, totals.first, list)?;
    output.envelope(platform, envelope.bins)?;
    list.sort_unstable_by_key(|gap| gap.length);
    output.counts(platform, fold::runs(list.iter().map(|gap| gap.length)))
}

fn put(platform: &mut impl Platform, output: &mut Output, batch: Batch) -> Result<(), WriteError> {
    if batch.backwards > 0 {
        output.notice(
            platform,
            "the TSC ran backwards during the batch: the CPUs' TSCs are not synchronised, or a \
             hypervisor moved the guest; the samples concerned are counted, but in no figure",
        )?;
    }
    output.put(platform, &Record::Batch(batch))
}

fn list_length(plan: &Plan) -> usize {
    plan.capacity.min(plan.repetitions) as usize
}

fn bins(plan: &Plan) -> usize {
    plan.bins as usize
}

//! Runs a workload, folds its samples and writes them.
//!
//! Both stamps of a repetition are stored (16 bytes), not only their difference: so every delay has
//! its time, and the dead time between samples is known. The second store costs nothing measurable
//! compared with the fences.

use tare_wire::record::{Record, Set};
use tare_wire::rows::{Count, Sample};
use tare_workloads::gap::{Buffers, Gap, Totals};
use tare_workloads::noise::{Kind, Timed};
use tare_workloads::timing::{Stamp, bare_rdtsc};

use super::fold;
use super::long;
use super::plan::{Plan, Timing};
use super::witness::Witness;
use crate::arena::Arena;
use crate::counted::Counted;
use crate::envelope::{Bin, Envelope};
use crate::moved::Moved;
use crate::output::{Output, runs};
use crate::platform::{Platform, WriteError};
use crate::session::Stop;

/// The number of the set: a batch of one thread has only one, described by the cell's plan.
pub(super) const SET: u32 = 0;

/// How many repetitions of the warm-up follow the reading of the platform's counters, so that the
/// first timed repetition does not see the cache misses of a system call.
const SETTLING: u64 = 16;

/// Returns the size of the buffers of a plan within its bounds, in bytes.
pub fn arena_bytes(plan: &Plan) -> usize {
    let lists = Arena::bytes::<Gap>(list_length(plan)) + Arena::bytes::<Bin>(plan.bins as usize);
    let stamped =
        Arena::bytes::<Stamp>(plan.repetitions as usize) + Arena::bytes::<u32>(fold::TABLE);
    match plan.workload.kind {
        Kind::Clock(_) if plan.duration_ns.is_some() => long::arena_bytes(plan),
        Kind::Clock(_) => lists * plan.threads() as usize,
        Kind::Timed(timed) => {
            lists + stamped + Arena::bytes::<u64>((timed.room)(plan.size) as usize)
        }
    }
}

/// Runs the plan's workload and writes its records.
pub fn run(
    plan: &Plan,
    output: &mut Output<'_, impl Platform>,
    arena: &mut Arena,
    (threshold_cycles, hz): (u64, Option<f64>),
    mut witness: impl Witness,
) -> Result<(), Stop> {
    let mut values = Values::new(threshold_cycles);
    let counted = match plan.workload.kind {
        Kind::Clock(spins) if plan.duration_ns.is_some() => {
            let ticks = (threshold_cycles, hz);
            long::spin(plan, (spins, &mut witness), output, arena, ticks)?
        }
        Kind::Clock(spins) => {
            let list = arena.take(list_length(plan));
            let (how, around) = ((spins, threshold_cycles), (&*output.platform, &mut witness));
            let (totals, counted) = counted(around, |begins| spin(plan, how, list, begins))?;
            let spun = (threshold_cycles, list, totals);
            values.fold_cycles = report_spin(plan, (SET, ""), spun, output, arena, &mut witness)?;
            values.write(output)?;
            counted
        }
        Kind::Timed(timed) => {
            let stamps = arena.take(plan.repetitions as usize);
            let room = arena.take((timed.room)(plan.size) as usize);
            let around = (&*output.platform, &mut witness);
            let (result, counted) = repeat(plan, &timed, around, room, stamps)?;
            (values.result, values.work) = (result, (timed.steps)(plan.size));
            report(plan, output, arena, stamps, (values, witness))?;
            counted
        }
    };
    Ok(counted.write(output)?)
}

/// Figures of a batch that are not sampled.
pub(super) struct Values {
    /// Result of the last repetition.
    result: u64,
    /// Elementary steps in one repetition.
    work: u64,
    /// Least delay above the mean that is listed, or the shortest gap.
    threshold_cycles: u64,
    /// Time spent on folding the samples after the batch.
    pub fold_cycles: u64,
}

impl Values {
    pub(super) fn new(threshold_cycles: u64) -> Self {
        Self {
            result: 0,
            work: 1,
            threshold_cycles,
            fold_cycles: 0,
        }
    }

    pub(super) fn write(self, output: &mut Output<'_, impl Platform>) -> Result<(), WriteError> {
        let values = [
            ("result", "", self.result),
            ("work", "", self.work),
            ("threshold", "cycles", self.threshold_cycles),
            ("fold time", "cycles", self.fold_cycles),
        ];
        output.values("", &values)
    }
}

fn repeat(
    plan: &Plan,
    timed: &Timed,
    around: (&impl Platform, &mut impl Witness),
    room: &mut [u64],
    stamps: &mut [Stamp],
) -> Result<(u64, Counted), Moved> {
    let measured = match plan.timing {
        Timing::Fenced => timed.fenced,
        Timing::Published => timed.published,
    };
    (timed.prepare)(room);
    let (room, out) = (room.as_mut_ptr(), stamps.as_mut_ptr());
    // SAFETY: the buffer has the size that the workload needs, and `repetitions` never exceeds the
    // number of stamps.
    let mut repeat = |repetitions| unsafe { measured(plan.size, room, repetitions, out) };
    counted(around, |begins| warmed_up(plan, begins, &mut repeat))
}

/// Calls `measured`, which says when the warm-up ends, and reads the platform's counters around it.
fn counted<R>(
    (platform, witness): (&impl Platform, &mut impl Witness),
    measured: impl FnOnce(&mut dyn FnMut()) -> R,
) -> Result<(R, Counted), Moved> {
    witness.begin();
    let mut counted = Counted::begin(platform);
    let result = measured(&mut || counted = Counted::begin(platform));
    let stayed = counted.end(platform);
    witness.end();
    stayed.map(|()| (result, counted))
}

/// Calls `measured` for the warm-up, in pieces no longer than the batch, and then for the batch, with
/// `begins` between them.
fn warmed_up<R>(plan: &Plan, begins: &mut dyn FnMut(), mut measured: impl FnMut(u64) -> R) -> R {
    let settling = SETTLING.min(plan.warmup).min(plan.repetitions);
    let mut left = plan.warmup - settling;
    while left > 0 {
        let piece = left.min(plan.repetitions);
        measured(piece);
        left -= piece;
    }
    begins();
    if settling > 0 {
        measured(settling);
    }
    measured(plan.repetitions)
}

fn report(
    plan: &Plan,
    output: &mut Output<'_, impl Platform>,
    arena: &mut Arena,
    stamps: &mut [Stamp],
    (mut values, mut witness): (Values, impl Witness),
) -> Result<(), WriteError> {
    let table = arena.take::<u32>(fold::TABLE);
    let list = arena.take::<Gap>(list_length(plan));
    let bins = arena.take::<Bin>(plan.bins as usize);
    let (first, last) = (stamps[0].start, stamps[stamps.len() - 1].end);

    let begin = bare_rdtsc();
    let mut set = Set {
        number: SET,
        measure: "duration",
        first,
        last,
        parts: 1,
        ..fold::sums(stamps)
    };
    set.threshold = fold::shortest_delay(&set, values.threshold_cycles);
    let envelope = Envelope::new(first, last.wrapping_sub(first), bins);
    let (delays, envelope) = fold::delays(stamps, list, envelope, &mut set);
    values.fold_cycles = bare_rdtsc().wrapping_sub(begin);
    let window = window(stamps, plan.window, first);
    set.raw = window.clone().count() as u64;
    put(output, set, &envelope)?;
    // The counts overwrite the stamps, so the raw window is written first.
    output.raw(set.period, window)?;
    let begin = bare_rdtsc();
    let counts = fold::count(stamps, set.min, table);
    values.fold_cycles += bare_rdtsc().wrapping_sub(begin);
    output.counts(rows(SET, counts))?;
    let events = delays.iter().map(|delay| sample(SET, *delay, first));
    output.events(set.period, events)?;
    output.envelope(set.number, envelope.bins)?;
    witness.tell(SET, (set.min, delays), output)?;
    values.write(output)
}

/// Returns `length` consecutive samples around the middle of the batch.
fn window(stamps: &[Stamp], length: u32, first: u64) -> impl Iterator<Item = Sample> + Clone {
    let length = stamps.len().min(length as usize);
    let from = (stamps.len() - length) / 2;
    (from as u64..)
        .zip(&stamps[from..from + length])
        .filter_map(move |(index, stamp)| {
            let gap = Gap {
                index,
                start: stamp.start,
                length: fold::duration(*stamp)?,
            };
            Some(sample(SET, gap, first))
        })
}

/// A loop that reads the clock.
pub(super) type Spins = unsafe extern "C" fn(u64, u64, *const Buffers, *mut Totals);

/// Spins on the calling thread, and lists gaps from a threshold in ticks on.
pub(super) fn spin(
    plan: &Plan,
    (spins, threshold): (Spins, u64),
    list: &mut [Gap],
    begins: &mut dyn FnMut(),
) -> Totals {
    let buffers = Buffers {
        gaps: list.as_mut_ptr(),
        capacity: list.len() as u64,
    };
    let mut totals = Totals::default();
    // SAFETY: `list` has room for `capacity` gaps; both pointers are to live values.
    warmed_up(plan, begins, |reads| unsafe {
        spins(reads, threshold, &raw const buffers, &raw mut totals);
    });
    totals
}

/// Writes the set of a spin: its number and labels, threshold, gaps and totals. Returns the time
/// spent on folding, in ticks.
pub(super) fn report_spin(
    plan: &Plan,
    (number, labels): (u32, &str),
    (threshold, list, totals): (u64, &mut [Gap], Totals),
    output: &mut Output<'_, impl Platform>,
    arena: &mut Arena,
    witness: &mut impl Witness,
) -> Result<u64, WriteError> {
    let bins = arena.take::<Bin>(plan.bins as usize);
    let begin = bare_rdtsc();
    let recorded = list.len().min(totals.seen as usize);
    let kept = fold::forwards(&mut list[..recorded]);
    let backwards = (recorded - kept) as u64;
    let list = &mut list[..kept];
    let (first, last) = (totals.first, totals.last);
    let wall = last.wrapping_sub(first);
    let mut envelope = Envelope::new(first, wall, bins);
    for gap in &*list {
        envelope.add(gap.start, gap.length);
    }
    let fold_cycles = bare_rdtsc().wrapping_sub(begin);
    let set = Set {
        number,
        labels,
        measure: "gap",
        n: plan.repetitions - backwards,
        sum: wall,
        first,
        last,
        threshold,
        seen: totals.seen - backwards,
        kept: kept as u64,
        unkept_max: totals.unkept_longest,
        unkept_sum: totals.unkept_cycles,
        squares_below: Some(totals.quiet_squares),
        backwards,
        parts: 1,
        ..Set::default()
    };
    put(output, set, &envelope)?;
    let events = list.iter().map(|gap| sample(number, *gap, first));
    output.events(set.period, events)?;
    output.envelope(number, envelope.bins)?;
    witness.tell(number, (0, list), output)?;
    list.sort_unstable_by_key(|gap| gap.length);
    let counts = runs(list.iter().map(|gap| gap.length));
    output.counts(rows(number, counts))?;
    Ok(fold_cycles)
}

/// Writes the head of the set, then the envelope.
pub(super) fn put(
    output: &mut Output<'_, impl Platform>,
    set: Set<'_>,
    envelope: &Envelope<'_>,
) -> Result<(), WriteError> {
    if set.backwards > 0 {
        output.notice(
            "the TSC ran backwards during the batch: the CPUs' TSCs are not synchronised, or a \
             hypervisor moved the guest; the samples concerned are counted, but in no figure",
        )?;
    }
    output.put(&Record::Set(Set {
        max: envelope.longest().max(set.unkept_max),
        bin: envelope.width,
        ..set
    }))
}

fn sample(set: u32, gap: Gap, first: u64) -> Sample {
    Sample {
        set,
        index: gap.index,
        time: gap.start.wrapping_sub(first),
        value: gap.length,
    }
}

pub(super) fn rows(
    set: u32,
    counts: impl Iterator<Item = (u64, u64)>,
) -> impl Iterator<Item = Count> {
    counts.map(move |(value, count)| Count {
        set,
        part: 0,
        value,
        count,
    })
}

pub(super) fn list_length(plan: &Plan) -> usize {
    plan.capacity.min(plan.repetitions) as usize
}

//! A spin of a given time, in pieces of some milliseconds.
//!
//! The measured loop is the same; it runs again and again. Between two pieces, the gaps of the last
//! one are counted by their length, the longer ones are listed, and what is above the plan's limit
//! is reported. So memory does not grow with time, no gap finds a full buffer, and a report or a
//! request to end waits for one piece only. No other thread is needed to look, so this works
//! wherever the loop does.
//!
//! # When the method lies
//!
//! The time between two pieces, usually below a microsecond, is not watched. It is reported as
//! `unwatched`, and the times of gaps do not include it. A stall that happens there is a gap if it
//! is much longer than that.

use tare_wire::phases::LEAD_NS;
use tare_wire::record::{Begins, Exceeded, Record, Set};
use tare_wire::rows::Sample;
use tare_workloads::gap::{Buffers, Gap, Totals};
use tare_workloads::timing::bare_rdtsc;

use super::batch::{SET, Spins, put, rows};
use super::plan::Plan;
use super::witness::Witness;
use crate::arena::{Arena, Zeroed};
use crate::counted::Counted;
use crate::envelope::{Bin, Envelope};
use crate::output::{self, Output};
use crate::platform::{Platform, WriteError};
use crate::session::Stop;

/// Lengths below this are counted one by one.
const EXACT: usize = 1 << 10;
/// Each further power of two is divided into this many buckets, less than 2 % wide.
const DIVISIONS: usize = 1 << DIVISION_BITS;
const DIVISION_BITS: u32 = 6;
/// Buckets for all lengths below 2^63.
const BUCKETS: usize = EXACT + (63 - EXACT.ilog2() as usize) * DIVISIONS;

/// The time between two pieces that is never a gap, and what each gap of the last piece adds.
const BETWEEN_NS: f64 = 20_000.0;
const EACH_NS: f64 = 200.0;

/// The most gaps above the limit that one spin reports at once.
const MOST_REPORTED: u64 = 100;

/// The lengths that share a bucket: their number and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Bucket {
    count: u64,
    sum: u64,
}

// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Bucket {}

/// Returns the number of a length's bucket.
fn bucket_of(length: u64) -> usize {
    match usize::try_from(length) {
        Ok(length) if length < EXACT => length,
        _ => {
            let exponent = length.ilog2();
            let division = (length >> (exponent - DIVISION_BITS)) as usize % DIVISIONS;
            EXACT + (exponent - EXACT.ilog2()) as usize * DIVISIONS + division
        }
    }
}

/// Returns the counts of a bucket. Its values become their mean, rounded down or up, so that number
/// and sum stay exact; so does the longest of all.
fn counts_of(bucket: Bucket, longest: u64) -> impl Iterator<Item = (u64, u64)> {
    let apart = u64::from(bucket.count > 0 && bucket.sum >= longest);
    let (count, sum) = (bucket.count - apart, bucket.sum - apart * longest);
    let (mean, above) = match count {
        0 => (0, 0),
        count => (sum / count, sum % count),
    };
    let mut counts = [(mean, count - above), (mean + 1, above), (longest, apart)];
    for place in [0, 1] {
        if apart > 0 && counts[place].0 == longest {
            counts[2].1 += core::mem::take(&mut counts[place].1);
        }
    }
    counts.into_iter().filter(|(_, count)| *count > 0)
}

/// Returns the counts of all buckets, by rising value.
fn counts(buckets: &[Bucket], longest: u64) -> impl Iterator<Item = (u64, u64)> {
    let last = bucket_of(longest);
    let all = buckets.iter().enumerate();
    all.flat_map(move |(place, bucket)| {
        let longest = if place == last { longest } else { u64::MAX };
        counts_of(*bucket, longest)
    })
}

/// Returns the size of the buffers in bytes.
pub(super) fn arena_bytes(plan: &Plan) -> usize {
    let capacity = plan.capacity as usize;
    Arena::bytes::<Gap>(plan.repetitions as usize)
        + Arena::bytes::<Gap>(capacity)
        + Arena::bytes::<u64>(capacity)
        + Arena::bytes::<Bucket>(BUCKETS)
        + Arena::bytes::<Bin>(plan.bins as usize)
}

/// The spin so far.
struct Long<'a> {
    buckets: &'a mut [Bucket],
    /// The gaps that are kept one by one, and their times, less what was not watched before.
    kept: &'a mut [Gap],
    times: &'a mut [u64],
    n_kept: usize,
    /// Gaps from this length on are kept, in ticks.
    keep_from: u64,
    /// Gaps that found no room among the kept ones.
    not_kept: u64,
    envelope: Envelope<'a>,
    /// Sums over all pieces. `first` and `last` are those of the TSC.
    totals: Totals,
    /// Reads, with those between pieces that are gaps.
    reads: u64,
    backwards: u64,
    /// Time between pieces, in ticks: all of it, and the longest.
    unwatched: [u64; 2],
    /// Time between two pieces that is a gap, in ticks.
    between: f64,
    each: f64,
    longest: u64,
}

impl Long<'_> {
    /// Adds a piece and its gaps. Returns its longest gap.
    fn add(&mut self, piece: &Totals, gaps: &[Gap], was_delayed: bool) -> Gap {
        let mut longest = Gap::default();
        if self.reads == 0 {
            self.totals.first = piece.first;
            self.envelope.first = piece.first;
        } else {
            let length = piece.first.wrapping_sub(self.totals.last);
            if !was_delayed && length as f64 >= self.between && length >> 63 == 0 {
                let start = self.totals.last;
                longest = self.gap(Gap {
                    index: self.reads,
                    start,
                    length,
                });
                self.reads += 1;
            } else {
                self.unwatched[0] = self.unwatched[0].wrapping_add(length);
                self.unwatched[1] = self.unwatched[1].max(length);
            }
        }
        for gap in gaps {
            let index = self.reads + gap.index;
            let gap = self.gap(Gap { index, ..*gap });
            if gap.length > longest.length {
                longest = gap;
            }
        }
        self.totals.last = piece.last;
        let squares = &mut self.totals.quiet_squares;
        *squares = squares.wrapping_add(piece.quiet_squares);
        longest
    }

    /// Counts one gap, and returns it; a step backwards is none.
    fn gap(&mut self, gap: Gap) -> Gap {
        if gap.length >> 63 != 0 {
            self.backwards += 1;
            return Gap::default();
        }
        let time = gap.start.wrapping_sub(self.unwatched[0]);
        self.totals.seen += 1;
        self.longest = self.longest.max(gap.length);
        self.envelope.add(time, gap.length);
        let bucket = &mut self.buckets[bucket_of(gap.length)];
        bucket.count += 1;
        bucket.sum += gap.length;
        if gap.length >= self.keep_from {
            match self.kept.get_mut(self.n_kept) {
                Some(place) => {
                    *place = gap;
                    self.times[self.n_kept] = time;
                    self.n_kept += 1;
                }
                None => self.not_kept += 1,
            }
        }
        gap
    }
}

impl Long<'_> {
    /// Writes what was seen. Gaps from a length on are listed.
    fn write(
        self,
        plan: &Plan,
        (threshold, list_from): (u64, u64),
        witness: &mut impl Witness,
        output: &mut Output<'_, impl Platform>,
    ) -> Result<(), WriteError> {
        let Totals {
            first, last, seen, ..
        } = self.totals;
        let last = last.wrapping_sub(self.unwatched[0]);
        let kept = &self.kept[..self.n_kept];
        let listed = kept.iter().zip(&*self.times);
        let listed = listed.filter(|(gap, _)| gap.length >= list_from);
        let set = Set {
            number: SET,
            measure: "gap",
            n: self.reads - self.backwards,
            sum: last.wrapping_sub(first),
            first,
            last,
            threshold,
            seen,
            kept: seen,
            listed: Some(listed.clone().count() as u64),
            squares_below: Some(self.totals.quiet_squares),
            backwards: self.backwards,
            parts: 1,
            ..Set::default()
        };
        put(output, set, &self.envelope)?;
        let events = listed.map(|(gap, time)| Sample {
            set: SET,
            index: gap.index,
            time: time.wrapping_sub(first),
            value: gap.length,
        });
        output.events(set.period, events)?;
        output.envelope(SET, self.envelope.bins)?;
        witness.tell(SET, (0, kept), output)?;
        output.counts(rows(SET, counts(self.buckets, self.longest)))?;
        if self.not_kept > 0 {
            let (most, n) = (plan.capacity, self.not_kept);
            output.notice(&output::text(&format_args!(
                "the list has room for {most} gaps: {n} more are counted, but neither listed nor explained"
            )))?;
        }
        let [unwatched, longest] = self.unwatched;
        let values = [
            ("threshold", "cycles", threshold),
            ("unwatched", "cycles", unwatched),
            ("longest unwatched", "cycles", longest),
        ];
        output.values("", &values)
    }
}

/// Spins for the time of the plan, and writes the records.
pub(super) fn spin(
    plan: &Plan,
    (spins, witness): (Spins, &mut impl Witness),
    output: &mut Output<'_, impl Platform>,
    arena: &mut Arena,
    (threshold, hz): (u64, Option<f64>),
) -> Result<Counted, Stop> {
    let hz = hz.ok_or(Stop::Place(
        "the TSC's frequency is unknown here: a spin of a given time needs it",
    ))?;
    let ticks = |ns: u64| (ns as f64 * hz / 1e9) as u64;
    let never = u64::MAX;
    let above = plan.above_ns.map_or(never, ticks);
    let until = plan.until_ns.map_or(never, ticks);
    let list_from = plan.list_ns.map_or(never, ticks);
    let explain_from = plan.explain_ns.map_or(never, ticks);
    let wall = ticks(plan.duration_ns.unwrap_or(0));
    let piece_gaps = arena.take::<Gap>(plan.repetitions as usize);
    let kept = arena.take::<Gap>(plan.capacity as usize);
    let times = arena.take::<u64>(plan.capacity as usize);
    let buckets = arena.take::<Bucket>(BUCKETS);
    let bins = arena.take::<Bin>(plan.bins as usize);
    let buffers = Buffers {
        gaps: piece_gaps.as_mut_ptr(),
        capacity: piece_gaps.len() as u64,
    };
    let mut piece = Totals::default();
    let spin_for = |reads: u64, piece: &mut Totals| {
        // SAFETY: the list has room for every read of a piece; both pointers are to live values.
        unsafe { spins(reads, threshold, &raw const buffers, &raw mut *piece) };
    };
    witness.begin();
    let origin_ns = output.platform.monotonic_ns().map(|now| now + LEAD_NS);
    if let Some(origin_ns) = origin_ns {
        output.put(&Record::Begins(Begins { origin_ns }))?;
        output.flush()?;
    }
    // The warm-up: at least the reads of the plan, and until the time that was announced.
    let reads = plan.warmup.clamp(1, plan.repetitions);
    spin_for(reads, &mut piece);
    while origin_ns > output.platform.monotonic_ns() {
        spin_for(reads, &mut piece);
    }
    let mut counted = Counted::begin(output.platform);
    let begun = bare_rdtsc();
    let mut long = Long {
        buckets,
        kept,
        times,
        n_kept: 0,
        keep_from: list_from.min(explain_from),
        not_kept: 0,
        envelope: Envelope::new(begun, wall, bins),
        totals: Totals::default(),
        reads: 0,
        backwards: 0,
        unwatched: [0; 2],
        between: BETWEEN_NS * hz / 1e9,
        each: EACH_NS * hz / 1e9,
        longest: 0,
    };
    let (mut exceeded, mut was_delayed) = (0, false);
    let was_asked = loop {
        spin_for(plan.repetitions, &mut piece);
        let recorded = piece.seen.min(buffers.capacity) as usize;
        // SAFETY: the spin has written that many gaps, and nothing writes to them now.
        let gaps = unsafe { core::slice::from_raw_parts(buffers.gaps, recorded) };
        let longest = long.add(&piece, gaps, was_delayed);
        long.reads += plan.repetitions;
        long.between = BETWEEN_NS * hz / 1e9 + long.each * gaps.len() as f64;
        was_delayed = longest.length > above;
        if was_delayed {
            exceeded += 1;
            if exceeded <= MOST_REPORTED {
                output.put(&Record::Exceeded(Exceeded {
                    set: SET,
                    index: longest.index,
                    value: (longest.length as f64 * 1e9 / hz) as u64,
                }))?;
                output.flush()?;
            }
        }
        if piece.last.wrapping_sub(begun) >= wall || longest.length > until {
            break false;
        }
        if witness.is_asked_to_end() {
            break true;
        }
    };
    counted.end(&*output.platform)?;
    witness.end();
    long.write(plan, (threshold, list_from), witness, output)?;
    if was_asked {
        output.put(&Record::CutShort)?;
    }
    if exceeded > MOST_REPORTED {
        output
            .notice("more gaps were above the limit than are reported at once; all are counted")?;
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn buckets_keep_number_sum_and_longest_and_lengths_to_2_percent() {
        let mut lengths: Vec<u64> = (1..40_000).step_by(7).collect();
        lengths.extend((14..62).map(|bits| (1 << bits) + (1 << (bits - 2))));
        lengths.extend([1_023, 1_023, 1_024]);
        let longest = *lengths.iter().max().unwrap();
        let mut buckets = vec![Bucket::default(); BUCKETS];
        for length in &lengths {
            let bucket = &mut buckets[bucket_of(*length)];
            bucket.count += 1;
            bucket.sum += length;
        }
        let counted: Vec<(u64, u64)> = counts(&buckets, longest).collect();
        assert!(counted.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(
            counted.iter().map(|(_, n)| n).sum::<u64>(),
            lengths.len() as u64
        );
        let sum: u64 = counted.iter().map(|(value, n)| value * n).sum();
        assert_eq!(sum, lengths.iter().sum::<u64>());
        assert_eq!(counted.last(), Some(&(longest, 1)));
        assert!(counted.contains(&(1_023, 3)));
        lengths.sort_unstable();
        let mut ranks = counted
            .iter()
            .flat_map(|(value, n)| vec![*value; *n as usize]);
        for length in lengths {
            let counted = ranks.next().unwrap();
            let is_near = counted.abs_diff(length) * 50 <= length;
            assert!(
                if length < EXACT as u64 {
                    counted == length
                } else {
                    is_near
                },
                "{length}"
            );
        }
        assert_eq!(bucket_of((1 << 63) - 1), BUCKETS - 1);
    }

    /// Spins of 1,000 reads of 20 ticks each, with the gaps that are given.
    fn piece(first: u64, gaps: &[Gap]) -> Totals {
        let in_gaps: u64 = gaps.iter().map(|gap| gap.length).sum();
        let quiet = 1_000 - gaps.len() as u64;
        Totals {
            first,
            last: first + quiet * 20 + in_gaps,
            quiet_squares: quiet * 400,
            seen: gaps.len() as u64,
            ..Totals::default()
        }
    }

    #[test]
    fn pieces_make_one_spin_without_the_time_between_them() {
        let gap = |index, start, length| Gap {
            index,
            start,
            length,
        };
        let (mut bins, mut kept) = (vec![Bin::default(); 10], vec![Gap::default(); 2]);
        let (mut times, mut buckets) = (vec![0; 2], vec![Bucket::default(); BUCKETS]);
        let mut long = Long {
            buckets: &mut buckets,
            kept: &mut kept,
            times: &mut times,
            n_kept: 0,
            keep_from: 5_000,
            not_kept: 0,
            envelope: Envelope::new(0, 100_000, &mut bins),
            totals: Totals::default(),
            reads: 0,
            backwards: 0,
            unwatched: [0; 2],
            between: 50_000.0,
            each: 0.0,
            longest: 0,
        };
        let (mut first, mut longest) = (1_000, Vec::new());
        // 700 ticks between the first two pieces; a stall of 60,000 after the second one, and one as
        // long after the third that wrote a record.
        for (gaps, was_delayed, between) in [
            (vec![gap(500, 11_000, 6_000)], false, 700),
            (vec![gap(1, 0, 1_500), gap(2, 0, 1 << 63)], false, 60_000),
            (vec![], false, 60_000),
            (vec![gap(0, 0, 7_000), gap(9, 0, 8_000)], true, 0),
        ] {
            let gaps: Vec<Gap> = gaps
                .into_iter()
                .map(|gap| Gap {
                    start: first + gap.index * 20,
                    ..gap
                })
                .collect();
            let forwards = gaps.iter().copied().filter(|gap| gap.length >> 63 == 0);
            let totals = piece(first, &forwards.collect::<Vec<_>>());
            longest.push(long.add(&totals, &gaps, was_delayed).length);
            long.reads += 1_000;
            first = totals.last + between;
        }
        assert_eq!(longest, [6_000, 1_500, 60_000, 8_000]);
        assert_eq!(
            (long.reads, long.backwards, long.totals.seen),
            (4_001, 1, 5)
        );
        assert_eq!(long.unwatched, [60_700, 60_000]);
        assert_eq!((long.longest, long.n_kept, long.not_kept), (60_000, 2, 2));
        assert_eq!(long.kept[1].index, 2_000);
        // Times don't include the 700 ticks.
        assert_eq!(long.times[1], long.kept[1].start - 700);
        let enveloped: u64 = long.envelope.bins.iter().map(|bin| bin.sum).sum();
        assert_eq!(enveloped, 6_000 + 1_500 + 60_000 + 7_000 + 8_000);
    }
}

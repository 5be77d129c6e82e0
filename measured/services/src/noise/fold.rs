//! From raw stamps to exact counts, delays and an envelope over time.
//!
//! Folding runs after the batch, outside of every timed region, in the memory that was taken
//! before. Nothing is sampled or rounded: the counts per value hold every repetition.

use tare_workloads::gap::Gap;
use tare_workloads::timing::Stamp;

use crate::envelope::{Bin, Envelope, Filler};

/// Is the number of consecutive values that are counted in a table, from the shortest sample on.
/// Longer samples are sorted; there are few of them.
pub const TABLE: usize = 1 << 16;

/// Holds what one pass over all samples tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Samples whose second stamp is not before the first.
    pub count: u64,
    /// Sum of their durations.
    pub sum: u64,
    /// Shortest of them.
    pub shortest: u64,
    /// Samples whose second stamp is before the first: the CPUs' TSCs are not synchronised.
    pub backwards: u64,
}

impl Sums {
    /// Passes over all samples.
    pub fn of(stamps: &[Stamp]) -> Self {
        let mut sums = Self {
            count: 0,
            sum: 0,
            shortest: u64::MAX,
            backwards: 0,
        };
        for duration in stamps.iter().map(|stamp| duration(*stamp)) {
            match duration {
                Some(cycles) => {
                    sums.count += 1;
                    sums.sum += cycles;
                    sums.shortest = sums.shortest.min(cycles);
                }
                None => sums.backwards += 1,
            }
        }
        sums
    }

    /// Returns the shortest duration that is a delay above `threshold`: a duration is one
    /// if it exceeds mean + threshold, and durations are whole, so rounding down is exact.
    pub fn shortest_delay(&self, threshold: u64) -> u64 {
        let mean = self.sum.checked_div(self.count).unwrap_or(0);
        mean.saturating_add(threshold).saturating_add(1)
    }
}

/// Sums up the delays that were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Delays above the threshold.
    pub seen: u64,
    /// Those that fitted into the list.
    pub kept: usize,
    /// Longest duration that did not fit.
    pub unkept_longest: u64,
    /// Sum of the durations that did not fit.
    pub unkept_cycles: u64,
}

/// Lists the samples of at least `shortest` ticks, and builds the envelope of all samples.
pub fn delays<'a>(
    stamps: &[Stamp],
    shortest: u64,
    list: &mut [Gap],
    bins: &'a mut [Bin],
) -> (Envelope<'a>, Delays) {
    let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else {
        return (Envelope { width: 1, bins }, Delays::default());
    };
    let mut filler = Filler::new(first.start, last.end.wrapping_sub(first.start), bins);
    let mut delays = Delays::default();
    for (index, stamp) in (0_u64..).zip(stamps) {
        let Some(cycles) = duration(*stamp) else {
            continue;
        };
        filler.add(stamp.start, cycles);
        if cycles >= shortest {
            delays.seen += 1;
            if let Some(slot) = list.get_mut(delays.kept) {
                *slot = Gap {
                    index,
                    start: stamp.start,
                    length: cycles,
                };
                delays.kept += 1;
            } else {
                delays.unkept_longest = delays.unkept_longest.max(cycles);
                delays.unkept_cycles += cycles;
            }
        }
    }
    (filler.done(), delays)
}

/// Holds exact counts per value: a table for the values just above the shortest, a sorted list for
/// the rest.
#[derive(Debug)]
pub struct Counts<'a> {
    base: u64,
    table: &'a [u32],
    /// Longer samples, sorted, one by one.
    rest: &'a [Stamp],
}

/// Counts the samples per value. Overwrites the stamps.
///
/// `table` must be zeroed and hold [`TABLE`] entries; there must be fewer than 2^32 stamps.
pub fn count<'a>(stamps: &'a mut [Stamp], shortest: u64, table: &'a mut [u32]) -> Counts<'a> {
    let mut longer = 0;
    for read in 0..stamps.len() {
        let Some(cycles) = duration(stamps[read]) else {
            continue;
        };
        match usize::try_from(cycles - shortest)
            .ok()
            .and_then(|place| table.get_mut(place))
        {
            Some(count) => *count += 1,
            None => {
                // The write never overtakes the read.
                stamps[longer].end = cycles;
                longer += 1;
            }
        }
    }
    let rest = &mut stamps[..longer];
    rest.sort_unstable_by_key(|stamp| stamp.end);
    Counts {
        base: shortest,
        table,
        rest,
    }
}

impl Counts<'_> {
    /// Iterates over (value, count), ascending, without zeros.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let near = (self.base..)
            .zip(self.table)
            .filter(|(_, count)| **count > 0)
            .map(|(value, count)| (value, u64::from(*count)));
        near.chain(runs(self.rest.iter().map(|stamp| stamp.end)))
    }
}

/// Moves the gaps during which the timer ran forwards to the front, in order, and returns their
/// number. A step backwards reads as a gap of more than 2^63 ticks.
pub fn forwards(gaps: &mut [Gap]) -> usize {
    let mut kept = 0;
    for read in 0..gaps.len() {
        if gaps[read].length >> 63 == 0 {
            gaps[kept] = gaps[read];
            kept += 1;
        }
    }
    kept
}

/// Turns a sorted sequence of values into (value, count).
pub fn runs(sorted: impl Iterator<Item = u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut sorted = sorted.peekable();
    core::iter::from_fn(move || {
        let value = sorted.next()?;
        let mut count = 1;
        while sorted.next_if_eq(&value).is_some() {
            count += 1;
        }
        Some((value, count))
    })
}

/// Returns the duration of a sample, or None if it runs backwards.
pub fn duration(stamp: Stamp) -> Option<u64> {
    let cycles = stamp.cycles();
    (cycles >> 63 == 0).then_some(cycles)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeMap;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn stamps(start: u64, durations: &[u64], pause: u64) -> Vec<Stamp> {
        let mut now = start;
        durations
            .iter()
            .map(|cycles| {
                let stamp = Stamp {
                    start: now,
                    end: now.wrapping_add(*cycles),
                };
                now = stamp.end.wrapping_add(pause);
                stamp
            })
            .collect()
    }

    fn counted(durations: &[u64]) -> Vec<(u64, u64)> {
        let mut stamps = stamps(1_000, durations, 5);
        let sums = Sums::of(&stamps);
        let mut table = vec![0; TABLE];
        count(&mut stamps, sums.shortest, &mut table)
            .iter()
            .collect()
    }

    #[test]
    fn counts_hold_every_sample_near_and_far() {
        let mut durations = vec![900; 500];
        durations.extend([
            901,
            900 + TABLE as u64,
            899 + TABLE as u64,
            1 << 40,
            1 << 40,
        ]);
        durations.rotate_left(250);
        let mut naive = BTreeMap::new();
        for cycles in &durations {
            *naive.entry(*cycles).or_insert(0) += 1;
        }
        assert_eq!(counted(&durations), Vec::from_iter(naive));
    }

    #[test]
    fn delays_are_what_exceeds_the_mean_by_more_than_the_threshold() {
        // Mean 110: 8 samples of 100 and 2 of 150.
        let mut durations = vec![100; 8];
        durations.insert(3, 150);
        durations.insert(7, 150);
        let samples = stamps(50, &durations, 10);
        let sums = Sums::of(&samples);
        let list_of = |threshold| {
            let mut list = vec![Gap::default(); 10];
            let mut bins = vec![Bin::default(); 4];
            let (_, delays) = delays(
                &samples,
                sums.shortest_delay(threshold),
                &mut list,
                &mut bins,
            );
            list.truncate(delays.kept);
            list
        };
        assert_eq!(list_of(40), []);
        let listed = list_of(39);
        assert_eq!(listed.len(), 2);
        assert_eq!((listed[0].index, listed[0].length), (3, 150));
        assert_eq!(listed[0].start, 50 + 3 * 110);
    }

    #[test]
    fn a_fractional_mean_is_not_rounded_up() {
        // Mean 100.5: 151 exceeds mean + 50, 150 does not.
        let samples = stamps(0, &[50, 150, 51, 151], 0);
        let sums = Sums::of(&samples);
        let mut list = vec![Gap::default(); 10];
        let mut bins = vec![Bin::default(); 1];
        let (_, delays) = delays(&samples, sums.shortest_delay(50), &mut list, &mut bins);
        assert_eq!(delays.seen, 1);
        assert_eq!(list[0].length, 151);
    }

    #[test]
    fn a_full_list_is_counted_and_its_longest_kept() {
        let samples = stamps(0, &[10, 500, 10, 700, 10, 600, 10, 10, 10, 10, 10, 10], 0);
        let sums = Sums::of(&samples);
        let mut list = vec![Gap::default(); 1];
        let mut bins = vec![Bin::default(); 2];
        let (_, delays) = delays(&samples, sums.shortest_delay(100), &mut list, &mut bins);
        assert_eq!(
            delays,
            Delays {
                seen: 3,
                kept: 1,
                unkept_longest: 700,
                unkept_cycles: 1_300
            }
        );
    }

    #[test]
    fn the_envelope_loses_no_sample_and_shows_every_longest() {
        let durations: Vec<u64> = (0..1_000).map(|i| 10 + i * 7 % 13).collect();
        let samples = stamps(u64::MAX - 5_000, &durations, 3);
        let sums = Sums::of(&samples);
        for n in [1, 2, 7, 1_000, 5_000] {
            let mut list = vec![];
            let mut bins = vec![Bin::default(); n];
            let (envelope, _) = delays(&samples, sums.shortest_delay(1_000), &mut list, &mut bins);
            let filled = envelope.bins.iter().filter(|bin| bin.count > 0);
            assert_eq!(envelope.bins.iter().map(|b| b.count).sum::<u64>(), 1_000);
            assert_eq!(envelope.bins.iter().map(|b| b.sum).sum::<u64>(), sums.sum);
            assert_eq!(filled.clone().map(|b| b.longest).max(), Some(22));
            assert_eq!(filled.map(|b| b.shortest).min(), Some(10));
            for (stamp, cycles) in samples.iter().zip(&durations) {
                let bin = stamp.start.wrapping_sub(samples[0].start) / envelope.width;
                let bin = &envelope.bins[bin as usize];
                assert!((bin.shortest..=bin.longest).contains(cycles));
            }
        }
    }

    #[test]
    fn a_gap_that_runs_backwards_is_taken_out() {
        let gap = |index, length| Gap {
            index,
            start: 0,
            length,
        };
        let mut gaps = [gap(1, 500), gap(2, u64::MAX - 9), gap(3, 600)];
        assert_eq!(forwards(&mut gaps), 2);
        assert_eq!(gaps[..2], [gap(1, 500), gap(3, 600)]);
    }

    #[test]
    fn samples_that_run_backwards_are_counted_apart() {
        let mut samples = stamps(1_000, &[10, 10, 10], 5);
        samples[1].end = samples[1].start - 1;
        let sums = Sums::of(&samples);
        assert_eq!((sums.count, sums.sum, sums.backwards), (2, 20, 1));
        let mut table = vec![0; TABLE];
        let counts = count(&mut samples, sums.shortest, &mut table);
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(10, 2)]);
    }
}

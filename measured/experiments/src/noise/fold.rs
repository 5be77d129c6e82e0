//! Folds raw stamps into exact counts, delays and an envelope over time.
//!
//! Folding runs after the batch, outside of every timed region, in memory that was allocated
//! before. Nothing is sampled or rounded: the counts per value include every repetition.

use tare_wire::record::Set;
use tare_workloads::gap::Gap;
use tare_workloads::timing::Stamp;

use crate::envelope::Envelope;
use crate::output::runs;

/// The number of consecutive values that are counted in a table, starting at the shortest sample.
/// Longer samples, of which there are few, are sorted.
pub const TABLE: usize = 1 << 16;

/// Returns the set of all samples after one pass: number, sum, minimum, and how many ran backwards
/// because the TSCs of the CPUs are not synchronised.
pub fn sums(stamps: &[Stamp]) -> Set<'static> {
    let (mut n, mut sum, mut min, mut backwards) = (0, 0, u64::MAX, 0);
    for duration in stamps.iter().map(|stamp| duration(*stamp)) {
        match duration {
            Some(cycles) => {
                n += 1;
                sum += cycles;
                min = min.min(cycles);
            }
            None => backwards += 1,
        }
    }
    Set {
        n,
        sum,
        min: if n == 0 { 0 } else { min },
        backwards,
        ..Set::default()
    }
}

/// Returns the shortest duration that exceeds mean + threshold. Durations are whole, so rounding
/// down is exact.
pub fn shortest_delay(set: &Set<'_>, threshold: u64) -> u64 {
    let mean = set.sum.checked_div(set.n).unwrap_or(0);
    mean.saturating_add(threshold).saturating_add(1)
}

/// Lists the samples that reach the set's threshold, as far as there is room, and counts them; adds
/// all samples to the envelope.
///
/// The envelope is passed by value: behind a reference, its current position would be loaded and
/// stored for every sample.
pub fn delays<'a, 'b>(
    stamps: &[Stamp],
    list: &'a mut [Gap],
    mut envelope: Envelope<'b>,
    set: &mut Set<'_>,
) -> (&'a [Gap], Envelope<'b>) {
    let threshold = set.threshold;
    let mut kept = 0;
    for (index, stamp) in (0_u64..).zip(stamps) {
        let Some(length) = duration(*stamp) else {
            continue;
        };
        let start = stamp.start;
        envelope.add(start, length);
        if length >= threshold {
            set.seen += 1;
            if let Some(slot) = list.get_mut(kept) {
                *slot = Gap {
                    index,
                    start,
                    length,
                };
                kept += 1;
            } else {
                set.unkept_max = set.unkept_max.max(length);
                set.unkept_sum += length;
            }
        }
    }
    set.kept = kept as u64;
    (&list[..kept], envelope)
}

/// Counts the samples per value: (value, count), ascending, without zeros. Overwrites the stamps.
///
/// Values just above the shortest are counted in `table`, which must be zeroed and hold [`TABLE`]
/// entries; longer samples are sorted. There must be fewer than 2^32 stamps.
pub fn count(
    stamps: &mut [Stamp],
    shortest: u64,
    table: &mut [u32],
) -> impl Iterator<Item = (u64, u64)> {
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
    let near = (shortest..).zip(&*table).filter(|(_, count)| **count > 0);
    let near = near.map(|(value, count)| (value, u64::from(*count)));
    near.chain(runs(rest.iter().map(|stamp| stamp.end)))
}

/// Moves the gaps during which the timer ran forwards to the front, in order, and returns their
/// number. A step backwards appears as a gap of more than 2^63 ticks.
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

/// Returns the duration of a sample, or None if it runs backwards.
pub fn duration(stamp: Stamp) -> Option<u64> {
    let cycles = stamp.cycles();
    (cycles >> 63 == 0).then_some(cycles)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::envelope::Bin;

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
        let shortest = sums(&stamps).min;
        count(&mut stamps, shortest, &mut vec![0; TABLE]).collect()
    }

    /// Folds samples with room for `capacity` delays.
    fn folded(
        samples: &[Stamp],
        threshold: u64,
        room: usize,
        bins: usize,
    ) -> (Set<'static>, Vec<Gap>, u64, Vec<Bin>) {
        let mut set = sums(samples);
        set.threshold = shortest_delay(&set, threshold);
        let (first, last) = (samples[0].start, samples[samples.len() - 1].end);
        let mut bins = vec![Bin::default(); bins];
        let envelope = Envelope::new(first, last.wrapping_sub(first), &mut bins);
        let mut list = vec![Gap::default(); room];
        let (list, Envelope { width, .. }) = delays(samples, &mut list, envelope, &mut set);
        (set, list.to_vec(), width, bins)
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
        let list_of = |threshold| folded(&samples, threshold, 10, 4).1;
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
        let (set, list, ..) = folded(&samples, 50, 10, 1);
        assert_eq!((set.seen, list[0].length), (1, 151));
    }

    #[test]
    fn a_full_list_is_counted_and_its_longest_kept() {
        let samples = stamps(0, &[10, 500, 10, 700, 10, 600, 10, 10, 10, 10, 10, 10], 0);
        let (set, ..) = folded(&samples, 100, 1, 2);
        let unkept = (set.unkept_max, set.unkept_sum);
        assert_eq!((set.seen, set.kept, unkept), (3, 1, (700, 1_300)));
    }

    #[test]
    fn the_envelope_loses_no_sample_and_shows_every_longest() {
        let durations: Vec<u64> = (0..1_000).map(|i| 10 + i * 7 % 13).collect();
        let samples = stamps(u64::MAX - 5_000, &durations, 3);
        for n in [1, 2, 7, 1_000, 5_000] {
            let (set, _, width, bins) = folded(&samples, 1_000, 0, n);
            let filled = bins.iter().filter(|bin| bin.count > 0);
            assert_eq!(bins.iter().map(|b| b.count).sum::<u64>(), 1_000);
            assert_eq!(bins.iter().map(|b| b.sum).sum::<u64>(), set.sum);
            assert_eq!(filled.clone().map(|b| b.longest).max(), Some(22));
            assert_eq!(filled.map(|b| b.shortest).min(), Some(10));
            for (stamp, cycles) in samples.iter().zip(&durations) {
                let bin = stamp.start.wrapping_sub(samples[0].start) / width;
                let bin = &bins[bin as usize];
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
        let set = sums(&samples);
        assert_eq!((set.n, set.sum, set.backwards), (2, 20, 1));
        let counts = count(&mut samples, set.min, &mut vec![0; TABLE]).collect::<Vec<_>>();
        assert_eq!(counts, [(10, 2)]);
    }
}

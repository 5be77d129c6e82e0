//! `gap`: spins on the timer and records every interruption.
//!
//! One iteration is one bare `rdtsc` and the difference from the previous one. Differences at or
//! above the threshold are recorded with index, time stamp and length; shorter ones only contribute
//! to their number and the sum of squares, in registers, so that mean and standard deviation of all
//! iterations stay exact. Nothing else runs, so a long difference means that the CPU was taken
//! away.
//!
//! Counting short differences per value was tried: the load for an increment in memory delays the
//! next `rdtsc`, and the loop took 1.5 times as long (Zen 4). Arithmetic in registers is hidden
//! behind `rdtsc`, so the loop costs no more than unrolled bare `rdtsc`.
//!
//! # When the method lies
//!
//! Interruptions shorter than the timer's step or than one iteration are invisible. Recording a gap
//! lengthens the next difference by a few cycles. Memory is hardly used: noise from shared caches
//! or memory bandwidth does not show here, but does in `copy`.

use crate::noise::{Code, Kind, Workload};
use crate::timing::bare_rdtsc;

/// The descriptor.
pub const WORKLOAD: Workload = Workload {
    code: Code {
        id: "gap",
        size: None,
        kind: Kind::Clock(tare_gap),
    },
    symbols: &["tare_gap"],
    // Less than a second.
    repetitions: 80_000_000,
    ns: |_| 9.0,
    keywords: "spins on the timer",
    does: "only reads the clock: whatever takes the CPU away shows as a gap between two readings",
    method: "reads the timer again and again on one pinned CPU and does nothing else. A difference of two reads that \
             reaches the threshold is a gap: something took the CPU. All others are quiet iterations. Time lost is the sum \
             over all gaps of length less a quiet iteration. Every gap is listed with its moment; nothing is sampled.",
    steps: "timer reads",
    is_linear: false,
    uses_memory: false,
};

/// An interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Gap {
    /// Number of the iteration that ended it.
    pub index: u64,
    /// TSC at its start.
    pub start: u64,
    /// Difference between the two timer reads around it, in TSC ticks.
    pub length: u64,
}

/// The totals of a spin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Totals {
    /// TSC of the first read.
    pub first: u64,
    /// TSC of the last read.
    pub last: u64,
    /// Sum of the squares of the differences below the threshold, in TSC ticks squared.
    pub quiet_squares: u64,
    /// Gaps at or above the threshold.
    pub seen: u64,
    /// Sum of the lengths of those that did not fit into the buffer, in TSC ticks.
    pub unkept_cycles: u64,
    /// Longest of those, in TSC ticks.
    pub unkept_longest: u64,
}

/// The output buffer of [`tare_gap`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Buffers {
    /// Room for `capacity` gaps.
    pub gaps: *mut Gap,
    /// How many gaps fit.
    pub capacity: u64,
}

/// A source of time stamps, so that tests can replay a recorded trace through the measured loop.
pub trait Timer {
    /// Returns the next time stamp.
    fn read(&mut self) -> u64;
}

/// The TSC.
#[derive(Clone, Copy, Debug)]
pub struct Tsc;

impl Timer for Tsc {
    #[inline(always)]
    fn read(&mut self) -> u64 {
        bare_rdtsc()
    }
}

/// Spins for `iterations` timer reads and records every difference of at least `threshold` ticks.
///
/// # Safety
///
/// `buffers.gaps` must be valid for writing `buffers.capacity` gaps, `totals` and `buffers` must
/// point to valid values.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn tare_gap(
    iterations: u64,
    threshold: u64,
    buffers: *const Buffers,
    totals: *mut Totals,
) {
    // SAFETY: passed on to the caller.
    unsafe { spin(&mut Tsc, 0, iterations, threshold, buffers, totals) }
}

/// Runs the measured loop on any timer, numbering its iterations from `first_index`.
///
/// # Safety
///
/// As for [`tare_gap`].
#[inline(always)]
pub unsafe fn spin(
    timer: &mut impl Timer,
    first_index: u64,
    iterations: u64,
    threshold: u64,
    buffers: *const Buffers,
    totals: *mut Totals,
) {
    // SAFETY: the caller guarantees that the pointer is valid.
    let Buffers { gaps, capacity } = unsafe { *buffers };
    let mut sums = Totals::default();
    let mut previous = timer.read();
    sums.first = previous;
    let mut index = first_index;
    let mut left = iterations;
    while left != 0 {
        let now = timer.read();
        let length = now.wrapping_sub(previous);
        if length < threshold {
            sums.quiet_squares = sums.quiet_squares.wrapping_add(length.wrapping_mul(length));
        } else if sums.seen < capacity {
            // SAFETY: fewer than `capacity` gaps have been written.
            unsafe {
                *gaps.add(sums.seen as usize) = Gap {
                    index,
                    start: previous,
                    length,
                };
            }
            sums.seen += 1;
        } else {
            sums.seen += 1;
            sums.unkept_cycles = sums.unkept_cycles.wrapping_add(length);
            if length > sums.unkept_longest {
                sums.unkept_longest = length;
            }
        }
        previous = now;
        index = index.wrapping_add(1);
        left -= 1;
    }
    sums.last = previous;
    // SAFETY: the caller guarantees that the pointer is valid.
    unsafe { *totals = sums };
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// A timer that replays differences, starting at any time stamp.
    struct Replay<'a> {
        now: u64,
        lengths: &'a [u64],
        next: usize,
    }

    impl Timer for Replay<'_> {
        fn read(&mut self) -> u64 {
            if self.next > 0 {
                self.now = self.now.wrapping_add(self.lengths[self.next - 1]);
            }
            self.next += 1;
            self.now
        }
    }

    struct Seen {
        gaps: Vec<Gap>,
        totals: Totals,
    }

    fn replay(start: u64, index: u64, lengths: &[u64], threshold: u64, capacity: usize) -> Seen {
        let mut gaps = vec![Gap::default(); capacity];
        let mut totals = Totals::default();
        let buffers = Buffers {
            gaps: gaps.as_mut_ptr(),
            capacity: capacity as u64,
        };
        let mut timer = Replay {
            now: start,
            lengths,
            next: 0,
        };
        let iterations = lengths.len() as u64;
        // SAFETY: the vectors have the lengths of the buffers.
        unsafe {
            spin(
                &mut timer,
                index,
                iterations,
                threshold,
                &raw const buffers,
                &raw mut totals,
            );
        };
        gaps.truncate((totals.seen as usize).min(capacity));
        Seen { gaps, totals }
    }

    #[test]
    fn regular_gaps_are_found_with_index_stamp_and_length() {
        let lengths: Vec<u64> = (1..=1_000_u64)
            .map(|i| if i % 100 == 0 { 5_000 } else { 26 })
            .collect();
        let seen = replay(7, 0, &lengths, 1_000, 64);
        assert_eq!(seen.totals.seen, 10);
        assert_eq!(seen.totals.quiet_squares, 990 * 26 * 26);
        for (k, gap) in (0_u64..).zip(&seen.gaps) {
            let quiet = 99 * (k + 1) * 26;
            assert_eq!(gap.index, 100 * (k + 1) - 1);
            assert_eq!(gap.start, 7 + quiet + k * 5_000);
            assert_eq!(gap.length, 5_000);
        }
        assert_eq!(seen.totals.last - seen.totals.first, 990 * 26 + 50_000);
    }

    #[test]
    fn a_burst_that_overflows_the_buffer_is_counted_summed_and_its_longest_kept() {
        let mut lengths = vec![26; 100];
        for (k, length) in lengths[40..50].iter_mut().enumerate() {
            *length = 2_000 + k as u64;
        }
        let seen = replay(0, 0, &lengths, 1_000, 4);
        assert_eq!(seen.totals.seen, 10);
        assert_eq!(seen.gaps.len(), 4);
        assert_eq!(seen.gaps[3].length, 2_003);
        assert_eq!(seen.totals.unkept_cycles, (2_004..=2_009).sum());
        assert_eq!(seen.totals.unkept_longest, 2_009);
        assert_eq!(seen.totals.quiet_squares, 90 * 26 * 26);
    }

    #[test]
    fn one_huge_gap_across_the_wrap_of_timer_and_index_is_one_gap() {
        let huge = 1 << 40;
        let start = u64::MAX - 100;
        let index = u64::from(u32::MAX) - 1;
        let seen = replay(start, index, &[26, 26, huge, 26], 1_000, 4);
        assert_eq!(
            seen.gaps,
            [Gap {
                index: index + 2,
                start: start + 52,
                length: huge,
            }]
        );
        assert_eq!(seen.totals.last.wrapping_sub(start), huge + 78);
    }

    #[test]
    fn a_gap_of_exactly_the_threshold_is_recorded() {
        let seen = replay(0, 0, &[999, 1_000], 1_000, 4);
        assert_eq!(seen.totals.quiet_squares, 999 * 999);
        assert_eq!(seen.gaps[0].length, 1_000);
    }

    #[test]
    fn the_measured_symbol_accounts_for_every_tick() {
        let mut gaps = vec![Gap::default(); 1_000_000];
        let mut totals = Totals::default();
        let buffers = Buffers {
            gaps: gaps.as_mut_ptr(),
            capacity: 1_000_000,
        };
        // SAFETY: the vector has the length of the buffer. With a threshold of 1 every difference
        // but 0 is a gap.
        unsafe { tare_gap(1_000_000, 1, &raw const buffers, &raw mut totals) };
        let kept = &gaps[..totals.seen as usize];
        let sum: u64 = kept.iter().map(|gap| gap.length).sum();
        assert_eq!(sum, totals.last - totals.first);
        assert!(kept.windows(2).all(|w| w[0].index < w[1].index));
        assert!(kept.windows(2).all(|w| w[0].start < w[1].start));
    }
}

//! An envelope over time: each of many equal bins summarises its samples.
//!
//! However many samples there are, every maximum keeps its place in time.

use crate::arena::Zeroed;

/// A summary of the samples that start within one bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Bin {
    /// Number of samples.
    pub count: u64,
    /// Sum of their durations.
    pub sum: u64,
    /// Shortest duration.
    pub shortest: u64,
    /// Longest duration.
    pub longest: u64,
}

// SAFETY: a `repr(C)` struct of plain integers.
unsafe impl Zeroed for Bin {}

/// An envelope over time, in bins of equal width. Samples are added in order of time, without a
/// division.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// Width of a bin, at least 1.
    pub width: u64,
    /// The bins.
    pub bins: &'a mut [Bin],
    pub first: u64,
    current: usize,
    /// End of the current bin, counted from the first stamp.
    current_end: u64,
}

impl<'a> Envelope<'a> {
    /// Divides `wall` ticks from `first` into equal bins; later samples belong to the last one.
    pub(crate) fn new(first: u64, wall: u64, bins: &'a mut [Bin]) -> Self {
        let width = wall.div_ceil(bins.len() as u64).max(1);
        Self {
            first,
            width,
            bins,
            current: 0,
            current_end: width,
        }
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, start: u64, cycles: u64) {
        let offset = start.wrapping_sub(self.first);
        if offset >= self.current_end && offset >> 63 == 0 {
            let last = self.bins.len() - 1;
            self.current = last.min(usize::try_from(offset / self.width).unwrap_or(last));
            self.current_end = if self.current == last {
                u64::MAX
            } else {
                (self.current as u64 + 1) * self.width
            };
        }
        let bin = &mut self.bins[self.current];
        bin.shortest = if bin.count == 0 {
            cycles
        } else {
            bin.shortest.min(cycles)
        };
        bin.count += 1;
        bin.sum += cycles;
        bin.longest = bin.longest.max(cycles);
    }

    /// Returns the longest duration.
    pub(crate) fn longest(&self) -> u64 {
        self.bins.iter().map(|bin| bin.longest).max().unwrap_or(0)
    }

    /// Empties all bins and starts over.
    pub(crate) fn clear(&mut self) {
        self.bins.fill(Bin::default());
        self.current = 0;
        self.current_end = self.width;
    }
}

//! Bins for histograms, without the comb that a timer's step draws.
//!
//! A timer that advances in steps yields only some values. Bins of a width that is not a whole
//! number of steps hold now more, now fewer of them, and the picture shows teeth that are not in the
//! data. Given the step, every bin here holds a whole number of steps and its edges lie halfway
//! between them; without it, whole numbers of cycles.

use std::ops::RangeInclusive;

use crate::counts::Counts;
use crate::error::StatsError;
use crate::tally::Tally;

/// The largest number of bins that can be asked for.
const MAX_BINS: usize = 100_000;

/// The samples in [`low`, `high`).
///
/// [`low`]: Self::low
/// [`high`]: Self::high
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Lower edge, which is inside, in the unit of the samples.
    pub low: f64,
    /// Upper edge, which is outside.
    pub high: f64,
    /// Number and sum of the samples.
    pub tally: Tally,
}

/// The bins of a histogram, rising, each beginning where the one before it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// The bins.
    pub bins: Vec<Bin>,
}

/// Divides a range into bins of equal width.
///
/// The width is 1, 2 or 5 times a power of ten cycles, or of timer steps if `timer_step_cycles` is
/// given, and the smallest such that about `target` bins cover the range. Edges are multiples of the
/// width (with a step, less half a step), so histograms with the same width can be laid over each
/// other.
///
/// # Errors
///
/// [`StatsError::Bins`] for an empty range or an impossible number of bins;
/// [`StatsError::Number`] for an impossible step.
pub fn linear_bins(
    counts: &Counts,
    range: RangeInclusive<u64>,
    target: usize,
    timer_step_cycles: Option<f64>,
) -> Result<Bins, StatsError> {
    check(&range, target)?;
    let lattice = Lattice::new(timer_step_cycles)?;
    let (first, last) = (lattice.point(*range.start()), lattice.point(*range.end()));
    let width = nice_width(last - first + 1, target as u128);
    let edges: Vec<f64> = (first / width..=last / width + 1)
        .map(|k| lattice.edge(k * width))
        .collect();
    Ok(fill(counts, &edges))
}

/// Divides a range into bins of about equal ratio, `per_decade` for each factor of ten.
///
/// Where a bin would be narrower than one cycle, or one timer step if that is given, it is one wide, and
/// no bin is narrower than the one before it, in steps: divide by the width to compare their heights.
/// Zero has no place on a logarithmic axis, and is in no bin.
///
/// # Errors
///
/// [`StatsError::Bins`] for an empty range or an impossible number of bins;
/// [`StatsError::Number`] for an impossible step.
pub fn log_bins(
    counts: &Counts,
    range: RangeInclusive<u64>,
    per_decade: usize,
    timer_step_cycles: Option<f64>,
) -> Result<Bins, StatsError> {
    // The widest range has 20 decades.
    check(&range, per_decade.saturating_mul(20))?;
    let lattice = Lattice::new(timer_step_cycles)?;
    let growth = 10_f64.powf(1.0 / per_decade as f64) - 1.0;
    let last = lattice.point(*range.end()).max(1);
    let mut next = lattice.point(*range.start()).max(1);
    let mut width = 1;
    let mut edges = vec![lattice.edge(next)];
    while next <= last {
        width = width.max((next as f64 * growth) as u128);
        next += width;
        edges.push(lattice.edge(next));
    }
    Ok(fill(counts, &edges))
}

/// The set of values that samples can take: whole cycles, or multiples of the timer's step.
struct Lattice {
    step: Option<f64>,
}

impl Lattice {
    fn new(step: Option<f64>) -> Result<Self, StatsError> {
        match step {
            // A step of less than two cycles leaves out no value.
            Some(step) if step.is_finite() && step > 0.0 => Ok(Self {
                step: (step >= 2.0).then_some(step),
            }),
            Some(given) => Err(StatsError::Number {
                what: "the timer's step",
                given,
                allowed: "a positive number of cycles",
            }),
            None => Ok(Self { step: None }),
        }
    }

    /// Returns the number of the lattice point nearest to a value.
    fn point(&self, value: u64) -> u128 {
        self.step.map_or(u128::from(value), |step| {
            (value as f64 / step).round() as u128
        })
    }

    /// Returns the edge just below a lattice point.
    fn edge(&self, point: u128) -> f64 {
        self.step
            .map_or(point as f64, |step| (point as f64 - 0.5) * step)
    }
}

fn check(range: &RangeInclusive<u64>, bins: usize) -> Result<(), StatsError> {
    let (&low, &high) = (range.start(), range.end());
    if low > high {
        return Err(StatsError::Bins {
            low,
            high,
            problem: "the range is empty; swap its ends",
        });
    }
    if !(1..=MAX_BINS).contains(&bins) {
        let problem = "ask for 1 to 100,000 bins in all";
        return Err(StatsError::Bins { low, high, problem });
    }
    Ok(())
}

/// Returns the smallest of 1, 2, 5, 10, … of which `target` cover `length`.
fn nice_width(length: u128, target: u128) -> u128 {
    let least = length.div_ceil(target);
    let mut power = 1;
    loop {
        // Ends: `least` is at most 2^64.
        if let Some(width) = [1, 2, 5]
            .map(|m| m * power)
            .into_iter()
            .find(|&w| w >= least)
        {
            return width;
        }
        power *= 10;
    }
}

/// Sorts samples into bins between rising edges.
fn fill(counts: &Counts, edges: &[f64]) -> Bins {
    let pairs = counts.pairs();
    let below = |edge: f64| pairs.partition_point(|&(value, _)| (value as f64) < edge);
    let bin = |edges: &[f64]| {
        let (low, high) = (edges[0], edges[1]);
        let inside = pairs[below(low)..below(high)].iter().copied();
        Bin {
            low,
            high,
            tally: inside.collect(),
        }
    };
    Bins {
        bins: edges.windows(2).map(bin).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heights(bins: &Bins) -> Vec<u64> {
        bins.bins.iter().map(|bin| bin.tally.count).collect()
    }

    #[test]
    fn linear_bins_have_round_edges() {
        let counts =
            Counts::from_pairs([(903, 1), (919, 2), (920, 3), (999, 4), (5_000, 5), (7, 6)])
                .unwrap();
        let made = linear_bins(&counts, 903..=999, 10, None).unwrap();
        assert_eq!((made.bins[0].low, made.bins[0].high), (900.0, 920.0 - 10.0));
        assert_eq!(made.bins.len(), 10);
        assert_eq!(heights(&made), [1, 2, 3, 0, 0, 0, 0, 0, 0, 4]);
    }

    #[test]
    fn a_step_that_is_not_whole_draws_no_comb() {
        // A timer of 100 MHz read by a counter of 2,596 MHz: multiples of 25.96, rounded.
        let step = 25.96;
        let samples = (0..2_000_u32).map(|k| ((f64::from(k) * step).round() as u64, 1));
        let counts = Counts::from_pairs(samples).unwrap();
        for target in [7, 50, 333, 2_000] {
            let made = linear_bins(&counts, 0..=51_894, target, Some(step)).unwrap();
            let heights = heights(&made);
            let (last, full) = heights.split_last().unwrap();
            assert!(
                full.iter().all(|&n| n == full[0]) && *last <= full[0],
                "{heights:?}"
            );
            assert!(made.bins[0].high - made.bins[0].low >= step);
        }
        // The same bins without the step do have teeth.
        let comb = heights(&linear_bins(&counts, 0..=51_894, 2_000, None).unwrap());
        assert!(
            comb[..1_000].contains(&1) && comb[..1_000].contains(&2),
            "{comb:?}"
        );
    }

    #[test]
    fn logarithmic_bins_never_get_narrower() {
        let counts = Counts::from_pairs((0..100_000).map(|value| (value, 1))).unwrap();
        for step in [None, Some(25.96)] {
            let made = log_bins(&counts, 1..=99_999, 20, step).unwrap();
            let width = |bin: &Bin| bin.high - bin.low;
            assert!(
                made.bins
                    .windows(2)
                    .all(|pair| width(&pair[1]) > width(&pair[0]) - 1e-6)
            );
            // All but those on the near side of the first edge.
            let out = if step.is_some() { 13 } else { 1 };
            assert_eq!(heights(&made).iter().sum::<u64>(), 100_000 - out);
        }
        let made = log_bins(&counts, 1..=99_999, 20, None).unwrap();
        assert_eq!((made.bins[0].low, made.bins[0].high), (1.0, 2.0));
        let last = made.bins[made.bins.len() - 2];
        assert!((last.high / last.low).log10() < 1.01 / 20.0);
    }

    #[test]
    fn a_single_value_and_the_widest_range_work() {
        let counts = Counts::from_pairs([(880, 1_000_000)]).unwrap();
        assert_eq!(
            heights(&linear_bins(&counts, 880..=880, 100, None).unwrap()),
            [1_000_000]
        );
        assert_eq!(
            heights(&log_bins(&counts, 880..=880, 1, None).unwrap()),
            [1_000_000]
        );
        let extremes = Counts::from_pairs([(0, 1), (u64::MAX, 2)]).unwrap();
        for step in [None, Some(25.96)] {
            let linear = linear_bins(&extremes, 0..=u64::MAX, 1_000, step).unwrap();
            assert_eq!(heights(&linear).iter().sum::<u64>(), 3);
            let log = log_bins(&extremes, 0..=u64::MAX, 50, step).unwrap();
            assert_eq!(heights(&log).iter().sum::<u64>(), 2);
        }
        assert_eq!(
            heights(&linear_bins(&Counts::default(), 0..=0, 1, None).unwrap()),
            [0]
        );
    }

    #[test]
    fn impossible_requests_are_refused() {
        let nothing = Counts::default();
        #[expect(clippy::reversed_empty_ranges)]
        let empty = 2..=1;
        assert!(linear_bins(&nothing, empty.clone(), 10, None).is_err());
        assert!(log_bins(&nothing, empty, 10, None).is_err());
        for bins in [0, MAX_BINS + 1, usize::MAX] {
            assert!(linear_bins(&nothing, 0..=1, bins, None).is_err());
            assert!(log_bins(&nothing, 0..=1, bins, None).is_err());
        }
        for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(linear_bins(&nothing, 0..=1, 10, Some(step)).is_err());
        }
    }
}

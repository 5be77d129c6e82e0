//! What one cell of `gap` says: a spin on the timer, and the interruptions that it saw.
//!
//! With n iterations, wall time W, and gaps of length g₁ … g_m:
//!
//! ```text
//! quiet iteration q = (W − Σg) / (n − m)
//! time lost         = Σ(g − q)
//! ```
//!
//! Every gap holds one iteration that would have happened anyway, hence − q. Classes use the delay
//! of kot-2019 instead, length − mean iteration W/n, so that its columns mean the same for every
//! workload; with 20 ns per iteration the two differ by what the timer cannot resolve.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{SetHead, SetSamples};
use tare_stats::{
    Bin, ClassTable, Counts, DelayClasses, Delays, Gap, Level, Moments, Period, PowerSums,
    Quantile, Recording, Spin, StatsError, Trace, Unkept, log_bins, normal_mean, share_over_runs,
};

use super::Batch;
use super::figures::{ClassFigure, DelayList, Interval, QuantileFigure, ShareFigure, Time};
use super::timed::BLOCKS;

/// Is the number of gaps among which a clock is looked for. A clock that does not show among so many
/// is none that matters, and the search takes a microsecond or two for each.
const PERIOD_GAPS: usize = 50_000;

/// Holds the figures of one cell of `gap`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GapFigures {
    /// Timer reads.
    pub reads: u64,
    /// Time from the first read to the last.
    pub wall: Time,
    /// Mean iteration, gaps included.
    pub mean: Time,
    /// Standard deviation of the population of all iterations, gaps included; null if gaps are
    /// missing in the list.
    pub sd: Option<Time>,
    /// Mean of the iterations below the threshold.
    pub quiet: Time,
    /// Mean iteration by the normal approximation over single iterations at 90 %, as kot-2019
    /// computed it.
    pub study_interval: Option<Interval>,
    /// Least length of a gap.
    pub threshold: Time,
    /// Number of gaps, listed or not.
    pub gaps: u64,
    /// Gaps per second; null if the TSC's frequency is not known.
    pub gaps_per_second: Option<f64>,
    /// Time that gaps took: the sum of (length − quiet iteration).
    pub lost: Time,
    /// That time as a share of the wall time.
    pub share_lost: f64,
    /// The share over blocks of this run at 95 %; null if gaps are missing in the list, or no block differs.
    pub share_block_interval: Option<Interval>,
    /// Median length of the listed gaps.
    pub median: Option<Time>,
    /// 99 % of the listed gaps are at most this long.
    pub p99: QuantileFigure,
    /// 99.9 % are.
    pub p99_9: QuantileFigure,
    /// 99.99 % are.
    pub p99_99: QuantileFigure,
    /// The longest gap, listed or not; null without gaps.
    pub longest: Option<Time>,
    /// The strongest clock among the first 50,000 gaps; null if chance can explain all regularity.
    pub period: Option<PeriodFigure>,
    /// Delays by class; delay = length − mean iteration of this run.
    pub classes: Vec<ClassFigure>,
    /// Share of the time in delays above 400 and above 2,000 cycles.
    pub shares: Vec<ShareFigure>,
    /// How far the list of gaps goes.
    pub delays: DelayList,
}

/// Describes a clock that was found among the gaps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeriodFigure {
    /// Time from tick to tick.
    pub period: Time,
    /// Share of the gaps that come at its ticks.
    pub share_of_gaps: f64,
    /// Share of its ticks at which a gap came.
    pub share_of_ticks: f64,
    /// Mean length of those gaps.
    pub mean_length: Time,
}

/// Holds figures together with what adds up over runs and what pictures need.
pub(super) struct Gaps {
    pub figures: GapFigures,
    pub counts: Counts,
    pub classes: ClassTable,
    pub inter_arrivals: InterArrivals,
}

/// Counts times from gap to gap in bins of equal ratio, the same for all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterArrivals {
    /// The bins, rising; empty without gaps.
    pub bins: Vec<Bin>,
}

impl InterArrivals {
    /// Is the number of bins for each factor of ten.
    const PER_DECADE: usize = 40;
    /// Longer times are not counted: half an hour at 5 GHz.
    const LONGEST: u64 = 10_000_000_000_000;

    fn of(trace: &Trace) -> Result<Self, StatsError> {
        let times = Counts::from_samples(trace.inter_arrivals());
        if times.is_empty() {
            return Ok(Self::default());
        }
        let bins = log_bins(&times, 1..=Self::LONGEST, Self::PER_DECADE, None)?;
        Ok(Self { bins: bins.bins })
    }

    /// Adds those of another run.
    pub(super) fn add(&mut self, other: &Self) {
        if self.bins.is_empty() {
            self.bins.clone_from(&other.bins);
            return;
        }
        for (bin, added) in self.bins.iter_mut().zip(&other.bins) {
            bin.tally.count += added.tally.count;
            bin.tally.sum += added.tally.sum;
        }
    }
}

/// Derives the figures of one cell; `Ok(None)` if no iteration was timed.
pub(super) fn analyse(
    batch: &Batch<'_>,
    samples: &SetSamples,
    hz: Option<f64>,
) -> Result<Option<Gaps>, StatsError> {
    let head = batch.head;
    let wall = head.length();
    let listed: u64 = samples.events.iter().map(|gap| gap.value).sum();
    let in_gaps = listed.saturating_add(head.unkept_sum);
    let quiet_reads = head.n.saturating_sub(head.seen);
    let quiet_cycles = wall.saturating_sub(in_gaps);
    let quiet = if quiet_reads == 0 {
        0.0
    } else {
        quiet_cycles as f64 / quiet_reads as f64
    };
    if head.n == 0 || wall == 0 {
        return Ok(None);
    }
    let trace = trace(head, samples, wall, quiet)?;
    let counts = trace.lengths();
    let mean = wall as f64 / head.n as f64;
    let recording = Recording {
        base_cycles: mean,
        smallest_recorded_cycles: batch.threshold,
        unkept: head.seen.saturating_sub(samples.events.len() as u64),
        execution_cycles: u128::from(wall),
    };
    let delays = Delays::of_recording(&counts, recording)?;
    let classes = delays.classify(&DelayClasses::kot_2019());
    let complete = recording.unkept == 0;
    let sums = PowerSums::new(
        quiet_reads,
        u128::from(quiet_cycles),
        u128::from(head.squares_below.unwrap_or_default()),
    );
    let moments = match (sums, head.squares_below) {
        (Ok(sums), Some(_)) if complete => with_gaps(sums, &counts)?.moments(),
        _ => None,
    };
    let time = |cycles: f64| Time::new(cycles, hz);
    let quantile = |q| QuantileFigure::of(counts.supported_quantile(q), hz);
    let figures = GapFigures {
        reads: head.n,
        wall: time(wall as f64),
        mean: time(mean),
        sd: moments.map(|moments| time(moments.population_sd)),
        quiet: time(quiet),
        study_interval: moments.and_then(study_interval),
        threshold: time(batch.threshold as f64),
        gaps: trace.count(),
        gaps_per_second: hz.and_then(|hz| trace.gaps_per_second(hz).ok()),
        lost: time(trace.lost_cycles()),
        share_lost: trace.share_lost(),
        share_block_interval: if complete {
            block_interval(head, samples, wall, quiet)
        } else {
            None
        },
        median: counts.median().map(|cycles| time(cycles as f64)),
        p99: quantile(Quantile::P99),
        p99_9: quantile(Quantile::P99_9),
        p99_99: quantile(Quantile::P99_99),
        longest: trace.longest_cycles().map(|cycles| time(cycles as f64)),
        period: period(&trace, hz)?,
        classes: ClassFigure::all(&classes, hz),
        shares: ShareFigure::all(&delays),
        delays: DelayList::of(batch),
    };
    Ok(Some(Gaps {
        figures,
        inter_arrivals: InterArrivals::of(&trace)?,
        classes,
        counts,
    }))
}

impl PeriodFigure {
    fn of(period: &Period, hz: Option<f64>) -> Self {
        Self {
            period: Time::new(period.period_cycles, hz),
            share_of_gaps: period.share,
            share_of_ticks: period.present,
            mean_length: Time::new(period.mean_length_cycles, hz),
        }
    }
}

/// Looks for a clock among the first [`PERIOD_GAPS`] gaps.
fn period(trace: &Trace, hz: Option<f64>) -> Result<Option<PeriodFigure>, StatsError> {
    let found = match trace.gaps().get(..PERIOD_GAPS) {
        Some(first) => Trace::new(*trace.spin(), first.to_vec())?.period(),
        None => trace.period(),
    };
    Ok(found.map(|period| PeriodFigure::of(&period, hz)))
}

fn trace(head: &SetHead, samples: &SetSamples, wall: u64, quiet: f64) -> Result<Trace, StatsError> {
    let spin = Spin {
        iterations: head.n,
        wall_cycles: wall,
        typical_cycles: quiet,
        unkept: Unkept {
            count: head.seen.saturating_sub(samples.events.len() as u64),
            cycles: head.unkept_sum,
            longest_cycles: head.unkept_max,
        },
    };
    let gaps = samples
        .events
        .iter()
        .map(|gap| Gap {
            index: gap.index,
            start: gap.at,
            length: gap.value,
        })
        .collect();
    Trace::new(spin, gaps)
}

fn with_gaps(quiet: PowerSums, gaps: &Counts) -> Result<PowerSums, StatsError> {
    gaps.iter()
        .try_fold(quiet, |sums, (length, count)| sums.with(length, count))
}

fn study_interval(moments: Moments) -> Option<Interval> {
    let interval = normal_mean(moments, Level::P90).ok()?;
    Some(Interval::of(&interval))
}

/// Returns the interval of the share lost over blocks of equal time. A gap across the border of two
/// blocks counts in both, each for its part.
fn block_interval(head: &SetHead, samples: &SetSamples, wall: u64, quiet: f64) -> Option<Interval> {
    let width = wall as f64 / BLOCKS as f64;
    let mut lost = [0.0; BLOCKS];
    for gap in &samples.events {
        let start = gap.at.wrapping_sub(head.first) as f64;
        let part_lost = 1.0 - quiet / (gap.value as f64).max(1.0);
        spread(&mut lost, width, start, gap.value as f64, part_lost);
    }
    let parts = lost.map(|lost| (lost, width));
    let over = share_over_runs(&parts, Level::P95).ok()?;
    Some(Interval::of(&over.interval.ok()?).over_blocks())
}

/// Adds `length` times `weight` to the slices of time that a stretch covers.
fn spread(slices: &mut [f64], width: f64, start: f64, length: f64, weight: f64) {
    let end = start + length;
    let mut slice = (start / width) as usize;
    let mut from = start;
    while slice < slices.len() && from < end {
        let to = end.min((slice + 1) as f64 * width);
        slices[slice] += (to - from).max(0.0) * weight;
        from = to;
        slice += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_spread_over_the_slices_that_it_covers() {
        let mut slices = [0.0; 4];
        spread(&mut slices, 10.0, 5.0, 20.0, 0.5);
        assert_eq!(slices, [2.5, 5.0, 2.5, 0.0]);
        spread(&mut slices, 10.0, 39.0, 20.0, 1.0);
        assert_eq!(slices, [2.5, 5.0, 2.5, 1.0]);
    }
}

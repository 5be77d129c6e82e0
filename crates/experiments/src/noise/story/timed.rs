//! What one cell of a timed workload says: `prime` or `copy`.
//!
//! Every repetition was timed by itself, and the counts per value hold all of them, so every figure
//! here is exact; nothing was sampled or left out.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{Calibration, CellPlan, SetSamples};
use tare_stats::{
    ClassTable, Counts, DelayClasses, Delays, Kind, Level, OverRuns, Quantile, StatsError, Tally,
    blocks, normal_mean, over_runs, share_over_runs,
};

use super::Batch;
use super::figures::{
    ClassFigure, DelayList, Interval, QuantileFigure, SHARE_LIMITS, ShareFigure, Time,
};

/// Is the number of blocks into which a single run is divided for an interval.
///
/// Twenty leave 19 degrees of freedom, where Student's t is within 7 % of the normal distribution's,
/// and keep each block as long as can be.
pub const BLOCKS: usize = 20;

/// Holds the figures of one cell of `prime` or `copy`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimedFigures {
    /// Timed repetitions, without those that ran backwards.
    pub repetitions: u64,
    /// Elementary steps in one repetition: divisions of `prime`, elements of `copy`.
    pub work: u64,
    /// What the work yielded: for `prime` the number of primes.
    pub result: u64,
    /// Durations as they were read.
    pub raw: Durations,
    /// The same less `region`, and 0 where that is longer.
    pub net: Durations,
    /// The least duration that an empty region between the same stamps reads as.
    pub region: Time,
    /// Mean by the normal approximation over single samples at 90 %, as kot-2019 computed it.
    pub study_interval: Option<Interval>,
    /// Mean by Student's t over 20 blocks of this run at 95 %, in cycles.
    pub block_interval: Option<Interval>,
    /// Delays by class; delay = duration − mean of this run.
    pub classes: Vec<ClassFigure>,
    /// Share of the time in delays above 400 and above 2,000 cycles.
    pub shares: Vec<ShareFigure>,
    /// The share above 400 cycles over blocks of this run at 95 %; null unless all such delays are
    /// listed, or if no block differs.
    pub share_block_interval: Option<Interval>,
    /// Mean time between the end of one repetition and the start of the next.
    pub dead_time: Time,
    /// How far the list of single delays goes.
    pub delays: DelayList,
}

/// Describes a distribution of durations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Durations {
    /// Mean.
    pub mean: Time,
    /// Standard deviation of the population.
    pub sd: Time,
    /// Shortest.
    pub min: Time,
    /// Median by nearest rank.
    pub median: Time,
    /// 99 % of the repetitions took at most this long.
    pub p99: QuantileFigure,
    /// 99.9 % did.
    pub p99_9: QuantileFigure,
    /// 99.99 % did.
    pub p99_99: QuantileFigure,
    /// Longest.
    pub max: Time,
}

/// Holds figures together with what adds up over runs.
pub(super) struct Timed {
    pub figures: TimedFigures,
    pub counts: Counts,
    pub classes: ClassTable,
}

/// Derives the figures of one cell; `Ok(None)` if it has no samples.
pub(super) fn analyse(
    plan: &CellPlan,
    batch: &Batch<'_>,
    samples: &SetSamples,
    hz: Option<f64>,
) -> Result<Option<Timed>, StatsError> {
    let counts = Counts::from_pairs(samples.counts.iter().map(|c| (c.value, c.count)))?;
    let Some(delays) = Delays::of_run(&counts) else {
        return Ok(None);
    };
    let region = region_cycles(plan, &batch.program.calibration);
    let Some(raw) = durations(&counts, hz) else {
        return Ok(None);
    };
    let net = durations(&counts.net(region), hz).unwrap_or(raw);
    let classes = delays.classify(&DelayClasses::kot_2019());
    let moments = counts.moments();
    let study = moments.and_then(|moments| normal_mean(moments, Level::P90).ok());
    let time_blocks = blocks(&envelope_rows(samples), BLOCKS).ok();
    let block_means: Option<Vec<f64>> = time_blocks
        .as_ref()
        .and_then(|blocks| blocks.iter().map(Tally::mean).collect());
    let wall = batch.head.length() as f64;
    let figures = TimedFigures {
        repetitions: counts.total(),
        work: batch.work,
        result: batch.result,
        raw,
        net,
        region: Time::new(region as f64, hz),
        study_interval: study.as_ref().map(Interval::of),
        block_interval: block_means
            .and_then(|means| over_blocks(over_runs(Kind::Mean, &means, Level::P95))),
        classes: ClassFigure::all(&classes, hz),
        shares: ShareFigure::all(&delays),
        share_block_interval: time_blocks
            .and_then(|blocks| block_losses(&blocks, batch, samples, raw.mean.cycles))
            .and_then(|losses| over_blocks(share_over_runs(&losses, Level::P95))),
        dead_time: Time::new(
            (wall - counts.sum() as f64).max(0.0) / counts.total() as f64,
            hz,
        ),
        delays: DelayList::of(batch),
    };
    Ok(Some(Timed {
        figures,
        counts,
        classes,
    }))
}

/// Returns the least duration of an empty region between the stamps that a cell uses.
fn region_cycles(plan: &CellPlan, calibration: &Calibration) -> u64 {
    if plan.timing == "published" {
        calibration.published_region_cycles
    } else {
        calibration.fenced_region_cycles
    }
}

fn durations(counts: &Counts, hz: Option<f64>) -> Option<Durations> {
    let moments = counts.moments()?;
    let whole = |cycles: u64| Time::new(cycles as f64, hz);
    let quantile = |q| QuantileFigure::of(counts.supported_quantile(q), hz);
    Some(Durations {
        mean: Time::new(moments.mean, hz),
        sd: Time::new(moments.population_sd, hz),
        min: whole(counts.min()?),
        median: whole(counts.median()?),
        p99: quantile(Quantile::P99),
        p99_9: quantile(Quantile::P99_9),
        p99_99: quantile(Quantile::P99_99),
        max: whole(counts.max()?),
    })
}

fn envelope_rows(samples: &SetSamples) -> Vec<Tally> {
    samples
        .envelope
        .iter()
        .map(|bin| Tally {
            count: bin.n,
            sum: u128::from(bin.sum),
        })
        .collect()
}

fn over_blocks(over: Result<OverRuns, StatsError>) -> Option<Interval> {
    let interval = over.ok()?.interval.ok()?;
    Some(Interval::of(&interval).over_blocks())
}

/// Returns for each block its time in delays above the first limit and its whole time, in cycles;
/// `None` if such delays are missing in the list.
fn block_losses(
    blocks: &[Tally],
    batch: &Batch<'_>,
    samples: &SetSamples,
    mean: f64,
) -> Option<Vec<(f64, f64)>> {
    let limit = SHARE_LIMITS[0];
    if batch.threshold > limit || batch.head.kept < batch.head.seen {
        return None;
    }
    let bound = limit as f64 + mean;
    let mut lost = vec![0.0; blocks.len()];
    // Blocks end at a number of samples, and a delay is placed by its index.
    let mut block = 0;
    let mut end = blocks.first()?.count;
    for delay in samples.events.iter().filter(|d| d.value as f64 > bound) {
        while delay.index >= end && block + 1 < blocks.len() {
            block += 1;
            end += blocks[block].count;
        }
        lost[block] += delay.value as f64 - mean;
    }
    let times = blocks.iter().map(|block| block.sum as f64);
    Some(lost.into_iter().zip(times).collect())
}

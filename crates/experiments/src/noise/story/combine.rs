//! Puts the runs of one combination together.
//!
//! The unit of replication is the run. Each run gives one value of each figure; its kind decides how they are put
//! together ([`tare_stats::over_runs()`]): means and shares are those of all runs, quantiles and maxima the median over
//! the runs. Ten million samples of one run are one repetition, not ten million.

use schemars::JsonSchema;
use serde::Serialize;
use tare_stats::{
    ClassTable, Kind, Level, OverRuns, StatsError, over_runs, rate_over_runs, share_over_runs,
};

use super::figures::{ClassFigure, Interval, Observed, QuantileFigure, ShareFigure, Time};
use super::gap::{GapFigures, PeriodFigure};
use super::timed::{Durations, TimedFigures};

/// Holds the figures of a combination, by the kind of its workload.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CombinedFigures {
    /// Every repetition was timed: `prime`, `copy`.
    Timed(Box<CombinedTimed>),
    /// Interruptions were recorded: `gap`.
    Gap(Box<CombinedGap>),
}

/// Holds what the runs of `prime` or `copy` say together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CombinedTimed {
    /// Elementary steps in one repetition: divisions of `prime`, elements of `copy`.
    pub work: u64,
    /// Durations as they were read.
    pub raw: CombinedDurations,
    /// The same less the least empty region.
    pub net: CombinedDurations,
    /// Share of the time in delays above each limit.
    pub shares: Vec<CombinedShare>,
    /// Delays of all runs by class.
    pub classes: Vec<ClassFigure>,
    /// Repetitions of all runs.
    pub repetitions: u64,
}

/// Describes distributions of durations over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CombinedDurations {
    /// Mean.
    pub mean: Spread<Time>,
    /// Standard deviation of the population.
    pub sd: Spread<Time>,
    /// Shortest.
    pub min: Spread<Time>,
    /// Median.
    pub median: Spread<Time>,
    /// 99th percentile; null if a run has too few samples for it.
    pub p99: Option<Spread<Time>>,
    /// 99.9th percentile; likewise.
    pub p99_9: Option<Spread<Time>>,
    /// 99.99th percentile; likewise.
    pub p99_99: Option<Spread<Time>>,
    /// Longest.
    pub max: Spread<Time>,
}

/// Says what delays above a limit took of the time, over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CombinedShare {
    /// The limit T, in cycles above the mean of the run.
    pub above_cycles: u64,
    /// The share of 1; null if none could be seen.
    pub share: Option<Spread<f64>>,
    /// How much could be seen.
    pub observed: Observed,
}

/// Holds what the runs of `gap` say together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CombinedGap {
    /// Time lost to gaps as a share of 1.
    pub share_lost: Spread<f64>,
    /// Gaps per second; null if the TSC's frequency is not known.
    pub gaps_per_second: Option<Spread<f64>>,
    /// Mean of the iterations below the threshold.
    pub quiet: Spread<Time>,
    /// Least length of a gap: the largest of the runs'.
    pub threshold: Time,
    /// Median length of a gap; null if a run has none.
    pub median: Option<Spread<Time>>,
    /// 99th percentile of the lengths; null if a run has too few gaps for it.
    pub p99: Option<Spread<Time>>,
    /// 99.9th percentile; likewise.
    pub p99_9: Option<Spread<Time>>,
    /// Longest gap; null if a run has none.
    pub longest: Option<Spread<Time>>,
    /// The clock that at least half of the runs show.
    pub period: Option<CombinedPeriod>,
    /// Gaps of all runs.
    pub gaps: u64,
    /// Wall time of all runs.
    pub wall: Time,
    /// Share of the time in delays above each limit.
    pub shares: Vec<CombinedShare>,
    /// Delays of all runs by class.
    pub classes: Vec<ClassFigure>,
}

/// Describes a clock that several runs show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CombinedPeriod {
    /// Means over the runs that show it.
    pub figure: PeriodFigure,
    /// How many runs show it.
    pub runs: u64,
}

impl CombinedFigures {
    /// Returns the figures of a timed workload.
    #[must_use]
    pub fn timed(&self) -> Option<&CombinedTimed> {
        match self {
            Self::Timed(figures) => Some(figures),
            Self::Gap(_) => None,
        }
    }

    /// Returns the figures of `gap`.
    #[must_use]
    pub fn gap(&self) -> Option<&CombinedGap> {
        match self {
            Self::Gap(figures) => Some(figures),
            Self::Timed(_) => None,
        }
    }
}

/// Combines the runs of a timed workload; `None` without runs.
pub(super) fn timed(
    runs: &[&TimedFigures],
    classes: &ClassTable,
    hz: Option<f64>,
) -> Option<CombinedTimed> {
    let first = runs.first()?;
    let only = (runs.len() == 1).then_some(first);
    let raw: Vec<&Durations> = runs.iter().map(|run| &run.raw).collect();
    let net: Vec<&Durations> = runs.iter().map(|run| &run.net).collect();
    let mut raw = durations(&raw, hz)?;
    raw.mean = raw
        .mean
        .or_over_blocks(only.and_then(|run| run.block_interval));
    let share_lists: Vec<&[ShareFigure]> = runs.iter().map(|run| run.shares.as_slice()).collect();
    let times: Vec<f64> = runs
        .iter()
        .map(|run| run.raw.mean.cycles * run.repetitions as f64)
        .collect();
    let mut shares = shares(&share_lists, &times);
    // The interval over blocks is that of the first limit.
    if let (Some(first), Some(run)) = (shares.first_mut(), only) {
        let blocks = run.share_block_interval;
        first.share = first.share.map(|share| share.or_over_blocks(blocks));
    }
    Some(CombinedTimed {
        work: first.work,
        raw,
        net: durations(&net, hz)?,
        shares,
        classes: ClassFigure::all(classes, hz),
        repetitions: runs.iter().map(|run| run.repetitions).sum(),
    })
}

/// Combines the runs of `gap`; `None` without runs.
pub(super) fn gap(
    runs: &[&GapFigures],
    classes: &ClassTable,
    hz: Option<f64>,
) -> Option<CombinedGap> {
    let only = match runs {
        [run] => Some(*run),
        _ => None,
    };
    let values =
        |of: &dyn Fn(&GapFigures) -> f64| -> Vec<f64> { runs.iter().map(|run| of(run)).collect() };
    let times = |of: &dyn Fn(&GapFigures) -> Option<Time>| -> Option<Spread<Time>> {
        let values: Option<Vec<f64>> = runs.iter().map(|run| Some(of(run)?.cycles)).collect();
        Some(Spread::of(Kind::Order, &values?)?.in_time(hz))
    };
    let lost: Vec<(f64, f64)> = runs
        .iter()
        .map(|run| (run.lost.cycles, run.wall.cycles))
        .collect();
    let gaps: Option<Vec<(f64, f64)>> = runs
        .iter()
        .map(|run| Some((run.gaps as f64, run.wall.ns? / 1e9)))
        .collect();
    let walls = values(&|run| run.wall.cycles);
    let share_lists: Vec<&[ShareFigure]> = runs.iter().map(|run| run.shares.as_slice()).collect();
    let threshold = values(&|run| run.threshold.cycles);
    Some(CombinedGap {
        share_lost: Spread::share(&lost)?
            .or_over_blocks(only.and_then(|run| run.share_block_interval)),
        gaps_per_second: gaps.and_then(|gaps| Spread::rate(&gaps)),
        quiet: Spread::of(Kind::Mean, &values(&|run| run.quiet.cycles))?.in_time(hz),
        threshold: Time::new(threshold.into_iter().fold(0.0, f64::max), hz),
        median: times(&|run| run.median),
        p99: times(&|run| run.p99.value),
        p99_9: times(&|run| run.p99_9.value),
        longest: times(&|run| run.longest),
        period: period(runs, hz),
        gaps: runs.iter().map(|run| run.gaps).sum(),
        wall: Time::new(walls.iter().sum(), hz),
        shares: shares(&share_lists, &walls),
        classes: ClassFigure::all(classes, hz),
    })
}

fn durations(runs: &[&Durations], hz: Option<f64>) -> Option<CombinedDurations> {
    let times = |kind: Kind, of: &dyn Fn(&Durations) -> Time| {
        let values: Vec<f64> = runs.iter().map(|run| of(run).cycles).collect();
        Some(Spread::of(kind, &values)?.in_time(hz))
    };
    let quantiles = |of: &dyn Fn(&Durations) -> QuantileFigure| {
        let values: Option<Vec<f64>> = runs
            .iter()
            .map(|run| of(run).value.map(|time| time.cycles))
            .collect();
        Some(Spread::of(Kind::Order, &values?)?.in_time(hz))
    };
    Some(CombinedDurations {
        mean: times(Kind::Mean, &|run| run.mean)?,
        sd: times(Kind::Order, &|run| run.sd)?,
        min: times(Kind::Order, &|run| run.min)?,
        median: times(Kind::Order, &|run| run.median)?,
        p99: quantiles(&|run| run.p99),
        p99_9: quantiles(&|run| run.p99_9),
        p99_99: quantiles(&|run| run.p99_99),
        max: times(Kind::Order, &|run| run.max)?,
    })
}

/// Puts the shares of runs together that lasted so many cycles each.
fn shares(runs: &[&[ShareFigure]], cycles: &[f64]) -> Vec<CombinedShare> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let combined = first.iter().enumerate().map(|(place, share)| {
        let figures: Vec<&ShareFigure> = runs.iter().filter_map(|run| run.get(place)).collect();
        let parts: Option<Vec<(f64, f64)>> = figures
            .iter()
            .zip(cycles)
            .map(|(figure, whole)| Some((figure.share? * whole, *whole)))
            .collect();
        let observed = if figures.iter().all(|f| f.observed == Observed::Fully) {
            Observed::Fully
        } else if parts.is_some() {
            Observed::Partly
        } else {
            Observed::NotAtAll
        };
        CombinedShare {
            above_cycles: share.above_cycles,
            share: parts.and_then(|parts| Spread::share(&parts)),
            observed,
        }
    });
    combined.collect()
}

/// Finds the clock that at least half of the runs show, within 1 %.
fn period(runs: &[&GapFigures], hz: Option<f64>) -> Option<CombinedPeriod> {
    let found: Vec<&PeriodFigure> = runs.iter().filter_map(|run| run.period.as_ref()).collect();
    let periods: Vec<f64> = found.iter().map(|p| p.period.cycles).collect();
    let typical = median(&periods)?;
    let same: Vec<&&PeriodFigure> = found
        .iter()
        .filter(|p| (p.period.cycles / typical - 1.0).abs() <= 0.01)
        .collect();
    if same.len() * 2 < runs.len() || same.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&PeriodFigure) -> f64| {
        same.iter().map(|period| of(period)).sum::<f64>() / same.len() as f64
    };
    Some(CombinedPeriod {
        figure: PeriodFigure {
            period: Time::new(mean(&|p| p.period.cycles), hz),
            share_of_gaps: mean(&|p| p.share_of_gaps),
            share_of_ticks: mean(&|p| p.share_of_ticks),
            mean_length: Time::new(mean(&|p| p.mean_length.cycles), hz),
        },
        runs: same.len() as u64,
    })
}

/// Returns the median, of an even number the mean of the middle two; `None` without values.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some(lower + (upper - lower) / 2.0)
}

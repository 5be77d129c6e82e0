//! The figures that a run yields, in the shape in which `summary.json` holds them.
//!
//! A figure that could not be determined is null and never 0. A duration stands in cycles, as it
//! was measured, and in nanoseconds if the TSC's frequency is known.

use schemars::JsonSchema;
use serde::Serialize;
use tare_stats::{
    ClassRow, ClassTable, DelayShare, DelayTally, Delays, Interval as StatsInterval, Method,
    Observed as Seen, QuantileEstimate,
};

use super::Batch;

/// Are the limits T of kot-2019 above which the share of time in delays is given, in cycles.
pub const SHARE_LIMITS: [u64; 2] = [400, 2_000];

/// Is a quantile, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QuantileFigure {
    /// The quantile; null if fewer than ten samples lie beyond it.
    pub value: Option<Time>,
    /// How many samples it needs, if it was refused.
    pub samples_needed: Option<u64>,
}

/// Says how much of a figure could be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Observed {
    /// All of it.
    Fully,
    /// Part of it: counts and sums are lower bounds, since shorter delays were not recorded or the
    /// list was full.
    Partly,
    /// Nothing: it lies below the threshold from which delays were recorded.
    NotAtAll,
}

/// Is one line of the table of delay classes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClassFigure {
    /// Letter of the class in kot-2019: A to D.
    pub class: char,
    /// Delays longer than this belong to it, in cycles above the mean.
    pub above_cycles: u64,
    /// Up to this one, which is inside; null for the last class.
    pub up_to_cycles: Option<u64>,
    /// Number of delays; null if none could be seen.
    pub count: Option<u64>,
    /// Mean delay; null without delays.
    pub mean: Option<Time>,
    /// How much could be seen.
    pub observed: Observed,
}

/// Says what delays above a limit took of the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareFigure {
    /// The limit T: delays longer than this count, in cycles above the mean.
    pub above_cycles: u64,
    /// Number of delays; null if none could be seen.
    pub count: Option<u64>,
    /// Sum of the delays over the sum of all cycles; null if none could be seen.
    pub share: Option<f64>,
    /// How much could be seen.
    pub observed: Observed,
}

/// Says how far the list of single delays goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DelayList {
    /// For `gap` the least length of a gap; else the delay above the mean beyond which a sample is
    /// listed. In cycles.
    pub threshold_cycles: u64,
    /// How many there were.
    pub seen: u64,
    /// How many were listed: fewer if the list was full.
    pub kept: u64,
}

impl QuantileFigure {
    pub(crate) fn of(estimate: QuantileEstimate, hz: Option<f64>) -> Self {
        let (value, samples_needed) = match estimate {
            QuantileEstimate::Value(cycles) => (Some(Time::new(cycles as f64, hz)), None),
            QuantileEstimate::Refused { needed } => (None, Some(needed)),
        };
        Self {
            value,
            samples_needed,
        }
    }
}

impl Observed {
    fn of<T>(seen: &Seen<T>) -> Self {
        match seen {
            Seen::Fully(_) => Self::Fully,
            Seen::Partly(..) => Self::Partly,
            Seen::NotAtAll(_) => Self::NotAtAll,
        }
    }
}

impl ClassFigure {
    /// Takes all classes.
    pub(crate) fn all(classes: &ClassTable, hz: Option<f64>) -> Vec<Self> {
        classes.rows.iter().map(|row| Self::of(row, hz)).collect()
    }

    pub(crate) fn of(row: &ClassRow, hz: Option<f64>) -> Self {
        let seen = row.delays.seen();
        let mean = seen.and_then(DelayTally::mean_cycles);
        Self {
            class: row.class.letter,
            above_cycles: row.class.above,
            up_to_cycles: row.class.up_to,
            count: seen.map(|delays| delays.count),
            mean: mean.map(|cycles| Time::new(cycles, hz)),
            observed: Observed::of(&row.delays),
        }
    }
}

impl DelayList {
    /// Takes what the batch says of its list.
    pub(crate) fn of(batch: &Batch<'_>) -> Self {
        Self {
            threshold_cycles: batch.threshold,
            seen: batch.head.seen,
            kept: batch.head.kept,
        }
    }
}

impl ShareFigure {
    /// Takes the shares above all limits.
    pub(crate) fn all(delays: &Delays<'_>) -> Vec<Self> {
        let limits = SHARE_LIMITS.iter();
        limits
            .map(|&limit| Self::of(limit, &delays.share_above(limit)))
            .collect()
    }

    pub(crate) fn of(above_cycles: u64, share: &Seen<DelayShare>) -> Self {
        let seen = share.seen();
        Self {
            above_cycles,
            count: seen.map(|share| share.delays.count),
            share: seen.map(|share| share.share),
            observed: Observed::of(share),
        }
    }
}

//! Durations, figures over runs and their intervals, in the shape in which `summary.json` holds
//! them.
//!
//! A figure that could not be determined is null and never 0. A duration stands in cycles, as it
//! was measured, and in nanoseconds if the TSC's frequency is known.

use schemars::JsonSchema;
use serde::Serialize;
use tare_stats::{Method, OverRuns};

/// A duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Time {
    /// In ticks of the measured CPU's TSC.
    pub cycles: f64,
    /// In nanoseconds; null if the TSC's frequency is not known.
    pub ns: Option<f64>,
}

/// An interval that holds the true value with some confidence, if the assumptions of its method
/// are met. Its figures have the unit of what it belongs to: cycles, or a share of 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// The figure, mostly a mean.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence as a fraction of 1.
    pub level: f64,
    /// The unit of independent repetitions.
    pub over: Over,
    /// How many of them there were.
    pub repetitions: u64,
}

/// The independent repetitions of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// Whole runs, by Student's t on the scale of the figure: it is that of their mean, share or
    /// rate.
    Runs,
    /// Whole runs, by order statistics: it is the median's.
    RunsInOrder,
}

/// A figure over the runs of a combination.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// The figure over all runs: the mean of means, a share or rate of all runs' time, the median
    /// of other figures.
    pub figure: f64,
    /// Lowest of the runs.
    pub lowest: f64,
    /// Highest of the runs.
    pub highest: f64,
    /// Its interval over runs at 95 %; null if there are too few, or none differs.
    pub interval: Option<Interval>,
}

impl Time {
    /// Takes a duration in cycles of a TSC of this frequency.
    #[must_use]
    pub fn new(cycles: f64, hz: Option<f64>) -> Self {
        Self {
            cycles,
            ns: hz.map(|hz| cycles / hz * 1e9),
        }
    }
}

impl Interval {
    /// Takes that of a figure over runs; `None` if it has none.
    #[must_use]
    pub fn of(figure: &OverRuns) -> Option<Self> {
        let interval = figure.interval.ok()?;
        Some(Self {
            estimate: interval.estimate,
            low: interval.low,
            high: interval.high,
            level: interval.level.fraction(),
            over: match interval.method {
                Method::OrderedMedian { .. } => Over::RunsInOrder,
                Method::Student { .. } | Method::Shift { .. } => Over::Runs,
            },
            repetitions: figure.runs,
        })
    }
}

impl Spread {
    /// Takes a figure over runs.
    #[must_use]
    pub fn of(figure: &OverRuns) -> Self {
        Self {
            figure: figure.estimate,
            lowest: figure.lowest,
            highest: figure.highest,
            interval: Interval::of(figure),
        }
    }
}

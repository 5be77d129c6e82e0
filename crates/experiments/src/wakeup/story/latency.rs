//! What a distribution of latencies says, of one run and over runs.

use schemars::JsonSchema;
use serde::Serialize;
use tare_stats::{
    Counts, Kind, Level, Moments, Quantile, QuantileEstimate, Response, STUDENT_RUNS,
};

use crate::analysis::Spread;

/// Is a quantile of one run, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LatencyQuantile {
    /// The quantile; null if fewer than ten latencies lie beyond it.
    pub ns: Option<u64>,
    /// How many latencies it needs, if it was refused.
    pub samples_needed: Option<u64>,
}

/// Describes the latencies of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latencies {
    /// How many there are.
    pub count: u64,
    /// Shortest.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation of the population, as landolfi-2018 gives it.
    pub sd_ns: f64,
    /// Median by nearest rank.
    pub median_ns: u64,
    /// 99 % were at most this long.
    pub p99: LatencyQuantile,
    /// 99.9 % were.
    pub p99_9: LatencyQuantile,
    /// 99.99 % were.
    pub p99_99: LatencyQuantile,
    /// Longest.
    pub max_ns: u64,
}

/// Is a quantile over runs, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyQuantileSpread {
    /// The quantile in ns, with an interval from six runs on; null if a run has too few latencies.
    pub ns: Option<Spread<f64>>,
    /// How many latencies a run needs for it, if it was refused.
    pub samples_needed: Option<u64>,
}

/// Describes latencies over runs: of each figure, which every run gives once, the figure over runs and the range.
/// Durations are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencySpread {
    /// Latencies of all runs.
    pub count: u64,
    /// Shortest of all runs.
    pub min_ns: u64,
    /// Mean.
    pub mean: Spread<f64>,
    /// Standard deviation of the population.
    pub sd: Spread<f64>,
    /// Median.
    pub median: Spread<f64>,
    /// 99th percentile.
    pub p99: LatencyQuantileSpread,
    /// 99.9th percentile.
    pub p99_9: LatencyQuantileSpread,
    /// 99.99th percentile.
    pub p99_99: LatencyQuantileSpread,
    /// Longest; its `highest` is the longest of all runs.
    pub max: Spread<f64>,
}

impl Latencies {
    /// Describes service latencies: of the wake-ups that happened, as cyclictest does. `None` without any.
    pub(crate) fn service(counts: &Counts) -> Option<Self> {
        Self::of(
            counts.moments()?,
            counts.min()?,
            counts.median()?,
            counts.max()?,
            |q| counts.supported_quantile(q),
        )
    }

    /// Describes response latencies: of all activations, the missed ones included. `None` without any.
    pub(crate) fn response(response: &Response<'_>) -> Option<Self> {
        let median = response.quantile(Quantile::MEDIAN)?;
        Self::of(
            response.moments()?,
            response.min()?,
            median,
            response.max()?,
            |q| response.supported_quantile(q),
        )
    }

    fn of(
        moments: Moments,
        min_ns: u64,
        median_ns: u64,
        max_ns: u64,
        quantile: impl Fn(Quantile) -> QuantileEstimate,
    ) -> Option<Self> {
        let quantile = |q| LatencyQuantile::of(quantile(q));
        Some(Self {
            count: moments.count,
            min_ns,
            mean_ns: moments.mean,
            sd_ns: moments.population_sd,
            median_ns,
            p99: quantile(Quantile::P99),
            p99_9: quantile(Quantile::P99_9),
            p99_99: quantile(Quantile::P99_99),
            max_ns,
        })
    }
}

impl LatencyQuantile {
    fn of(estimate: QuantileEstimate) -> Self {
        match estimate {
            QuantileEstimate::Value(ns) => Self {
                ns: Some(ns),
                samples_needed: None,
            },
            QuantileEstimate::Refused { needed } => Self {
                ns: None,
                samples_needed: Some(needed),
            },
        }
    }
}

impl LatencySpread {
    /// Puts runs together; `None` without any.
    pub(crate) fn of(runs: &[Latencies]) -> Option<Self> {
        let values = |of: &dyn Fn(&Latencies) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
        let quantile = |of: fn(&Latencies) -> LatencyQuantile| {
            let found: Option<Vec<f64>> = runs.iter().map(|run| Some(of(run).ns? as f64)).collect();
            LatencyQuantileSpread {
                ns: found.and_then(|values| Spread::of(Kind::Order, &values)),
                samples_needed: runs.iter().filter_map(|run| of(run).samples_needed).max(),
            }
        };
        Some(Self {
            count: runs.iter().map(|run| run.count).sum(),
            min_ns: runs.iter().map(|run| run.min_ns).min()?,
            mean: Spread::of(Kind::Mean, &values(&|run| run.mean_ns))?,
            sd: Spread::of(Kind::Order, &values(&|run| run.sd_ns))?,
            median: Spread::of(Kind::Order, &values(&|run| run.median_ns as f64))?,
            p99: quantile(|run| run.p99),
            p99_9: quantile(|run| run.p99_9),
            p99_99: quantile(|run| run.p99_99),
            max: Spread::of(Kind::Order, &values(&|run| run.max_ns as f64))?,
        })
    }

    /// Returns the longest of all runs in ns.
    #[must_use]
    pub fn longest_ns(&self) -> f64 {
        self.max.highest
    }
}

/// Says of which figures so many runs give no interval, and how many would; `None` if they give all.
pub(crate) fn refusal(runs: u64) -> Option<String> {
    let needed = Kind::Order.runs_needed(Level::P95);
    let there = match runs {
        1 => "there is 1".to_owned(),
        runs => format!("there are {runs}"),
    };
    if runs < STUDENT_RUNS {
        return Some(format!(
            "no figure has an interval: at 95 % a mean or a share needs {STUDENT_RUNS} runs, a quantile or a maximum \
             {needed}, and {there}"
        ));
    }
    (runs < needed).then(|| {
        format!(
            "quantiles and maxima have no interval: at 95 % it needs {needed} runs, and {there}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_refused_by_the_number_that_they_need() {
        let few = Counts::from_pairs([(5_000, 999), (9_000, 1)]).unwrap();
        let figures = Latencies::service(&few).unwrap();
        assert_eq!(
            (figures.p99.ns, figures.p99.samples_needed),
            (Some(5_000), None)
        );
        let refused = LatencyQuantile {
            ns: None,
            samples_needed: Some(10_000),
        };
        assert_eq!(figures.p99_9, refused);
        let over = LatencySpread::of(&[figures, figures]).unwrap();
        assert_eq!(
            (over.p99_9.ns, over.p99_9.samples_needed),
            (None, Some(10_000))
        );
        assert_eq!(over.p99.ns.unwrap().interval, None);
    }

    #[test]
    fn what_has_no_interval_is_said_with_the_runs_that_it_needs() {
        assert!(refusal(1).unwrap().contains("there is 1"));
        assert!(refusal(2).unwrap().contains("a share needs 3 runs"));
        assert!(refusal(5).unwrap().contains("needs 6 runs"));
        assert_eq!(refusal(6), None);
    }
}

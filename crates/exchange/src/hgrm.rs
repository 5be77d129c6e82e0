//! HdrHistogram's percentile distribution (`.hgrm`), which its plotter and others read.
//!
//! The layout and the percentiles are those of `outputPercentileDistribution` with five ticks per
//! half distance: a step that halves whenever the distance to 100 % has. Values are exact, in µs
//! with three digits. The last line therefore describes one bucket with as many sub-buckets as it
//! takes to tell every ns apart.

use std::fmt::Write as _;

use tare_stats::Counts;

/// The number of reported percentiles between here and half way to 100 %.
const TICKS_PER_HALF_DISTANCE: f64 = 5.0;

/// Latencies that were not counted one by one, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// How many there are.
    pub count: u64,
    /// Their sum, if it is known.
    pub sum: Option<u128>,
    /// The least that one of them can be.
    pub min: u64,
    /// The greatest of them.
    pub max: u64,
}

/// Writes the distribution of latencies in ns. Percentiles at or above the least of those that were
/// not counted are left out, except for the greatest; a standard deviation is `NaN` then, and a mean if
/// their sum is unknown.
pub fn hgrm(counts: &Counts, uncounted: &Uncounted) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let total = counts.total() + uncounted.count;
    let is_certain = |value: u64| uncounted.count == 0 || value < uncounted.min;
    let (mut percentile, mut seen) = (0.0, 0);
    for (value, count) in counts.iter().take_while(|(value, _)| is_certain(*value)) {
        seen += count;
        let reached = 100.0 * seen as f64 / total as f64;
        while reached >= percentile && percentile < 100.0 {
            let fraction = percentile / 100.0;
            let _ = writeln!(
                text,
                "{:12.3} {fraction:.12} {seen:10} {:14.2}",
                micros(value),
                1.0 / (1.0 - fraction)
            );
            // As in HdrHistogram, the last value is repeated only in the last line.
            if seen == total {
                break;
            }
            percentile += step(percentile);
        }
    }
    let max = counts.max().unwrap_or(0).max(uncounted.max);
    if total > 0 {
        let _ = writeln!(text, "{:12.3} {:.12} {total:10}", micros(max), 1.0);
    }
    let moments = counts.moments();
    let sd = match uncounted.count {
        0 => moments.map_or(0.0, |moments| moments.population_sd),
        _ => f64::NAN,
    };
    let sum = match uncounted.count {
        0 => Some(0),
        _ => uncounted.sum,
    };
    let mean = sum.map_or(f64::NAN, |sum| {
        (counts.sum() + sum) as f64 / total.max(1) as f64
    });
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        mean / 1e3,
        sd / 1e3
    );
    let _ = writeln!(
        text,
        "#[Max     = {:12.3}, Total count    = {total:12}]",
        micros(max)
    );
    let values = max
        .saturating_add(1)
        .checked_next_power_of_two()
        .unwrap_or(u64::MAX);
    let _ = writeln!(text, "#[Buckets = {:12}, SubBuckets     = {values:12}]", 1);
    text
}

/// Returns how far the next reported percentile is.
fn step(percentile: f64) -> f64 {
    let halvings = (100.0 / (100.0 - percentile)).ln() / 2_f64.ln();
    100.0 / (TICKS_PER_HALF_DISTANCE * 2_f64.powi(halvings as i32 + 1))
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

//! HdrHistogram's percentile distribution (`.hgrm`), which its plotter and others read.
//!
//! The layout and the percentiles are those of `outputPercentileDistribution` with five ticks per
//! half distance: a step that halves whenever the distance to 100 % has. Values are exact, in µs
//! with three digits. The last line therefore describes one bucket with as many sub-buckets as it
//! takes to tell every ns apart.

use std::fmt::Write as _;

use tare_stats::{Counts, Moments};

/// The number of reported percentiles between here and half way to 100 %.
const TICKS_PER_HALF_DISTANCE: f64 = 5.0;

/// Writes the distribution of latencies in ns.
#[must_use]
pub fn hgrm(counts: &Counts) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let total = counts.total();
    let (mut percentile, mut seen) = (0.0, 0);
    for (value, count) in counts.iter() {
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
    let max = counts.max().unwrap_or(0);
    if total > 0 {
        let _ = writeln!(text, "{:12.3} {:.12} {total:10}", micros(max), 1.0);
    }
    let moments = counts.moments();
    let of = |figure: fn(&Moments) -> f64| moments.as_ref().map_or(0.0, figure) / 1e3;
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        of(|m| m.mean),
        of(|m| m.population_sd)
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

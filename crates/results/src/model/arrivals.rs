//! Cells with many instances: how these are started, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::work::Work;

/// The most instances that a cell may have.
pub const MOST_INSTANCES: u64 = 1 << 20;

/// How the instances of a cell are started.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Arrivals {
    /// Interval between arrivals in ns (open loop); null if each instance is started when the one
    /// before has ended.
    pub interval_ns: Option<u64>,
    /// Warm-up before the measurement, in ns; its instances are not counted.
    pub warmup_ns: u64,
    /// Measurement time after the warm-up, in ns.
    pub measure_ns: u64,
    /// Maximum number of live instances. Further arrivals are rejected and counted.
    pub most_live: u32,
    /// Maximum memory of all instances together, in bytes; null for half of what is available when
    /// the cell begins. Further arrivals are rejected and counted.
    pub most_bytes: Option<u64>,
    /// The request to the target, made once before, for a report about its program and itself; null
    /// if it runs no plans.
    pub report: Option<Box<Work>>,
    /// A command line that is started in place of the measured code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

impl Arrivals {
    /// Returns a duration in ns as it is carried out: as a whole number of intervals, so that the
    /// arrivals in it are at the rate that was asked for.
    pub fn whole_ns(&self, ns: u64) -> u64 {
        let interval_ns = self.interval_ns.unwrap_or(1);
        ns.checked_next_multiple_of(interval_ns).unwrap_or(ns)
    }
}

/// A cell's place on a ladder: the cells of a ladder run upwards within their block, and those
/// behind a saturated one are skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rung {
    /// Names the ladder.
    pub ladder: String,
    /// Its place, from 0.
    pub step: u32,
}

/// The result of a cell's arrivals; each arrival is a row of `instances.parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arrived {
    /// When the measured window began, by CLOCK_MONOTONIC of this machine in ns: instances planned
    /// from then on count.
    pub from_ns: u64,
    /// When it ended.
    pub until_ns: u64,
    /// Reasons of the instances that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// Why the target no longer kept up, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated: Option<String>,
    /// Why arrivals did not come as planned, if they did not: the cell is not an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_open_loop: Option<String>,
}

/// Why instances failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What happened.
    pub reason: String,
    /// To how many, the warm-up included.
    pub count: u64,
}

impl Failure {
    /// How many reasons are shown.
    const SHOWN: usize = 3;

    /// Lists the most frequent reasons: `516 × it ended with status 7`.
    pub fn list(mut failures: Vec<Self>) -> String {
        failures.sort_by(|a, b| (b.count, &a.reason).cmp(&(a.count, &b.reason)));
        let shown = failures.iter().take(Self::SHOWN);
        let mut text: Vec<String> = shown
            .map(|failure| format!("{} × {}", failure.count, failure.reason))
            .collect();
        if let Some(more @ 1..) = failures.len().checked_sub(Self::SHOWN) {
            text.push(format!("{more} further reasons"));
        }
        text.join("; ")
    }
}

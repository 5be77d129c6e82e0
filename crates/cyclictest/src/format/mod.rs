//! cyclictest's own output: status lines, histogram, JSON.
//!
//! The layouts are those of rt-tests 2.4. Latencies are whole microseconds there, what is left over
//! is cut off; with `-N` they are nanoseconds. cyclictest cuts the difference of the nanoseconds of
//! two times apart from that of their seconds, so that once a second it may read 1 µs more than we
//! do.

mod histogram;
mod json;
mod lines;

pub use histogram::{Histogram, histogram};
pub use json::{Head, System, json};
pub use lines::{
    State, breaks, cpus, first_lines, height, intervals, policy, spikes, status, status_lines,
    values,
};

use tare_stats::Counts;

use crate::latencies::Latencies;

/// The unit of cyclictest's latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    #[default]
    Micros,
    /// Nanoseconds, as with `-N`.
    Nanos,
}

impl Unit {
    /// Returns a latency in this unit, what is left over cut off.
    pub fn of(self, ns: u64) -> u64 {
        ns / self.ns()
    }

    /// Returns the unit's length in ns.
    pub fn ns(self) -> u64 {
        match self {
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

/// Returns the sum of all latencies, each cut off to the unit before: as cyclictest adds them up.
fn sum(latencies: &Latencies, unit: Unit) -> u128 {
    let counted = latencies.counts.iter();
    let counted: u128 = counted
        .map(|(ns, count)| u128::from(unit.of(ns)) * u128::from(count))
        .sum();
    counted + u128::from(unit.of(latencies.thread.uncounted_ns))
}

/// Returns the mean of the latencies, each cut off to the unit before; 0 without wake-ups.
fn mean(latencies: &Latencies, unit: Unit) -> u64 {
    let woken = u128::from(latencies.thread.woken);
    let mean = sum(latencies, unit).checked_div(woken);
    u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// Adds up the counts of values below `size`.
fn rows_below(counts: &Counts, size: u64, unit: Unit) -> Vec<(u64, u64)> {
    let mut values: Vec<(u64, u64)> = Vec::new();
    for (ns, count) in counts.iter() {
        let value = unit.of(ns);
        match values.last_mut() {
            Some((last, sum)) if *last == value => *sum += count,
            _ if value < size => values.push((value, count)),
            _ => break,
        }
    }
    values
}

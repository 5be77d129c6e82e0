//! The samples of one cell as four Parquet files; those of wake-ups are others than those of a batch.
//!
//! Each file is one flat table whose first column is the cell's number, so that the files of a
//! whole run can be read as one table: `cells/*/counts.parquet`. All numbers are unsigned.

mod check;
mod table;
mod wakeups;

use std::panic;

use crate::model::{CellPlan, Count, Delay, EnvelopeBin, SCHEMA, Samples, WakeupSamples};
pub(crate) use check::check;
use table::{Column, Row, Width};
pub(crate) use wakeups::check as check_wakeups;

/// Lists the files of a batch in the order in which they are written.
pub(crate) const FILES: [&str; 4] = [
    "counts.parquet",
    "delays.parquet",
    "envelope.parquet",
    "window.parquet",
];

/// Lists the files of wake-ups in the order in which they are written.
pub(crate) const WAKEUP_FILES: [&str; 4] = [
    "latencies.parquet",
    "peaks.parquet",
    "bins.parquet",
    "raw.parquet",
];

/// Encodes the wake-ups of a cell, one content for each of [`WAKEUP_FILES`].
pub(crate) fn encode_wakeups(
    plan: &CellPlan,
    samples: &WakeupSamples,
) -> Result<[Vec<u8>; 4], String> {
    let about = about(plan);
    let failed = |error: parquet::errors::ParquetError| error.to_string();
    Ok([
        table::encode(plan.id, &samples.counts, &about).map_err(failed)?,
        table::encode(plan.id, &samples.peaks, &about).map_err(failed)?,
        table::encode(plan.id, &samples.bins, &about).map_err(failed)?,
        table::encode(plan.id, &samples.raw, &about).map_err(failed)?,
    ])
}

/// Decodes the contents of [`WAKEUP_FILES`], as [`decode`] does.
pub(crate) fn decode_wakeups(
    id: u32,
    files: [Vec<u8>; 4],
) -> Result<WakeupSamples, (&'static str, String)> {
    let [counts, peaks, bins, raw] = files;
    let [of_counts, of_peaks, of_bins, of_raw] = WAKEUP_FILES;
    Ok(WakeupSamples {
        counts: rows(id, counts).map_err(|reason| (of_counts, reason))?,
        peaks: rows(id, peaks).map_err(|reason| (of_peaks, reason))?,
        bins: rows(id, bins).map_err(|reason| (of_bins, reason))?,
        raw: rows(id, raw).map_err(|reason| (of_raw, reason))?,
    })
}

fn about(plan: &CellPlan) -> [(&'static str, String); 3] {
    [
        ("tare.schema", SCHEMA.to_string()),
        ("tare.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("tare.plan", plan.work.to_string()),
    ]
}

/// Encodes the samples of a batch, one content for each of [`FILES`].
pub(crate) fn encode(plan: &CellPlan, samples: &Samples) -> Result<[Vec<u8>; 4], String> {
    let about = about(plan);
    let failed = |error: parquet::errors::ParquetError| error.to_string();
    Ok([
        table::encode(plan.id, &samples.counts, &about).map_err(failed)?,
        table::encode(plan.id, &samples.delays, &about).map_err(failed)?,
        table::encode(plan.id, &samples.envelope, &about).map_err(failed)?,
        table::encode(plan.id, &samples.window, &about).map_err(failed)?,
    ])
}

/// Decodes the contents of [`FILES`]; for the first one that is damaged, says which and why.
pub(crate) fn decode(id: u32, files: [Vec<u8>; 4]) -> Result<Samples, (&'static str, String)> {
    let [counts, delays, envelope, window] = files;
    Ok(Samples {
        counts: rows(id, counts).map_err(|reason| (FILES[0], reason))?,
        delays: rows(id, delays).map_err(|reason| (FILES[1], reason))?,
        envelope: rows(id, envelope).map_err(|reason| (FILES[2], reason))?,
        window: rows(id, window).map_err(|reason| (FILES[3], reason))?,
        wakeups: WakeupSamples::default(),
    })
}

/// Decodes one file.
///
/// The Parquet library panics on some damaged files instead of returning an error. The checksum
/// has been compared before, so hardly one comes here; should it, one cell that cannot be read must
/// not take the report of all others with it.
fn rows<R: Row>(id: u32, content: Vec<u8>) -> Result<Vec<R>, String> {
    panic::catch_unwind(|| table::decode(id, content)).unwrap_or_else(|_| {
        Err("is damaged in a way that the Parquet library does not handle".to_owned())
    })
}

impl Row for Count {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("cycles", Width::U64, |row| row.cycles),
        Column::new("count", Width::U64, |row| row.count),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            cycles: values(0),
            count: values(1),
        }
    }
}

impl Row for Delay {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("index", Width::U64, |row| row.index),
        Column::new("start_tsc", Width::U64, |row| row.start_tsc),
        Column::new("cycles", Width::U64, |row| row.cycles),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            index: values(0),
            start_tsc: values(1),
            cycles: values(2),
        }
    }
}

impl Row for EnvelopeBin {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("bin", Width::U32, |row| u64::from(row.bin)),
        Column::new("count", Width::U64, |row| row.count),
        Column::new("sum_cycles", Width::U64, |row| row.sum_cycles),
        Column::new("min_cycles", Width::U64, |row| row.min_cycles),
        Column::new("max_cycles", Width::U64, |row| row.max_cycles),
    ];

    fn from_values(values: impl Fn(usize) -> u64) -> Self {
        Self {
            // The column is one of 32 bits, so nothing is cut off.
            bin: values(0) as u32,
            count: values(1),
            sum_cycles: values(2),
            min_cycles: values(3),
            max_cycles: values(4),
        }
    }
}

#[cfg(test)]
mod tests;

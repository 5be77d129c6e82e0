//! Samples that the tools wrote, and the way through import and export.

use jiff::Timestamp;
use tare_cyclictest::{Latencies, Thread};
use tare_exchange::import::{Foreign, Imported, run};
use tare_results::model::Record;

pub const QUIET: &str = include_str!("../../samples/cyclictest-quiet.txt");
pub const LIVE: &str = include_str!("../../samples/cyclictest-live.txt");
pub const JSON: &str = include_str!("../../samples/cyclictest.json");
pub const OSLAT: &str = include_str!("../../samples/oslat.txt");
pub const OSLAT_JSON: &str = include_str!("../../samples/oslat.json");
pub const TIMERLAT: &str = include_str!("../../samples/rtla-timerlat.txt");
pub const OSNOISE: &str = include_str!("../../samples/rtla-osnoise.txt");

/// Makes a run of what a file says; 1,000 µs where it has no interval.
pub fn imported(foreign: &Foreign) -> Imported {
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let mut threads = foreign.series.iter().flat_map(|series| &series.threads);
    let is_told = threads.any(|thread| thread.interval_us.is_some());
    let interval_us = (!is_told).then_some(1_000);
    run(foreign, interval_us, vec!["tare".to_owned()], now).unwrap()
}

/// Returns the record of a cell.
pub fn record(imported: &Imported, cell: usize) -> &Record {
    imported.cells[cell].0.outcome.record().unwrap()
}

/// Returns the threads of a cell.
pub fn threads(imported: &Imported, cell: usize) -> Vec<Thread> {
    let latencies = latencies(imported, cell).into_iter();
    latencies.map(|latencies| latencies.thread).collect()
}

/// Returns the latencies of a cell, as exports take them.
pub fn latencies(imported: &Imported, cell: usize) -> Vec<Latencies> {
    Latencies::of_cell(record(imported, cell), &imported.cells[cell].1).unwrap()
}

/// Leaves out what an import can't know: at which cycles latencies were beyond the histogram.
pub fn without_cycles(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("# Thread "));
    lines.skip_while(|line| *line != "# Histogram").collect()
}

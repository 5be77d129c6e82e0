//! What can be typed after `tare export` and `tare import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tare_exchange::import::TOOLS;

/// The arguments of `tare export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// Folder of the run [default: the newest in tare-runs]
    pub run: Option<PathBuf>,
    /// Format: cyclictest (its -h histogram), cyclictest-json, hgrm (HdrHistogram's percentiles),
    /// csv (exact counts per thread and phase), raw (one wake-up a line), events (times of the
    /// phases)
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    pub format: Format,
    /// Only the cell with this number; may be given several times
    #[arg(long, value_name = "N")]
    pub cell: Vec<u32>,
    /// Only cells of this target
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Write response latencies, including missed activations, instead of service latencies
    #[arg(long)]
    pub response: bool,
    /// Length of cyclictest's histogram: one row for each µs from 0
    #[arg(long, value_name = "US", default_value_t = 1_000)]
    pub histogram: u64,
    /// File to write, or folder for several cells [default: standard output]
    #[arg(long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Replace existing files, but never those that a run has measured
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// cyclictest's histogram.
    Cyclictest,
    /// cyclictest's JSON.
    CyclictestJson,
    /// HdrHistogram's percentile distribution.
    Hgrm,
    /// Exact counts.
    Csv,
    /// Wake-ups as they were.
    Raw,
    /// The phases.
    Events,
}

/// The arguments of `tare import`.
#[derive(Debug, Args)]
pub struct ImportArguments {
    /// Tool that wrote the file: cyclictest (-h, -H or --json), oslat (text or --json), rtla
    /// (timerlat hist, osnoise hist)
    #[arg(value_name = "TOOL", hide_possible_values = true, value_parser = TOOLS)]
    pub tool: String,
    /// Output of the tool; - for standard input
    pub file: PathBuf,
    /// Interval of the threads in µs, if the file does not have it
    #[arg(long, value_name = "US")]
    pub interval: Option<u64>,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-TOOL]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

//! Results of other tools, made a run folder.
//!
//! - [`cyclictest`], [`oslat`], [`rtla`] read what the tools print, as text and, where they have
//!   it, as JSON.
//! - [`Foreign`] is what such a file says; [`run()`] makes plan and cells of it.
//!
//! These tools count whole microseconds, so a latency of 7 µs stands for one from 7 to 8; nothing
//! is known of a wake-up's time. Facts that a file lacks are not made up: they are 0 or none, and a
//! notice in the cell says so.

mod cyclictest;
mod oslat;
mod rtla;
mod run;
mod words;

pub use run::{Imported, run};

use jiff::Timestamp;

use crate::error::ExchangeError;

/// The tools whose results can be read: cyclictest (`-h` or `-H`, or `--json` with a histogram) and
/// oslat of rt-tests, `rtla timerlat hist` and `rtla osnoise hist`.
pub const TOOLS: [&str; 3] = ["cyclictest", "oslat", "rtla"];

/// Returns the text of a file, as far as it is UTF-8.
///
/// # Errors
///
/// [`ExchangeError::NotOutput`] if it is compressed or UTF-16, with what makes a text of it.
pub fn text(bytes: Vec<u8>) -> Result<String, ExchangeError> {
    const OTHERS: [(&[u8], &str); 5] = [
        (
            &[0x1f, 0x8b],
            "it is compressed: decompress it first (gunzip)",
        ),
        (
            &[0xfd, b'7', b'z', b'X', b'Z'],
            "it is compressed: decompress it first (unxz)",
        ),
        (
            &[0x28, 0xb5, 0x2f, 0xfd],
            "it is compressed: decompress it first (unzstd)",
        ),
        (
            &[0xff, 0xfe],
            "it is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)",
        ),
        (
            &[0xfe, 0xff],
            "it is UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)",
        ),
    ];
    match OTHERS.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        Some((_, why)) => Err(ExchangeError::NotOutput((*why).to_owned())),
        None => Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
    }
}

/// Reads what one of [`TOOLS`] printed.
///
/// # Errors
///
/// [`ExchangeError::Line`] with the line that is not as the tool prints it,
/// [`ExchangeError::NotOutput`] if what matters is not there at all.
pub fn read(tool: &str, text: &str) -> Result<Foreign, ExchangeError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut foreign = match tool {
        "cyclictest" => cyclictest::read(text),
        "oslat" => oslat::read(text),
        "rtla" => rtla::read(text),
        other => Err(ExchangeError::NotOutput(format!(
            "unknown tool '{other}'; known are {}",
            TOOLS.join(", ")
        ))),
    }?;
    // JSON that is cut is no JSON.
    if !text.trim_start().starts_with('{') && !text.ends_with('\n') {
        return Err(ExchangeError::NotOutput(
            "its last line has no end: the output broke off, or somebody removed the newline, which the tool writes"
                .to_owned(),
        ));
    }
    let stopped = foreign.stopped.take();
    foreign.stopped = stopped.or_else(|| text.lines().find_map(stopped_at));
    foreign.notices.extend(text.lines().find_map(interrupted));
    foreign.notices.extend(text.lines().find_map(missed));
    Ok(foreign)
}

/// Returns a line if it says that the tool stopped at its threshold.
fn stopped_at(line: &str) -> Option<String> {
    const WORDS: [&str; 2] = ["hit stop tracing", "# Break value:"];
    let is_shown = WORDS.iter().any(|words| line.contains(words));
    is_shown.then(|| words::shown(line))
}

/// Returns a notice if rtla reports that it lost events.
fn missed(line: &str) -> Option<String> {
    let is_shown = line.contains("events missed, results might not be accurate");
    is_shown.then(|| {
        format!(
            "it reports lost events ('{}'), which its figures lack",
            words::shown(line)
        )
    })
}

/// Returns a notice if a line counts the machine's SMIs, which cyclictest does with --smi.
fn interrupted(line: &str) -> Option<String> {
    let counts = line
        .strip_prefix("# SMIs:")?
        .split_whitespace()
        .take(words::MOST_THREADS);
    let counts: Vec<&str> = counts.map(|count| count.trim_start_matches('0')).collect();
    let counts = counts
        .iter()
        .map(|count| if count.is_empty() { "0" } else { *count });
    Some(format!(
        "system management interrupts (SMIs) that it counted, by thread: {}",
        counts.collect::<Vec<_>>().join(", ")
    ))
}

/// The content of another tool's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// The tool, with its version if the file has it.
    pub tool: String,
    /// The command line that made it.
    pub command: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// How long it measured, in ns.
    pub duration_ns: Option<u64>,
    /// Facts about the machine: names and values.
    pub facts: Vec<(String, String)>,
    /// The text that shows that it stopped at the first latency above its own threshold, if it did.
    pub stopped: Option<String>,
    /// The histograms, those of one kind together.
    pub series: Vec<Series>,
    /// Notices for the reader of the figures.
    pub notices: Vec<String>,
}

/// Holds histograms of one kind, one for each thread or CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name by which reports show it, in place of a target: `cyclictest`, `rtla-timerlat-irq`.
    pub name: String,
    /// Whether these are latencies of activations that come at an interval, so that some may have
    /// been missed.
    pub is_periodic: bool,
    /// The histograms.
    pub threads: Vec<Column>,
}

impl Series {
    /// Returns whether it holds nothing: rtla has columns for threads that it has not seen.
    fn is_empty(&self) -> bool {
        let mut threads = self.threads.iter();
        threads.all(|column| column.counted() == 0 && column.over == 0)
    }
}

/// The histogram of one thread. Latencies are whole µs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its id in the kernel; 0 if it is unknown.
    pub tid: u32,
    /// Its CPU.
    pub cpu: Option<u32>,
    /// Its real-time priority, if it is known.
    pub priority: Option<u32>,
    /// Its scheduling policy, if the file states it: `rr`.
    pub policy: Option<String>,
    /// Time between two activations, if it is known.
    pub interval_us: Option<u64>,
    /// Latencies with their counts, rising.
    pub counts: Vec<(u64, u64)>,
    /// How many were longer than the histogram.
    pub over: u64,
    /// From what latency on they count as longer.
    pub limit: u64,
    /// The least latency.
    pub min: Option<u64>,
    /// The greatest.
    pub max: Option<u64>,
    /// The mean.
    pub mean: Option<Mean>,
}

impl Column {
    /// Returns how many latencies are in the histogram.
    fn counted(&self) -> u128 {
        self.counts
            .iter()
            .map(|(_, count)| u128::from(*count))
            .sum()
    }

    /// Checks what the histogram's foot says of how many latencies it counts, those beyond it
    /// included or not.
    fn check(&self, beyond: u64, stated: u64, name: &str, foot: &str) -> Result<(), ExchangeError> {
        let counted = self.counted() + u128::from(beyond);
        if counted == u128::from(stated) {
            return Ok(());
        }
        let difference = counted.abs_diff(stated.into());
        let place = match counted < stated.into() {
            true => "in no row: lines are missing",
            false => "too many in its rows",
        };
        Err(ExchangeError::NotOutput(format!(
            "of the {stated} samples that '{foot}' states for {name}, {difference} are {place}"
        )))
    }

    /// Checks that the least and the greatest latency are those of the histogram, as far as it
    /// reaches.
    fn check_ends(&self, name: &str) -> Result<(), ExchangeError> {
        let least = self.counts.first().map(|(us, _)| *us);
        let most = self
            .counts
            .last()
            .filter(|_| self.over == 0)
            .map(|(us, _)| *us);
        for (end, stated, counted) in [("least", self.min, least), ("greatest", self.max, most)] {
            if let (Some(stated), Some(counted)) = (stated, counted)
                && stated != counted
            {
                return Err(ExchangeError::NotOutput(format!(
                    "the {end} latency that {name} counts is {counted} µs, but the file names {stated} µs"
                )));
            }
        }
        let limit = self.limit;
        match self.max.filter(|us| self.over > 0 && *us < limit) {
            Some(us) => Err(ExchangeError::NotOutput(format!(
                "{} latencies of {name} are beyond the histogram, which ends at {limit} µs, but the file names {us} µs as \
                 the greatest",
                self.over
            ))),
            None => Ok(()),
        }
    }
}

/// A mean as a file gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mean {
    /// With its fraction.
    Rounded(f64),
    /// Whole µs, the rest cut off.
    CutOff(u64),
}

//! The text at the end, and the files.

use std::fmt::Write as _;
use std::fs;

use tare_results::model::{Record, Samples};
use tare_stats::{Quantile, QuantileEstimate, Response, StatsError};

use crate::format::{Head, breaks, histogram, json, spikes, status_lines, values};
use crate::latencies::Latencies;
use crate::screen::Screen;
use crate::settings::Settings;

/// The wake-ups that were measured.
pub struct Summary<'a> {
    settings: &'a Settings<'a>,
    threads: Vec<Latencies>,
    /// Thread and latency in ns that ended the run, if one did.
    broke: Option<(u32, u64)>,
}

impl<'a> Summary<'a> {
    /// Reads the wake-ups of the run's cell.
    ///
    /// # Errors
    ///
    /// As [`Latencies::of_cell`].
    pub fn new(
        settings: &'a Settings<'a>,
        record: &Record,
        samples: &Samples,
    ) -> Result<Self, StatsError> {
        let mut threads = Latencies::of_cell(record, samples)?;
        for thread in &mut threads {
            thread.node = thread.thread.cpu.and_then(node);
        }
        // Without phases each thread has one set, in their order.
        let broke = record.exceeded.first();
        let broke = broke.map(|exceeded| (exceeded.set, exceeded.value));
        Ok(Self {
            settings,
            threads,
            broke,
        })
    }

    /// Returns the text for standard output; `histogram` is that of [`Self::histogram`], unless it
    /// goes to a file.
    pub fn text(&self, screen: &Screen<'_>, histogram: &str) -> String {
        let (output, unit) = (&self.settings.arguments.output, self.settings.unit);
        if self.settings.is_json_only() {
            return String::new();
        }
        let mut text = String::new();
        if output.verbose {
            for latencies in &self.threads {
                let raw: Vec<u64> = latencies.raw.iter().map(|event| event.value).collect();
                let reduction = output.oscope.unwrap_or(1);
                text += &values(latencies.thread.number, &raw, reduction, unit);
            }
        } else if self.settings.is_quiet() && self.settings.histogram.is_none() {
            text += &self.status_lines(screen);
        }
        if self.settings.arguments.limit().is_some() {
            text += &breaks(&self.threads, self.broke, unit);
        }
        if let Some(trigger) = output.spike {
            text += &spikes(&self.threads, trigger, output.spike_nodes, unit);
        }
        text + histogram
    }

    /// Returns the histogram, if one was asked for.
    pub fn histogram(&self) -> Option<String> {
        let style = self.settings.histogram.as_ref();
        style.map(|style| histogram(&self.threads, style))
    }

    /// Returns the JSON.
    ///
    /// # Errors
    ///
    /// As [`json`].
    pub fn json(&self, head: &Head) -> Result<String, StatsError> {
        let size = self.settings.histogram.map_or(0, |style| style.size);
        json(head, &self.threads, size, self.settings.unit)
    }

    /// Returns the figures that cyclictest leaves out. The lines are comments, in case standard
    /// error is mixed with standard output.
    ///
    /// # Errors
    ///
    /// As [`Response::new`].
    pub fn beyond_cyclictest(&self) -> Result<String, StatsError> {
        let mut text =
            "# tare: response latency in us, with the activations that late wake-ups missed"
                .to_owned();
        for latencies in &self.threads {
            let thread = &latencies.thread;
            let response = Response::new(&latencies.counts, thread.interval_ns)?;
            let _ = write!(text, "\n# T:{:2} Missed:{:7}", thread.number, thread.missed);
            for quantile in [
                Quantile::MEDIAN,
                Quantile::P99,
                Quantile::P99_9,
                Quantile::P99_99,
            ] {
                // Of the longest ones only the sum is known.
                let value = match response.supported_quantile(quantile) {
                    QuantileEstimate::Value(ns) if thread.uncounted == 0 => micros(ns),
                    _ => "-".to_owned(),
                };
                let _ = write!(text, "  {quantile}: {value}");
            }
            let _ = write!(text, "  max: {}", micros(thread.max_ns));
        }
        Ok(text)
    }

    pub(crate) fn status_lines(&self, screen: &Screen<'_>) -> String {
        let last_ns = |latencies: &Latencies| match latencies.raw.last() {
            Some(event) if latencies.has_all_raw() => event.value,
            _ => screen.last_ns(latencies.thread.number),
        };
        status_lines(&self.threads, last_ns, self.settings.unit)
    }
}

fn micros(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

/// Returns the NUMA node of a CPU.
fn node(cpu: u32) -> Option<u32> {
    let folder = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    folder.flatten().find_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    })
}

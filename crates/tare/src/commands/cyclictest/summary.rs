//! What is printed at the end, and written to files.

use std::fmt::Write as _;
use std::fs;

use tare_exchange::export::cyclictest::{Head, System, breaks, histogram, json, spikes, values};
use tare_exchange::{ExchangeError, Latencies};
use tare_stats::{Quantile, QuantileEstimate, Response};

use super::Taken;
use super::screen::Screen;
use super::settings::Settings;
use crate::commands::run_folder::judge;
use crate::commands::{command_line, write};
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// Prints and writes everything that was asked for. Returns the exit code, which gates decide.
pub fn print(
    settings: &Settings<'_>,
    taken: &Taken,
    screen: &Screen<'_>,
    terminal: &Terminal,
) -> Result<u8, CommandError> {
    let (arguments, unit) = (settings.arguments, settings.unit);
    let mut text = String::new();
    if arguments.output.verbose {
        for latencies in &taken.threads {
            let raw: Vec<u64> = latencies.raw.iter().map(|event| event.value).collect();
            let reduction = arguments.output.oscope.unwrap_or(1);
            text += &values(latencies.thread.number, &raw, reduction, unit);
        }
    } else if settings.is_quiet() && settings.histogram.is_none() {
        text += &screen.final_lines(taken);
    }
    if arguments.limit().is_some() {
        text += &breaks(&taken.threads, taken.broke, unit);
    }
    if let Some(trigger) = arguments.output.spike {
        text += &spikes(&taken.threads, trigger, arguments.output.spike_nodes, unit);
    }
    if let Some(style) = &settings.histogram {
        let histogram = histogram(&taken.threads, style);
        match &arguments.output.histfile {
            Some(path) => write(path, &histogram)?,
            None => text += &histogram,
        }
    }
    let json_only = settings.is_json_only();
    if !text.is_empty() && !json_only {
        terminal.print(&text)?;
    }
    let code = match &taken.analysis {
        Some(analysis) => judge(&arguments.output.fail_if, analysis, json_only, terminal),
        None => Ok(exit::DONE),
    };
    if let Some(path) = &arguments.output.json {
        let size = settings.histogram.map_or(0, |style| style.size);
        let return_code = code
            .as_ref()
            .map_or_else(CommandError::exit_code, |code| *code);
        let head = head(taken, return_code);
        let json = json(&head, &taken.threads, size, unit).map_err(ExchangeError::from)?;
        match json_only {
            true => terminal.print(&json)?,
            false => write(path, &json)?,
        }
    }
    terminal.note(&left_out(&taken.threads)?);
    code
}

fn head(taken: &Taken, return_code: u8) -> Head {
    let name = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    let realtime = fs::read_to_string("/sys/kernel/realtime");
    Head {
        command: command_line().join(" "),
        version: format!("tare {}", env!("CARGO_PKG_VERSION")),
        start: taken.start,
        end: taken.end,
        return_code,
        system: System {
            sysname: text(name.sysname()),
            nodename: text(name.nodename()),
            release: text(name.release()),
            version: text(name.version()),
            machine: text(name.machine()),
            realtime: realtime.is_ok_and(|text| text.trim() == "1"),
        },
    }
}

/// Says what cyclictest leaves out. The lines are comments, should standard error be mixed in.
fn left_out(threads: &[Latencies]) -> Result<String, CommandError> {
    let mut text =
        "# tare: response latency in us, with the activations that late wake-ups missed".to_owned();
    for latencies in threads {
        let thread = &latencies.thread;
        let response = Response::new(&latencies.counts, thread.interval_ns);
        let response = response.map_err(ExchangeError::from)?;
        let _ = write!(text, "\n# T:{:2} Missed:{:7}", thread.number, thread.missed);
        for quantile in [
            Quantile::MEDIAN,
            Quantile::P99,
            Quantile::P99_9,
            Quantile::P99_99,
        ] {
            // The longest are known by their sum only.
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

fn micros(ns: u64) -> String {
    format!("{}.{}", ns / 1_000, ns % 1_000 / 100)
}

/// Returns the NUMA node of a CPU.
pub fn node(cpu: u32) -> Option<u32> {
    let folder = fs::read_dir(format!("/sys/devices/system/cpu/cpu{cpu}")).ok()?;
    folder.flatten().find_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.strip_prefix("node")?.parse().ok()
    })
}

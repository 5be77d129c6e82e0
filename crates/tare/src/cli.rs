//! What can be typed.
//!
//! Arguments are read in two stages: here is what was typed, with help grouped under headings;
//! what it means is decided in [`crate::commands`].

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tare_results::model::SettingPlan;
use tare_wire::plan::{Plan, Threshold, Timing};

use crate::terminal::Colour;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: a cell, a file or the machine; what was measured is kept
  2  usage: the arguments make no sense
  3  a threshold or comparison gate failed
  4  interrupted; --resume goes on
  5  a target can't be used here";

/// Weigh what an operating system costs the work it carries.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = EXIT_CODES,
    disable_help_subcommand = true
)]
pub struct Cli {
    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub color: Colour,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// Is what to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take a first picture of this machine in less than a minute
    Quick(QuickArguments),
    /// Measure how often and how long short work is delayed
    ///
    /// Without arguments, all three workloads run five times each on the quietest CPU, in less
    /// than 20 s. Each run is a block that holds every combination once, in random order.
    Noise(Box<NoiseArguments>),
    /// Show a run again, and write its report anew
    Report(ReportArguments),
    /// List the targets, and what would make each usable
    Targets(ListArguments),
    /// Tell what disturbs measuring on this machine, why, and what to do
    Doctor(DoctorArguments),
    /// Undo what an earlier command left behind when it was killed
    ///
    /// Every command does this when it starts. Processes, scratch folders and settings of
    /// commands that are still running are not touched.
    Clean,
}

/// Holds the arguments of `tare noise`.
#[derive(Debug, Default, Args)]
pub struct NoiseArguments {
    /// Workloads to run: prime (registers only), copy (memory), gap (spins on the timer)
    /// [default: all]
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Workload"
    )]
    pub workload: Vec<WorkloadName>,
    /// Count the primes below N; several N, separated by commas, make a sweep [default: 22]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        help_heading = "Workload"
    )]
    pub limit: Vec<u32>,
    /// Copy N elements of 8 bytes; several N make a sweep [default: 100]
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        help_heading = "Workload"
    )]
    pub size: Vec<u64>,
    /// List every delay above N: cycles, or with a unit ns, us, ms [default: prime and copy 400
    /// cycles above the run's mean; gap 500ns, or 20 steps of a coarser timer]
    #[arg(
        long,
        value_name = "N",
        default_value = "auto",
        hide_default_value = true,
        value_parser = threshold,
        help_heading = "Workload"
    )]
    pub threshold: Threshold,
    /// Repetitions timed in each run; timer reads for gap [default: 1000000; gap: 100000000]
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub repetitions: Option<u64>,
    /// Repetitions before each run that are not timed
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT_WARMUP, help_heading = "Workload")]
    pub warmup: u64,
    /// How a repetition is timed: fenced (lfence; rdtsc; lfence … rdtscp; lfence), or published
    /// (two bare rdtscp, as kot-2019)
    #[arg(
        long,
        value_name = "HOW",
        default_value = "fenced",
        hide_possible_values = true,
        help_heading = "Workload"
    )]
    pub timing: TimingName,
    /// Raw samples kept from the middle of each run
    #[arg(long, value_name = "N", default_value_t = Plan::DEFAULT_WINDOW, help_heading = "Workload")]
    pub window: u32,

    /// Where to run; may be given several times. `tare targets` lists them [default: process]
    #[arg(long, value_name = "TARGET", help_heading = "Place")]
    pub target: Vec<String>,
    /// CPU to measure on [default: an isolated one, else the quietest other than CPU 0]
    #[arg(long, value_name = "N", help_heading = "Place")]
    pub cpu: Option<u32>,
    /// Change a kernel setting for the time of the run: vm.stat_interval=120, or a file below
    /// /proc/sys or /sys. May be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Place")]
    pub set: Vec<SettingPlan>,

    /// How often each combination runs [default: 5]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub runs: Option<u32>,
    /// Seed of the random order within each block [default: random]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Time after which a cell counts as hung, such as 90s [default: 30 s and ten times its
    /// estimate]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Run")]
    pub cell_limit: Option<Duration>,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-noise]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub output: Option<PathBuf>,
    /// Go on with an interrupted run: do only what is missing
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "workload", "limit", "size", "threshold", "repetitions", "warmup", "timing", "window",
            "target", "cpu", "set", "runs", "seed", "cell_limit", "output",
        ],
        help_heading = "Run"
    )]
    pub resume: Option<PathBuf>,
    /// Print the plan and how long it will take, and do nothing
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,

    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Holds the arguments of `tare quick`.
#[derive(Debug, Args)]
pub struct QuickArguments {
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-quick]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// CPU to measure on [default: an isolated one, else the quietest other than CPU 0]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Holds the arguments of `tare report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folder of the run [default: the newest in tare-runs]
    pub run: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Holds the arguments of `tare targets`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// Holds the arguments of `tare doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// CPU to examine [default: the one that would be measured]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Show what is as it should be, too
    #[arg(long)]
    pub all: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Names a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WorkloadName {
    /// Counts primes, in registers only.
    Prime,
    /// Copies and increments an array.
    Copy,
    /// Spins on the timer.
    Gap,
}

/// Names a way of timing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimingName {
    /// Fences on both sides.
    #[default]
    Fenced,
    /// Bare rdtscp.
    Published,
}

impl From<TimingName> for Timing {
    fn from(name: TimingName) -> Self {
        match name {
            TimingName::Fenced => Self::Fenced,
            TimingName::Published => Self::Published,
        }
    }
}

fn threshold(text: &str) -> Result<Threshold, String> {
    match Threshold::parse(text) {
        Some(Threshold::Cycles(0) | Threshold::Ns(0)) => {
            Err("a threshold of 0 would list every sample".to_owned())
        }
        Some(threshold) => Ok(threshold),
        None => Err("want a whole number, alone (cycles) or with cycles, ns, us or ms".to_owned()),
    }
}

/// Reads `NAME=VALUE`, where NAME is a file or, as for sysctl, its path below /proc/sys with dots.
fn setting(text: &str) -> Result<SettingPlan, String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or("want NAME=VALUE")?;
    let path = if name.starts_with('/') {
        name.to_owned()
    } else {
        format!("/proc/sys/{}", name.replace('.', "/"))
    };
    Ok(SettingPlan {
        path,
        value: value.to_owned(),
    })
}

/// Reads a duration of seconds, minutes or hours: `500ms`, `90s`, `5m`, `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .ok_or("want a unit: ms, s, m or h")?;
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| "want a number and a unit")?;
    let seconds = match unit {
        "ms" => number / 1e3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err("want a unit: ms, s, m or h".to_owned()),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("want a duration above 0 that a clock can hold".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn settings_are_files_or_sysctl_names() {
        let path = |text| setting(text).map(|setting| setting.path);
        assert_eq!(
            path("vm.stat_interval=120").as_deref(),
            Ok("/proc/sys/vm/stat_interval")
        );
        assert_eq!(path("/sys/a=b=c").as_deref(), Ok("/sys/a"));
        for wrong in ["", "=", "a=", "=1", "vm.stat_interval"] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_a_positive_number() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "90", "s", "-1s", "0s", "1d", "1e400s", "..s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}

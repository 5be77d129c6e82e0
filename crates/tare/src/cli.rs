//! What can be typed.
//!
//! Arguments are read in two stages: here is what was typed, with help grouped under headings;
//! what it means is decided in [`crate::commands`].

pub mod compare;
pub mod cyclictest;
pub mod exchange;
pub mod kernel;
pub mod wakeup;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tare_lab::units::{duration, setting_file};
use tare_loads::{Cpus, Load};
use tare_report::rows::Gate;
use tare_results::model::SettingPlan;
use tare_services::noise::{Plan, Threshold, Timing};

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
    /// Measure how late sleeping threads are woken, as cyclictest does, and what it leaves out
    ///
    /// Without arguments, a thread under SCHED_FIFO is woken every 100 µs on the quietest CPU, three
    /// times for 4 s. Activations that a late wake-up missed are counted and have their latency, too.
    Wakeup(Box<wakeup::WakeupArguments>),
    /// Measure as cyclictest does, with its options and its output
    ///
    /// Scripts that read cyclictest's output read this one. What cyclictest leaves out, the missed
    /// activations and their latency, is told on standard error and in keys of their own in the
    /// JSON. No run folder is written. docs/cyclictest.md lists the options.
    // As getopt_long: the last of several counts, and a long name may be cut off where it stays clear.
    #[command(
        disable_help_flag = true,
        args_override_self = true,
        infer_long_args = true
    )]
    Cyclictest(Box<cyclictest::CyclictestArguments>),
    /// Run a study: a file that says what to measure where, and how often
    ///
    /// Everything in the file is checked before anything starts. `tare study explain` says what
    /// would be measured; docs/studies.md describes the format.
    Run(RunArguments),
    /// Check or explain study files
    Study(StudyArguments),
    /// Repeat a published study, and tell which of its claims are reproduced here
    ///
    /// The report shows the published figures beside those measured, and for each claim whether it
    /// is reproduced, not reproduced, or cannot be told here, and why.
    Reproduce(ReproduceArguments),
    /// Show a run again, and write its report anew
    Report(ReportArguments),
    /// Tell what differs between runs, or within one, and how sure that is
    ///
    /// The unit is the invocation: give several folders of each side, best measured in alternation. All figures are
    /// judged together, so that of twenty comparisons without any difference one says that there is one. A
    /// single run against another is compared, too, and called what it is. docs/comparing.md explains.
    Compare(compare::CompareArguments),
    /// Write the wake-ups of a run in the formats of other tools
    Export(exchange::ExportArguments),
    /// Make a run of what cyclictest, oslat or rtla printed
    Import(exchange::ImportArguments),
    /// List the targets, and what would make each usable
    Targets(ListArguments),
    /// List, fetch, add or remove the kernels that guests boot
    Kernel(kernel::KernelArguments),
    /// Tell what disturbs measuring on this machine, why, and what to do
    Doctor(DoctorArguments),
    /// Boot an image of the unikernel by itself, to work on it
    #[command(subcommand)]
    Image(ImageCommand),
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
    /// Background load to measure under; may be given several times: idle, dd, hackbench, du, tar,
    /// nc, ping, stress-ng:ARGS, command:WORDS, several at once as dd+hackbench [default: idle]
    #[arg(long, value_name = "LOAD", value_parser = load, help_heading = "Place")]
    pub load: Vec<Load>,
    /// CPUs that the loads run on: all, others (all but the measured one) or a list [default: all, as
    /// in landolfi-2018]
    #[arg(long, value_name = "CPUS", value_parser = load_cpus, requires = "load", help_heading = "Place")]
    pub load_cpus: Option<Cpus>,
    /// CPU to measure on [default: an isolated one, else the quietest other than CPU 0]
    #[arg(long, value_name = "N", help_heading = "Place")]
    pub cpu: Option<u32>,
    /// Start a private Docker engine for the cells that need one, if none runs, and stop it after
    /// them: it would disturb all others
    #[arg(long, help_heading = "Place")]
    pub start_engine: bool,
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
    /// estimate; under a load 300 s and fifty times]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Run")]
    pub cell_limit: Option<Duration>,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-noise]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub output: Option<PathBuf>,
    /// Go on with a run: do what is missing, and with --runs so many runs more
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "workload", "limit", "size", "threshold", "repetitions", "warmup", "timing", "window",
            "target", "load", "load_cpus", "cpu", "start_engine", "set", "seed",
            "cell_limit", "output",
        ],
        help_heading = "Run"
    )]
    pub resume: Option<PathBuf>,
    /// Print the plan and how long it will take, and do nothing
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,

    /// End with exit code 3 if a figure is above a limit: 'lost > 2%', 'latency.p99.9{load=dd} > 50us'. May be given
    /// several times
    #[arg(long, value_name = "GATE", help_heading = "Output")]
    pub fail_if: Vec<Gate>,
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
    /// End with exit code 3 if a figure is above a limit: 'lost > 2%', 'latency.p99.9{load=dd} > 50us'. May be given
    /// several times
    #[arg(long, value_name = "GATE")]
    pub fail_if: Vec<Gate>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Holds the arguments of `tare run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// File of the study; with --resume only to check that it is still the same
    #[arg(value_name = "STUDY.toml", required_unless_present = "resume")]
    pub study: Option<PathBuf>,
    /// Run the study's shorter variant, which its [quick] tables describe
    #[arg(long, help_heading = "Run")]
    pub quick: bool,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-NAME]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub output: Option<PathBuf>,
    /// Go on with a run: do what is missing, and with --runs so many runs more
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["quick", "output", "start_engine"],
        help_heading = "Run"
    )]
    pub resume: Option<PathBuf>,
    /// Runs of each combination to add to the run that --resume names
    #[arg(long, value_name = "N", requires = "resume", help_heading = "Run")]
    pub runs: Option<u32>,
    /// Start a private Docker engine for the cells that need one, if none runs, and stop it after
    /// them: it would disturb all others
    #[arg(long, help_heading = "Run")]
    pub start_engine: bool,
    /// Print the plan and how long it will take, and do nothing
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,
    /// End with exit code 3 if a figure is above a limit: 'lost > 2%', 'latency.p99.9{load=dd} > 50us'. May be given
    /// several times
    #[arg(long, value_name = "GATE", help_heading = "Output")]
    pub fail_if: Vec<Gate>,
    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Holds the arguments of `tare study`.
#[derive(Debug, Args)]
pub struct StudyArguments {
    /// What to do with the study
    #[command(subcommand)]
    pub command: StudyCommand,
}

/// Is what to do with a study.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Tell everything that is wrong with study files, with line and column
    Check {
        /// Files to check
        #[arg(value_name = "STUDY.toml", required = true)]
        files: Vec<PathBuf>,
    },
    /// Say in plain words what a study measures where, how often, in which order, for how long
    Explain {
        /// File of the study, or the name of one that comes with tare: kot-2019
        #[arg(value_name = "STUDY")]
        study: PathBuf,
        /// Explain its shorter variant
        #[arg(long)]
        quick: bool,
    },
}

/// Holds the arguments of `tare reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// Published study: kot-2019, landolfi-2018, includeos-2015, calder-2020, cse221-2022
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub name: Option<String>,
    /// List the published studies, and which can be reproduced
    #[arg(
        long,
        conflicts_with_all = [
            "name", "quick", "deterministic", "phase", "output", "start_engine", "dry_run",
        ],
    )]
    pub list: bool,
    /// Run a shorter variant: minutes, and wider intervals
    #[arg(long, help_heading = "Run")]
    pub quick: bool,
    /// Run in guests that count instructions instead of time: repeats exactly, whatever the machine does
    #[arg(long, help_heading = "Run")]
    pub deterministic: bool,
    /// Run each phase of the loads for so long: seconds, or with a unit
    #[arg(long, value_name = "TIME", value_parser = wakeup::in_seconds, help_heading = "Run")]
    pub phase: Option<u64>,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-NAME]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub output: Option<PathBuf>,
    /// Start a private Docker engine for the cells that need one, if none runs, and stop it after
    /// them: it would disturb all others
    #[arg(long, help_heading = "Run")]
    pub start_engine: bool,
    /// Print the plan and how long it will take, and do nothing
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,
    /// End with exit code 3 if a figure is above a limit: 'lost > 2%', 'latency.p99.9{load=dd} > 50us'. May be given
    /// several times
    #[arg(long, value_name = "GATE", help_heading = "Output")]
    pub fail_if: Vec<Gate>,
    /// Print the summary as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// Holds the arguments of `tare report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folder of the run [default: the newest in tare-runs]
    pub run: Option<PathBuf>,
    /// End with exit code 3 if a figure is above a limit: 'lost > 2%', 'latency.p99.9{load=dd} > 50us'. May be given
    /// several times
    #[arg(long, value_name = "GATE")]
    pub fail_if: Vec<Gate>,
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

/// Is what to do with an image.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Boot it with its console on this terminal
    ///
    /// The image is named as the target unikernel is, with its own name or path in front:
    /// bench,irq=off or ./my-image,machine=pc,mem=2M. Ctrl-C ends it.
    Run(ImageRunArguments),
}

/// Holds the arguments of `tare image run`.
#[derive(Debug, Args)]
pub struct ImageRunArguments {
    /// Image: hello, bench or a path with a slash, and options of the target unikernel
    #[arg(value_name = "IMAGE")]
    pub image: String,
    /// Words for its command line
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Wait for gdb on this port of 127.0.0.1 before the first instruction [default port: 1234]
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1234",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub gdb: Option<u16>,
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

fn load(text: &str) -> Result<Load, String> {
    Load::parse(text).map_err(|error| error.to_string())
}

fn load_cpus(text: &str) -> Result<Cpus, String> {
    Cpus::parse(text).ok_or_else(|| "want all, others or a list such as 0-2,5".to_owned())
}

/// Reads `NAME=VALUE`, where NAME is a file or, as for sysctl, its path below /proc/sys with dots.
fn setting(text: &str) -> Result<SettingPlan, String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or("want NAME=VALUE")?;
    Ok(SettingPlan {
        path: setting_file(name),
        value: value.to_owned(),
    })
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
}

//! What can be typed.
//!
//! Arguments are read in two stages: here is what was typed, with help grouped under headings;
//! what it means is decided in [`crate::commands`].

pub mod compare;
pub mod exchange;
pub mod kernel;
pub mod measure;
pub mod scale;
pub mod top;

use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand};
use tare_lab::units::nanoseconds;

use self::measure::{CpuArgument, ResultOptions, RunOptions};

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed: a cell, a file or the machine; what was measured is kept
  2  usage: invalid arguments
  3  a threshold or comparison gate failed
  4  interrupted; --resume continues
  5  a target, or the CPU, can't be used here";

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
    pub color: ColorChoice,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Get a first picture of this machine in less than a minute
    Quick(QuickArguments),
    #[command(flatten)]
    Measure(Box<measure::MeasureCommand>),
    /// Measure as cyclictest does, with its options and its output
    ///
    /// Scripts that read cyclictest's output can read this one. Figures that cyclictest omits, the
    /// missed activations and their latency, go to standard error and into separate keys of the
    /// JSON. No run folder is written. docs/cyclictest.md lists the options.
    // As getopt_long: the last of several counts, and a long name may be cut off where it stays
    // clear.
    #[command(
        disable_help_flag = true,
        args_override_self = true,
        infer_long_args = true
    )]
    Cyclictest(Box<tare_cyclictest::Arguments>),
    /// Run a study: a file that says what to measure where, and how often
    ///
    /// All files are checked before anything starts; several run one after the other, each into its
    /// own run folder. `tare study explain` shows what would be measured; docs/studies.md describes
    /// the format.
    Run(RunArguments),
    /// Check or explain study files
    #[command(subcommand)]
    Study(StudyCommand),
    /// Repeat a published study and check which of its claims are reproduced here
    ///
    /// The report shows the published and the measured figures, and a verdict with its reason for
    /// each claim: reproduced, not reproduced, or inconclusive.
    Reproduce(ReproduceArguments),
    /// Show a run and regenerate its report
    Report(ReportArguments),
    /// Compare runs, or targets or loads within one
    ///
    /// The unit is the invocation: give several folders for each side, best measured in
    /// alternation. All figures are judged together: about one in twenty comparisons of identical
    /// systems reports a difference. A single run can be compared with another, but the result
    /// holds only for these two runs. docs/comparing.md explains.
    Compare(compare::CompareArguments),
    /// Compute what the noise of a run costs on many nodes
    ///
    /// A program whose nodes wait for each other after each step, and a request that fans out to
    /// many servers, take as long as the slowest of them. The delays that `tare noise` measured on
    /// one CPU say how much that is on N nodes. docs/scale.md describes the model and its limits.
    Scale(scale::ScaleArguments),
    /// Export the wake-ups of a run in formats of other tools
    Export(exchange::ExportArguments),
    /// Import the output of cyclictest, oslat or rtla as a run
    Import(exchange::ImportArguments),
    /// List the targets and what makes each usable
    Targets(ListArguments),
    /// List, fetch, add or remove the kernels that guests boot
    #[command(subcommand)]
    Kernel(kernel::KernelCommand),
    /// Find what disturbs measurements on this machine, why, and what to do about it
    Doctor(DoctorArguments),
    /// Boot a unikernel image, to work on it
    #[command(subcommand)]
    Image(ImageCommand),
    /// Write completions of shells and man pages into a folder, as they lie below PREFIX/share
    #[command(hide = true)]
    Share(ShareArguments),
    /// Undo what a killed command left behind
    ///
    /// Every command does this when it starts. Processes, scratch folders and settings of commands
    /// that still run are not touched.
    Clean,
}

/// The arguments of `tare quick`.
#[derive(Debug, Args)]
pub struct QuickArguments {
    #[command(flatten)]
    pub cpu: CpuArgument,
    #[command(flatten)]
    pub options: RunOptions,
}

/// The arguments of `tare run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Study files; with --resume one, which is only checked to be still the same
    #[arg(value_name = "STUDY.toml", required_unless_present = "resume")]
    pub studies: Vec<PathBuf>,
    /// Run the shorter variant that the study's [quick] tables describe
    #[arg(long, help_heading = "Run")]
    pub quick: bool,
    /// Continue a run; with --runs, add that many runs of each combination
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["quick", "output", "start_engine"],
        help_heading = "Run"
    )]
    pub resume: Option<PathBuf>,
    /// Runs of each combination to add to the run that --resume continues
    #[arg(long, value_name = "N", requires = "resume", help_heading = "Run")]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub options: RunOptions,
}

/// What to do with a study.
#[derive(Debug, Subcommand)]
pub enum StudyCommand {
    /// Report all errors in study files, with line and column
    Check {
        /// Files to check
        #[arg(value_name = "STUDY.toml", required = true)]
        files: Vec<PathBuf>,
    },
    /// Explain what a study measures where, how often, in which order, for how long
    Explain {
        /// Study file, or the name of a study that comes with tare: kot-2019
        #[arg(value_name = "STUDY")]
        study: PathBuf,
        /// Explain its shorter variant
        #[arg(long)]
        quick: bool,
    },
}

/// The arguments of `tare reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceArguments {
    /// Published study
    #[arg(value_name = "NAME", help = format!("Published study: {}", crate::commands::reproduce::studies()), required_unless_present_any = ["list", "resume"])]
    pub name: Option<String>,
    /// List the published studies and their questions
    #[arg(
        long,
        conflicts_with_all = [
            "name", "quick", "deterministic", "phase", "resume", "output", "start_engine", "dry_run",
        ],
    )]
    pub list: bool,
    /// Run a shorter variant: minutes, with wider intervals
    #[arg(long, help_heading = "Run")]
    pub quick: bool,
    /// Run in guests that count instructions instead of time: repeats exactly, whatever the machine
    /// does
    #[arg(long, help_heading = "Run")]
    pub deterministic: bool,
    /// Length of each phase of the loads: seconds, or with a unit
    #[arg(long, value_name = "TIME", value_parser = in_seconds, help_heading = "Run")]
    pub phase: Option<u64>,
    /// Continue a run
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = ["quick", "deterministic", "phase", "output", "start_engine"],
        help_heading = "Run"
    )]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    pub options: RunOptions,
}

/// The arguments of `tare report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Folder of the run [default: the newest in tare-runs]
    pub run: Option<PathBuf>,
    #[command(flatten)]
    pub result: ResultOptions,
    /// Folder for the report's files; must be new or empty [default: the run's folder]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// The arguments of `tare targets`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to do with an image.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Boot an image with its console on this terminal
    ///
    /// IMAGE is written like the target unikernel, with the image's name or path in place of
    /// `unikernel`: bench,irq=off or ./my-image,machine=pc,mem=2M. Records are decoded. Ctrl-C ends
    /// the guest.
    Run(ImageRunArguments),
}

/// The arguments of `tare image run`.
#[derive(Debug, Args)]
pub struct ImageRunArguments {
    /// Image: a name such as hello or bench, or a path with a slash; options of the target unikernel
    /// may follow
    #[arg(value_name = "IMAGE")]
    pub image: String,
    /// Words for the image's command line
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Print records as they are on the wire
    #[arg(long)]
    pub raw: bool,
    /// Wait for gdb on this port of 127.0.0.1 before the first instruction [default without PORT:
    /// 1234]
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

/// The arguments of `tare share`.
#[derive(Debug, Args)]
pub struct ShareArguments {
    /// Folder: /usr/local/share
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// The arguments of `tare doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// CPU to examine [default: the one that a measurement would use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Target to examine from inside, in place of this machine: linux,kernel=debian-rt,isolate=1
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    /// Also list what is good, and why each finding matters
    #[arg(long)]
    pub all: bool,
    /// Print the findings as JSON
    #[arg(long)]
    pub json: bool,
}

/// Reads a time whose bare number is of seconds.
fn in_seconds(text: &str) -> Result<u64, String> {
    nanoseconds(text, Some("s"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}

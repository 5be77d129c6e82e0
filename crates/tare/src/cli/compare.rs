//! The arguments of `tare compare`.

use std::path::PathBuf;

use clap::Args;
use tare_figures::compare::ShiftGate;

/// What can be compared within a run.
pub const BY: [&str; 2] = ["target", "load"];

/// The arguments of `tare compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Run folders of the baseline; with --by, the one run to compare within
    #[arg(value_name = "BASE", required_unless_present = "itself")]
    pub base: Vec<PathBuf>,
    /// Run folders to compare with the baseline
    #[arg(long, value_name = "NEW", num_args = 1.., required_unless_present_any = ["by", "itself"])]
    pub to: Vec<PathBuf>,
    /// Compare within one run, by target or by load: the first one with each other one
    #[arg(long, value_name = "WHAT", conflicts_with = "to", hide_possible_values = true, value_parser = BY)]
    pub by: Option<String>,
    /// Compare this machine with itself, and print the rate of false alarms
    #[arg(long = "self", conflicts_with_all = ["base", "to", "by", "fail_if", "allow_single", "json", "markdown"])]
    pub itself: bool,
    /// Pairs of invocations that --self measures
    #[arg(long, value_name = "N", default_value_t = 6, requires = "itself", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// Measuring command for --self, after --, with its arguments
    /// [default: noise --workload gap --repetitions 20000000 --runs 6]
    #[arg(last = true, value_name = "COMMAND", requires = "itself")]
    pub command: Vec<String>,

    /// End with exit code 3 if a figure exceeds the baseline by more than a limit: 'noise/lost >
    /// +5%', 'latency.p99{load=dd} > +2us'. May be given several times
    #[arg(long, value_name = "GATE", help_heading = "Gate")]
    pub fail_if: Vec<ShiftGate>,
    /// Apply gates even when each side has only one invocation
    #[arg(long, requires = "fail_if", help_heading = "Gate")]
    pub allow_single: bool,

    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub markdown: bool,
    /// Print the comparison as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Print the verdict only: no tables
    #[arg(short, long, conflicts_with_all = ["json", "markdown"], help_heading = "Output")]
    pub quiet: bool,
}

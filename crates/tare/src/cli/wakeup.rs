//! What can be typed after `tare wakeup`. Options that cyclictest has are called as there.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tare_lab::units::{duration, nanoseconds};
use tare_loads::{Cpus as LoadCpus, Load};
use tare_report::rows::Gate;
use tare_results::model::SettingPlan;
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use super::{load, load_cpus, setting};
use crate::actions::Action;

/// Holds the arguments of `tare wakeup`.
#[derive(Debug, Args)]
pub struct WakeupArguments {
    /// Measuring threads; without N one for each CPU. They are pinned in turn to the CPUs of -a, without
    /// it to as many CPUs, the highest numbers first [default: one for each CPU of -a]
    #[arg(
        short = 't',
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "0",
        help_heading = "Threads"
    )]
    pub threads: Option<u32>,
    /// CPUs to measure on, such as 1 or 0,2-3; without CPUS all [default: an isolated one, else the
    /// quietest other than CPU 0]
    #[arg(
        short = 'a',
        long,
        visible_alias = "cpu",
        value_name = "CPUS",
        num_args = 0..=1,
        default_missing_value = "all",
        value_parser = affinity,
        help_heading = "Threads"
    )]
    pub affinity: Option<Affinity>,
    /// One thread on each CPU, all with the same interval: -a without CPUS
    #[arg(short = 'S', long, conflicts_with_all = ["threads", "affinity"], help_heading = "Threads")]
    pub smp: bool,
    /// Time between two activations: µs, or with a unit ns, us, ms, s [default: 100]
    #[arg(short = 'i', long, value_name = "TIME", value_parser = in_us, help_heading = "Threads")]
    pub interval: Option<u64>,
    /// How much longer the interval of each further thread is: µs, or with a unit [default: 500 where
    /// threads share a CPU, else 0]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = in_us, help_heading = "Threads")]
    pub distance: Option<u64>,
    /// Real-time priority, 1 to 99 [default: 95]
    #[arg(short = 'p', long, value_name = "PRIO", help_heading = "Threads")]
    pub priority: Option<u32>,
    /// Scheduling policy: fifo, rr, deadline, other (an ordinary thread, which takes no right)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "fifo",
        hide_possible_values = true,
        help_heading = "Threads"
    )]
    pub policy: PolicyName,
    /// Measure for so long: seconds, or with a unit ms, s, m, h, d [default: 4; with --trace-above 60]
    #[arg(short = 'D', long, value_name = "TIME", value_parser = in_seconds, help_heading = "Threads")]
    pub duration: Option<u64>,
    /// End each thread after N wake-ups
    #[arg(short = 'l', long, value_name = "N", help_heading = "Threads")]
    pub loops: Option<u64>,
    /// CPUs of the thread that starts and watches the measuring ones [default: those that are not
    /// measured]
    #[arg(long, value_name = "CPUS", value_parser = cpus, help_heading = "Threads")]
    pub mainaffinity: Option<Cpus>,

    /// Where to run; may be given several times. `tare targets` lists them [default: process]
    #[arg(long, value_name = "TARGET", help_heading = "Place")]
    pub target: Vec<String>,
    /// Background load to measure under; may be given several times: idle, dd, hackbench, du, tar,
    /// nc, ping, stress-ng:ARGS, command:WORDS, several at once as dd+hackbench [default: idle]
    #[arg(long, value_name = "LOAD", value_parser = load, help_heading = "Place")]
    pub load: Vec<Load>,
    /// Run the loads one after the other in one measurement, each for so long: seconds, or with a unit
    #[arg(
        long,
        value_name = "TIME",
        value_parser = in_seconds,
        requires = "load",
        conflicts_with_all = ["duration", "loops"],
        help_heading = "Place"
    )]
    pub phase: Option<u64>,
    /// CPUs that the loads run on: all, others (all but the measured one) or a list [default: all, as
    /// in landolfi-2018]
    #[arg(long, value_name = "CPUS", value_parser = load_cpus, requires = "load", help_heading = "Place")]
    pub load_cpus: Option<LoadCpus>,
    /// Start a private Docker engine for the cells that need one, if none runs, and stop it after
    /// them: it would disturb all others
    #[arg(long, help_heading = "Place")]
    pub start_engine: bool,
    /// Change a kernel setting for the time of the run: vm.stat_interval=120, or a file below
    /// /proc/sys or /sys. May be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Place")]
    pub set: Vec<SettingPlan>,

    /// List every wake-up that is so late: µs, or with a unit [default: the interval]
    #[arg(long, value_name = "TIME", value_parser = in_us, help_heading = "Late wake-ups")]
    pub threshold: Option<u64>,
    /// Tell what the kernel did around the N worst wake-ups, in one more run of each combination:
    /// tracing costs time [default N: 10]
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "10",
        help_heading = "Late wake-ups"
    )]
    pub trace: Option<u32>,
    /// Wait for a wake-up that is later than this, µs or with a unit: stop, tell what the kernel did
    /// around it, and end with exit code 3. Traces, and measures once for 60 s unless -D and --runs
    /// say otherwise
    #[arg(long, value_name = "TIME", value_parser = in_us, help_heading = "Late wake-ups")]
    pub trace_above: Option<u64>,
    /// What to do when --trace-above is exceeded; may be given several times: report,
    /// signal:NAME[,pid=PID] (to tare's parent unless a PID is given), command:CMD (by sh, for 30 s at
    /// most), continue (don't stop) [default: report]
    #[arg(
        long,
        value_name = "ACTION",
        value_parser = Action::parse,
        help_heading = "Late wake-ups"
    )]
    pub on_threshold: Vec<Action>,

    /// How often each combination runs [default: 3; with --trace-above 1]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub runs: Option<u32>,
    /// Seed of the random order within each block [default: random]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub seed: Option<u64>,
    /// Time after which a cell counts as hung, such as 90s [default: more than three times its
    /// estimate]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Run")]
    pub cell_limit: Option<Duration>,
    /// Folder of the run; must be new or empty [default: tare-runs/TIME-wakeup]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub output: Option<PathBuf>,
    /// Go on with a run: do what is missing, and with --runs so many runs more
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "threads", "affinity", "smp", "interval", "distance", "priority", "policy", "duration",
            "loops", "mainaffinity", "target", "load", "phase", "load_cpus", "start_engine", "set",
            "threshold", "trace", "trace_above", "seed", "cell_limit", "output",
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

/// Says which CPUs are asked for.
#[derive(Clone, Debug)]
pub enum Affinity {
    /// All that this process may use.
    All,
    /// These.
    These(Cpus),
}

/// Names a scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_OTHER.
    Other,
}

impl From<PolicyName> for Policy {
    fn from(name: PolicyName) -> Self {
        match name {
            PolicyName::Fifo => Self::Fifo,
            PolicyName::Rr => Self::RoundRobin,
            PolicyName::Deadline => Self::Deadline,
            PolicyName::Other => Self::Other,
        }
    }
}

fn affinity(text: &str) -> Result<Affinity, String> {
    if text == "all" {
        return Ok(Affinity::All);
    }
    cpus(text).map(Affinity::These)
}

fn cpus(text: &str) -> Result<Cpus, String> {
    Cpus::parse(text).ok_or_else(|| "want CPUs such as 1 or 0,2-3".to_owned())
}

fn in_us(text: &str) -> Result<u64, String> {
    nanoseconds(text, Some("us"))
}

/// Reads a time whose bare number is of seconds.
pub(super) fn in_seconds(text: &str) -> Result<u64, String> {
    nanoseconds(text, Some("s"))
}

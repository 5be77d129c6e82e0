//! What can be typed after `tare cyclictest`: the options of cyclictest, with its letters.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use tare_report::rows::Gate;

/// The arguments of `tare cyclictest`.
#[derive(Debug, Default, Args)]
pub struct CyclictestArguments {
    /// Measuring threads; without N one for each CPU [default: 1]
    #[arg(
        short = 't',
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "0",
        help_heading = "Threads",
        value_parser = number::<u32>
    )]
    pub threads: Option<u32>,
    /// CPUs to which they are pinned in turn, such as 1 or 0,2-3 or !0 [default: all]
    #[arg(
        short = 'a',
        long,
        value_name = "CPUS",
        num_args = 0..=1,
        default_missing_value = "all",
        help_heading = "Threads"
    )]
    pub affinity: Option<String>,
    /// One thread on each CPU: -t -a, whatever else these say
    #[arg(short = 'S', long, help_heading = "Threads")]
    pub smp: bool,
    /// CPUs of the thread that starts and watches them
    #[arg(long, value_name = "CPUS", help_heading = "Threads")]
    pub mainaffinity: Option<String>,
    /// Real-time priority, 1 to 99: SCHED_FIFO unless --policy says otherwise [default: 0]
    #[arg(
        short = 'p',
        long,
        value_name = "PRIO",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = "Threads",
        value_parser = number::<u32>
    )]
    pub priority: u32,
    /// Policy: other, normal, fifo, rr; and deadline, which cyclictest does not have [default: other]
    #[arg(long, value_name = "NAME", help_heading = "Threads")]
    pub policy: Option<String>,
    /// One priority less for each further thread
    #[arg(long, help_heading = "Threads")]
    pub priospread: bool,
    /// Time between two activations in µs
    #[arg(
        short = 'i',
        long,
        value_name = "US",
        default_value_t = 1_000,
        help_heading = "Threads",
        value_parser = number::<u64>
    )]
    pub interval: u64,
    /// How much longer the interval of each further thread is, in µs; 0 with a histogram [default: 500]
    #[arg(short = 'd', long, value_name = "US", help_heading = "Threads", value_parser = number::<u64>)]
    pub distance: Option<u64>,

    /// Measure for so long: seconds, or with s, m, h or d; 0 for no end [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "End")]
    pub duration: Option<String>,
    /// End each thread after N wake-ups; 0 for never
    #[arg(
        short = 'l',
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = "End",
        value_parser = number::<u64>
    )]
    pub loops: u64,
    /// End when a latency is above this, in µs, and say which thread it was; 0 for never
    #[arg(short = 'b', long, value_name = "US", help_heading = "End", value_parser = number::<u64>)]
    pub breaktrace: Option<u64>,

    /// Print nothing before the summary
    #[arg(short = 'q', long, help_heading = "Output")]
    pub quiet: bool,
    /// Print a histogram of latencies below this at the end, in µs
    #[arg(short = 'h', long, value_name = "US", help_heading = "Output", value_parser = number::<u64>)]
    pub histogram: Option<u64>,
    /// The same, with a column for all threads together
    #[arg(
        short = 'H',
        long,
        value_name = "US",
        overrides_with = "histogram",
        help_heading = "Output",
        value_parser = number::<u64>
    )]
    pub histofall: Option<u64>,
    /// Write the histogram to this file instead
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub histfile: Option<PathBuf>,
    /// Write the result as JSON to this file; without FILE to standard output, and nothing else
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "-",
        help_heading = "Output"
    )]
    pub json: Option<PathBuf>,
    /// Print ns instead of µs
    #[arg(short = 'N', long, help_heading = "Output")]
    pub nsecs: bool,
    /// Print every latency, as thread:number:value, at the end; needs -l or -D
    #[arg(short = 'v', long, help_heading = "Output")]
    pub verbose: bool,
    /// Of -v, print the greatest of every N only
    #[arg(
        short = 'o',
        long,
        value_name = "N",
        requires = "verbose",
        help_heading = "Output",
        value_parser = number::<usize>
    )]
    pub oscope: Option<usize>,
    /// Print again only when there is a new maximum
    #[arg(short = 'M', long = "refresh_on_max", help_heading = "Output")]
    pub refresh_on_max: bool,
    /// List every latency above this, in µs, with its time
    #[arg(long, value_name = "US", help_heading = "Output", value_parser = number::<u64>)]
    pub spike: Option<u64>,
    /// List so many at most
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_024,
        requires = "spike",
        help_heading = "Output",
        value_parser = number::<usize>
    )]
    pub spike_nodes: usize,
    /// End with exit code 3 if a figure is above a limit: 'latency.p99.9 > 50us', 'missed > 1%'. May be given several
    /// times; cyclictest does not have it
    #[arg(long, value_name = "GATE", help_heading = "Output")]
    pub fail_if: Vec<Gate>,

    /// Memory is always locked
    #[arg(short = 'm', long, help_heading = "Accepted, since it is so anyway")]
    pub mlockall: bool,
    /// Output is never held back
    #[arg(short = 'u', long, help_heading = "Accepted, since it is so anyway")]
    pub unbuffered: bool,
    /// clock_nanosleep is always used
    #[arg(short = 'n', long, help_heading = "Accepted, since it is so anyway")]
    pub nanosleep: bool,
    /// The clock: 0, CLOCK_MONOTONIC
    #[arg(
        short = 'c',
        long,
        value_name = "CLOCK",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = "Accepted, since it is so anyway",
        value_parser = number::<u32>
    )]
    pub clock: u32,
    /// What is held in /dev/cpu_dma_latency: 0
    #[arg(
        long,
        value_name = "US",
        default_value_t = 0,
        hide_default_value = true,
        help_heading = "Accepted, since it is so anyway",
        value_parser = number::<u32>
    )]
    pub latency: u32,
    /// Print this help
    #[arg(long, action = ArgAction::Help, help_heading = "Output")]
    pub help: Option<bool>,

    #[command(flatten)]
    pub refused: RefusedArguments,
}

/// Reads a number, blanks around it or not: callers that build a command line give `-h 3500` as one word.
fn number<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

/// The options of cyclictest that would measure something else: they are known, so that it can be said why.
#[derive(Debug, Default, Args)]
pub struct RefusedArguments {
    #[arg(short = 'A', long, num_args = 0..=1, default_missing_value = "0", hide = true)]
    pub aligned: Option<String>,
    #[arg(long, num_args = 0..=1, default_missing_value = "0", hide = true)]
    pub secaligned: Option<String>,
    #[arg(long, hide = true)]
    pub default_system: bool,
    #[arg(long, hide = true)]
    pub laptop: bool,
    #[arg(short = 'F', long, hide = true)]
    pub fifo: Option<PathBuf>,
    #[arg(short = 'r', long, hide = true)]
    pub relative: bool,
    #[arg(short = 'R', long, hide = true)]
    pub resolution: bool,
    #[arg(short = 's', long, hide = true)]
    pub system: bool,
    #[arg(long, hide = true)]
    pub smi: bool,
    #[arg(long, hide = true)]
    pub tracemark: bool,
    #[arg(short = 'x', long = "posix_timers", hide = true)]
    pub posix_timers: bool,
    #[arg(long = "dbg_cyclictest", hide = true)]
    pub debug: bool,
}

impl RefusedArguments {
    /// Returns the first option that is refused, and why.
    pub fn first(&self) -> Option<(&'static str, &'static str)> {
        const OTHER_TIMER: &str = "tare sleeps until absolute times by clock_nanosleep alone, as cyclictest does by default";
        const LATENCY: &str =
            "tare always holds /dev/cpu_dma_latency at 0, so that deep idle states are left out";
        let all = [
            (
                // Without an offset it asks for what is done anyway.
                self.aligned
                    .as_deref()
                    .is_some_and(|offset| offset.trim() != "0"),
                "--aligned",
                "all threads begin at the same time (--aligned=0), never one after the other",
            ),
            (
                self.secaligned.is_some(),
                "--secaligned",
                "all threads begin at one time, which nobody chooses",
            ),
            (self.default_system, "--default-system", LATENCY),
            (self.laptop, "--laptop", LATENCY),
            (
                self.fifo.is_some(),
                "--fifo",
                "there is no status by a named pipe; read standard output",
            ),
            (self.relative, "--relative", OTHER_TIMER),
            (
                self.resolution,
                "--resolution",
                "`tare doctor` looks at the clock",
            ),
            (self.system, "--system", OTHER_TIMER),
            (
                self.smi,
                "--smi",
                "SMIs are not counted; `tare noise` shows the gaps that they leave",
            ),
            (
                self.tracemark,
                "--tracemark",
                "`tare wakeup --trace-above` records what the kernel does around a late wake-up",
            ),
            (self.posix_timers, "--posix_timers", OTHER_TIMER),
            (
                self.debug,
                "--dbg_cyclictest",
                "there is no cyclictest to debug",
            ),
        ];
        let first = all.into_iter().find(|(given, _, _)| *given);
        first.map(|(_, option, why)| (option, why))
    }
}

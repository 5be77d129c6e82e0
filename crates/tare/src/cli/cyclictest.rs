//! What can be typed after `tare cyclictest`: the options of cyclictest, with its letters.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use tare_figures::gates::Gate;

/// The arguments of `tare cyclictest`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Threads")]
pub struct CyclictestArguments {
    /// Measuring threads; without N one for each CPU [default: 1]
    #[arg(short = 't', long, value_name = "N", num_args = 0..=1, default_missing_value = "0", value_parser = number::<u32>)]
    pub threads: Option<u32>,
    /// CPUs to which they are pinned in turn, such as 1 or 0,2-3 or !0 [default: all]
    #[arg(short = 'a', long, value_name = "CPUS", num_args = 0..=1, default_missing_value = "all")]
    pub affinity: Option<String>,
    /// One thread on each CPU; overrides -t and -a
    #[arg(short = 'S', long)]
    pub smp: bool,
    /// CPUs of the thread that starts and watches them
    #[arg(long, value_name = "CPUS")]
    pub mainaffinity: Option<String>,
    /// Real-time priority, 1 to 99: SCHED_FIFO unless --policy says otherwise [default: 0]
    #[arg(short = 'p', long, value_name = "PRIO", default_value_t = 0, hide_default_value = true, value_parser = number::<u32>)]
    pub priority: u32,
    /// Policy: other, normal, fifo, rr; and deadline, which cyclictest does not have [default: other]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Lower the priority by one for each further thread
    #[arg(long)]
    pub priospread: bool,
    /// Time between two activations in µs
    #[arg(short = 'i', long, value_name = "US", default_value_t = 1_000, value_parser = number::<u64>)]
    pub interval: u64,
    /// How much longer the interval of each further thread is, in µs; 0 with a histogram [default: 500]
    #[arg(short = 'd', long, value_name = "US", value_parser = number::<u64>)]
    pub distance: Option<u64>,

    /// Measurement duration: seconds, or with s, m, h or d; 0 for no end [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "End")]
    pub duration: Option<String>,
    /// End each thread after N wake-ups; 0 for never
    #[arg(short = 'l', long, value_name = "N", help_heading = "End", value_parser = number::<u64>)]
    pub loops: Option<u64>,
    /// End when a latency is above this, in µs, and name the thread; 0 for never
    #[arg(short = 'b', long, value_name = "US", help_heading = "End", value_parser = number::<u64>)]
    pub breaktrace: Option<u64>,

    /// What is printed and written.
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    anyway: AnywayArguments,
    #[command(flatten)]
    refused: RefusedArguments,
}

/// What is printed and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArguments {
    /// Print nothing before the summary
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Print a histogram of latencies below this at the end, in µs
    #[arg(short = 'h', long, value_name = "US", value_parser = number::<u64>)]
    pub histogram: Option<u64>,
    /// The same, with a column for all threads together
    #[arg(short = 'H', long, value_name = "US", overrides_with = "histogram", value_parser = number::<u64>)]
    pub histofall: Option<u64>,
    /// Write the histogram to this file instead
    #[arg(long, value_name = "FILE")]
    pub histfile: Option<PathBuf>,
    /// Write the result as JSON to this file; without FILE to standard output, and nothing else
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Print ns instead of µs
    #[arg(short = 'N', long)]
    pub nsecs: bool,
    /// Print every latency, as thread:number:value, at the end; needs -l or -D
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// With -v, print only the greatest of every N latencies
    #[arg(short = 'o', long, value_name = "N", requires = "verbose", value_parser = number::<usize>)]
    pub oscope: Option<usize>,
    /// Print again only when there is a new maximum
    #[arg(short = 'M', long = "refresh_on_max")]
    pub refresh_on_max: bool,
    /// List every latency above this, in µs, with its time
    #[arg(long, value_name = "US", value_parser = number::<u64>)]
    pub spike: Option<u64>,
    /// Maximum number of latencies listed
    #[arg(long, value_name = "N", default_value_t = 1_024, requires = "spike", value_parser = number::<usize>)]
    pub spike_nodes: usize,
    /// End with exit code 3 if a figure is above a limit: 'latency.p99.9 > 50us', 'missed > 1%'. May be given several
    /// times; an option of tare's own
    #[arg(long, value_name = "GATE")]
    pub fail_if: Vec<Gate>,
    /// Measure on CPUs that another run measures on; an option of tare's own
    #[arg(long)]
    pub share_cpu: bool,
    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The options for what is done in any case.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted without effect")]
struct AnywayArguments {
    /// Memory is always locked
    #[arg(short = 'm', long)]
    mlockall: bool,
    /// Output is never held back
    #[arg(short = 'u', long)]
    unbuffered: bool,
    /// clock_nanosleep is always used
    #[arg(short = 'n', long)]
    nanosleep: bool,
    /// The clock: 0, CLOCK_MONOTONIC
    #[arg(short = 'c', long, value_name = "CLOCK", value_parser = number::<u32>)]
    clock: Option<u32>,
    /// Value held in /dev/cpu_dma_latency: 0
    #[arg(long, value_name = "US", value_parser = number::<u32>)]
    latency: Option<u32>,
}

/// Reads a number, blanks around it or not: callers that build a command line give `-h 3500` as one word.
fn number<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

/// The options of cyclictest that would measure something else: they are known, so that it can be said why.
#[derive(Debug, Args)]
struct RefusedArguments {
    #[arg(short = 'A', long, num_args = 0..=1, default_missing_value = "0", hide = true)]
    aligned: Option<String>,
    #[arg(long, num_args = 0..=1, default_missing_value = "0", hide = true)]
    secaligned: Option<String>,
    #[arg(long, hide = true)]
    default_system: bool,
    #[arg(long, hide = true)]
    laptop: bool,
    #[arg(short = 'F', long, hide = true)]
    fifo: Option<PathBuf>,
    #[arg(short = 'r', long, hide = true)]
    relative: bool,
    #[arg(short = 'R', long, hide = true)]
    resolution: bool,
    #[arg(short = 's', long, hide = true)]
    system: bool,
    #[arg(long, hide = true)]
    smi: bool,
    #[arg(long, hide = true)]
    tracemark: bool,
    #[arg(short = 'x', long = "posix_timers", hide = true)]
    posix_timers: bool,
    #[arg(long = "dbg_cyclictest", hide = true)]
    debug: bool,
}

impl CyclictestArguments {
    /// Returns the latency that ends it; 0 is none, as there.
    pub fn limit(&self) -> Option<u64> {
        self.breaktrace.filter(|limit| *limit > 0)
    }

    /// Returns the first option that is refused, and why.
    pub fn refused(&self) -> Option<(&'static str, &'static str)> {
        const OTHER_TIMER: &str = "tare sleeps until absolute times by clock_nanosleep alone, as cyclictest does by default";
        const LATENCY: &str =
            "tare always holds /dev/cpu_dma_latency at 0, so that deep idle states are left out";
        const CLOCK: &str = "only CLOCK_MONOTONIC (0) measures a time that nobody sets";
        const ALIGNED: &str =
            "all threads begin at the same time (--aligned=0), never one after the other";
        const SECALIGNED: &str = "all threads begin at one time, which nobody chooses";
        const FIFO: &str = "there is no status by a named pipe; read standard output";
        const SMI: &str = "SMIs are not counted; `tare noise` shows the gaps that they leave";
        const TRACEMARK: &str =
            "`tare wakeup --trace-above` records what the kernel does around a late wake-up";
        let asked = &self.refused;
        // Without an offset it asks for what is done anyway.
        let is_offset = |offset: &String| offset.trim() != "0";
        let all = [
            (
                self.anyway.clock.is_some_and(|clock| clock != 0),
                "--clock",
                CLOCK,
            ),
            (
                self.anyway.latency.is_some_and(|us| us != 0),
                "--latency",
                LATENCY,
            ),
            (
                asked.aligned.as_ref().is_some_and(is_offset),
                "--aligned",
                ALIGNED,
            ),
            (asked.secaligned.is_some(), "--secaligned", SECALIGNED),
            (asked.default_system, "--default-system", LATENCY),
            (asked.laptop, "--laptop", LATENCY),
            (asked.fifo.is_some(), "--fifo", FIFO),
            (asked.relative, "--relative", OTHER_TIMER),
            (
                asked.resolution,
                "--resolution",
                "`tare doctor` looks at the clock",
            ),
            (asked.system, "--system", OTHER_TIMER),
            (asked.smi, "--smi", SMI),
            (asked.tracemark, "--tracemark", TRACEMARK),
            (asked.posix_timers, "--posix_timers", OTHER_TIMER),
            (
                asked.debug,
                "--dbg_cyclictest",
                "there is no cyclictest to debug",
            ),
        ];
        let first = all.into_iter().find(|(given, _, _)| *given);
        first.map(|(_, option, why)| (option, why))
    }
}

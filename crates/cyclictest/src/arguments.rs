//! The options of cyclictest, with its letters.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use tare_figures::gates::Gate;

/// The arguments of `tare cyclictest`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Threads")]
pub struct Arguments {
    /// Number of measuring threads; without N, one for each CPU [default: 1]
    #[arg(short = 't', long, value_name = "N", num_args = 0..=1, default_missing_value = "0", value_parser = number::<u32>)]
    pub threads: Option<u32>,
    /// CPUs to which the threads are pinned in turn, such as 1 or 0,2-3 or !0 [default: all]
    #[arg(short = 'a', long, value_name = "CPUS", num_args = 0..=1, default_missing_value = "all")]
    pub affinity: Option<String>,
    /// One thread on each CPU; overrides -t and -a
    #[arg(short = 'S', long)]
    pub smp: bool,
    /// CPUs of the thread that starts and watches the measuring threads
    #[arg(long, value_name = "CPUS")]
    pub mainaffinity: Option<String>,
    /// Real-time priority, 1 to 99: SCHED_FIFO, or SCHED_RR with --policy=rr [default: 0]
    #[arg(short = 'p', long, value_name = "PRIO", default_value_t = 0, hide_default_value = true, value_parser = number::<u32>)]
    pub priority: u32,
    /// Policy: other, normal, fifo, rr, or deadline, which cyclictest lacks [default: other; fifo
    /// with -p]
    #[arg(long, value_name = "NAME")]
    pub policy: Option<String>,
    /// Lower the priority by one for each further thread
    #[arg(long)]
    pub priospread: bool,
    /// Interval between two activations, in µs
    #[arg(short = 'i', long, value_name = "US", default_value_t = 1_000, value_parser = number::<u64>)]
    pub interval: u64,
    /// Added to the interval of each further thread, in µs; 0 with a histogram [default: 500]
    #[arg(short = 'd', long, value_name = "US", value_parser = number::<u64>)]
    pub distance: Option<u64>,

    /// Measurement duration: seconds, or with s, m, h or d; 0 for no end [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "End")]
    pub duration: Option<String>,
    /// End each thread after N wake-ups; 0 for never
    #[arg(short = 'l', long, value_name = "N", help_heading = "End", value_parser = number::<u64>)]
    pub loops: Option<u64>,
    /// End at the first latency above this, in µs, and name the thread; 0 for never
    #[arg(short = 'b', long, value_name = "US", help_heading = "End", value_parser = number::<u64>)]
    pub breaktrace: Option<u64>,

    /// Output options.
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    accepted: Accepted,
    #[command(flatten)]
    refused: Refused,
}

/// Options for what is printed and written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print nothing before the summary
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// At the end, print a histogram of latencies below this, in µs
    #[arg(short = 'h', long, value_name = "US", value_parser = number::<u64>)]
    pub histogram: Option<u64>,
    /// The same, with a column for all threads together
    #[arg(short = 'H', long, value_name = "US", overrides_with = "histogram", value_parser = number::<u64>)]
    pub histofall: Option<u64>,
    /// Write the histogram to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub histfile: Option<PathBuf>,
    /// Write the result as JSON to this file; without FILE, print nothing but JSON
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
    /// End with exit code 3 if a figure exceeds a limit: 'latency.p99.9 > 50us', 'missed > 1%'. May
    /// be given several times; an option that only tare has
    #[arg(long, value_name = "GATE")]
    pub fail_if: Vec<Gate>,
    /// Measure even on CPUs that another run is measuring on; an option that only tare has
    #[arg(long)]
    pub share_cpu: bool,
    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// Options for behaviour that tare always has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accepted without effect")]
struct Accepted {
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
    /// The value held in /dev/cpu_dma_latency: 0
    #[arg(long, value_name = "US", value_parser = number::<u32>)]
    latency: Option<u32>,
}

/// Reads a number, with or without blanks around it: scripts pass `-h 3500` as one word.
fn number<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.trim().parse()
}

/// Options of cyclictest that would measure something else. They are known, so that the error can
/// give the reason.
#[derive(Debug, Args)]
struct Refused {
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

impl Arguments {
    /// Returns the latency that ends the run; 0 means no limit, as in cyclictest.
    pub fn limit(&self) -> Option<u64> {
        self.breaktrace.filter(|limit| *limit > 0)
    }

    /// Returns the first option that is rejected, and the reason.
    pub(crate) fn refused(&self) -> Option<(&'static str, &'static str)> {
        const OTHER_TIMER: &str = "tare sleeps until absolute times by clock_nanosleep alone, as cyclictest does by default";
        const LATENCY: &str = "tare always holds /dev/cpu_dma_latency at 0, so that the CPUs do not enter deep idle states";
        let Refused {
            aligned,
            secaligned,
            default_system,
            laptop,
            fifo,
            relative,
            resolution,
            system,
            smi,
            tracemark,
            posix_timers,
            debug,
        } = &self.refused;
        let clock = self.accepted.clock.is_some_and(|clock| clock != 0);
        let latency = self.accepted.latency.is_some_and(|us| us != 0);
        // Without an offset, all threads start at the same time, which tare always does.
        let aligned = aligned.as_ref().is_some_and(|offset| offset.trim() != "0");
        #[rustfmt::skip]
        let all = [
            (clock, "--clock", "only CLOCK_MONOTONIC (0) is never set while it runs"),
            (latency, "--latency", LATENCY),
            (aligned, "--aligned", "all threads start at the same time (--aligned=0)"),
            (secaligned.is_some(), "--secaligned", "the start time of the threads can't be chosen"),
            (*default_system, "--default-system", LATENCY),
            (*laptop, "--laptop", LATENCY),
            (fifo.is_some(), "--fifo", "the status is only written to standard output"),
            (*relative, "--relative", OTHER_TIMER),
            (*resolution, "--resolution", "`tare doctor` checks the clock"),
            (*system, "--system", OTHER_TIMER),
            (*smi, "--smi", "SMIs are not counted; `tare noise` shows the gaps that they leave"),
            (*tracemark, "--tracemark",
             "`tare wakeup --trace-above` records what the kernel does around a late wake-up"),
            (*posix_timers, "--posix_timers", OTHER_TIMER),
            (*debug, "--dbg_cyclictest", "there is no cyclictest to debug"),
        ];
        let first = all.into_iter().find(|(is_given, _, _)| *is_given);
        first.map(|(_, option, why)| (option, why))
    }
}

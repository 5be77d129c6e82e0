//! What cyclictest's options mean.

use std::path::PathBuf;

use rustix::thread::sched_setaffinity;
use tare_exchange::export::cyclictest::{Histogram, Unit};
use tare_lab::units::nanoseconds;
use tare_loads::cpus::mask;
use tare_services::wakeup::{MAX_KEPT, Plan, Spread};
use tare_wire::cpus::Cpus;
use tare_wire::phases::MAX_DURATION_NS;
use tare_wire::scheduling::Policy;

use crate::cli::cyclictest::CyclictestArguments;
use crate::commands::host::allowed_cpus;
use crate::error::CommandError;

/// The distance of cyclictest.
const DISTANCE_US: u64 = 500;

/// How often the state of the threads is told.
const LIVE_NS: u64 = 100_000_000;
/// How often it is told if nobody looks: for the last latency of a long run.
const QUIET_LIVE_NS: u64 = 1_000_000_000;

/// How many wake-ups are kept as they were for each thread: the last one's latency is shown.
const KEPT: u64 = 1 << 20;
/// The most for `-v`, which prints all: 1 GiB.
const KEPT_VERBOSE: u64 = MAX_KEPT;

/// What was asked for.
#[derive(Debug)]
pub struct Settings {
    /// What the agent is to do.
    pub plan: Plan,
    /// Unit of everything that is printed.
    pub unit: Unit,
    /// The histogram, if one is wanted.
    pub histogram: Option<Histogram>,
    /// Where it is written; standard output if None.
    pub histfile: Option<PathBuf>,
    /// Where JSON is written, if it is.
    pub json: Option<PathBuf>,
    /// Whether nothing is printed before the end.
    pub quiet: bool,
    /// Of how many latencies the greatest is printed at the end, if they are.
    pub verbose: Option<usize>,
    /// From what on latencies are listed, in the unit, and how many.
    pub spike: Option<(u64, usize)>,
    /// Whether the threads' state is printed again only if there is a new maximum.
    pub refresh_on_max: bool,
    /// Whether there is a limit that ends it.
    pub breaks: bool,
    /// What the user should know of how the options were understood.
    pub remarks: Vec<String>,
    /// CPUs that this process may use.
    allowed: Cpus,
}

impl Settings {
    /// Decides what the arguments mean.
    ///
    /// # Errors
    ///
    /// [`CommandError::Usage`] with the option that makes no sense, or that tare does not do.
    pub fn of(arguments: &CyclictestArguments) -> Result<Self, CommandError> {
        refuse(arguments)?;
        let allowed = allowed_cpus()?;
        let unit = if arguments.nsecs {
            Unit::Nanos
        } else {
            Unit::Micros
        };
        let mut remarks = Vec::new();
        let histogram = histogram(arguments, unit, &mut remarks)?;
        let plan = plan(arguments, &allowed, histogram.as_ref(), &mut remarks)?;
        plan.check()
            .map_err(|refusal| CommandError::Usage(refusal.to_string()))?;
        let json_only = arguments.json.as_deref().is_some_and(is_standard);
        Ok(Self {
            plan,
            unit,
            histogram,
            histfile: arguments.histfile.clone(),
            json: arguments.json.clone(),
            quiet: arguments.quiet || json_only || arguments.verbose,
            verbose: arguments
                .verbose
                .then(|| arguments.oscope.unwrap_or(1).max(1)),
            spike: arguments.spike.map(|spike| (spike, arguments.spike_nodes)),
            refresh_on_max: arguments.refresh_on_max,
            breaks: limit(arguments).is_some(),
            remarks,
            allowed,
        })
    }

    /// Says whether standard output is for JSON alone.
    pub fn is_json_only(&self) -> bool {
        self.json.as_deref().is_some_and(is_standard)
    }

    /// Keeps this process off the measured CPUs, if there are others.
    pub fn step_aside(&self) {
        let measured = self.plan.cpu.unwrap_or_default();
        let free = self.allowed.without(&measured);
        if free.count() == 0 {
            return;
        }
        // It is no more than a courtesy: cyclictest's main thread runs anywhere.
        let _ = sched_setaffinity(None, &mask(&free));
    }
}

/// Says whether a path stands for standard output.
fn is_standard(path: &std::path::Path) -> bool {
    path == std::path::Path::new("-")
}

/// Refuses what would change what is measured and is not done here.
fn refuse(arguments: &CyclictestArguments) -> Result<(), CommandError> {
    let other = if arguments.clock != 0 {
        Some((
            "--clock",
            "only CLOCK_MONOTONIC (0) measures a time that nobody sets",
        ))
    } else if arguments.latency != 0 {
        Some((
            "--latency",
            "tare always holds /dev/cpu_dma_latency at 0, so that deep idle states are left out",
        ))
    } else {
        arguments.refused.first()
    };
    match other {
        Some((option, why)) => usage(format!("{option} is not done by tare cyclictest: {why}")),
        None => Ok(()),
    }
}

fn histogram(
    arguments: &CyclictestArguments,
    unit: Unit,
    remarks: &mut Vec<String>,
) -> Result<Option<Histogram>, CommandError> {
    let all = arguments.histofall.is_some();
    let Some(size) = arguments.histogram.or(arguments.histofall) else {
        if arguments.histfile.is_some() {
            return usage("--histfile needs -h US, which says how far the histogram goes");
        }
        return Ok(None);
    };
    if size == 0 {
        return usage("a histogram has at least one value: -h 0 asks for none");
    }
    if size > Histogram::MOST {
        remarks.push(format!(
            "-h {size} is taken as {}, which is how far histograms go",
            Histogram::MOST
        ));
    }
    let size = size.min(Histogram::MOST);
    Ok(Some(Histogram { size, unit, all }))
}

fn plan(
    arguments: &CyclictestArguments,
    allowed: &Cpus,
    histogram: Option<&Histogram>,
    remarks: &mut Vec<String>,
) -> Result<Plan, CommandError> {
    let in_ns = |us: u64| us.saturating_mul(1_000);
    let interval_ns = in_ns(arguments.interval);
    let (threads, affinity) = match arguments.threads {
        _ if arguments.smp => (allowed.count(), None),
        Some(0) => (allowed.count(), arguments.affinity.as_deref()),
        threads => (threads.unwrap_or(1), arguments.affinity.as_deref()),
    };
    for (option, is_given) in [
        ("-t", arguments.threads.is_some()),
        ("-a", arguments.affinity.is_some()),
    ] {
        if arguments.smp && is_given {
            remarks.push(format!("{option} is ignored: -S puts a thread on each CPU"));
        }
    }
    let distance_ns = match (histogram, arguments.distance) {
        (Some(_), given) => {
            if given.is_some_and(|us| us > 0) {
                remarks
                    .push("-d is ignored: with a histogram all intervals are the same".to_owned());
            }
            0
        }
        (None, given) => in_ns(given.unwrap_or(DISTANCE_US)),
    };
    let (policy, priority) = scheduling(arguments, threads, remarks)?;
    let loops = (arguments.loops > 0).then_some(arguments.loops);
    let duration_ns = arguments.duration.as_deref().map(duration).transpose()?;
    let duration_ns = duration_ns.filter(|ns| *ns > 0);
    // cyclictest's endless run; a plan has an end.
    let duration_ns = duration_ns.or_else(|| loops.is_none().then_some(MAX_DURATION_NS));
    let unit = if arguments.nsecs { 1 } else { 1_000 };
    // The kernel does not pin a SCHED_DEADLINE thread to one CPU of several.
    let pinned = (policy != Policy::Deadline).then_some(*allowed);
    let mut plan = Plan {
        interval_ns,
        distance_ns,
        threads,
        cpu: cpus("-a", affinity, allowed)?.or(pinned),
        main: cpus("--mainaffinity", arguments.mainaffinity.as_deref(), allowed)?,
        policy,
        priority,
        spread: if arguments.priospread {
            Spread::Falling
        } else {
            Spread::Same
        },
        duration_ns,
        loops,
        // A latency of 10.9 µs is not above 10 there.
        above_ns: limit(arguments).map(|limit| limit.saturating_mul(unit).saturating_add(unit - 1)),
        live_ns: Some(if arguments.quiet {
            QUIET_LIVE_NS
        } else {
            LIVE_NS
        }),
        bins: 1,
        ..Plan::new(interval_ns, MAX_DURATION_NS)
    };
    // From the interval on every one is listed: the number of a wake-up follows from what was missed before.
    let listed = [
        Some(interval_ns),
        histogram.map(Histogram::limit_ns),
        arguments.spike.map(|spike| spike.saturating_mul(unit)),
    ];
    plan.threshold_ns = listed.into_iter().flatten().min();
    let activations = plan.activations(0);
    plan.raw = match arguments.verbose {
        true if activations > KEPT_VERBOSE => {
            return usage(format!(
                "-v prints every latency at the end, {KEPT_VERBOSE} of each thread at most: end it earlier with -l or -D"
            ));
        }
        true => activations,
        false if activations <= KEPT => activations,
        false => 0,
    };
    Ok(plan)
}

/// Returns the latency that ends it; 0 is none, as there.
fn limit(arguments: &CyclictestArguments) -> Option<u64> {
    arguments.breaktrace.filter(|limit| *limit > 0)
}

/// Decides as cyclictest does: a priority means SCHED_FIFO, and a real-time policy means a priority.
fn scheduling(
    arguments: &CyclictestArguments,
    threads: u32,
    remarks: &mut Vec<String>,
) -> Result<(Policy, u32), CommandError> {
    let name = arguments.policy.as_deref().map(str::to_ascii_lowercase);
    let policy = match name.as_deref() {
        None | Some("other" | "normal") => Policy::Other,
        Some(name @ ("batch" | "idle")) => {
            return usage(format!(
                "--policy={name} is not done by tare cyclictest: choose other, fifo, rr or deadline"
            ));
        }
        Some(name) => match Policy::parse(name) {
            Some(policy) => policy,
            None => {
                return usage(format!(
                    "--policy={name}: choose other, fifo, rr or deadline"
                ));
            }
        },
    };
    let default = |remarks: &mut Vec<String>| {
        let priority = threads.saturating_add(1).min(99);
        remarks.push(format!("defaulting realtime priority to {priority}"));
        priority
    };
    Ok(match (policy, arguments.priority) {
        (Policy::Other, 0) if arguments.priospread => (Policy::Fifo, default(remarks)),
        (Policy::Other, 0) => (Policy::Other, 0),
        (Policy::Other, priority) => {
            if arguments.policy.is_some() {
                remarks
                    .push("-p asks for a real-time priority: the policy is SCHED_FIFO".to_owned());
            }
            (Policy::Fifo, priority)
        }
        (Policy::Fifo | Policy::RoundRobin, 0) => (policy, default(remarks)),
        (policy, priority) => (policy, priority),
    })
}

/// Reads a set of CPUs: all, a list, or with a ! what is not in it.
fn cpus(option: &str, text: Option<&str>, allowed: &Cpus) -> Result<Option<Cpus>, CommandError> {
    let Some(text) = text else {
        return Ok(None);
    };
    if text == "all" {
        return Ok(Some(*allowed));
    }
    let (negated, list) = match text.strip_prefix('!') {
        Some(list) => (true, list),
        None => (false, text),
    };
    let Some(list) = Cpus::parse(list) else {
        return usage(format!(
            "{option} {text}: want CPUs such as 1 or 0,2-3, or !0 for all others"
        ));
    };
    if !negated {
        return Ok(Some(list));
    }
    let rest = allowed.without(&list);
    if rest.count() == 0 {
        return usage(format!(
            "{option} {text} leaves no CPU that this process may use"
        ));
    }
    Ok(Some(rest))
}

/// Reads a duration: seconds, or a number with its unit.
fn duration(text: &str) -> Result<u64, CommandError> {
    nanoseconds(text, Some("s")).or_else(|_| {
        usage(format!(
            "-D {text}: want seconds, or a number with s, m, h or d"
        ))
    })
}

fn usage<T>(text: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Usage(text.into()))
}

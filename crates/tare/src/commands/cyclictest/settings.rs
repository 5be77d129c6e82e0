//! What cyclictest's options mean.

use std::path::Path;

use rustix::thread::sched_setaffinity;
use tare_exchange::export::cyclictest::{Histogram, Unit};
use tare_lab::units::nanoseconds;
use tare_loads::cpus::mask;
use tare_measured::wakeup::{MAX_KEPT, Plan, Spread};
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
pub struct Settings<'a> {
    /// As it was typed.
    pub arguments: &'a CyclictestArguments,
    /// What the agent is to do.
    pub plan: Plan,
    /// Unit of everything that is printed.
    pub unit: Unit,
    /// The histogram, if one is wanted.
    pub histogram: Option<Histogram>,
    /// What the user should know of how the options were understood.
    pub remarks: Vec<String>,
    /// CPUs that this process may use.
    allowed: Cpus,
}

impl<'a> Settings<'a> {
    /// Decides what the arguments mean.
    ///
    /// # Errors
    ///
    /// [`CommandError::Usage`] with the option that makes no sense, or that tare does not do.
    pub fn of(arguments: &'a CyclictestArguments) -> Result<Self, CommandError> {
        refuse(arguments)?;
        let allowed = allowed_cpus()?;
        let unit = match arguments.output.nsecs {
            true => Unit::Nanos,
            false => Unit::Micros,
        };
        let mut remarks = Vec::new();
        let histogram = histogram(arguments, unit, &mut remarks)?;
        let plan = plan(arguments, unit, &allowed, histogram.as_ref(), &mut remarks)?;
        plan.check()
            .map_err(|refusal| CommandError::Usage(refusal.to_string()))?;
        Ok(Self {
            arguments,
            plan,
            unit,
            histogram,
            remarks,
            allowed,
        })
    }

    /// Says whether standard output is for JSON alone.
    pub fn is_json_only(&self) -> bool {
        self.arguments.output.json.as_deref() == Some(Path::new("-"))
    }

    /// Says whether nothing is printed before the end.
    pub fn is_quiet(&self) -> bool {
        self.arguments.output.quiet || self.is_json_only() || self.arguments.output.verbose
    }

    /// Keeps this process off the measured CPUs, if there are others.
    pub fn step_aside(&self) {
        let measured = self.plan.cpu.unwrap_or_default();
        let free = self.allowed.without(&measured);
        if free.count() == 0 {
            return;
        }
        // It is no more than a courtesy: cyclictest's main thread runs anywhere.
        let _ = mask(&free).and_then(|free| sched_setaffinity(None, &free));
    }
}

/// Refuses what would change what is measured and is not done here.
fn refuse(arguments: &CyclictestArguments) -> Result<(), CommandError> {
    match arguments.refused() {
        Some((option, why)) => usage(format!("{option} is not done by tare cyclictest: {why}")),
        None => Ok(()),
    }
}

fn histogram(
    arguments: &CyclictestArguments,
    unit: Unit,
    remarks: &mut Vec<String>,
) -> Result<Option<Histogram>, CommandError> {
    let all = arguments.output.histofall.is_some();
    let Some(size) = arguments.output.histogram.or(arguments.output.histofall) else {
        if arguments.output.histfile.is_some() {
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
    unit: Unit,
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
    let mut ignored = |option: &str, is_given: bool, why: &str| {
        if is_given {
            remarks.push(format!("{option} is ignored: {why}"));
        }
    };
    let on_each = "-S puts a thread on each CPU";
    ignored("-t", arguments.smp && arguments.threads.is_some(), on_each);
    ignored("-a", arguments.smp && arguments.affinity.is_some(), on_each);
    let distance_ns = match (histogram, arguments.distance) {
        (Some(_), given) => {
            let why = "with a histogram all intervals are the same";
            ignored("-d", given.is_some_and(|us| us > 0), why);
            0
        }
        (None, given) => in_ns(given.unwrap_or(DISTANCE_US)),
    };
    let (policy, priority) = scheduling(arguments, threads, remarks)?;
    let loops = arguments.loops.filter(|loops| *loops > 0);
    let duration_ns = arguments.duration.as_deref().map(duration).transpose()?;
    let duration_ns = duration_ns.filter(|ns| *ns > 0);
    // cyclictest's endless run; a plan has an end.
    let duration_ns = duration_ns.or_else(|| loops.is_none().then_some(MAX_DURATION_NS));
    let unit = unit.ns();
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
        spread: match arguments.priospread {
            true => Spread::Falling,
            false => Spread::Same,
        },
        duration_ns,
        loops,
        // A latency of 10.9 µs is not above 10 there.
        above_ns: arguments
            .limit()
            .map(|limit| limit.saturating_mul(unit).saturating_add(unit - 1)),
        live_ns: Some(match arguments.output.quiet {
            true => QUIET_LIVE_NS,
            false => LIVE_NS,
        }),
        bins: 1,
        ..Plan::new(interval_ns, MAX_DURATION_NS)
    };
    // From the interval on every one is listed: the number of a wake-up follows from what was missed before.
    let listed = [
        Some(interval_ns),
        histogram.map(Histogram::limit_ns),
        arguments
            .output
            .spike
            .map(|spike| spike.saturating_mul(unit)),
    ];
    plan.threshold_ns = listed.into_iter().flatten().min();
    let activations = plan.activations(0);
    plan.raw = match arguments.output.verbose {
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

/// Decides as cyclictest does: a priority means SCHED_FIFO, and a real-time policy means a priority.
fn scheduling(
    arguments: &CyclictestArguments,
    threads: u32,
    remarks: &mut Vec<String>,
) -> Result<(Policy, u32), CommandError> {
    let name = arguments.policy.as_deref().map(str::to_ascii_lowercase);
    let policy = match name.as_deref() {
        None | Some("other" | "normal") => Policy::Other,
        Some(name) => match Policy::parse(name) {
            Some(policy) => policy,
            None => {
                let why = match name {
                    "batch" | "idle" => " is not done by tare cyclictest",
                    _ => "",
                };
                return usage(format!(
                    "--policy={name}{why}: choose other, fifo, rr or deadline"
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
                let remark = "-p asks for a real-time priority: the policy is SCHED_FIFO";
                remarks.push(remark.to_owned());
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
    let cpus = match text.strip_prefix('!') {
        _ if text == "all" => Some(*allowed),
        Some(list) => Cpus::parse(list).map(|list| allowed.without(&list)),
        None => Cpus::parse(text),
    };
    match cpus {
        None => usage(format!(
            "{option} {text}: want CPUs such as 1 or 0,2-3, or !0 for all others"
        )),
        Some(cpus) if cpus.count() == 0 => usage(format!(
            "{option} {text} leaves no CPU that this process may use"
        )),
        cpus => Ok(cpus),
    }
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

//! What cyclictest's options mean.

use std::path::Path;

use tare_experiments::wakeup::{self, Wakeup};
use tare_lab::experiment::Conditions;
use tare_lab::parameter::{Value, Values};
use tare_lab::plan::{Frame, of_one};
use tare_lab::{ExperimentError, units::nanoseconds};
use tare_measured::wakeup::{MAX_KEPT, Plan, Spread};
use tare_results::model;
use tare_wire::cpus::Cpus;
use tare_wire::phases::MAX_DURATION_NS;
use tare_wire::scheduling::Policy;

use crate::arguments::Arguments;
use crate::format::{Histogram, Unit};

/// The distance of cyclictest.
const DISTANCE_US: u64 = 500;

/// Interval at which the threads report their state.
const LIVE_NS: u64 = 100_000_000;
/// The same without status lines: for the last latency of a long run.
const QUIET_LIVE_NS: u64 = 1_000_000_000;

/// Wake-ups of each thread that are kept one by one: the last one's latency is shown.
const KEPT: u64 = 1 << 20;

/// The meaning of the arguments.
#[derive(Debug)]
pub struct Settings<'a> {
    /// The arguments as they were typed.
    pub arguments: &'a Arguments,
    /// The agent's plan.
    pub plan: Plan,
    /// Unit of everything that is printed.
    pub unit: Unit,
    /// The histogram, if one is printed.
    pub histogram: Option<Histogram>,
    /// Notices on how the options were understood.
    pub notices: Vec<String>,
}

impl<'a> Settings<'a> {
    /// Reads the arguments; `allowed` are the CPUs that this process may use.
    ///
    /// # Errors
    ///
    /// Returns which option is invalid, or not supported.
    pub fn new(arguments: &'a Arguments, allowed: &Cpus) -> Result<Self, String> {
        if let Some((option, why)) = arguments.refused() {
            return Err(format!(
                "{option} is not supported by tare cyclictest: {why}"
            ));
        }
        let unit = match arguments.output.nsecs {
            true => Unit::Nanos,
            false => Unit::Micros,
        };
        let mut notices = Vec::new();
        let histogram = histogram(arguments, unit, &mut notices)?;
        let plan = plan(arguments, unit, allowed, histogram.as_ref(), &mut notices)?;
        plan.check().map_err(|refusal| refusal.to_string())?;
        Ok(Self {
            arguments,
            plan,
            unit,
            histogram,
            notices,
        })
    }

    /// Returns the plan of the run: one cell of `tare wakeup` on this machine.
    ///
    /// # Errors
    ///
    /// Returns [`ExperimentError`] as [`of_one`] does.
    pub fn run_plan(&self, command: Vec<String>) -> Result<model::Plan, ExperimentError> {
        let plan = &self.plan;
        let numbers = [
            ("interval", Some(plan.interval_ns)),
            ("threads", Some(plan.threads.into())),
            ("duration", plan.duration_ns),
            ("loops", plan.loops),
            (
                "priority",
                Some(plan.priority.into()).filter(|priority| *priority > 0),
            ),
        ];
        let mut values = Values::default();
        for (name, number) in numbers {
            if let Some(number) = number {
                values.give(name, vec![Value::Number(number)]);
            }
        }
        values.give("policy", vec![Value::Text(plan.policy.name().to_owned())]);
        let cpu = plan.cpu.and_then(|cpus| cpus.first()).unwrap_or(0);
        let conditions = Conditions {
            targets: vec![tare_targets::process::spec()],
            loads: vec![model::Schedule::idle()],
            cpu,
            cpus: plan.cpu,
            cell_limit: None,
            is_watched: false,
        };
        let frame = Frame {
            cpu,
            cpu_reason: format!("CPU {cpu} as requested"),
            command,
            ..Frame::default()
        };
        let mut run = of_one(&Wakeup, &conditions, &values, 1, frame)?;
        for cell in &mut run.cells {
            cell.work = wakeup::work(plan);
        }
        Ok(run)
    }

    /// Returns whether standard output holds JSON alone.
    pub fn is_json_only(&self) -> bool {
        self.arguments.output.json.as_deref() == Some(Path::new("-"))
    }

    /// Returns whether nothing is printed before the end.
    pub fn is_quiet(&self) -> bool {
        self.arguments.output.quiet || self.is_json_only() || self.arguments.output.verbose
    }
}

fn histogram(
    arguments: &Arguments,
    unit: Unit,
    notices: &mut Vec<String>,
) -> Result<Option<Histogram>, String> {
    let all = arguments.output.histofall.is_some();
    let Some(size) = arguments.output.histogram.or(arguments.output.histofall) else {
        if arguments.output.histfile.is_some() {
            return Err("--histfile needs -h US, the size of the histogram".to_owned());
        }
        return Ok(None);
    };
    if size == 0 {
        return Err("-h 0: a histogram has at least one value".to_owned());
    }
    if size > Histogram::MOST {
        notices.push(format!(
            "-h {size} is reduced to {}, the largest histogram",
            Histogram::MOST
        ));
    }
    let size = size.min(Histogram::MOST);
    Ok(Some(Histogram { size, unit, all }))
}

fn plan(
    arguments: &Arguments,
    unit: Unit,
    allowed: &Cpus,
    histogram: Option<&Histogram>,
    notices: &mut Vec<String>,
) -> Result<Plan, String> {
    let in_ns = |us: u64| us.saturating_mul(1_000);
    let interval_ns = in_ns(arguments.interval);
    let (threads, affinity) = match arguments.threads {
        _ if arguments.smp => (allowed.count(), None),
        Some(0) => (allowed.count(), arguments.affinity.as_deref()),
        threads => (threads.unwrap_or(1), arguments.affinity.as_deref()),
    };
    let mut ignored = |option: &str, is_given: bool, why: &str| {
        if is_given {
            notices.push(format!("{option} is ignored: {why}"));
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
    let (policy, priority) = scheduling(arguments, threads, notices)?;
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
    // Every latency of an interval or more is listed: the number of a wake-up follows from the
    // activations missed before it.
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
        true if activations > MAX_KEPT => {
            return Err(format!(
                "-v prints every latency at the end, at most {MAX_KEPT} per thread: end earlier with -l or -D"
            ));
        }
        true => activations,
        false if activations <= KEPT => activations,
        false => 0,
    };
    Ok(plan)
}

/// Chooses as cyclictest does: a priority means SCHED_FIFO, and a real-time policy means a
/// priority.
fn scheduling(
    arguments: &Arguments,
    threads: u32,
    notices: &mut Vec<String>,
) -> Result<(Policy, u32), String> {
    let name = arguments.policy.as_deref().map(str::to_ascii_lowercase);
    let policy = match name.as_deref() {
        None | Some("other" | "normal") => Policy::Other,
        Some(name) => match Policy::parse(name) {
            Some(policy) => policy,
            None => {
                let why = match name {
                    "batch" | "idle" => " is not supported by tare cyclictest",
                    _ => "",
                };
                return Err(format!(
                    "--policy={name}{why}: choose other, fifo, rr or deadline"
                ));
            }
        },
    };
    let default = |notices: &mut Vec<String>| {
        let priority = threads.saturating_add(1).min(99);
        notices.push(format!("defaulting realtime priority to {priority}"));
        priority
    };
    Ok(match (policy, arguments.priority) {
        (Policy::Other, 0) if arguments.priospread => (Policy::Fifo, default(notices)),
        (Policy::Other, 0) => (Policy::Other, 0),
        (Policy::Other, priority) => {
            if arguments.policy.is_some() {
                let notice = "-p asks for a real-time priority: the policy is SCHED_FIFO";
                notices.push(notice.to_owned());
            }
            (Policy::Fifo, priority)
        }
        (Policy::Fifo | Policy::RoundRobin, 0) => (policy, default(notices)),
        (policy, priority) => (policy, priority),
    })
}

/// Reads a set of CPUs: all, a list, or with a ! all others.
fn cpus(option: &str, text: Option<&str>, allowed: &Cpus) -> Result<Option<Cpus>, String> {
    let Some(text) = text else {
        return Ok(None);
    };
    let cpus = match text.strip_prefix('!') {
        _ if text == "all" => Some(*allowed),
        Some(list) => Cpus::parse(list).map(|list| allowed.without(&list)),
        None => Cpus::parse(text),
    };
    match cpus {
        None => Err(format!(
            "{option} {text}: expected CPUs such as 1 or 0,2-3, or !0 for all others"
        )),
        Some(cpus) if cpus.count() == 0 => Err(format!(
            "{option} {text} leaves no CPU that this process may use"
        )),
        cpus => Ok(cpus),
    }
}

/// Reads a duration: seconds, or a number with its unit.
fn duration(text: &str) -> Result<u64, String> {
    nanoseconds(text, Some("s"))
        .map_err(|_| format!("-D {text}: expected seconds, or a number with s, m, h or d"))
}

//! `wakeup`, after landolfi-2018: how late is a sleeping thread woken?
//!
//! Threads sleep to absolute times, one interval apart, and note how late they run. A combination of target and load is
//! one cell a block; or the loads are *phases*: they run one after the other while one measurement goes on, as in the
//! study, and a combination is a target.

mod estimate;
mod parameters;
mod story;

pub use story::WakeupStory;

use tare_loads::{Load, Schedule};
use tare_results::model::{CellPlan, Labels};
use tare_results::target::{Clock, Group, TargetSpec};
use tare_results::work::{RealTime, Rights, Work};
use tare_services::wakeup as services;
use tare_wire::bounds::Refusal;
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use tare_lab::ExperimentError;
use tare_lab::experiment::{DEFAULT_RUNS, Experiment, Place};
use tare_lab::parameter::{Parameter, Values};
use tare_lab::plan::at_most;
use tare_lab::units::{exact, exact_word};

/// Is the name of the experiment.
pub const NAME: &str = services::NAME;
/// Is the interval unless said otherwise: the study's.
const DEFAULT_INTERVAL_NS: u64 = 100_000;
/// Is how long a run measures unless said otherwise: long enough for a p99.9 at that interval.
const DEFAULT_DURATION_NS: u64 = 2_000_000_000;
/// Is how long a run waits for a latency above a limit unless said otherwise.
const WAITING_NS: u64 = 60_000_000_000;
/// Is how often the current result is told to somebody who watches.
const LIVE_NS: u64 = 500_000_000;
/// Is the priority unless said otherwise: above the kernel's threads for interrupts, which have 50, and below
/// those that keep the system alive, which have 99.
const DEFAULT_PRIORITY: u32 = 95;
/// Is how much longer the interval of each further thread is unless said otherwise, where threads share a CPU: that of
/// cyclictest. On CPUs of their own all have the same.
const DEFAULT_DISTANCE_NS: u64 = 500_000;
/// Is how many of the worst wake-ups are traced unless said otherwise, if any are.
const DEFAULT_TRACE: u32 = 10;

/// Is the experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup;

/// Says what is to be measured in each run.
#[derive(Clone, Debug)]
struct Options {
    /// Time between two activations of the first thread.
    interval_ns: u64,
    /// How much longer the interval of each further thread is; [`DEFAULT_DISTANCE_NS`] or 0 if None.
    distance_ns: Option<u64>,
    /// Number of threads; one for each CPU if None.
    threads: Option<u32>,
    /// CPUs that they are pinned to in turn; that of the run if None.
    cpus: Option<Cpus>,
    /// CPUs of the thread that starts and watches them, where this machine's kernel schedules it.
    main: Option<Cpus>,
    /// Under which policy they are scheduled.
    policy: Policy,
    /// Real-time priority; [`DEFAULT_PRIORITY`] if None and the policy has one.
    priority: Option<u32>,
    /// How long each run measures; [`DEFAULT_DURATION_NS`] if neither this nor another end is given.
    duration_ns: Option<u64>,
    /// After how many wake-ups each thread ends.
    loops: Option<u64>,
    /// Length of a phase; None if each load has cells of its own.
    phase_ns: Option<u64>,
    /// From which latency on wake-ups are listed; the interval if None.
    threshold_ns: Option<u64>,
    /// Whether and how the worst wake-ups are traced.
    trace: Trace,
    /// Above which latency a thread says so at once.
    above_ns: Option<u64>,
    /// Whether measuring goes on after that.
    go_on: bool,
    /// How often the state of each thread is told meanwhile, where that disturbs nothing.
    live_ns: Option<u64>,
}

/// Says whether and how the worst wake-ups are traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Trace {
    /// Not at all.
    #[default]
    Off,
    /// So many, in one more run of each combination: tracing costs time, which the others are not to pay.
    Extra(u32),
    /// So many, in every run: for whoever waits for one late wake-up.
    Every(u32),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval_ns: DEFAULT_INTERVAL_NS,
            distance_ns: None,
            threads: None,
            cpus: None,
            main: None,
            policy: Policy::default(),
            priority: None,
            duration_ns: None,
            loops: None,
            phase_ns: None,
            threshold_ns: None,
            trace: Trace::Off,
            above_ns: None,
            go_on: false,
            live_ns: None,
        }
    }
}

impl Experiment for Wakeup {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "how late sleeping threads are woken, as cyclictest does, and what it leaves out"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, a thread under SCHED_FIFO is woken every 100 µs on the quietest CPU, six times for 2 s. \
         Activations that a late wake-up missed are counted and have their latency, too."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn default_runs(&self, values: &Values) -> u32 {
        // One late wake-up is waited for.
        if values.has("trace-above") {
            1
        } else {
            DEFAULT_RUNS
        }
    }

    fn cpus(&self, values: &Values, allowed: &Cpus) -> Option<Cpus> {
        parameters::cpus(values, allowed)
    }

    fn combinations(
        &self,
        place: &Place,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        combinations(&Options::of(values, place)?, place)
    }

    fn runs_of(&self, cell: &CellPlan, asked: u32) -> u32 {
        // One is there to name culprits, not to be repeated; a run without any others is none.
        if is_extra(cell) { asked.min(1) } else { asked }
    }

    fn work(&self, words: &str) -> Option<Work> {
        let plan = services::Plan::parse(words.split_whitespace()).ok()?;
        plan.check().ok()?;
        Some(work(&plan))
    }

    fn announces(&self, cell: &CellPlan) -> Option<String> {
        plan_of(cell).as_ref().map(listed)
    }

    fn phase_parameter(&self) -> Option<&'static str> {
        Some(parameters::PHASE)
    }
}

/// Says whether a cell is the traced one beside others of its combination: a trace without a limit to wait for.
fn is_extra(cell: &CellPlan) -> bool {
    cell.is_traced() && plan_of(cell).is_some_and(|plan| plan.above_ns.is_none())
}

/// Reads the plan of a cell back.
fn plan_of(cell: &CellPlan) -> Option<services::Plan> {
    let words = cell.work.to_string();
    services::Plan::parse(words.split_whitespace()).ok()
}

/// Returns what distinguishes a cell from others of the experiment.
fn labels(plan: &services::Plan) -> Labels {
    let default = services::Plan::new(DEFAULT_INTERVAL_NS, 0);
    let mut labels = Labels::default();
    if plan.trace > 0 {
        labels = labels.with("traced", "yes");
    }
    // What has its default is in no label, so that rows of two runs are compared by what was asked for.
    if plan.interval_ns != default.interval_ns {
        labels = labels.with("interval", exact_word(plan.interval_ns));
    }
    if plan.policy != default.policy {
        labels = labels.with("policy", plan.policy.name());
    } else if plan.priority != default.priority {
        labels = labels.with("priority", plan.priority);
    }
    if plan.threads > 1 {
        labels = labels.with("threads", plan.threads);
    }
    labels
}

/// Makes the work of a plan.
#[must_use]
pub fn work(plan: &services::Plan) -> Work {
    let is_ordinary = plan.policy == Policy::Other;
    Work {
        threads: plan.threads,
        cpus: plan.cpu,
        main: plan.main,
        buffer_bytes: services::buffer_bytes(plan) as u64,
        rights: Rights {
            real_time: (!is_ordinary).then_some(RealTime {
                policy: plan.policy,
                priority: plan.priority,
            }),
            kernel_events: plan.trace > 0,
        },
        above: plan.above_ns,
        ..Work::new(NAME, &services::OwnWords(plan).to_string())
    }
}

/// Says who is woken how often, and which wake-ups are listed.
fn listed(plan: &services::Plan) -> String {
    let threads = match plan.threads {
        1 => "a thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let priority = match plan.priority {
        0 => String::new(),
        priority => format!(" at priority {priority}"),
    };
    let place = match plan.cpu {
        Some(_) => "",
        None => " on any CPU",
    };
    let threshold = plan.threshold_ns.unwrap_or(plan.interval_ns);
    format!(
        "{threads} under SCHED_{}{priority}{place}, woken every {}; listed is what is at least {} late",
        plan.policy.name().to_uppercase(),
        exact(plan.interval_ns),
        exact(threshold)
    )
}

/// Returns one cell for each combination, not yet numbered, and the traced ones after them.
fn combinations(options: &Options, place: &Place) -> Result<Vec<CellPlan>, ExperimentError> {
    let under: Vec<Under> = match options.phase_ns {
        Some(phase_ns) => vec![Under::phases(&place.loads, phase_ns)?],
        None => place
            .loads
            .iter()
            .map(|load| Under::one(load))
            .collect::<Result<_, _>>()?,
    };
    at_most((place.targets.len() as u64).saturating_mul(2 * under.len() as u64))?;
    let (mut cells, mut traced) = (Vec::new(), Vec::new());
    for target in &place.targets {
        for under in &under {
            let own = match options.trace {
                Trace::Every(trace) => trace,
                Trace::Off | Trace::Extra(_) => 0,
            };
            cells.push(cell(options, place, target, under, own)?);
            if let Trace::Extra(trace @ 1..) = options.trace
                && can_trace(target)
            {
                traced.push(cell(options, place, target, under, trace)?);
            }
        }
    }
    cells.append(&mut traced);
    Ok(cells)
}

/// Is what a cell is measured under.
struct Under {
    /// As the plan writes it.
    text: String,
    /// The loads, if they run one after the other.
    phases: Vec<String>,
    phase_ns: Option<u64>,
    is_idle: bool,
}

impl Under {
    fn one(load: &str) -> Result<Self, ExperimentError> {
        let load = Load::parse(load)?;
        Ok(Self {
            text: load.to_string(),
            phases: Vec::new(),
            phase_ns: None,
            is_idle: load.is_idle(),
        })
    }

    /// Makes a schedule of the loads.
    fn phases(loads: &[String], phase_ns: u64) -> Result<Self, ExperimentError> {
        let loads: Vec<Load> = loads
            .iter()
            .map(|load| Load::parse(load))
            .collect::<Result<_, _>>()?;
        let schedule = Schedule::new(phase_ns, loads)?;
        let loads = schedule.loads();
        Ok(Self {
            text: schedule.to_string(),
            phases: loads.iter().map(Load::to_string).collect(),
            phase_ns: Some(phase_ns),
            is_idle: loads.iter().all(Load::is_idle),
        })
    }
}

/// Returns how many CPUs a guest has; None where this machine's or another one's are meant.
fn guest_cpus(target: &TargetSpec) -> Option<u32> {
    let is_guest = target.group.is_linux_guest() || target.group == Group::Unikernel;
    let cpus = target.option("cpus").and_then(|cpus| cpus.parse().ok());
    is_guest.then(|| cpus.unwrap_or(1))
}

/// Says whether a kernel beneath the threads can be asked what it did. A container has no tracefs.
fn can_trace(target: &TargetSpec) -> bool {
    target.group.is_linux_guest() || matches!(target.group, Group::Process | Group::Remote)
}

fn place_of(target: &TargetSpec) -> estimate::Where {
    match (target.group.is_linux_guest(), target.clock) {
        (true, Clock::Instructions) => estimate::Where::CountedGuest,
        (true, Clock::Host) => estimate::Where::Guest,
        (false, _) => estimate::Where::Here,
    }
}

fn cell(
    options: &Options,
    place: &Place,
    target: &TargetSpec,
    under: &Under,
    trace: u32,
) -> Result<CellPlan, ExperimentError> {
    let plan = words(options, place, target, under, trace)?;
    check(&plan)?;
    let seconds = plan.expected_ns() as f64 / 1e9;
    let loads = match under.phases.len() {
        0 if under.is_idle => 0,
        0 => 1,
        phases => phases,
    };
    let estimate = estimate::of(seconds, loads, place_of(target));
    let limit_seconds = place
        .cell_limit
        .map_or(estimate.limit_seconds, |limit| limit.as_secs_f64());
    Ok(CellPlan {
        load: under.text.clone(),
        phases: under.phases.clone(),
        phase_seconds: under.phase_ns.map(|ns| ns as f64 / 1e9),
        labels: labels(&plan),
        estimate_seconds: estimate.seconds,
        limit_seconds,
        ..CellPlan::new(NAME, target.clone(), NAME, work(&plan))
    })
}

/// Puts together what the measuring threads are asked to do.
fn words(
    options: &Options,
    place: &Place,
    target: &TargetSpec,
    under: &Under,
    trace: u32,
) -> Result<services::Plan, ExperimentError> {
    let cpus = options.cpus.unwrap_or_else(|| Cpus::one(place.cpu));
    keep_main_alive(options, &cpus)?;
    let threads = options.threads.unwrap_or(cpus.count());
    if let Some(has) = guest_cpus(target)
        && cpus.count() > has
    {
        return Err(contradiction(format!(
            "'{target}' has fewer CPUs ({has}) than are to be measured ({cpus}): give it more with cpus="
        )));
    }
    let distance_ns = options.distance_ns.unwrap_or(if threads > cpus.count() {
        DEFAULT_DISTANCE_NS
    } else {
        0
    });
    let duration_ns = match (under.phase_ns, options.duration_ns, options.loops) {
        (Some(phase_ns), None, None) => Some(phase_ns.saturating_mul(under.phases.len() as u64)),
        (Some(_), _, _) => {
            return Err(contradiction(
                "phases last as long as they are long: leave duration and loops out".to_owned(),
            ));
        }
        (None, None, None) => Some(DEFAULT_DURATION_NS),
        (None, duration_ns, _) => duration_ns,
    };
    let priority = match options.priority {
        Some(priority) => priority,
        None if options.policy.has_priority() => DEFAULT_PRIORITY,
        None => 0,
    };
    Ok(services::Plan {
        distance_ns,
        threads,
        // Of a SCHED_DEADLINE thread the kernel admits the CPU bandwidth for a whole domain of CPUs, and refuses it to
        // one that is pinned to some of these.
        cpu: options
            .cpus
            .or((options.policy != Policy::Deadline).then_some(cpus)),
        main: options.main.filter(|_| target.group.is_here()),
        policy: options.policy,
        priority,
        duration_ns,
        loops: options.loops,
        phases: u32::try_from(under.phases.len().max(1)).unwrap_or(u32::MAX),
        threshold_ns: options.threshold_ns,
        // Many threads share what one has alone.
        raw: services::Plan::DEFAULT_RAW / u64::from(threads.max(1)),
        above_ns: options.above_ns,
        go_on: options.go_on,
        // In a guest, a line on its way out is work for the measured CPU.
        live_ns: options.live_ns.filter(|_| target.group.is_here()),
        trace,
        ..services::Plan::new(options.interval_ns, 0)
    })
}

/// Checks that every value is within its bounds.
fn check(plan: &services::Plan) -> Result<(), ExperimentError> {
    plan.check().map_err(|refusal| {
        let Refusal {
            what,
            given,
            least,
            most,
        } = refusal;
        match what {
            "interval" | "duration" => ExperimentError::TimeOutOfBounds {
                experiment: NAME,
                what,
                given_ns: given,
                least_ns: least,
                most_ns: most,
            },
            "priority" if !plan.policy.has_priority() => contradiction(format!(
                "SCHED_{} has no priority: leave it out",
                plan.policy.name().to_uppercase()
            )),
            _ => ExperimentError::OutOfBounds {
                workload: NAME,
                refusal,
            },
        }
    })?;
    for (what, ns) in [("threshold", plan.threshold_ns), ("limit", plan.above_ns)] {
        if ns == Some(0) {
            return Err(contradiction(format!(
                "a {what} of 0 would list every wake-up"
            )));
        }
    }
    if plan.expected_ns() < plan.interval_ns {
        return Err(contradiction(format!(
            "nothing would be woken within {}: the interval is {}",
            exact(plan.expected_ns()),
            exact(plan.interval_ns)
        )));
    }
    Ok(())
}

/// Refuses to put the thread that watches where measuring ones of real-time priority come first.
fn keep_main_alive(options: &Options, measured: &Cpus) -> Result<(), ExperimentError> {
    let Some(main) = options.main else {
        return Ok(());
    };
    let is_free = main.iter().any(|cpu| !measured.contains(cpu));
    if options.policy == Policy::Other || is_free {
        return Ok(());
    }
    Err(contradiction(format!(
        "mainaffinity {main} leaves the thread that starts and watches the measurement no CPU but a measured one: \
         threads under SCHED_{} come first there, and if they never got to sleep, nobody could end them; choose \
         another CPU with mainaffinity or affinity",
        options.policy.name().to_uppercase(),
    )))
}

fn contradiction(why: String) -> ExperimentError {
    ExperimentError::Contradiction {
        experiment: NAME,
        why,
    }
}

#[cfg(test)]
mod tests;

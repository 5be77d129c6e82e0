//! `wakeup`, after landolfi-2018: how late is a sleeping thread woken?
//!
//! Threads sleep to absolute times, one interval apart, and note how late they run. A combination
//! of target and load is one cell a block; or the loads are *phases*: they run one after the other
//! while one measurement goes on, as in the study, and a combination is a target.

mod estimate;
mod parameters;
mod story;

pub use story::WakeupStory;

use tare_figures::words;
use tare_measured::wakeup as measured;
use tare_results::model::{CellPlan, Labels, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::{RealTime, Rights, Work};
use tare_wire::bounds::Refusal;
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use tare_lab::ExperimentError;
use tare_lab::experiment::{Conditions, DEFAULT_RUNS, Experiment};
use tare_lab::parameter::{Parameter, Values};
use tare_lab::plan::at_most;
use tare_lab::units::{exact, exact_word};

/// The name of the experiment.
pub const NAME: &str = measured::NAME;
/// The default interval: the study's.
const DEFAULT_INTERVAL_NS: u64 = 100_000;
/// The default duration of a run: long enough for a p99.9 at that interval.
const DEFAULT_DURATION_NS: u64 = 2_000_000_000;
/// The default time that a run waits for a latency above a limit.
const WAITING_NS: u64 = 60_000_000_000;
/// The interval between live figures.
const LIVE_NS: u64 = 500_000_000;
/// The default priority: above the kernel's threads for interrupts, which have 50, and below
/// those that keep the system alive, which have 99.
const DEFAULT_PRIORITY: u32 = 95;
/// The default by which the interval of each further thread is longer, where threads share a CPU:
/// that of cyclictest. On CPUs of their own all have the same.
const DEFAULT_DISTANCE_NS: u64 = 500_000;
/// The default number of the worst wake-ups that are traced, if any are.
const DEFAULT_TRACE: u32 = 10;

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Wakeup;

impl Experiment for Wakeup {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "how late sleeping threads are woken, as cyclictest does, including missed activations"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, a thread under SCHED_FIFO is woken every 100 µs on the quietest CPU, six times for 2 s. \
         Activations that a late wake-up missed are counted, with their latency."
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
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        combinations(values, conditions)
    }

    fn runs_of(&self, cell: &CellPlan, asked: u32) -> u32 {
        // One is there to name culprits, not to be repeated; a run without any others is none.
        if is_extra(cell) { asked.min(1) } else { asked }
    }

    fn work(&self, words: &str) -> Option<Work> {
        let plan = measured::Plan::parse(words.split_whitespace()).ok()?;
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

/// Returns whether a cell is the extra, traced one of its combination: a trace without a limit to
/// wait for.
fn is_extra(cell: &CellPlan) -> bool {
    cell.is_traced() && plan_of(cell).is_some_and(|plan| plan.above_ns.is_none())
}

/// Reads the plan of a cell back.
fn plan_of(cell: &CellPlan) -> Option<measured::Plan> {
    let words = cell.work.to_string();
    measured::Plan::parse(words.split_whitespace()).ok()
}

/// Returns what distinguishes a cell from others of the experiment.
fn labels(plan: &measured::Plan) -> Labels {
    let default = measured::Plan::new(DEFAULT_INTERVAL_NS, 0);
    let mut labels = Labels::default();
    if plan.trace > 0 {
        labels = labels.with("traced", "yes");
    }
    // What has its default is in no label, so that rows of two runs are compared by what was asked
    // for.
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
pub fn work(plan: &measured::Plan) -> Work {
    let is_ordinary = plan.policy == Policy::Other;
    Work {
        threads: plan.threads,
        cpus: plan.cpu,
        main: plan.main,
        buffer_bytes: measured::buffer_bytes(plan) as u64,
        rights: Rights {
            real_time: (!is_ordinary).then_some(RealTime {
                policy: plan.policy,
                priority: plan.priority,
            }),
            kernel_events: plan.trace > 0,
        },
        ends_early: true,
        above: plan.above_ns,
        ..Work::new(NAME, &measured::OwnWords(plan).to_string())
    }
}

/// Says who is woken how often, and which wake-ups are recorded one by one.
fn listed(plan: &measured::Plan) -> String {
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
    let last = plan.interval_of(plan.threads.saturating_sub(1));
    let mut every = exact(plan.interval_ns);
    if last != plan.interval_ns {
        every.push_str(&format!(" to {}", exact(last)));
    }
    format!(
        "{threads} under SCHED_{}{priority}{place}, woken every {every}; each wake-up at least {} late is recorded",
        plan.policy.name().to_uppercase(),
        exact(threshold)
    )
}

/// Returns one cell for each combination, not yet numbered, and the traced ones after them: tracing
/// costs time, which the others are not to pay. Whoever waits for one late wake-up has all cells
/// traced.
fn combinations(
    values: &Values,
    conditions: &Conditions,
) -> Result<Vec<CellPlan>, ExperimentError> {
    parameters::check(values)?;
    let loads = match values.number(parameters::PHASE) {
        Some(phase_ns) => {
            let loads = conditions.loads.iter().flat_map(Schedule::loads);
            vec![Schedule::new(phase_ns, loads.cloned().collect())?]
        }
        None => conditions.loads.clone(),
    };
    at_most((conditions.targets.len() as u64).saturating_mul(loads.len() as u64))?;
    let trace = values.small("trace");
    let (every, extra) = match values.has("trace-above") {
        true => (trace.unwrap_or(DEFAULT_TRACE), 0),
        false => (0, trace.unwrap_or(0)),
    };
    let (mut cells, mut traced) = (Vec::new(), Vec::new());
    for target in &conditions.targets {
        for load in &loads {
            cells.push(cell(values, conditions, target, load, every)?);
            if extra > 0 && target.capabilities().kernel_events {
                traced.push(cell(values, conditions, target, load, extra)?);
            }
        }
    }
    if extra > 0 && traced.is_empty() {
        let targets = conditions.targets.iter().map(|target| target.text.clone());
        return Err(contradiction(format!(
            "trace: what runs on {} reports no events of a kernel: omit it, or add the target process",
            words::list(&Vec::from_iter(targets))
        )));
    }
    cells.append(&mut traced);
    Ok(cells)
}

fn cell(
    values: &Values,
    conditions: &Conditions,
    target: &TargetSpec,
    load: &Schedule,
    trace: u32,
) -> Result<CellPlan, ExperimentError> {
    let plan = plan(values, conditions, target, load, trace)?;
    check(&plan)?;
    let seconds = plan.expected_ns() as f64 / 1e9;
    let loads = match load.is_idle() {
        true => 0,
        false => load.loads().len(),
    };
    let (estimate_seconds, limit_seconds) =
        estimate::of(seconds, loads, (target.kernel(), target.clock));
    let limit = conditions.cell_limit.map(|limit| limit.as_secs_f64());
    Ok(CellPlan {
        load: load.clone(),
        phases: load.phases(),
        phase_seconds: load.phase_ns().map(|ns| ns as f64 / 1e9),
        labels: labels(&plan),
        estimate_seconds,
        limit_seconds: limit.unwrap_or(limit_seconds),
        ..CellPlan::new(NAME, target.clone(), NAME, work(&plan))
    })
}

/// Puts together what the measuring threads are asked to do: what is given, and the defaults for
/// the rest. Words and forms were checked by what the parameters say.
fn plan(
    values: &Values,
    conditions: &Conditions,
    target: &TargetSpec,
    load: &Schedule,
    trace: u32,
) -> Result<measured::Plan, ExperimentError> {
    let cpus = conditions.cpus.unwrap_or_else(|| Cpus::one(conditions.cpu));
    let policy = parameters::policy(values);
    let main = values.text("mainaffinity").and_then(Cpus::parse);
    keep_main_alive(main, policy, &cpus)?;
    let threads = values.small("threads").filter(|threads| *threads > 0);
    let threads = threads.unwrap_or(cpus.count());
    if let Some(has) = target.guest_cpus()
        && cpus.count() > has
    {
        return Err(contradiction(format!(
            "'{target}' has fewer CPUs ({has}) than are to be measured ({cpus}): give it more with cpus="
        )));
    }
    // On CPUs of their own all have the same interval.
    let distance_ns = match threads > cpus.count() && !values.has("smp") {
        true => DEFAULT_DISTANCE_NS,
        false => 0,
    };
    let (duration_ns, loops) = (values.number("duration"), values.number("loops"));
    let waits = values.has("trace-above");
    let duration_ns = match (load.phase_ns(), duration_ns, loops) {
        (Some(phase_ns), None, None) => Some(phase_ns.saturating_mul(load.loads().len() as u64)),
        (Some(_), _, _) => {
            return Err(contradiction(
                "with phase, leave out duration and loops: the phases set the length".to_owned(),
            ));
        }
        (None, None, None) if waits => Some(WAITING_NS),
        (None, None, None) => Some(DEFAULT_DURATION_NS),
        (None, duration_ns, _) => duration_ns,
    };
    let default_priority = u32::from(policy.has_priority()) * DEFAULT_PRIORITY;
    let interval_ns = values.number("interval").unwrap_or(DEFAULT_INTERVAL_NS);
    Ok(measured::Plan {
        distance_ns: values.number("distance").unwrap_or(distance_ns),
        threads,
        // Of a SCHED_DEADLINE thread the kernel admits the CPU bandwidth for a whole domain of
        // CPUs, and refuses it to one that is pinned to some of these.
        cpu: conditions
            .cpus
            .or((policy != Policy::Deadline).then_some(cpus)),
        main: main.filter(|_| target.kernel().is_host()),
        policy,
        priority: values.small("priority").unwrap_or(default_priority),
        duration_ns,
        loops,
        phases: u32::try_from(load.loads().len()).unwrap_or(u32::MAX),
        threshold_ns: values.number("threshold"),
        // Many threads share what one has alone.
        raw: measured::Plan::DEFAULT_RAW / u64::from(threads.max(1)),
        // No file of samples may have more rows than one thread may list.
        capacity: measured::Plan::DEFAULT_CAPACITY
            .min(measured::MAX_KEPT / u64::from(threads.max(1))),
        above_ns: values.number("trace-above"),
        go_on: values.texts("on-threshold").contains(&"continue"),
        // In a guest, a line on its way out is work for the measured CPU.
        live_ns: (conditions.is_watched && target.kernel().is_host()).then_some(LIVE_NS),
        trace,
        ..measured::Plan::new(interval_ns, 0)
    })
}

/// Checks that every value is within its bounds.
fn check(plan: &measured::Plan) -> Result<(), ExperimentError> {
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
fn keep_main_alive(
    main: Option<Cpus>,
    policy: Policy,
    measured: &Cpus,
) -> Result<(), ExperimentError> {
    let taken = main.filter(|main| main.iter().all(|cpu| measured.contains(cpu)));
    let Some(main) = taken.filter(|_| policy != Policy::Other) else {
        return Ok(());
    };
    Err(contradiction(format!(
        "mainaffinity {main} leaves the thread that starts and watches the measurement no CPU but a measured one: \
         threads under SCHED_{} come first there, and if they never got to sleep, nobody could end them; choose \
         another CPU with mainaffinity or affinity",
        policy.name().to_uppercase(),
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

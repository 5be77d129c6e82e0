//! `start`, after calder-2020: how long do instances take to start, and which rate does a target
//! keep up?
//!
//! A cell starts many instances of one target: each when the one before has ended, or at absolute
//! times one interval apart, whatever became of those before (an open loop). The intervals of a
//! target are a ladder that ends where it no longer keeps up.

mod exits;
mod job;
mod pace;
mod parameters;
mod story;

use tare_results::model::{Arrivals, CellPlan, Labels, MOST_INSTANCES, Outcome, Rung, Schedule};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use tare_lab::estimate::LOAD_SECONDS;
use tare_lab::experiment::{Conditions, Experiment};
use tare_lab::parameter::{Parameter, Values};
use tare_lab::plan::at_most;
use tare_lab::units::exact;
use tare_lab::{Driven, ExperimentError, Stage};

use job::Job;
use pace::Pace;

/// The name of the experiment.
pub const NAME: &str = "start";
/// How long a cell takes beyond the time in which it starts instances: to prepare, and until the
/// last have ended.
const AROUND_SECONDS: f64 = 1.0;
/// The name of an instance that does what its image says.
const BOOT: &str = "boot";
/// The label of cells beside Docker's engine, with the name that a cell's record has for it.
const BESIDE: (&str, &str) = ("beside", "dockerd");

/// The experiment, as studies name it.
#[derive(Clone, Copy, Debug)]
pub struct Start;

impl Experiment for Start {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "how long instances take to start, and which rate of starts each target sustains"
    }

    fn without_arguments(&self) -> &'static str {
        "Without arguments, processes that write a line are started one after the other for 5 s, then 1, 2, 4 … 1,024 a second \
         at planned times for 5 s each, until they no longer keep up; all of it six times."
    }

    fn parameters(&self) -> &'static [Parameter] {
        parameters::ALL
    }

    fn without_agent(&self) -> bool {
        true
    }

    fn refuses(&self) -> &'static [(&'static str, &'static str)] {
        &[
            ("cpu", "its instances run on any CPU"),
            (
                "share_cpu",
                "it measures on no CPU that another run could claim",
            ),
        ]
    }

    fn drive(&self, stage: &mut Stage<'_>) -> Driven {
        let exits = exits::of(stage)?;
        let mut driven = stage.arrivals()?;
        if let Outcome::Done { record, .. } = &mut driven {
            record.values.extend(exits);
        }
        Ok(driven)
    }

    fn combinations(
        &self,
        conditions: &Conditions,
        values: &Values,
    ) -> Result<Vec<CellPlan>, ExperimentError> {
        combinations(conditions, values)
    }

    fn work(&self, words: &str) -> Option<Work> {
        job::of_words(words)
    }

    fn announces(&self, cell: &CellPlan) -> Option<String> {
        cell.arrivals.as_ref().map(announced)
    }
}

/// Says how often instances of a cell are started.
fn announced(arrivals: &Arrivals) -> String {
    let most = arrivals.most_live;
    let (warmup, measure) = (exact(arrivals.warmup_ns), exact(arrivals.measure_ns));
    match arrivals.interval_ns {
        None => format!("one instance at a time: {warmup} of warm-up, then {measure} measured"),
        Some(_) => format!(
            "one instance per interval: {warmup} of warm-up, or twice the first instance's time if that is longer, then {measure} measured; at most {most} alive at once"
        ),
    }
}

/// Returns one cell for each target, load and interval, not yet numbered; beside Docker's engine
/// once more if that is wanted.
fn combinations(
    conditions: &Conditions,
    values: &Values,
) -> Result<Vec<CellPlan>, ExperimentError> {
    let (paces, jobs) = (parameters::paces(values)?, parameters::jobs(values));
    if let Some(load) = conditions.loads.iter().find(|load| load.is_on_others()) {
        return Err(contradiction(format!(
            "{load}: instances run on any CPU, so there is no measured one for 'others' to leave out. Give a list of CPUs"
        )));
    }
    let mut ladders = Vec::new();
    for target in &conditions.targets {
        let is_twice =
            parameters::is_beside_engine(values) && target.capabilities().engine.is_none();
        let mut known = Vec::new();
        for job in &jobs {
            check_target(target, job)?;
            let own = plain(target, job, false);
            // An image that takes no work does the same whatever is asked for.
            if known.contains(&own.labels) {
                continue;
            }
            known.push(own.labels.clone());
            for load in &conditions.loads {
                ladders.push((load, job, own.clone()));
                ladders.extend(is_twice.then(|| (load, job, plain(target, job, true))));
            }
        }
    }
    at_most((ladders.len() as u64).saturating_mul(paces.len() as u64))?;
    let mut cells = Vec::new();
    for (load, job, plain) in ladders {
        for (step, pace) in (0..).zip(&paces) {
            let beside = plain
                .beside_engine
                .then(|| format!(" {} {}", BESIDE.0, BESIDE.1));
            let beside = beside.unwrap_or_default();
            let cell = CellPlan {
                name: format!("{} {}{beside}", plain.name, pace.name()),
                labels: plain.labels.clone().with("interval", pace.text()),
                arrivals: Some(arrivals(values, &plain.target, job, *pace)?),
                rung: Some(rung(&plain, load, step)),
                ..plain.clone()
            };
            let seconds = seconds(&cell);
            let cell = conditions.under(load, cell, seconds);
            cells.push(CellPlan {
                // Its time is given, under a load, too.
                estimate_seconds: if load.is_idle() {
                    seconds
                } else {
                    seconds + LOAD_SECONDS
                },
                ..cell
            });
        }
    }
    Ok(cells)
}

/// Makes what all cells of a ladder have in common. A target that runs no measured code does what
/// its image says, unless it takes the command.
fn plain(target: &TargetSpec, job: &Job, beside: bool) -> CellPlan {
    let is_foreign = is_foreign(target);
    let (name, label) = match is_foreign && command(target, job).is_none() {
        true => (BOOT.to_owned(), None),
        false => (job.name(), job.label()),
    };
    let mut labels = Labels::default();
    if let Some(label) = label {
        labels = labels.with("work", label);
    }
    if beside {
        labels = labels.with(BESIDE.0, BESIDE.1);
    }
    let work = job.work().filter(|_| !is_foreign).unwrap_or_default();
    CellPlan {
        labels,
        beside_engine: beside,
        ..CellPlan::new(NAME, target.clone(), &name, work)
    }
}

/// Says how instances are started.
fn arrivals(
    values: &Values,
    target: &TargetSpec,
    job: &Job,
    pace: Pace,
) -> Result<Arrivals, ExperimentError> {
    let warmup_ns = parameters::WARMUP.number(values);
    let measure_ns = parameters::MEASURE.number(values);
    if let Some(interval_ns) = pace.interval_ns() {
        let planned = warmup_ns.saturating_add(measure_ns) / interval_ns.max(1);
        if measure_ns < interval_ns {
            return Err(contradiction(format!(
                "no instance would be measured within {} at an interval of {}: raise measure, or choose shorter intervals",
                exact(measure_ns),
                pace.text()
            )));
        }
        if planned > MOST_INSTANCES {
            return Err(contradiction(format!(
                "{planned} instances at an interval of {} are too many for one cell, which has at most {MOST_INSTANCES}: \
                 lower measure or warmup",
                pace.text()
            )));
        }
    }
    let most_live = parameters::CONCURRENCY.number(values);
    let is_ours = !is_foreign(target);
    Ok(Arrivals {
        interval_ns: pace.interval_ns(),
        warmup_ns,
        measure_ns,
        most_live: u32::try_from(most_live).unwrap_or(u32::MAX),
        most_bytes: parameters::most_bytes(values),
        report: job.report().filter(|_| is_ours).map(Box::new),
        command: command(target, job),
    })
}

/// Returns the place of a cell on the ladder of its target.
fn rung(plain: &CellPlan, load: &Schedule, step: u32) -> Rung {
    Rung {
        ladder: format!(
            "{NAME}: {} · {load} · {} · {}",
            plain.target, plain.name, plain.labels
        ),
        step,
    }
}

/// Estimates how long a cell takes in seconds, without what its target needs to start.
fn seconds(cell: &CellPlan) -> f64 {
    let arrivals = cell.arrivals.as_ref();
    let ns = arrivals.map_or(0, |all| {
        let warmup_ns = all.whole_ns(all.warmup_ns);
        warmup_ns.saturating_add(all.whole_ns(all.measure_ns))
    });
    ns as f64 / 1e9 + AROUND_SECONDS
}

/// Says whether a target runs no measured code, only what its own image does.
fn is_foreign(target: &TargetSpec) -> bool {
    !target.capabilities().runs_plans
}

/// Returns the command that is started on a target; None if it does not take one.
fn command(target: &TargetSpec, job: &Job) -> Option<Vec<String>> {
    job.command().filter(|_| target.capabilities().own_commands)
}

/// Refuses a target that can't be started many times, and a command where it can't be started in
/// place of the measured code.
fn check_target(target: &TargetSpec, job: &Job) -> Result<(), ExperimentError> {
    let capabilities = target.capabilities();
    if !capabilities.many_instances {
        return Err(contradiction(format!(
            "'{target}' can't start many instances, since each would be a call of ssh: run tare start on that machine"
        )));
    }
    let is_given = job.command().is_some() && !is_foreign(target);
    if !is_given || command(target, job).is_some() {
        return Ok(());
    }
    let remedy = match capabilities.kernel.is_host() {
        true => "give the image that has it, as docker,image=NAME or podman,image=FILE",
        false => "measure it on process, or in an image (docker,image=NAME)",
    };
    Err(contradiction(format!(
        "'{target}' can't start a command of yours: {remedy}"
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

//! What `start` measures: how long instances take, what became of them, and what they cost.
//!
//! Everything follows from the rows of instances. Figures are of the instances that were planned
//! within the measured window; the throughput alone counts every instance that was completed within
//! it, since those that the warm-up left behind stand for those that the window leaves behind.

use tare_figures::rows::{Better, CellData, Figure, Measure, RunFigure, Sample, Samples};
use tare_results::model::{Arrived, Instance, InstanceOutcome, Labels};
use tare_results::target::Kernel;
use tare_stats::Counts;

use super::super::exits::EXITS;
use super::parts;

/// How late an arrival may be to count as in time, in ns.
const IN_TIME_NS: u64 = 1_000_000;

/// The step in which `/proc/stat` counts CPU time, in ns.
const MACHINE_STEP_NS: f64 = 10_000_000.0;

const TIMES: &[Figure] = &[
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::Min,
    Figure::Max,
    Figure::Mean,
];
const SHARE: &[Figure] = &[Figure::Share, Figure::Total];
const RATE: &[Figure] = &[Figure::Rate, Figure::Total];
const MOST: &[Figure] = &[Figure::Max];
const MEAN: &[Figure] = &[Figure::Mean];
const LAG: &[Figure] = &[Figure::MEDIAN, Figure::P99, Figure::Max];
const PARTS: &[Figure] = &[Figure::MEDIAN, Figure::Mean, Figure::P99, Figure::Max];
const CPU: &[Figure] = &[Figure::Mean, Figure::MEDIAN, Figure::Max];
const BYTES: &[Figure] = &[Figure::MEDIAN, Figure::Mean, Figure::Max];

const READY: &str = "time from the planned start until an instance is ready";
const START: &str = "time from the start call until an instance is ready";
const IN_TIME: &str = "arrivals started within 1 ms of their planned time";
const UNFINISHED: &str = "instances that had not ended when the cell did";
const MACHINE: &str = "CPU time of the whole machine for each instance";

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time("ready", READY, TIMES, |data| times(data, ready)),
    Measure::time(
        "exit",
        "time from the planned start to the end",
        TIMES,
        |data| times(data, |one| span(one.planned_ns, one.exited_ns)),
    ),
    Measure::time("start", START, TIMES, |data| {
        times(data, |one| span(one.started_ns, one.ready_ns))
    }),
    Measure::time("lag", "how late instances were started", LAG, |data| {
        one(counts(counted(data).filter_map(Instance::lag_ns)))
    }),
    Measure::time("part", "time of a part of a start", PARTS, parts::of_cell),
    Measure::count("rate", "instances that ended well", RATE, |data| {
        one(rate(data, completed(data)))
    })
    .better(Better::More),
    Measure::count("offered", "instances planned", RATE, |data| {
        of_open_loop(data, || rate(data, counted(data).count()))
    })
    .better(Better::Neither),
    Measure::count("failed", "instances that failed", SHARE, |data| {
        outcomes(data, InstanceOutcome::Failed)
    }),
    Measure::count("rejected", "arrivals rejected at a limit", SHARE, |data| {
        outcomes(data, InstanceOutcome::Rejected)
    }),
    Measure::count("unfinished", UNFINISHED, SHARE, |data| {
        outcomes(data, InstanceOutcome::Unfinished)
    }),
    Measure::count("in-time", IN_TIME, &[Figure::Share], |data| {
        one(in_time(data))
    })
    .better(Better::More),
    Measure::count(
        "saturated",
        "runs in which the target was saturated",
        &[Figure::Share],
        |data| of_open_loop(data, || saturated(data)),
    ),
    Measure::count("live", "instances alive at once", MOST, |data| {
        one(most_alive(data))
    })
    .better(Better::Neither),
    Measure::time("cpu", "CPU time of an instance", CPU, |data| {
        times(data, cpu)
    }),
    Measure::time(
        "cpu-part",
        "part of an instance's CPU time",
        MEAN,
        cpu_parts,
    ),
    Measure::time(
        "daemon-cpu",
        "CPU time of the daemons for each instance",
        MEAN,
        |data| one(shared_cpu(data, "engine cpu").map(mean)),
    ),
    Measure::time("machine-cpu", MACHINE, MEAN, |data| one(machine_cpu(data))),
    Measure::value(EXITS, "exits from the guest for each start").figures(MEAN),
    Measure::time("memory", "peak memory of an instance", BYTES, |data| {
        times(data, |one| known(one.peak_bytes))
    })
    .unit("bytes"),
];

/// Returns the instances that count.
pub(super) fn counted<'a>(data: &CellData<'a>) -> impl Iterator<Item = &'a Instance> + use<'a> {
    let all = data.samples.instances.iter();
    all.filter(|instance| instance.counts == 1)
}

/// Returns those among them that ended as they should.
pub(super) fn done<'a>(data: &CellData<'a>) -> impl Iterator<Item = &'a Instance> + use<'a> {
    counted(data).filter(|instance| instance.outcome() == InstanceOutcome::Done)
}

/// Returns the time between two moments; `None` if one of them is not known, or they are not in
/// this order.
pub(super) fn span(from_ns: u64, to_ns: u64) -> Option<u64> {
    known(to_ns)?.checked_sub(known(from_ns)?)
}

/// Returns the time from the planned start until an instance was ready.
pub(super) fn ready(instance: &Instance) -> Option<u64> {
    span(instance.planned_ns, instance.ready_ns)
}

fn known(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn cpu(instance: &Instance) -> Option<u64> {
    known(instance.user_ns.saturating_add(instance.system_ns))
}

/// Makes the sample of a number of each instance that is done.
fn times(data: &CellData<'_>, of: fn(&Instance) -> Option<u64>) -> Samples {
    one(counts(done(data).filter_map(of)))
}

/// Counts numbers; `None` if there are none.
pub(super) fn counts(numbers: impl Iterator<Item = u64>) -> Option<Sample> {
    let numbers: Vec<u64> = numbers.collect();
    (!numbers.is_empty()).then(|| Sample::Counts(Counts::from_samples(numbers), Some(1.0)))
}

fn one(sample: Option<Sample>) -> Samples {
    let labelled = sample.map(|sample| (Labels::default(), sample));
    Ok(labelled.into_iter().collect())
}

/// Takes a sample only where instances were started at a rate.
fn of_open_loop(data: &CellData<'_>, sample: impl FnOnce() -> Option<Sample>) -> Samples {
    let arrivals = data.plan().arrivals.as_ref();
    let interval = arrivals.and_then(|arrivals| arrivals.interval_ns);
    one(interval.and_then(|_| sample()))
}

/// Returns what came of the arrivals, if they had a window.
fn window<'a>(data: &CellData<'a>) -> Option<&'a Arrived> {
    let arrived = data.record.arrived.as_ref();
    arrived.filter(|arrived| arrived.from_ns < arrived.until_ns)
}

/// Returns the number of instances that were completed within the window.
fn completed(data: &CellData<'_>) -> usize {
    let Some(window) = window(data) else {
        return 0;
    };
    let window = window.from_ns..=window.until_ns;
    let all = data.samples.instances.iter();
    all.filter(|one| one.outcome() == InstanceOutcome::Done && window.contains(&one.exited_ns))
        .count()
}

/// Divides a number by the seconds of the window.
fn rate(data: &CellData<'_>, number: usize) -> Option<Sample> {
    let window = window(data)?;
    let seconds = window.until_ns.saturating_sub(window.from_ns) as f64 / 1e9;
    Some(Sample::Ratio(number as f64, seconds))
}

/// Returns the share of the counted arrivals that had this fate.
fn outcomes(data: &CellData<'_>, outcome: InstanceOutcome) -> Samples {
    let all = counted(data).count();
    let part = counted(data).filter(|one| one.outcome() == outcome).count();
    one(share(part, all))
}

fn share(part: usize, all: usize) -> Option<Sample> {
    (all > 0).then(|| Sample::ratio(part as u64, all as u64))
}

/// Returns the share of arrivals that were started in time, of all but the rejected ones.
fn in_time(data: &CellData<'_>) -> Option<Sample> {
    let due = || counted(data).filter(|one| one.outcome() != InstanceOutcome::Rejected);
    let is_in_time = |one: &&Instance| one.lag_ns().is_some_and(|lag| lag <= IN_TIME_NS);
    share(due().filter(is_in_time).count(), due().count())
}

fn saturated(data: &CellData<'_>) -> Option<Sample> {
    let saturated = data.record.arrived.as_ref()?.saturated.is_some();
    Some(Sample::Ratio(f64::from(u8::from(saturated)), 1.0))
}

/// Returns the greatest number of live instances from the beginning of the window on; `None` if
/// none was started.
fn most_alive(data: &CellData<'_>) -> Option<Sample> {
    let arrived = data.record.arrived.as_ref();
    let from_ns = arrived.map_or(0, |arrived| arrived.from_ns);
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for one in &data.samples.instances {
        let end_ns = known(one.exited_ns).unwrap_or(u64::MAX);
        if one.started_ns > 0 && end_ns > one.started_ns && end_ns > from_ns {
            changes.extend([(one.started_ns.max(from_ns), 1), (end_ns, -1)]);
        }
    }
    // An end makes room for a start at the same time.
    changes.sort_unstable();
    let alive = changes.iter().scan(0, |alive, (_, change)| {
        *alive += change;
        Some(*alive)
    });
    alive.max().map(|most| Sample::Number(most as f64))
}

/// Divides the CPU time of instances into that of their own code and the time around it, where both
/// are known. The unikernel's own time is elapsed time: CPU time only if nothing else had the CPU.
fn cpu_parts(data: &CellData<'_>) -> Samples {
    let plan = data.plan();
    let is_elapsed = plan.target.kernel() == Kernel::None;
    let both = || done(data).filter_map(|one| Some((known(one.own_ns)?, cpu(one)?)));
    if both().any(|(own, all)| own > all) || (is_elapsed && !plan.load.is_idle()) {
        return Ok(Vec::new());
    }
    let own = counts(both().map(|(own, _)| own));
    let around = counts(both().map(|(own, all)| all - own));
    let parts = [("own", own), ("around", around)].into_iter();
    let parts = parts.filter_map(|(part, sample)| Some((Labels::of([("part", part)]), sample?)));
    Ok(parts.collect())
}

/// Divides CPU time that was spent within the window by the number of instances that were completed
/// in it.
fn shared_cpu(data: &CellData<'_>, measure: &str) -> Option<f64> {
    let spent = data.record.value(measure, &Labels::default())?;
    let completed = completed(data);
    (completed > 0).then(|| spent / completed as f64)
}

/// Returns the CPU time of the machine for each instance. It is known if it is more than that of its
/// parts, the instances and the daemons, by more than a step of its clock.
fn machine_cpu(data: &CellData<'_>) -> Option<Sample> {
    let all = shared_cpu(data, "machine cpu")?;
    let step = MACHINE_STEP_NS / completed(data) as f64;
    let own = counts(done(data).filter_map(cpu));
    let own = own.and_then(|own| own.figure(Figure::Mean)?.value());
    let least = own.unwrap_or(0.0) + shared_cpu(data, "engine cpu").unwrap_or(0.0) + step;
    if all > least {
        return Some(mean(all));
    }
    let steps = |ns: f64| (ns / step) as u64;
    Some(Sample::Between {
        ends: Vec::new(),
        least: None,
        mean: Some(RunFigure::TooFew {
            needed: steps(least) + 1,
            has: steps(all),
        }),
    })
}

fn mean(ns: f64) -> Sample {
    Sample::Mean {
        mean: ns,
        sd: None,
        factor: Some(1.0),
    }
}

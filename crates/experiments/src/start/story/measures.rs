//! What `start` measures: how long instances take, what became of them, and what they cost.
//!
//! Everything follows from the rows of instances. Figures are of the instances that were planned within the measured window; the
//! throughput alone counts every instance that was completed within it, since those that the warm-up left behind stand for
//! those that the window leaves behind.

use tare_figures::rows::{Better, CellData, Figure, Measure, Sample};
use tare_results::model::{Arrived, Fate, Instance, Labels};
use tare_stats::Counts;

use super::parts;

/// How late an arrival may be to count as in time, in ns.
const IN_TIME_NS: u64 = 1_000_000;

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    TIME,
    Measure {
        id: "exit",
        title: "time from the planned start to the end",
        from: |data| Ok(times(data, |one| span(one.planned_ns, one.exited_ns))),
        ..TIME
    },
    Measure {
        id: "start",
        title: "time from the start call until an instance is ready",
        from: |data| Ok(times(data, |one| span(one.started_ns, one.ready_ns))),
        ..TIME
    },
    Measure {
        id: "lag",
        title: "how late instances were started",
        figures: &[Figure::MEDIAN, Figure::P99, Figure::Max],
        from: |data| Ok(of_open_loop(data, || lags(data))),
        ..TIME
    },
    Measure {
        id: "part",
        title: "part of the time from the start call to the end",
        figures: &[Figure::MEDIAN, Figure::Mean, Figure::P99, Figure::Max],
        from: |data| Ok(parts::of_cell(data)),
        ..TIME
    },
    Measure {
        id: "rate",
        title: "instances completed",
        better: Better::More,
        figures: &[Figure::Rate, Figure::Total],
        from: |data| Ok(rate(data, completed(data) as f64)),
        ..SHARE
    },
    Measure {
        id: "offered",
        title: "instances planned",
        better: Better::Neither,
        figures: &[Figure::Rate, Figure::Total],
        from: |data| {
            Ok(of_open_loop(data, || {
                rate(data, counted(data).count() as f64)
            }))
        },
        ..SHARE
    },
    Measure {
        id: "failed",
        title: "instances that failed",
        from: |data| Ok(fates(data, Fate::Failed)),
        ..SHARE
    },
    Measure {
        id: "refused",
        title: "arrivals refused at a limit",
        from: |data| Ok(fates(data, Fate::Refused)),
        ..SHARE
    },
    Measure {
        id: "unfinished",
        title: "instances that had not ended when the cell did",
        from: |data| Ok(fates(data, Fate::Unfinished)),
        ..SHARE
    },
    Measure {
        id: "in-time",
        title: "arrivals started within 1 ms of their planned time",
        better: Better::More,
        figures: &[Figure::Share],
        from: |data| Ok(of_open_loop(data, || in_time(data))),
        ..SHARE
    },
    Measure {
        id: "saturated",
        title: "whether the target no longer kept up",
        figures: &[Figure::Value],
        from: |data| Ok(of_open_loop(data, || saturated(data))),
        ..SHARE
    },
    Measure {
        id: "live",
        title: "most instances alive at once",
        better: Better::Neither,
        figures: &[Figure::Value],
        from: |data| Ok(one(most_alive(data).map(|most| Sample::Number(most as f64)))),
        ..SHARE
    },
    CPU,
    Measure {
        id: "cpu-part",
        title: "part of an instance's CPU time",
        figures: &[Figure::Mean],
        from: |data| Ok(cpu_parts(data)),
        ..CPU
    },
    Measure {
        id: "engine-cpu",
        title: "CPU time of the engine for each instance",
        figures: &[Figure::Mean],
        from: |data| Ok(shared_cpu(data, "engine cpu")),
        ..CPU
    },
    Measure {
        id: "machine-cpu",
        title: "CPU time of the whole machine for each instance",
        figures: &[Figure::Mean],
        from: |data| Ok(shared_cpu(data, "machine cpu")),
        ..CPU
    },
    Measure {
        id: "memory",
        title: "peak memory of an instance",
        unit: "bytes",
        figures: &[Figure::MEDIAN, Figure::Mean, Figure::Max],
        from: |data| Ok(times(data, |one| known(one.peak_bytes))),
        ..TIME
    },
];

const TIME: Measure = Measure {
    id: "ready",
    title: "time from the planned start until an instance is ready",
    unit: "ns",
    better: Better::Less,
    figures: &[
        Figure::MEDIAN,
        Figure::P99,
        Figure::P99_9,
        Figure::Min,
        Figure::Max,
        Figure::Mean,
    ],
    from: |data| Ok(times(data, ready)),
};

const SHARE: Measure = Measure {
    id: "",
    title: "",
    unit: "",
    better: Better::Less,
    figures: &[Figure::Share, Figure::Total],
    from: |_| Ok(Vec::new()),
};

const CPU: Measure = Measure {
    id: "cpu",
    title: "CPU time of an instance",
    unit: "ns",
    better: Better::Less,
    figures: &[Figure::Mean, Figure::MEDIAN, Figure::Max],
    from: |data| Ok(times(data, cpu)),
};

/// Returns the instances that count.
pub(super) fn counted<'a>(data: &CellData<'a>) -> impl Iterator<Item = &'a Instance> + use<'a> {
    let all = data.samples.instances.iter();
    all.filter(|instance| instance.counts == 1)
}

/// Returns those among them that ended as they should.
pub(super) fn done<'a>(data: &CellData<'a>) -> impl Iterator<Item = &'a Instance> + use<'a> {
    counted(data).filter(|instance| instance.fate() == Fate::Done)
}

/// Returns the time between two moments; None if one of them is not known, or they are not in this order.
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

/// Makes a sample of numbers that is labelled by nothing; none of no numbers.
fn times(data: &CellData<'_>, of: fn(&Instance) -> Option<u64>) -> Vec<(Labels, Sample)> {
    one(counts(done(data).filter_map(of)))
}

/// Counts numbers; None if there are none.
pub(super) fn counts(numbers: impl Iterator<Item = u64>) -> Option<Sample> {
    let numbers: Vec<u64> = numbers.collect();
    (!numbers.is_empty()).then(|| Sample::Counts(Counts::from_samples(numbers), Some(1.0)))
}

fn one(sample: Option<Sample>) -> Vec<(Labels, Sample)> {
    let labelled = sample.map(|sample| (Labels::default(), sample));
    labelled.into_iter().collect()
}

/// Keeps what makes sense only where instances were started at planned times.
fn of_open_loop(
    data: &CellData<'_>,
    samples: impl FnOnce() -> Vec<(Labels, Sample)>,
) -> Vec<(Labels, Sample)> {
    let arrivals = data.plan().arrivals.as_ref();
    match arrivals.and_then(|arrivals| arrivals.interval_ns) {
        Some(_) => samples(),
        None => Vec::new(),
    }
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
    all.filter(|one| one.fate() == Fate::Done && window.contains(&one.exited_ns))
        .count()
}

/// Divides a number by the seconds of the window.
fn rate(data: &CellData<'_>, number: f64) -> Vec<(Labels, Sample)> {
    let seconds = |window: &Arrived| window.until_ns.saturating_sub(window.from_ns) as f64 / 1e9;
    one(window(data).map(|window| Sample::Ratio(number, seconds(window))))
}

/// Returns the share of the counted arrivals that had this fate.
fn fates(data: &CellData<'_>, fate: Fate) -> Vec<(Labels, Sample)> {
    let all = counted(data).count();
    let part = counted(data).filter(|one| one.fate() == fate).count();
    share(part, all)
}

fn share(part: usize, all: usize) -> Vec<(Labels, Sample)> {
    one((all > 0).then(|| Sample::ratio(part as u64, all as u64)))
}

/// Returns how late arrivals were started or refused. Nothing is before its time.
fn lags(data: &CellData<'_>) -> Vec<(Labels, Sample)> {
    one(counts(counted(data).filter_map(Instance::lag_ns)))
}

/// Returns the share of those that were started in time, of all but those that were refused.
fn in_time(data: &CellData<'_>) -> Vec<(Labels, Sample)> {
    let due = || counted(data).filter(|one| one.fate() != Fate::Refused);
    let is_in_time = |one: &&Instance| one.lag_ns().is_some_and(|lag| lag <= IN_TIME_NS);
    share(due().filter(is_in_time).count(), due().count())
}

fn saturated(data: &CellData<'_>) -> Vec<(Labels, Sample)> {
    let arrived = data.record.arrived.as_ref();
    let told = arrived.map(|arrived| f64::from(u8::from(arrived.saturated.is_some())));
    one(told.map(Sample::Number))
}

/// Returns how many instances were alive at once at most, from the beginning of the window on; None if none was started.
fn most_alive(data: &CellData<'_>) -> Option<u64> {
    let from_ns = data
        .record
        .arrived
        .as_ref()
        .map_or(0, |arrived| arrived.from_ns);
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for one in &data.samples.instances {
        let end_ns = known(one.exited_ns).unwrap_or(u64::MAX);
        if one.started_ns > 0 && end_ns > one.started_ns && end_ns > from_ns {
            changes.extend([(one.started_ns.max(from_ns), 1), (end_ns, -1)]);
        }
    }
    // What ends when another one starts makes room for it.
    changes.sort_unstable();
    let mut alive = 0;
    let most = changes.iter().map(|(_, change)| {
        alive += change;
        alive
    });
    most.max().and_then(|most| u64::try_from(most).ok())
}

/// Divides the CPU time of instances into that of their own code and what was spent around it, where both are known.
fn cpu_parts(data: &CellData<'_>) -> Vec<(Labels, Sample)> {
    let both = || done(data).filter_map(|one| Some((known(one.own_ns)?, cpu(one)?)));
    let labelled = |part, sample| (Labels::of([("part", part)]), sample);
    let own = counts(both().map(|(own, _)| own));
    let around = counts(both().map(|(own, all)| all.saturating_sub(own)));
    let own = own.map(|sample| labelled("own", sample));
    own.into_iter()
        .chain(around.map(|sample| labelled("around", sample)))
        .collect()
}

/// Divides CPU time that was spent within the window by the number of instances that were completed in it.
fn shared_cpu(data: &CellData<'_>, measure: &str) -> Vec<(Labels, Sample)> {
    let spent = data.record.value(measure, &Labels::default());
    let completed = completed(data);
    let mean = spent.filter(|_| completed > 0).map(|ns| Sample::Mean {
        mean: ns / completed as f64,
        sd: None,
        factor: Some(1.0),
    });
    one(mean)
}

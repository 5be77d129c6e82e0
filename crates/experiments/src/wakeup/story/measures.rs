//! What `wakeup` measures: how late sleeping threads ran, and which activations they missed.

use std::collections::BTreeMap;

use tare_results::model::{Labels, SetHead, SetSamples};
use tare_stats::{Counts, Response};

use tare_figures::rows::{Better, CellData, Figure, INTERRUPTS, Measure, Sample, Samples, counts};

const LATENCY: &[Figure] = &[
    Figure::Max,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
    Figure::Mean,
    Figure::Sd,
    Figure::Min,
];
const SHARE: &[Figure] = &[Figure::Share, Figure::Total];
const TOTAL: &[Figure] = &[Figure::Total];
const ONE: &[Figure] = &[Figure::Value];

const BETWEEN: &str = "wake-ups before the load of their phase began";
const SKIPPED: &str = "activations that the threads skipped until the end";
const UNCOUNTED: &str = "wake-ups that there was no room to count";
const RECORDING: &str = "time that recording a wake-up takes, of the interval";

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time("latency", "wake-up latency", LATENCY, |data| {
        each(latencies(data)?, |threads| {
            let counts = Counts::merge_all(threads.iter().map(|(counts, _)| counts));
            let counts = counts.map_err(|error| error.to_string())?;
            Ok(Some(Sample::Counts(counts, Some(1.0))))
        })
    }),
    Measure::time(
        "response",
        "response latency, including missed activations",
        LATENCY,
        |data| {
            each(latencies(data)?, |threads| {
                Ok(Some(Sample::Response(threads)))
            })
        },
    ),
    Measure::count("missed", "missed activations", SHARE, |data| {
        each(latencies(data)?, |threads| {
            let (missed, all) = missed(&threads)?;
            Ok((all > 0).then(|| Sample::ratio(missed, all)))
        })
    }),
    Measure::time(
        "average maximum",
        "maximum, averaged over the phases",
        ONE,
        average_maximum,
    ),
    Measure::count("wake-ups", "wake-ups", TOTAL, |data| {
        each(latencies(data)?, |threads| Ok(number(woken(&threads))))
    })
    .better(Better::Neither),
    Measure::count("absent", "phases without a wake-up", TOTAL, |data| {
        each(phases(data, false)?, |threads| {
            Ok(number(u64::from(woken(&threads) == 0)))
        })
    })
    .better(Better::Neither),
    Measure::count("between", BETWEEN, TOTAL, |data| {
        each(phases(data, true)?, |threads| {
            Ok(Some(Sample::Number(woken(&threads) as f64)))
        })
    })
    .better(Better::Neither),
    Measure::count(
        "missed between",
        "activations that these wake-ups missed",
        TOTAL,
        |data| {
            each(phases(data, true)?, |threads| {
                Ok(Some(Sample::Number(missed(&threads)?.0 as f64)))
            })
        },
    )
    .better(Better::Neither),
    Measure::count("skipped", SKIPPED, SHARE, |data| {
        let missed = all_missed(data);
        one(Sample::Ratio(missed, missed + all_woken(data)))
    })
    .better(Better::Neither),
    Measure::count("uncounted", UNCOUNTED, SHARE, |data| {
        let uncounted: u64 = data.record.sets.iter().map(|head| head.uncounted).sum();
        one(Sample::Ratio(uncounted as f64, all_woken(data)))
    })
    .better(Better::Neither),
    Measure::time("recording", RECORDING, SHARE, recording).better(Better::Neither),
    INTERRUPTS,
];

/// Latencies of threads with their intervals.
pub(super) type Threads = Vec<(Counts, u64)>;

/// Takes a sample of each choice of labels that has one.
fn each(
    sets: Vec<(Labels, Threads)>,
    of: fn(Threads) -> Result<Option<Sample>, String>,
) -> Samples {
    let mut samples = Vec::new();
    for (labels, threads) in sets {
        samples.extend(of(threads)?.map(|sample| (labels, sample)));
    }
    Ok(samples)
}

/// Takes a number above 0.
fn number(number: u64) -> Option<Sample> {
    (number > 0).then_some(Sample::Number(number as f64))
}

fn one(sample: Sample) -> Samples {
    Ok(vec![(Labels::default(), sample)])
}

fn woken(threads: &Threads) -> u64 {
    threads.iter().map(|(counts, _)| counts.total()).sum()
}

/// Returns how many activations were missed, and how many there were.
pub(super) fn missed(threads: &Threads) -> Result<(u64, u64), String> {
    let parts = threads.iter().map(|(counts, interval)| (counts, *interval));
    let response = Response::of(parts).map_err(|error| error.to_string())?;
    Ok((response.missed(), response.total()))
}

/// Returns the latencies of all threads together, once for each phase, and then of each thread
/// where there are several. What fell between two phases belongs to none.
fn latencies(data: &CellData<'_>) -> Result<Vec<(Labels, Threads)>, String> {
    let mut all = phases(data, false)?;
    let thread = |head: &SetHead| head.labels.number("thread");
    let several = sets(data, false).any(|(head, _)| thread(head) > Some(0));
    for (head, set) in sets(data, false).filter(|_| several) {
        all.push((head.labels.clone(), vec![(counts(set)?, head.period)]));
    }
    Ok(all)
}

/// Returns the sets of threads in phases.
fn sets<'a>(
    data: &CellData<'a>,
    is_between: bool,
) -> impl Iterator<Item = (&'a SetHead, &'a SetSamples)> {
    let sets = data.sets("latency");
    sets.filter(move |(head, _)| {
        let labels = &head.labels;
        labels.get("between").is_some() == is_between && labels.get("phase") != Some("unknown")
    })
}

/// Puts the threads together, once for each phase of the plan, and once for any other that the
/// samples name: what was woken after the load of the phase began, or before.
pub(super) fn phases(
    data: &CellData<'_>,
    is_between: bool,
) -> Result<Vec<(Labels, Threads)>, String> {
    let label = |phase| Labels::default().with("phase", phase);
    let mut phases: BTreeMap<Option<u64>, (Labels, Threads)> = BTreeMap::new();
    let planned = data.plan().phases.len() as u64;
    for phase in (0..planned).filter(|_| planned > 1) {
        phases.insert(Some(phase), (label(phase), Vec::new()));
    }
    for (head, set) in sets(data, is_between) {
        let phase = head.labels.number("phase");
        let (_, threads) = phases
            .entry(phase)
            .or_insert_with(|| (phase.map(label).unwrap_or_default(), Vec::new()));
        threads.push((counts(set)?, head.period));
    }
    Ok(phases.into_values().collect())
}

/// Averages the maxima of the phases of a run, as landolfi-2018 gives it.
fn average_maximum(data: &CellData<'_>) -> Samples {
    let longest = |(_, threads): (Labels, Threads)| {
        let maxima = threads.iter().filter_map(|(counts, _)| counts.max());
        maxima.max().map(|max| max as f64)
    };
    let maxima: Option<Vec<f64>> = phases(data, false)?.into_iter().map(longest).collect();
    let several = maxima.filter(|maxima| maxima.len() > 1);
    let average = several.map(|maxima| maxima.iter().sum::<f64>() / maxima.len() as f64);
    average.map_or(Ok(Vec::new()), |ns| one(Sample::Number(ns)))
}

/// Returns the number of all wake-ups, counted or not.
pub(super) fn all_woken(data: &CellData<'_>) -> f64 {
    data.record.sets.iter().map(|head| head.n as f64).sum()
}

/// Returns the number of activations that the threads skipped.
pub(super) fn all_missed(data: &CellData<'_>) -> f64 {
    let values = data.record.values.iter();
    let missed = values.filter(|value| value.measure == "missed");
    missed.map(|value| value.value).sum()
}

/// Takes the time that recording one wake-up takes, of the thread that it costs most.
fn recording(data: &CellData<'_>) -> Samples {
    let mut slowest = None;
    for value in (data.record.values.iter()).filter(|value| value.measure == "recording time") {
        let thread = value.labels.get("thread");
        let mut sets = data.record.sets.iter();
        let own = sets.find(|head| head.labels.get("thread") == thread);
        let interval = own.map_or(1, |head| head.period.max(1)) as f64;
        if slowest.is_none_or(|(ns, of)| value.value / interval > ns / of) {
            slowest = Some((value.value, interval));
        }
    }
    slowest.map_or(Ok(Vec::new()), |(ns, interval)| {
        one(Sample::Ratio(ns, interval))
    })
}

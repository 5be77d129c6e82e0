//! What `wakeup` measures: how late sleeping threads ran, and which activations they missed.

use std::collections::BTreeMap;

use tare_results::model::{Labels, SetHead, SetSamples};
use tare_stats::{Counts, Response};

use tare_report::rows::{Better, CellData, Figure, INTERRUPTS, Measure, Sample, Samples, counts};

/// The figures of a distribution of latencies.
const DISTRIBUTION: &[Figure] = &[
    Figure::Max,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
    Figure::Mean,
    Figure::Sd,
    Figure::Min,
];

const TOTAL: &[Figure] = &[Figure::Total];

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure {
        id: "latency",
        title: "wake-up latency",
        unit: "ns",
        better: Better::Less,
        figures: DISTRIBUTION,
        from: |data| {
            let sets = latencies(data)?.into_iter();
            let merged = sets.map(|(labels, threads)| {
                let counts = Counts::merge_all(threads.iter().map(|(counts, _)| counts));
                let counts = counts.map_err(|error| error.to_string())?;
                Ok((labels, Sample::Counts(counts, Some(1.0))))
            });
            merged.collect()
        },
    },
    Measure {
        id: "response",
        title: "response latency, including missed activations",
        unit: "ns",
        better: Better::Less,
        figures: DISTRIBUTION,
        from: |data| {
            let sets = latencies(data)?.into_iter();
            Ok(sets
                .map(|(labels, threads)| (labels, Sample::Response(threads)))
                .collect())
        },
    },
    Measure {
        id: "missed",
        title: "missed activations",
        unit: "",
        better: Better::Less,
        figures: &[Figure::Share, Figure::Total],
        from: |data| {
            let sets = latencies(data)?.into_iter();
            let some = sets.filter(|(_, threads)| woken(threads) > 0);
            let shares = some.map(|(labels, threads)| {
                let (missed, all) = missed(&threads)?;
                Ok((labels, Sample::ratio(missed, all)))
            });
            shares.collect()
        },
    },
    Measure {
        id: "average maximum",
        title: "maximum, averaged over the phases",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::Value],
        from: average_maximum,
    },
    Measure {
        id: "wake-ups",
        title: "wake-ups",
        unit: "",
        better: Better::Neither,
        figures: TOTAL,
        from: |data| {
            let some = |threads: &Threads| Some(woken(threads)).filter(|woken| *woken > 0);
            Ok(numbers(latencies(data)?, some))
        },
    },
    Measure {
        id: "absent",
        title: "phases without a wake-up",
        unit: "",
        better: Better::Neither,
        figures: TOTAL,
        from: |data| {
            let phases = latencies(data)?.into_iter();
            let together = phases.filter(|(labels, _)| labels.get("thread").is_none());
            Ok(numbers(together, |threads| {
                (woken(threads) == 0).then_some(1)
            }))
        },
    },
    Measure {
        id: "between",
        title: "wake-ups before the load of their phase began",
        unit: "",
        better: Better::Neither,
        figures: TOTAL,
        from: |data| Ok(numbers(between(data)?, |threads| Some(woken(threads)))),
    },
    Measure {
        id: "missed between",
        title: "activations that these wake-ups missed",
        unit: "",
        better: Better::Neither,
        figures: TOTAL,
        from: |data| {
            let phases = between(data)?.into_iter();
            let missed = phases.map(|(labels, threads)| {
                let (missed, _) = missed(&threads)?;
                Ok((labels, Sample::Number(missed as f64)))
            });
            missed.collect()
        },
    },
    Measure {
        id: "skipped",
        title: "activations that the threads skipped until the end",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Share, Figure::Total],
        from: |data| {
            let missed: f64 = told(data, "missed").map(|(_, missed)| missed).sum();
            Ok(one(Sample::Ratio(missed, missed + all_woken(data))))
        },
    },
    Measure {
        id: "uncounted",
        title: "wake-ups that there was no room to count",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Share, Figure::Total],
        from: |data| {
            let uncounted: u64 = data.record.sets.iter().map(|head| head.uncounted).sum();
            Ok(one(Sample::Ratio(uncounted as f64, all_woken(data))))
        },
    },
    Measure {
        id: "recording",
        title: "time that recording a wake-up takes",
        unit: "ns",
        better: Better::Neither,
        figures: &[Figure::Value],
        from: |data| Ok(recording(data).map_or_else(Vec::new, |(ns, _)| one(Sample::Number(ns)))),
    },
    Measure {
        id: "recording share",
        title: "share of the interval that recording takes",
        unit: "",
        better: Better::Neither,
        figures: &[Figure::Share],
        from: |data| {
            let slowest = recording(data);
            Ok(slowest.map_or_else(Vec::new, |(ns, interval)| one(Sample::Ratio(ns, interval))))
        },
    },
    INTERRUPTS,
];

/// Latencies of threads with their intervals.
pub(super) type Threads = Vec<(Counts, u64)>;

fn one(sample: Sample) -> Vec<(Labels, Sample)> {
    vec![(Labels::default(), sample)]
}

fn numbers(
    sets: impl IntoIterator<Item = (Labels, Threads)>,
    of: fn(&Threads) -> Option<u64>,
) -> Vec<(Labels, Sample)> {
    let numbers = sets
        .into_iter()
        .filter_map(|(labels, threads)| Some((labels, Sample::Number(of(&threads)? as f64))));
    numbers.collect()
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

/// Returns the latencies of all threads together, once for each phase, and then of each thread where there are
/// several. What fell between two phases belongs to none.
pub(super) fn latencies(data: &CellData<'_>) -> Result<Vec<(Labels, Threads)>, String> {
    let mut together = phases(data, false)?;
    let mut each = Vec::new();
    let mut seen = Vec::new();
    for (head, set) in sets(data, false) {
        if !seen.contains(&head.labels.get("thread")) {
            seen.push(head.labels.get("thread"));
        }
        each.push((head.labels.clone(), vec![(counts(set)?, head.period)]));
    }
    each.retain(|_| seen.len() > 1);
    together.append(&mut each);
    Ok(together)
}

/// Returns what was woken before the load of its phase began, of all threads together; nothing if the loads were no phases.
fn between(data: &CellData<'_>) -> Result<Vec<(Labels, Threads)>, String> {
    match data.plan().phases.len() {
        0 | 1 => Ok(Vec::new()),
        _ => phases(data, true),
    }
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

/// Puts the threads together, once for each phase of the plan, and once for any other that the samples name.
fn phases(data: &CellData<'_>, is_between: bool) -> Result<Vec<(Labels, Threads)>, String> {
    let planned = match data.plan().phases.len() {
        0 | 1 => 0..0,
        several => 0..several as u64,
    };
    let phases = planned.map(|phase| (Some(phase), Vec::new()));
    let mut phases: BTreeMap<Option<u64>, Threads> = phases.collect();
    for (head, set) in sets(data, is_between) {
        let phase = phases.entry(head.labels.number("phase")).or_default();
        phase.push((counts(set)?, head.period));
    }
    let labelled = phases.into_iter().map(|(phase, threads)| {
        let labels = Labels::default();
        let labels = phase.map_or(labels.clone(), |phase| labels.with("phase", phase));
        (labels, threads)
    });
    Ok(labelled.collect())
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
    Ok(average.map_or_else(Vec::new, |ns| one(Sample::Number(ns))))
}

/// Returns the number of all wake-ups, counted or not.
fn all_woken(data: &CellData<'_>) -> f64 {
    let sets = data.record.sets_of("latency");
    sets.map(|(_, head)| head.n as f64).sum()
}

/// Returns what each thread tells of itself.
pub(super) fn told<'a>(
    data: &CellData<'a>,
    measure: &'static str,
) -> impl Iterator<Item = (&'a Labels, f64)> {
    let values = data.record.values.iter();
    let own = values.filter(move |value| value.measure == measure);
    own.map(|value| (&value.labels, value.value))
}

/// Returns the time that recording one wake-up takes, and the interval, of the thread that it costs most.
fn recording(data: &CellData<'_>) -> Option<(f64, f64)> {
    let each = told(data, "recording time").filter_map(|(labels, ns)| {
        let mut sets = data.record.sets_of("latency");
        let is_own = |head: &SetHead| head.labels.get("thread") == labels.get("thread");
        let (_, head) = sets.find(|(_, head)| is_own(head))?;
        Some((ns, head.period.max(1) as f64))
    });
    each.max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)))
}

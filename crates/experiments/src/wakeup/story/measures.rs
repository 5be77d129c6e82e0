//! What `wakeup` measures: how late sleeping threads ran, and which activations they missed.

use std::collections::BTreeMap;

use tare_results::model::Labels;
use tare_stats::{Counts, Response};

use tare_report::rows::{Better, CellData, Figure, Measure, Sample, Samples, counts};

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

/// The measures, the most important first.
pub(super) const MEASURES: &[Measure] = &[
    Measure {
        id: "latency",
        title: "wake-up latency",
        unit: "ns",
        better: Better::Less,
        figures: DISTRIBUTION,
        from: |data| {
            let sets = threads(data)?.into_iter();
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
            let sets = threads(data)?.into_iter();
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
        from: missed,
    },
    Measure {
        id: "average maximum",
        title: "maximum, averaged over the phases",
        unit: "ns",
        better: Better::Less,
        figures: &[Figure::Value],
        from: average_maximum,
    },
];

/// Latencies of threads with their intervals.
type Threads = Vec<(Counts, u64)>;

/// Returns the latencies of all threads together, once for each phase, and then of each thread where there are
/// several. What fell between two phases belongs to none.
fn threads(data: &CellData<'_>) -> Result<Vec<(Labels, Threads)>, String> {
    let mut together: BTreeMap<Option<u64>, Threads> = BTreeMap::new();
    let mut each = Vec::new();
    let mut seen = Vec::new();
    for (head, set) in data.sets("latency") {
        let labels = &head.labels;
        if labels.get("between").is_some() || labels.get("phase") == Some("unknown") {
            continue;
        }
        let own = (counts(set)?, head.period);
        let phase = labels.number("phase");
        together.entry(phase).or_default().push(own.clone());
        if !seen.contains(&labels.get("thread")) {
            seen.push(labels.get("thread"));
        }
        each.push((labels.clone(), vec![own]));
    }
    let together = together.into_iter().map(|(phase, threads)| {
        let labels = Labels::default();
        match phase {
            Some(phase) => (labels.with("phase", phase), threads),
            None => (labels, threads),
        }
    });
    each.retain(|_| seen.len() > 1);
    Ok(together.chain(each).collect())
}

fn missed(data: &CellData<'_>) -> Samples {
    let sets = threads(data)?.into_iter();
    let shares = sets.map(|(labels, threads)| {
        let parts = threads.iter().map(|(counts, interval)| (counts, *interval));
        let response = Response::of(parts).map_err(|error| error.to_string())?;
        Ok((labels, Sample::ratio(response.missed(), response.total())))
    });
    shares.collect()
}

/// Averages the maxima of the phases of a run, as landolfi-2018 gives it.
fn average_maximum(data: &CellData<'_>) -> Samples {
    let phases = threads(data)?.into_iter();
    let maxima: Option<Vec<f64>> = phases
        .filter(|(labels, _)| labels.get("thread").is_none())
        .map(|(_, threads)| {
            let maxima = threads.iter().filter_map(|(counts, _)| counts.max());
            maxima.max().map(|max| max as f64)
        })
        .collect();
    let several = maxima.filter(|maxima| maxima.len() > 1);
    let average = several.map(|maxima| maxima.iter().sum::<f64>() / maxima.len() as f64);
    let sample = average.map(|ns| (Labels::default(), Sample::Number(ns)));
    Ok(sample.into_iter().collect())
}

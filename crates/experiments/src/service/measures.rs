//! What is measured of a service, as figures of a run's cells.

use tare_figures::rows::{Better, CellData, Figure, Measure, RunFigure, Sample, Samples, counts};
use tare_measured::service::{self as measured, Protocol};
use tare_results::model::Labels;
use tare_stats::Counts;

use super::{HIGHEST, SERVICE};

/// The label of costs: those of the service itself, of what is around it, and both.
pub(super) const PLACE: &str = "place";
/// Both of them.
pub(super) const ALL: [(&str, &str); 1] = [(PLACE, "all")];

/// All of them.
pub(super) const MEASURES: &[Measure] = &[
    Measure::time(
        "cpu",
        "CPU time per answered request",
        &[Figure::Mean],
        |data| per_request(data, "cpu"),
    ),
    Measure::count(
        "wake-ups",
        "wake-ups per answered request",
        &[Figure::Mean],
        |data| per_request(data, "wake-ups"),
    ),
    Measure::count(
        "faults",
        "page faults per answered request",
        &[Figure::Mean],
        |data| per_request(data, "faults"),
    ),
    Measure::count(
        "exits",
        "exits from the guest per answered request",
        &[Figure::Mean],
        |data| per_request(data, "exits"),
    ),
    Measure::time(measured::SERVICE, "service latency", LATENCY, |data| {
        latencies(data, measured::SERVICE)
    }),
    Measure::time(measured::RESPONSE, "response latency", LATENCY, |data| {
        latencies(data, measured::RESPONSE)
    }),
    Measure::count("answered", "answered requests", &[Figure::Share], |data| {
        ratio(data, "answered", |data| value(data, "requests"))
    })
    .better(Better::More),
    Measure::count("answers", "answers", &[Figure::Rate], |data| {
        ratio(data, "answered", |data| Some(value(data, "window")? / 1e9))
    })
    .better(Better::More),
    Measure::count(
        "per-cpu-second",
        "answers for a second of CPU time",
        &[Figure::Rate],
        |data| ratio(data, "answered", cpu_seconds),
    )
    .better(Better::More),
    Measure::count(
        HIGHEST,
        "highest rate of which 99.99 % is answered",
        &[Figure::Rate],
        |data| ratio(data, HIGHEST, |_| Some(1.0)),
    )
    .better(Better::More),
    Measure::time(
        "recovery",
        "time until a request after all others is answered",
        &[Figure::Mean],
        |data| ratio(data, "recovery", |_| Some(1.0)),
    ),
    Measure::count("wrong", "wrong answers", &[Figure::Value], |data| {
        data.valued("wrong")
    }),
    Measure::count(
        "client",
        "the client's share of its CPU",
        &[Figure::Share],
        |data| ratio(data, "client_cpu", |data| value(data, "window")),
    )
    .better(Better::Neither),
    Measure::count(
        "behind",
        "requests that the client sent late",
        &[Figure::Share],
        |data| ratio(data, "behind", |data| value(data, "requests")),
    )
    .better(Better::Neither),
    Measure::time("ready", "time from the start", ONCE, |data| {
        data.valued("ready")
    }),
    Measure::count("memory", "resident memory", ONCE, |data| {
        data.valued("memory")
    })
    .unit("bytes"),
    Measure::count("least-memory", "least memory that works", ONCE, |data| {
        data.valued("least-memory")
    })
    .unit("bytes"),
    Measure::count("image", "size of the image", ONCE, |data| {
        data.valued("image")
    })
    .unit("bytes"),
];

/// The figures of a latency.
const LATENCY: &[Figure] = &[
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::Max,
    Figure::Mean,
];
/// The figures of a value that each round has once.
const ONCE: &[Figure] = &[Figure::Value];

/// Returns a value of a cell.
fn value(data: &CellData<'_>, measure: &str) -> Option<f64> {
    data.record.value(measure, &Labels::default())
}

/// Returns a value of a cell over another.
fn ratio(data: &CellData<'_>, part: &str, whole: fn(&CellData<'_>) -> Option<f64>) -> Samples {
    let both = value(data, part).zip(whole(data));
    let sample = both.map(|(part, whole)| (Labels::default(), Sample::Ratio(part, whole)));
    Ok(sample.into_iter().collect())
}

/// Returns the CPU time of a cell's server in seconds. Pings have none.
fn cpu_seconds(data: &CellData<'_>) -> Option<f64> {
    let own = data.record.values.iter();
    let own = own.filter(|value| value.measure == "cpu" && !is_ping(data));
    let seconds: f64 = own.map(|value| value.value / 1e9).sum();
    (seconds > 0.0).then_some(seconds)
}

fn is_ping(data: &CellData<'_>) -> bool {
    data.cell.plan.labels.get(SERVICE) == Some(Protocol::Ping.name())
}

/// Returns a cost of a cell's server for each answered request: inside, outside and both, or by its
/// other labels. Pings have none: the server does not answer them.
fn per_request(data: &CellData<'_>, measure: &str) -> Samples {
    if is_ping(data) {
        return Ok(Vec::new());
    }
    let Some(answered) = value(data, "answered").filter(|answered| *answered > 0.0) else {
        return Ok(Vec::new());
    };
    let own = data.record.values.iter();
    let own = own.filter(|value| value.measure == measure);
    let each: Vec<(Labels, f64)> = own
        .map(|value| (value.labels.clone(), value.value / answered))
        .collect();
    let placed = each.iter().filter(|(of, _)| of.get(PLACE).is_some());
    let placed: Vec<f64> = placed.map(|(_, each)| *each).collect();
    let all = (!placed.is_empty()).then(|| (Labels::of(ALL), placed.iter().sum()));
    Ok(all
        .into_iter()
        .chain(each)
        .map(|(labels, each)| (labels, Sample::Number(each)))
        .collect())
}

/// Returns the latencies of a measure. Lost requests are known to be longer than the limit only.
fn latencies(data: &CellData<'_>, measure: &str) -> Samples {
    let sets = data.sets(measure).map(|(head, set)| {
        let known = counts(set)?;
        let with = |lost_ns: u64| -> Result<Sample, String> {
            let lost = (head.uncounted > 0).then_some((lost_ns, head.uncounted));
            let all =
                Counts::from_pairs(known.iter().chain(lost)).map_err(|error| error.to_string())?;
            Ok(Sample::Counts(all, Some(1.0)))
        };
        let least = with(head.uncounted_min)?;
        let sample = match head.uncounted {
            0 => least,
            _ => Sample::Between {
                mean: least
                    .figure(Figure::Mean)
                    .and_then(RunFigure::at_least)
                    .map(RunFigure::AtLeast),
                ends: vec![least, with(head.uncounted_max)?],
                least: None,
            },
        };
        Ok((head.labels.clone(), sample))
    });
    sets.collect()
}

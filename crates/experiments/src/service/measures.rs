//! What is measured of a service, as figures of a run's cells.

use tare_figures::rows::{Better, CellData, Figure, Measure, Sample, Samples};
use tare_measured::service::{GOODPUT, OFFERED, Protocol, RESPONSE, SERVICE};
use tare_results::model::{CellPlan, Labels, Record};

use super::HIGHEST;

/// The label of costs: those of the service itself, of what is around it, and both.
pub(super) const PLACE: &str = "place";
/// Both of them.
pub(super) const ALL: [(&str, &str); 1] = [(PLACE, "all")];

const WAKE_UPS: &str = "wake-ups per answered request";
const FAULTS: &str = "page faults per answered request";
const EXITS: &str = "exits from the guest per answered request";
const PER_CPU_SECOND: &str = "answers for a second of CPU time";
const HIGHEST_RATE: &str = "highest rate of which 99.99 % is answered";
const RECOVERY: &str = "time until a request after all others is answered";
const BEHIND: &str = "requests that the client sent late";

/// All of them.
pub(super) const MEASURES: &[Measure] = &[
    Measure::recorded("cpu", "CPU time per answered request", MEAN, per_request).unit("ns"),
    Measure::recorded("wake-ups", WAKE_UPS, MEAN, per_request),
    Measure::recorded("faults", FAULTS, MEAN, per_request),
    Measure::recorded("exits", EXITS, MEAN, per_request),
    Measure::recorded(SERVICE, "service latency", Figure::OF_TIMES, sampled).unit("ns"),
    Measure::recorded(RESPONSE, "response latency", Figure::OF_TIMES, sampled).unit("ns"),
    Measure::recorded("answered", "answered requests", SHARE, of_requests).better(Better::More),
    Measure::count("answers", "answers", RATE, |data| {
        ratio(data, "answered", value(data, "window").map(|ns| ns / 1e9))
    })
    .better(Better::More),
    Measure::count("per-cpu-second", PER_CPU_SECOND, RATE, |data| {
        ratio(data, "answered", cpu_seconds(data))
    })
    .better(Better::More),
    Measure::value(HIGHEST, HIGHEST_RATE)
        .figures(RATE)
        .better(Better::More),
    Measure::value(OFFERED, "requests")
        .figures(RATE)
        .better(Better::Neither),
    Measure::value(GOODPUT, "answers to them")
        .figures(RATE)
        .better(Better::More),
    Measure::value("recovery", RECOVERY)
        .figures(MEAN)
        .unit("ns"),
    Measure::value("wrong", "wrong answers"),
    Measure::count("client", "the client's share of its CPU", SHARE, |data| {
        let whole = value(data, "round").or_else(|| value(data, "window"));
        ratio(data, "client_cpu", whole)
    })
    .better(Better::Neither),
    Measure::recorded("behind", BEHIND, SHARE, of_requests).better(Better::Neither),
    Measure::value("ready", "time from the start").unit("ns"),
    Measure::value("memory", "resident memory").unit("bytes"),
    Measure::value("least-memory", "least memory that works").unit("bytes"),
    Measure::value("image", "size of the image").unit("bytes"),
];

const MEAN: &[Figure] = &[Figure::Mean];
const RATE: &[Figure] = &[Figure::Rate];
const SHARE: &[Figure] = &[Figure::Share];

/// Returns a value of a cell.
fn value(data: &CellData<'_>, measure: &str) -> Option<f64> {
    data.record.value(measure, &Labels::default())
}

/// Returns a value of a cell over something else of it.
fn ratio(data: &CellData<'_>, part: &str, whole: Option<f64>) -> Samples {
    let both = value(data, part).zip(whole);
    let sample = both.map(|(part, whole)| (Labels::default(), Sample::Ratio(part, whole)));
    Ok(sample.into_iter().collect())
}

/// Returns a value of a cell over the number of its requests.
fn of_requests(data: &CellData<'_>, part: &str) -> Samples {
    ratio(data, part, value(data, "requests"))
}

/// Returns the CPU time of a cell's server in seconds. Pings have none.
fn cpu_seconds(data: &CellData<'_>) -> Option<f64> {
    let own = data.record.values.iter();
    let own = own.filter(|value| value.measure == "cpu" && !is_ping(&data.cell.plan));
    let seconds: f64 = own.map(|value| value.value / 1e9).sum();
    (seconds > 0.0).then_some(seconds)
}

/// Returns whether requests were answered at a cost that is unknown.
pub(super) fn lacks_cpu(record: &Record) -> bool {
    let spent = record.values.iter().filter(|value| value.measure == "cpu");
    record.value("answered", &Labels::default()) > Some(0.0)
        && spent.map(|value| value.value).sum::<f64>() == 0.0
}

/// Returns whether a cell has pings, which the server does not answer.
pub(super) fn is_ping(plan: &CellPlan) -> bool {
    plan.labels.get(super::SERVICE) == Some(Protocol::Ping.name())
}

/// Returns a cost of a cell's server for each answered request: inside, outside and both, or by its
/// other labels. Pings have none: the server does not answer them.
fn per_request(data: &CellData<'_>, measure: &str) -> Samples {
    let answered = value(data, "answered").unwrap_or_default();
    // An answer takes CPU time: without any, it was not seen.
    let is_unseen = measure == "cpu" && lacks_cpu(data.record);
    if is_ping(&data.cell.plan) || answered == 0.0 || is_unseen {
        return Ok(Vec::new());
    }
    let own = data.record.values.iter();
    let own = own.filter(|value| value.measure == measure);
    let placed = own.clone().filter(|own| own.labels.get(PLACE).is_some());
    let all: f64 = placed.clone().map(|own| own.value).sum();
    let all = placed.take(1).map(|_| (Labels::of(ALL), all));
    let each = all.chain(own.map(|own| (own.labels.clone(), own.value)));
    Ok(each
        .map(|(labels, cost)| (labels, Sample::Number(cost / answered)))
        .collect())
}

/// Returns the latencies of a measure. Lost requests are known to be longer than the limit only.
fn sampled(data: &CellData<'_>, measure: &str) -> Samples {
    data.sampled(measure)
}

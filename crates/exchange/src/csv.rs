//! Tables: the histogram, the wake-ups as they were, the phases.
//!
//! Times are ns; those of phases and planned wake-ups are counted from the start of the
//! measurement, the planned time of activation 0.

use tare_results::csv::table;
use tare_results::model::{
    Cell, Count, Event, LoadPhase, LoadPlace, Record, Samples, Schedule, SetHead, SetSamples,
};
use tare_stats::{Counts, Response, StatsError};

/// Writes the exact counts: `thread,phase,between,latency_ns,count`. `between` is 1 where a wake-up
/// came before the load of its phase began, while the one before still had to end.
pub fn histogram(record: &Record, samples: &Samples) -> String {
    let rows = sets(record, samples).flat_map(|(head, set)| {
        let row = |row: &Count| counted(head, row.value, row.count);
        set.counts.iter().map(row)
    });
    table(HISTOGRAM, rows)
}

/// Writes the exact counts of response latencies, with the same columns as [`histogram`].
///
/// Activations that a late wake-up missed are in the phase in which that wake-up was planned.
///
/// # Errors
///
/// As [`Response::new`].
pub fn response_histogram(record: &Record, samples: &Samples) -> Result<String, StatsError> {
    let mut rows = Vec::new();
    for (head, set) in sets(record, samples) {
        let counts = Counts::from_pairs(set.counts.iter().map(|row| (row.value, row.count)))?;
        let response = Response::new(&counts, head.period)?.expand()?;
        let row = |(latency, count)| counted(head, latency, count);
        rows.extend(response.iter().map(row));
    }
    Ok(table(HISTOGRAM, rows))
}

const HISTOGRAM: &str = "thread,phase,between,latency_ns,count";

fn counted(head: &SetHead, latency: u64, count: u64) -> impl Iterator<Item = String> {
    let counted = [latency, count].map(|number| number.to_string());
    key(head).into_iter().chain(counted)
}

fn sets<'a>(
    record: &'a Record,
    samples: &'a Samples,
) -> impl Iterator<Item = (&'a SetHead, &'a SetSamples)> {
    record.sets.iter().zip(&samples.sets)
}

/// Returns thread and phase of a set as fields, and whether it is from before the load of the phase
/// began.
fn key(head: &SetHead) -> [String; 3] {
    let labels = &head.labels;
    let of = |label| labels.get(label).unwrap_or("0").to_owned();
    let between = u8::from(labels.get("between").is_some());
    [of("thread"), of("phase"), between.to_string()]
}

/// Writes one line for each wake-up that was kept:
/// `thread,activation,planned_ns,phase,between,latency_ns`.
///
/// Activations left out were missed. The phase is that of [`histogram`].
pub fn raw(record: &Record, samples: &Samples) -> String {
    let kept = sets(record, samples)
        .flat_map(|(head, set)| set.raw.iter().map(move |event| (head, event)));
    let mut kept: Vec<(&SetHead, &Event)> = kept.collect();
    kept.sort_by_key(|(head, event)| (head.labels.number("thread"), event.index));
    let rows = kept.into_iter().map(|(head, event)| {
        let planned_ns = event.at.wrapping_sub(head.first).to_string();
        let [thread, phase, between] = key(head);
        let (index, value) = (event.index.to_string(), event.value.to_string());
        [thread, index, planned_ns, phase, between, value]
    });
    let head = "thread,activation,planned_ns,phase,between,latency_ns";
    table(head, rows)
}

/// Writes one line for each phase: `phase,load,start_ns,started_ns,stopping_ns,stopped_ns`.
///
/// `start_ns` is when it was due. The others say when its tools were started, told to end and had
/// ended; they are empty where nothing tells, or where another clock than that of the wake-ups
/// does.
pub fn events(cell: &Cell, record: &Record) -> String {
    let length = cell.plan.phase_seconds.map_or(0, phase_ns);
    let origin_ns = record.sets.first().map_or(0, |head| head.first);
    let loads: Vec<&str> = match &cell.plan.phases[..] {
        [] => vec![cell.plan.load.as_str()],
        phases => phases.iter().map(Schedule::as_str).collect(),
    };
    let rows = (0_u32..).zip(loads).map(|(number, load)| {
        let start = length.saturating_mul(number.into());
        let seen = seen(cell, record, number);
        let relative = |at: fn(&LoadPhase) -> u64| match seen {
            Some(phase) => (i128::from(at(phase)) - i128::from(origin_ns)).to_string(),
            None => String::new(),
        };
        [
            number.to_string(),
            load.to_owned(),
            start.to_string(),
            relative(|phase| phase.started_ns),
            relative(|phase| phase.stopping_ns),
            relative(|phase| phase.stopped_ns),
        ]
    });
    let head = "phase,load,start_ns,started_ns,stopping_ns,stopped_ns";
    table(head, rows)
}

/// Returns when a phase was, if the clock that tells is the one of the wake-ups.
fn seen<'a>(cell: &'a Cell, record: &Record, number: u32) -> Option<&'a LoadPhase> {
    let load = cell.load.as_ref()?;
    let agent = &record.program()?.agent;
    let is_elsewhere = agent.accelerator.is_some()
        || agent.environment != "linux"
        || cell.plan.target.kernel().is_remote();
    if is_elsewhere && load.place == LoadPlace::Beside {
        return None;
    }
    load.phases.iter().find(|phase| phase.number == number)
}

fn phase_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

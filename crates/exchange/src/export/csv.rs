//! Tables: the histogram, the wake-ups as they were, the phases.
//!
//! Times are ns; those of phases and planned wake-ups are counted from the start of the measurement, the planned time
//! of activation 0.

use std::fmt::Write as _;

use tare_results::model::{Cell, LoadPhase, LoadPlace, Record, Samples, SetHead, SetSamples};
use tare_results::target::Group;
use tare_stats::{Counts, Response, StatsError};

/// Writes the exact counts: `thread,phase,between,latency_ns,count`. `between` is 1 where a wake-up came before the load of
/// its phase began, while the one before still had to end.
#[must_use]
pub fn histogram(record: &Record, samples: &Samples) -> String {
    let mut text = HISTOGRAM.to_owned();
    for (head, set) in sets(record, samples) {
        for row in &set.counts {
            let _ = writeln!(text, "{},{},{}", key(head), row.value, row.count);
        }
    }
    text
}

/// Writes the exact counts of response latencies, with the same columns as [`histogram`].
///
/// What a late wake-up missed stands in the phase in which that wake-up was planned.
///
/// # Errors
///
/// As [`Response::new`].
pub fn response_histogram(record: &Record, samples: &Samples) -> Result<String, StatsError> {
    let mut text = HISTOGRAM.to_owned();
    for (head, set) in sets(record, samples) {
        let counts = Counts::from_pairs(set.counts.iter().map(|row| (row.value, row.count)))?;
        for (latency, count) in Response::new(&counts, head.period)?.expand()?.iter() {
            let _ = writeln!(text, "{},{latency},{count}", key(head));
        }
    }
    Ok(text)
}

/// The first line of a histogram.
const HISTOGRAM: &str = "thread,phase,between,latency_ns,count\n";

fn sets<'a>(
    record: &'a Record,
    samples: &'a Samples,
) -> impl Iterator<Item = (&'a SetHead, &'a SetSamples)> {
    record.sets.iter().zip(&samples.sets)
}

/// Returns thread and phase of a set as fields, and whether it is from before the load of the phase began.
fn key(head: &SetHead) -> String {
    let labels = &head.labels;
    let of = |label| labels.get(label).unwrap_or("0");
    let between = u8::from(labels.get("between").is_some());
    format!("{},{},{between}", of("thread"), of("phase"))
}

/// Writes one line for each wake-up that was kept: `thread,activation,planned_ns,phase,between,latency_ns`.
///
/// Activations left out were missed. The phase is that of [`histogram`].
#[must_use]
pub fn raw(record: &Record, samples: &Samples) -> String {
    let mut text = "thread,activation,planned_ns,phase,between,latency_ns\n".to_owned();
    let mut rows = Vec::new();
    for (head, set) in sets(record, samples) {
        let key = key(head);
        let (thread, phase) = key.split_once(',').unwrap_or_default();
        for event in &set.raw {
            let planned_ns = event.at.wrapping_sub(head.first);
            let (index, value) = (event.index, event.value);
            let row = format!("{thread},{index},{planned_ns},{phase},{value}\n");
            rows.push((head.labels.number("thread"), index, row));
        }
    }
    rows.sort();
    text.extend(rows.into_iter().map(|(_, _, row)| row));
    text
}

/// Writes one line for each phase: `phase,load,start_ns,started_ns,stopping_ns,stopped_ns`.
///
/// `start_ns` is when it was due. The others say when its tools were started, told to end and had ended; they are
/// empty where nothing tells, or where another clock than that of the wake-ups does.
#[must_use]
pub fn events(cell: &Cell, record: &Record) -> String {
    let mut text = "phase,load,start_ns,started_ns,stopping_ns,stopped_ns\n".to_owned();
    let length = cell.plan.phase_seconds.map_or(0, phase_ns);
    let origin_ns = record.sets.first().map_or(0, |head| head.first);
    let loads: Vec<&str> = match &cell.plan.phases[..] {
        [] => vec![cell.plan.load.as_str()],
        phases => phases.iter().map(String::as_str).collect(),
    };
    for (number, load) in (0_u32..).zip(loads) {
        let start = length.saturating_mul(number.into());
        let seen = seen(cell, record, number);
        let relative = |at: fn(&LoadPhase) -> u64| match seen {
            Some(phase) => (i128::from(at(phase)) - i128::from(origin_ns)).to_string(),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{number},{},{start},{},{},{}",
            field(load),
            relative(|phase| phase.started_ns),
            relative(|phase| phase.stopping_ns),
            relative(|phase| phase.stopped_ns)
        );
    }
    text
}

/// Returns when a phase was, if the clock that tells is the one of the wake-ups.
fn seen<'a>(cell: &'a Cell, record: &Record, number: u32) -> Option<&'a LoadPhase> {
    let load = cell.load.as_ref()?;
    let agent = &record.program()?.agent;
    let is_elsewhere = agent.accelerator.is_some()
        || agent.environment != "linux"
        || cell.plan.target.group == Group::Remote;
    if is_elsewhere && load.place == LoadPlace::Beside {
        return None;
    }
    load.phases.iter().find(|phase| phase.number == number)
}

fn phase_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Writes a field, in quotes if it needs them (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

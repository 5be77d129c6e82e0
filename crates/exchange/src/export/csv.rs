//! Tables: the histogram, the wake-ups as they were, the phases.
//!
//! Times are ns; those of phases and planned wake-ups are counted from the start of the measurement, the planned time
//! of activation 0.

use std::fmt::Write as _;

use tare_results::model::{Cell, LatencyCount, LoadPhase, LoadPlace, WakeupSamples, Wakeups};
use tare_stats::{Counts, Response, StatsError};

/// Writes the exact counts: `thread,phase,between,latency_ns,count`. `between` is 1 where a wake-up came before the load of
/// its phase began, while the one before still had to end.
#[must_use]
pub fn histogram(samples: &WakeupSamples) -> String {
    let mut text = HISTOGRAM.to_owned();
    for row in &samples.counts {
        let (thread, phase, between) = key(row);
        let _ = writeln!(
            text,
            "{thread},{phase},{between},{},{}",
            row.latency_ns, row.count
        );
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
pub fn response_histogram(
    wakeups: &Wakeups,
    samples: &WakeupSamples,
) -> Result<String, StatsError> {
    let mut text = HISTOGRAM.to_owned();
    let same = |a: &_, b: &_| key(a) == key(b);
    for rows in samples.counts.chunk_by(same) {
        let (thread, phase, between) = key(&rows[0]);
        let interval_ns = wakeups.threads.iter().find(|t| t.number == thread);
        let interval_ns = interval_ns.map_or(0, |t| t.interval_ns);
        let counts = Counts::from_pairs(rows.iter().map(|row| (row.latency_ns, row.count)))?;
        for (latency, count) in Response::new(&counts, interval_ns)?.expand()?.iter() {
            let _ = writeln!(text, "{thread},{phase},{between},{latency},{count}");
        }
    }
    Ok(text)
}

/// The first line of a histogram.
const HISTOGRAM: &str = "thread,phase,between,latency_ns,count\n";

fn key(row: &LatencyCount) -> (u32, u32, u8) {
    (row.thread, row.phase, row.between.into())
}

/// Writes one line for each wake-up that was kept: `thread,activation,planned_ns,phase,between,latency_ns`.
///
/// Activations left out were missed.
#[must_use]
pub fn raw(cell: &Cell, wakeups: &Wakeups, samples: &WakeupSamples) -> String {
    let mut text = "thread,activation,planned_ns,phase,between,latency_ns\n".to_owned();
    let phase_ns = cell.plan.phase_seconds.map(phase_ns);
    let last_phase = (cell.plan.phases.len() as u64).saturating_sub(1);
    for wakeup in &samples.raw {
        let thread = wakeups.threads.iter().find(|t| t.number == wakeup.thread);
        let interval_ns = thread.map_or(0, |t| t.interval_ns);
        let planned_ns = wakeup.activation.saturating_mul(interval_ns);
        let phase = phase_ns.and_then(|length| planned_ns.checked_div(length));
        let phase = phase.unwrap_or(0).min(last_phase);
        let between = cell.load.as_ref();
        let between = between.is_some_and(|load| load.is_between(&cell.plan, planned_ns));
        let _ = writeln!(
            text,
            "{},{},{planned_ns},{phase},{},{}",
            wakeup.thread,
            wakeup.activation,
            u8::from(between),
            wakeup.latency_ns
        );
    }
    text
}

/// Writes one line for each phase: `phase,load,start_ns,started_ns,stopping_ns,stopped_ns`.
///
/// `start_ns` is when it was due. The others say when its tools were started, told to end and had ended; they are
/// empty where nothing tells, or where another clock than that of the wake-ups does.
#[must_use]
pub fn events(cell: &Cell, wakeups: &Wakeups) -> String {
    let mut text = "phase,load,start_ns,started_ns,stopping_ns,stopped_ns\n".to_owned();
    let length = cell.plan.phase_seconds.map_or(0, phase_ns);
    let loads: Vec<&str> = match &cell.plan.phases[..] {
        [] => vec![cell.plan.load.as_str()],
        phases => phases.iter().map(String::as_str).collect(),
    };
    for (number, load) in (0_u32..).zip(loads) {
        let start = length.saturating_mul(number.into());
        let seen = seen(cell, wakeups, number);
        let relative = |at: fn(&LoadPhase) -> u64| match seen {
            Some(phase) => (i128::from(at(phase)) - i128::from(wakeups.origin_ns)).to_string(),
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
fn seen<'a>(cell: &'a Cell, wakeups: &Wakeups, number: u32) -> Option<&'a LoadPhase> {
    let load = cell.load.as_ref()?;
    let agent = &wakeups.agent;
    let is_elsewhere = agent.accelerator.is_some()
        || agent.environment != "linux"
        || cell.plan.target.starts_with("ssh");
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

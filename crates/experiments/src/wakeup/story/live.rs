//! A wake-up cell that has just arrived, in one line.

use tare_results::model::{Cell, Record, Samples};

use super::run;
use super::threads::Thread;
use super::words::{time, under};
use crate::format::Numbers;

const N: Numbers = Numbers::PLAIN;

/// Says in one short line what a cell has shown, or why it cannot.
pub(crate) fn live(cell: &Cell, record: &Record, samples: &Samples) -> String {
    let threads = Thread::all(record, samples);
    let found =
        match threads.and_then(|threads| run::analyse(&cell.plan, &threads, cell.load.as_ref())) {
            Ok(contribution) => contribution.run,
            Err(reason) => return reason,
        };
    let phases = found.phases.iter();
    let worst = phases.filter_map(|phase| Some((phase, phase.response?)));
    let Some((phase, response)) = worst.max_by_key(|(_, response)| response.max_ns) else {
        return "no thread was woken".to_owned();
    };
    let load = if found.phases.len() > 1 {
        under(&phase.load)
    } else {
        String::new()
    };
    let mut text = format!("worst {}{load}", time(N, response.max_ns as f64));
    if let (1, Some(p99)) = (found.phases.len(), response.p99.ns) {
        text = format!(
            "median {}, p99 {}, {text}",
            time(N, response.median_ns as f64),
            time(N, p99 as f64)
        );
    }
    let (missed, woken) = found
        .threads
        .iter()
        .fold((0, 0), |(missed, woken), thread| {
            (missed + thread.missed, woken + thread.woken)
        });
    match missed {
        0 => text + ", none missed",
        missed => format!(
            "{text}, {} of {} missed",
            N.count(missed),
            N.count(missed + woken)
        ),
    }
}

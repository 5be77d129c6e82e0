//! The loads of a schedule, each in its phase.
//!
//! Phase `k` is due at `origin + k · length`. Its tools are started then and ended one length
//! later; the time to start them (2,400 processes of `hackbench`) belongs to it. The next phase
//! starts at its time, or, if tools are still ending, when the last one has ended or [`Patience`]
//! is exhausted. If more than half of a phase has passed by then, it is skipped, so that the next
//! one is more likely to be in time. The results of each phase are reported at the end, so that
//! nothing is written during the phases.

use std::path::Path;
use std::time::{Duration, Instant};

use tare_wire::phases::{SLOTS, slots_apart};
use tare_wire::record::{Notice, Phase, Record};

use super::begin::Begin;
use super::clock::{moment, now_ns};
use super::left::{Leftovers, Patience};
use super::prepare::Prepared;
use super::report::Reporter;
use super::shift::{Done, Shift};
use super::signals::Signals;
use crate::error::DriverError;

/// The results of a phase.
struct Past {
    load: String,
    due_ns: u64,
    done: Done,
}

/// Runs the loads one after the other, and reports the results. Returns when a signal ends the
/// load, or after the last phase if its beginning was not announced by a line.
pub(super) fn run(
    phase_ns: u64,
    prepared: Vec<Prepared>,
    begin: Begin,
    folder: &Path,
    signals: &mut Signals,
    left: &mut Leftovers,
    reporter: &mut Reporter,
) -> Result<(), DriverError> {
    reporter.put(&Record::Going);
    if reporter.is_unheard() {
        return Ok(());
    }
    let origin_ns = begin.origin_ns(signals)?;
    let due = |number: usize| origin_ns.saturating_add(phase_ns.saturating_mul(number as u64));
    let of = prepared.len();
    let mut all: Vec<Past> = Vec::new();
    for (number, load) in prepared.into_iter().enumerate() {
        let due_ns = due(number);
        idle(signals, moment(due_ns))?;
        if signals.stop_asked() {
            break;
        }
        let past = |done| Past {
            load: load.text,
            due_ns,
            done,
        };
        let late_ns = now_ns().saturating_sub(due_ns);
        if slots_apart(late_ns, phase_ns) == SLOTS {
            all.push(past(Done::skipped()));
            continue;
        }
        let phase = number as u32;
        left.phase_begins(phase);
        let mut shift = Shift::start(load.tasks, signals, folder, load.limit)?;
        shift.go_on(moment(due(number + 1)))?;
        let patience = match number + 1 < of {
            true => Patience::between(Duration::from_nanos(phase_ns)),
            false => Patience::LAST,
        };
        all.push(past(shift.stop(patience, left, phase)?));
    }
    if begin != Begin::Now {
        idle(signals, None)?;
    }
    report(&all, of, reporter);
    Ok(())
}

/// Sleeps until a time, or until a signal ends the load.
fn idle(signals: &mut Signals, until: Option<Instant>) -> Result<(), DriverError> {
    let nobody = Vec::new();
    Shift::start(nobody, signals, Path::new("."), None)?.go_on(until)
}

fn report(all: &[Past], of: usize, reporter: &mut Reporter) {
    let mut notice = |text: &str| reporter.put(&Record::Notice(Notice { text }));
    for (number, past) in all.iter().enumerate() {
        for text in &past.done.notices {
            notice(&format!("phase {number} ({}): {text}", past.load));
        }
    }
    if all.len() < of {
        notice(&format!(
            "the load was ended in phase {} of {of}, counted from 0",
            all.len().saturating_sub(1)
        ));
    }
    for (number, Past { load, due_ns, done }) in (0..).zip(all) {
        reporter.put(&Record::Phase(Phase {
            number,
            load,
            due_ns: *due_ns,
            started_ns: done.started_ns,
            stopping_ns: done.stopping_ns,
            stopped_ns: done.stopped_ns,
            last_tool: done.last_tool.as_deref(),
        }));
        done.report(reporter);
    }
}

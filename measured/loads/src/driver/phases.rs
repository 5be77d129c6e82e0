//! The loads of a schedule, each in its phase.
//!
//! Phase `k` is due at `origin + k · length`. Its tools are started then and told to end one length later; whatever
//! it takes to start them (2,400 processes of `hackbench`) belongs to it. The next phase starts at its time, or, if
//! tools still have to end, as soon as the last one has: as in the study's script, which knew no other order. What
//! came of each phase is kept and told at the end, so that nothing is written meanwhile.

use std::path::Path;
use std::time::Instant;

use tare_wire::record::{Notice, Phase, Record};

use super::begin::Begin;
use super::clock::{moment, now_ns};
use super::prepare::Prepared;
use super::report::Reporter;
use super::shift::{Done, Shift};
use super::signals::Signals;
use crate::error::Trouble;

/// Is the share of its length by which a phase may begin late before that is remarked.
const LATE: u64 = 100;

/// Runs the loads one after the other, and reports what came of them. Returns when somebody asks for the end, or after the
/// last phase if nobody was to say when the first one begins.
pub(super) fn run(
    phase_ns: u64,
    prepared: Vec<Prepared>,
    begin: Begin,
    folder: &Path,
    signals: &mut Signals,
    reporter: &mut Reporter,
) -> Result<(), Trouble> {
    reporter.put(&Record::Going);
    if reporter.is_unheard() {
        return Ok(());
    }
    let mut schedule = Due {
        phase_ns,
        origin_ns: begin.origin_ns(signals)?,
        late: Vec::new(),
    };
    let of = prepared.len();
    let mut all: Vec<(String, Done)> = Vec::new();
    for (number, load) in (0..).zip(prepared) {
        idle(signals, moment(schedule.of(number)))?;
        if signals.stop_asked() {
            break;
        }
        schedule.begins(number, &load.text, all.last())?;
        let mut shift = Shift::start(load.tasks, signals, folder, load.limit)?;
        shift.go_on(moment(schedule.of(number + 1)))?;
        all.push((load.text, shift.stop()?));
    }
    if begin != Begin::Now {
        idle(signals, None)?;
    }
    report(&all, &schedule.late, of, reporter);
    Ok(())
}

/// Sleeps until a moment, or until somebody asks for the end.
fn idle(signals: &mut Signals, until: Option<Instant>) -> Result<(), Trouble> {
    let nobody = Vec::new();
    Shift::start(nobody, signals, Path::new("."), None)?.go_on(until)
}

/// Is when phases are due, and which were late.
struct Due {
    phase_ns: u64,
    origin_ns: u64,
    late: Vec<String>,
}

impl Due {
    /// Returns the time of a phase, CLOCK_MONOTONIC in ns.
    fn of(&self, number: u64) -> u64 {
        self.origin_ns
            .saturating_add(self.phase_ns.saturating_mul(number))
    }

    /// Takes note that a phase begins.
    ///
    /// # Errors
    ///
    /// Returns [`Trouble::PhaseLost`] if it should be over by now: its latencies would be those of the load before it.
    fn begins(
        &mut self,
        number: u64,
        load: &str,
        before: Option<&(String, Done)>,
    ) -> Result<(), Trouble> {
        let due_ns = self.of(number);
        let late_ns = now_ns().saturating_sub(due_ns);
        let because = match before {
            Some((before, done)) if done.stopped_ns > due_ns + late_ns / 2 => {
                format!("the load '{before}' took so long to end")
            }
            _ => "the driver was told, or woken up, that late".to_owned(),
        };
        if late_ns >= self.phase_ns {
            let load = load.to_owned();
            return Err(Trouble::PhaseLost { load, because });
        }
        if late_ns > self.phase_ns / LATE {
            self.late.push(format!(
                "phase {number} ({load}) began {} ms late, because {because}",
                late_ns / 1_000_000
            ));
        }
        Ok(())
    }
}

fn report(all: &[(String, Done)], late: &[String], of: usize, reporter: &mut Reporter) {
    let mut notice = |text: &str| reporter.put(&Record::Notice(Notice { text }));
    late.iter().for_each(|text| notice(text));
    for (number, (load, done)) in all.iter().enumerate() {
        for text in &done.notices {
            notice(&format!("phase {number} ({load}): {text}"));
        }
    }
    if all.len() < of {
        notice(&format!(
            "the load was ended in phase {} of {of}, counted from 0",
            all.len().saturating_sub(1)
        ));
    }
    for (number, (load, done)) in (0..).zip(all) {
        reporter.put(&Record::Phase(Phase {
            number,
            load,
            started_ns: done.started_ns,
            stopping_ns: done.stopping_ns,
            stopped_ns: done.stopped_ns,
        }));
        done.report(reporter);
    }
}

//! The driver: starts the tools of a load, restarts them, counts their work, and ends them.
//!
//! One thread sleeps in `poll` on its signals and on the output of the tools. It wakes only when a
//! tool ends or writes, so that the disturbance is caused by the tools and not by the driver.
//!
//! * [`prepare`]: preparation before the load starts;
//! * [`shift`]: one load while its tools run; `tool_set`: its tools; [`child`]: one execution of
//!   one;
//! * [`phases`]: the loads of a schedule one after the other; [`begin`]: the beginning of the first
//!   one;
//! * [`left`]: time limits for tools to end, and those that remain;
//! * [`folder`], [`signals`], [`clock`], [`options`], [`report`]: helpers.
//!
//! # Nothing outlives it
//!
//! Each tool is in its own process group. The driver is the subreaper of all descendants: orphans
//! become the driver's children, and at the end every child is killed and reaped; one that can't be
//! killed is reported, and its pending SIGKILL ends it later. If the driver itself is killed, the
//! kernel kills the tools (`PR_SET_PDEATHSIG`); their children end by themselves or are found by
//! the mark of the laboratory's guard. If the driver's parent dies, the driver gets SIGTERM and
//! ends everything in order.

mod begin;
mod child;
mod clock;
mod folder;
mod left;
mod options;
mod phases;
mod prepare;
mod report;
mod shift;
mod signals;
mod tool_set;

use std::path::Path;
use std::time::Instant;

use tare_wire::record::{Failure, Hello, Notice, Record};

use crate::error::DriverError;
use left::{Leftovers, Patience};
use options::Options;
use prepare::Prepared;
use report::Reporter;
use shift::Shift;
use signals::Signals;

pub use begin::origin_line;
pub use options::{DEFAULT_LIMIT, USAGE};
pub use shift::CPU_TIME;

/// The environment in the driver's first record.
pub const ENVIRONMENT: &str = "load";

/// Drives a load according to these words, and reports it on standard output. Returns the exit
/// status: 0 done, 1 failed (a `failure` record has the reason), 2 invalid words.
pub fn run(words: &[String]) -> u8 {
    let options = match Options::parse(words) {
        Ok(options) => options,
        Err(text) => {
            eprintln!("tare-agent: load: {text}\nTry 'tare-agent load --help'.");
            return 2;
        }
    };
    let mut reporter = Reporter::default();
    let plan = options.schedule.to_string();
    reporter.put(&Record::Hello(Hello {
        protocol: tare_wire::PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        environment: ENVIRONMENT,
        plan: &plan,
    }));
    match drive(&options, &mut reporter) {
        Ok(()) => {
            reporter.end();
            0
        }
        Err(error) => {
            let text = error.to_string();
            eprintln!("tare-agent: load: {text}");
            reporter.put(&Record::Failure(Failure { text: &text }));
            1
        }
    }
}

fn drive(options: &Options, reporter: &mut Reporter) -> Result<(), DriverError> {
    let mut signals = Signals::take()?;
    let (folder, prepared, notices) = prepare::prepare(options)?;
    for text in &notices {
        reporter.put(&Record::Notice(Notice { text }));
    }
    let path = folder.path();
    let mut left = Leftovers::default();
    match options.schedule.phase_ns() {
        Some(phase_ns) => phases::run(
            phase_ns,
            prepared,
            options.begin,
            path,
            &mut signals,
            &mut left,
            reporter,
        )?,
        None => {
            for load in prepared {
                endless(load, options, path, &mut signals, &mut left, reporter)?;
            }
        }
    }
    left.end();
    left.report(reporter);
    match folder.remove() {
        // Remaining tools may still write there; the folder's creator removes it.
        Err(_) if left.remain() => Ok(()),
        removed => removed,
    }
}

/// Runs one load until a signal ends it.
fn endless(
    load: Prepared,
    options: &Options,
    folder: &Path,
    signals: &mut Signals,
    left: &mut Leftovers,
    reporter: &mut Reporter,
) -> Result<(), DriverError> {
    let mut shift = Shift::start(load.tasks, signals, folder, load.limit)?;
    if let Some(text) = shift.settle()? {
        reporter.put(&Record::Notice(Notice { text: &text }));
    }
    reporter.put(&Record::Going);
    if !reporter.is_unheard() {
        let time = options.seconds;
        shift.go_on(time.and_then(|time| Instant::now().checked_add(time)))?;
    }
    let done = shift.stop(Patience::LAST, left, 0)?;
    for text in &done.notices {
        reporter.put(&Record::Notice(Notice { text }));
    }
    done.report(reporter);
    Ok(())
}

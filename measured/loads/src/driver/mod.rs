//! The driver: starts the tools of a load, keeps them going, counts, and ends all of it.
//!
//! One thread sleeps in `poll` on its signals and on what the tools say. It wakes up when a tool ends or speaks,
//! so that the disturbance is the tools' and not the driver's.
//!
//! * [`prepare`]: what is done before anything disturbs;
//! * [`shift`]: one load while its tools run; `tool_set`: its tools; [`child`]: one execution of one;
//! * [`phases`]: the loads of a schedule one after the other; [`begin`]: when the first one begins;
//! * [`left`]: how long tools may take to end, and who is left running;
//! * [`folder`], [`signals`], [`clock`], [`options`], [`report`]: what these need.
//!
//! # Nothing outlives it
//!
//! Each tool is in a process group of its own. The driver is the subreaper of all descendants: whatever loses its parent
//! becomes the driver's child, and at the end every child is killed and waited for; what can't be killed is told, and
//! its pending SIGKILL ends it later. If the driver itself is killed, the
//! kernel kills the tools (`PR_SET_PDEATHSIG`); what they had started ends by itself or is found by the
//! mark of the laboratory's guard. If the driver's parent dies, the driver gets SIGTERM and ends everything in order.

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

/// The environment that the driver names in its first record.
pub const ENVIRONMENT: &str = "load";

/// Drives a load as these words say, and reports it on standard output. Returns the exit status: 0 done, 1 failed (a
/// `failure` record says why), 2 the words make no sense.
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
        // They may still write there; whoever gave the folder removes it.
        Err(_) if left.remain() => Ok(()),
        removed => removed,
    }
}

/// Runs one load until somebody asks for the end.
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

//! Measures the promises of `tare`: its own costs, and its findings.
//!
//! These are figures, so they are not part of `make test`: they would fail on a busy machine. They
//! are ratios within one run, medians over alternating repetitions, and each has a bound.
//!
//! * [`attack`]: damaged run folders, and runs that are killed, stopped, moved or out of space;
//! * [`mod@bench`]: the gap loop against unrolled timer reads, the dead time between samples against
//!   the empty region, and folding, statistics and report of 100 million samples; services in three
//!   ways, and their bytes;
//! * [`compare`]: how often this machine is reported to differ from itself, and whether a planted
//!   shift is found;
//! * [`containers`]: start to exit of containers by `tare start`, compared with manual starts;
//! * [`culprits`]: planted disturbers are named, each by its name;
//! * [`start`]: 1,024 processes a second, compared with a shell's loop, and the highest rates of
//!   guests;
//! * [`guests`]: Linux guests against a two-line init, and every load inside of one;
//! * [`idle`]: guests are measured when their boot is over;
//! * [`places`]: every kind of target in one report;
//! * [`hog`]: a SCHED_FIFO thread of known CPU usage is detected;
//! * [`landolfi`]: the study of wake-up latency from one command, and its reproducible
//!   deterministic lane;
//! * [`latency`]: wake-ups compared with Debian's cyclictest, the cost of recording them, and their
//!   disk usage per day;
//! * [`offline`]: a measured CPU that is taken offline for a moment fails its cell;
//! * [`osnoise`]: the kernel's tracer osnoise counts the same interruptions as `tare`;
//! * [`pace`]: the duration of commands that promise one;
//! * [`service`]: the cost of a query to a name server in the unikernel, against the same code in a
//!   Debian cloud guest, at rest, and for ten minutes; `clients`: our client against dnsperf, also
//!   where a server stalls or loses requests, and our server against NSD and Knot;
//! * [`scale`]: the slowdown at barriers on all CPUs, compared with `tare scale`, and how long that
//!   takes for a million nodes;
//! * [`stream`]: the bandwidth of memory, compared with STREAM's loops in C;
//! * [`switches`]: planted switches are found by a screening, and no others;
//! * [`boot`]: the start of the smallest image compared with a guest of two instructions, that of
//!   an instance of `tare start`, a name server's first answer, and the cost of an idle image.

mod attack;
mod bench;
mod boot;
mod compare;
mod containers;
mod culprits;
mod guests;
mod hog;
mod idle;
mod landolfi;
mod latency;
mod left;
mod offline;
mod osnoise;
mod pace;
mod places;
mod primitives;
mod qemu;
mod recorded;
mod scale;
mod service;
mod start;
mod stream;
mod switches;
mod verdict;

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tare_experiments::catalogue;
use tare_figures::rows::Row;
use tare_pages::analyse;
use tare_results::model::{Outcome, Program, Record, SetHead};
use tare_results::{CellState, RunFolder};

use crate::verdict::Verdicts;

/// The result of a step; the text of its error describes the failure.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Measures something and checks its bounds.
type Check = fn(&mut Verdicts) -> Result<()>;

/// The checks by name, in the order in which `all` runs them.
const CHECKS: [(&str, Check); 22] = [
    ("bench", bench::run),
    ("hog", hog::run),
    ("culprits", culprits::run),
    ("switches", switches::run),
    ("offline", offline::run),
    ("pace", pace::run),
    ("boot", boot::run),
    ("containers", containers::run),
    ("start", start::run),
    ("guests", guests::run),
    ("idle", idle::run),
    ("osnoise", osnoise::run),
    ("places", places::run),
    ("primitives", primitives::run),
    ("stream", stream::run),
    ("scale", scale::run),
    ("recorded", recorded::run),
    ("service", service::run),
    ("clients", service::clients::run),
    ("latency", latency::run),
    ("compare", compare::run),
    ("landolfi", landolfi::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut verdicts = Verdicts::default();
    let checked = match words[..] {
        ["all"] => {
            for (name, check) in CHECKS {
                let begun = Instant::now();
                if let Err(error) = at_most_twice(check, &mut verdicts) {
                    verdicts.missing(name, &*error);
                }
                println!("       {name} took {:.0} s", begun.elapsed().as_secs_f64());
            }
            Ok(())
        }
        ["attack", seconds] => match seconds.parse() {
            Ok(seconds) => attack::run(&mut verdicts, seconds, fastrand::u64(..1 << 32)),
            Err(_) => return usage(),
        },
        ["attack", seconds, seed] => match (seconds.parse(), seed.parse()) {
            (Ok(seconds), Ok(seed)) => attack::run(&mut verdicts, seconds, seed),
            _ => return usage(),
        },
        ["hog-thread", cpu] => hog::thread(cpu),
        [service::clients::SERVER, kind] => service::clients::serve(kind),
        [name] if let Some((_, check)) = CHECKS.iter().find(|(known, _)| *known == name) => {
            check(&mut verdicts)
        }
        _ => return usage(),
    };
    if let Err(error) = checked {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    if verdicts.all_hold() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    }
}

/// Runs a check, and once more if a figure was missing or out of its bounds: a minute of
/// interference need not cost the other half an hour.
fn at_most_twice(check: Check, verdicts: &mut Verdicts) -> Result<()> {
    let mut first = Verdicts::default();
    match check(&mut first) {
        Ok(()) if first.all_hold() => return Ok(()),
        Ok(()) => {}
        Err(error) => println!("       {error}"),
    }
    println!("once more:");
    check(verdicts)
}

/// Prints the usage.
fn usage() -> ExitCode {
    let names = CHECKS.map(|(name, _)| name).join("|");
    eprintln!("Usage: tare-acceptance {names}|all\n       tare-acceptance attack SECONDS [SEED]");
    ExitCode::from(2)
}

/// Returns a command of the `tare` next to this program; the words are separated by blanks.
fn tare(words: &str) -> Result<Command> {
    let path = std::env::current_exe()?.with_file_name("tare");
    if !path.is_file() {
        return Err(format!("{} is missing: type `make build`", path.display()).into());
    }
    let mut command = Command::new(path);
    command.args(words.split(' '));
    Ok(command)
}

/// Runs a command to its end, and returns its standard output.
fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{said}", output.status).into())
}

/// Runs `tare` with these words, and more that may contain blanks, into a new folder below
/// `scratch`, and opens it.
fn run(scratch: &Path, name: &str, words: &str, more: &[&str]) -> Result<RunFolder> {
    let path = scratch.join(name);
    output(tare(words)?.args(more).arg("--output").arg(&path))?;
    Ok(RunFolder::open(&path)?)
}

/// A cell with one set that one program measured.
#[derive(Debug)]
struct Measurement {
    program: Program,
    head: SetHead,
    record: Record,
}

impl Measurement {
    /// Returns the measurement of a cell, if there is one.
    fn of(folder: &RunFolder, cell: u32) -> Option<Self> {
        let CellState::Done(cell) = folder.state(cell) else {
            return None;
        };
        let Outcome::Done { record, .. } = cell.outcome else {
            return None;
        };
        Some(Self {
            program: record.program()?.clone(),
            head: record.sets.first()?.clone(),
            record: *record,
        })
    }
}

/// Returns the measurements, cell by cell.
fn measurements(folder: &RunFolder) -> Vec<Measurement> {
    let cells = folder.plan().cells.iter();
    cells
        .filter_map(|plan| Measurement::of(folder, plan.id))
        .collect()
}

/// Reads the row of a measure of a folder that has a figure and labels.
fn of_row<T>(
    folder: &RunFolder,
    experiment: &str,
    (measure, figure): (&str, &str),
    labels: &[(&str, &str)],
    read: impl FnOnce(&Row) -> Result<T>,
) -> Result<T> {
    let analysis = analyse(folder, catalogue())?;
    let mut rows = analysis.rows().of(experiment, measure);
    let row = rows.find(|row| {
        row.figure.to_string() == figure && labels.iter().all(|(key, value)| row.has(key, value))
    });
    read(row.ok_or_else(|| format!("there is no {figure} of {measure} {labels:?}"))?)
}

/// Returns a figure over all runs of a folder.
fn figure(
    folder: &RunFolder,
    experiment: &str,
    figure: (&str, &str),
    labels: &[(&str, &str)],
) -> Result<f64> {
    of_row(folder, experiment, figure, labels, |row| {
        Ok(row.over.as_ref().map_err(ToString::to_string)?.estimate)
    })
}

/// Runs a function on one CPU, including its children, and then restores the affinity.
fn on_one_cpu(run: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = sched_getaffinity(None)?;
    pin(hog::last_cpu()?)?;
    let done = run();
    sched_setaffinity(None, &before)?;
    done
}

/// Pins this thread to a CPU.
fn pin(cpu: usize) -> Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(sched_setaffinity(None, &one)?)
}

/// A process that ends with this value.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the median; of an even number of values the higher of the middle two.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

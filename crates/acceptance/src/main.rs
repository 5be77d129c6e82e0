//! Measures what `tare` promises: what it costs itself, and that it finds what is there.
//!
//! These are figures, so they are no part of `make test`: a busy machine would fail it. They are
//! ratios within one run, medians over alternating repetitions, and each has a bound.
//!
//! * [`bench`]: the gap loop against unrolled timer reads, the dead time between samples against
//!   the empty region, and folding, statistics and report of 100 million samples;
//! * [`hog`]: a SCHED_FIFO thread of known appetite takes the CPU away, and is found;
//! * [`pace`]: how long the commands take that promise a time.

mod bench;
mod hog;
mod pace;
mod spin;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tare_results::model::{Measurement, Outcome};
use tare_results::{CellState, RunFolder};

use crate::verdict::Verdicts;

/// Is what any step of a check may fail with; the text says what happened.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut verdicts = Verdicts::default();
    let checked = match words[..] {
        ["bench"] => bench::run(&mut verdicts),
        ["hog"] => hog::run(&mut verdicts),
        ["pace"] => pace::run(&mut verdicts),
        ["all"] => bench::run(&mut verdicts)
            .and_then(|()| hog::run(&mut verdicts))
            .and_then(|()| pace::run(&mut verdicts)),
        ["hog-thread", cpu, seconds] => return hog::thread(cpu, seconds),
        _ => {
            eprintln!("Usage: tare-acceptance bench|hog|pace|all");
            return ExitCode::from(2);
        }
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

/// Runs `tare` with these arguments and returns when it is done.
fn tare(arguments: &[&str]) -> Result<()> {
    let program = tare_path()?;
    let output = Command::new(&program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("tare {}: {}\n{said}", arguments.join(" "), output.status).into())
}

/// Runs `tare noise` into a new folder below `scratch`, and opens it.
fn noise(scratch: &Path, name: &str, arguments: &[&str]) -> Result<RunFolder> {
    let path = scratch.join(name);
    let path_text = path
        .to_str()
        .ok_or("the scratch folder's name is not UTF-8")?;
    let mut all = vec!["noise", "--output", path_text];
    all.extend(arguments);
    tare(&all)?;
    Ok(RunFolder::open(&path)?)
}

/// Returns what was measured, cell by cell.
fn measurements(folder: &RunFolder) -> Vec<Measurement> {
    let cells = folder.plan().cells.iter();
    cells
        .filter_map(|plan| match folder.state(plan.id) {
            CellState::Done(cell) => match cell.outcome {
                Outcome::Done(measurement) => Some(*measurement),
                Outcome::Failed { .. } => None,
            },
            _ => None,
        })
        .collect()
}

/// Finds `tare` beside this program.
fn tare_path() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("tare");
    if path.is_file() {
        Ok(path)
    } else {
        Err(format!("{} is missing: type `make build`", path.display()).into())
    }
}

/// Returns the median; of an even number of values the higher of the middle two.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

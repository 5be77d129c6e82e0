//! `tare compare --self`: this machine against itself.
//!
//! Pairs of invocations are measured one after the other, and each pair is compared as two runs are. Nothing was changed
//! between them, so whatever is said to differ is a false alarm. All of them together are compared as two groups, as a comparison
//! with several invocations of each side would be.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_stats::{Level, false_alarms};

use super::between;
use crate::cli::compare::CompareArguments;
use crate::commands::clean_up;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// What is measured unless said otherwise: a figure of every kind in two seconds.
const DEFAULT: [&str; 7] = [
    "noise",
    "--workload",
    "gap",
    "--repetitions",
    "20000000",
    "--runs",
    "6",
];

/// Measures pairs, compares them, and says how often they were said to differ.
pub(super) fn run(arguments: &CompareArguments, terminal: &Terminal) -> Result<u8, CommandError> {
    let interrupt = Interrupt::install()?;
    clean_up(terminal);
    let guard = Guard::open(&default_state_dir()?)?;
    let scratch = guard.scratch("compare")?;
    let command: Vec<&str> = match arguments.command.as_slice() {
        [] => DEFAULT.to_vec(),
        words => words.iter().map(String::as_str).collect(),
    };
    let of = arguments.pairs;
    let (mut base, mut new): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let mut alarms = 0;
    for pair in 1..=of {
        // Whichever comes second meets what the first one left behind, so they take turns.
        let order = if pair % 2 == 1 { [0, 1] } else { [1, 0] };
        let paths = [0, 1].map(|side| scratch.path().join(format!("{pair}-{side}")));
        for side in order {
            if interrupt.finish_requested() {
                return Ok(exit::INTERRUPTED);
            }
            measure(&command, &paths[side])?;
        }
        let [first, second] = paths;
        let comparison = between(std::slice::from_ref(&first), std::slice::from_ref(&second))?;
        let differs = comparison.rows.iter().filter(|row| row.differs).count();
        alarms += u64::from(differs > 0);
        terminal.note(&format!(
            "pair {pair} of {of}: {differs} of {} figures are said to differ",
            comparison.rows.len()
        ));
        base.push(first);
        new.push(second);
    }
    let rate = false_alarms(of.into(), alarms, Level::P95)
        .map_err(|error| CommandError::Measurement(format!("the rate of false alarms: {error}")))?;
    let together = between(&base, &new)?;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    terminal.print(&format!(
        "Rate of false alarms: one invocation against another was said to differ in {alarms} of {of} pairs ({}; 95 % CI {} \
         to {}), though nothing was changed.",
        percent(rate.rate),
        percent(rate.low),
        percent(rate.high)
    ))?;
    let differs = together.rows.iter().filter(|row| row.differs).count();
    let groups = match together.can_tell {
        true => format!("{differs} of {} figures differ", together.rows.len()),
        false => format!(
            "nothing can be told with fewer than {} of each",
            together.needed
        ),
    };
    terminal.print(&format!(
        "All of them together, {of} invocations against {of}: {groups}."
    ))?;
    drop(scratch);
    Ok(exit::DONE)
}

/// Runs one invocation of this very program.
fn measure(command: &[&str], output: &PathBuf) -> Result<(), CommandError> {
    let own = std::env::current_exe().map_err(|error| {
        CommandError::Measurement(format!("this program can't find itself: {error}"))
    })?;
    let done = Command::new(own)
        .args(command)
        .arg("--output")
        .arg(output)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output();
    let failed = |why: String| {
        CommandError::Measurement(format!("`tare {}` failed: {why}", command.join(" ")))
    };
    let done = done.map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(failed(said.trim().to_owned()))
}

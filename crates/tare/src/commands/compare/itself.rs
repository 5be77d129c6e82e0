//! `tare compare --self`: this machine against itself.
//!
//! Pairs of invocations are measured one after the other, and each pair is compared as two runs
//! are. Nothing was changed between them, so each reported difference is a false alarm. All of them
//! together are compared as two groups, as a comparison with several invocations of each side would
//! be.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt, default_state_dir};
use tare_stats::{Level, false_alarms};

use super::between;
use crate::cli::compare::CompareArguments;
use crate::commands::clean_up;
use crate::error::CommandError;
use crate::exit;
use crate::terminal::Terminal;

/// The default measurement: a figure of every kind in two seconds.
const DEFAULT: [&str; 7] = [
    "noise",
    "--workload",
    "gap",
    "--repetitions",
    "20000000",
    "--runs",
    "6",
];

/// Interval between checks for a request to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long an invocation may take to end early.
const GRACE: Duration = Duration::from_secs(10);

/// Measures pairs, compares them, and reports the rate of false alarms.
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
        // The first invocation may affect the second one, so the order alternates.
        let order = if pair % 2 == 1 { [0, 1] } else { [1, 0] };
        let paths = [0, 1].map(|side| scratch.path().join(format!("{pair}-{side}")));
        for side in order {
            if !measure(&command, &paths[side], &guard, &interrupt)? {
                return Ok(exit::INTERRUPTED);
            }
        }
        let [first, second] = paths;
        let sides = [&first, &second].map(std::slice::from_ref);
        let (comparison, _) = between(sides[0], sides[1], terminal)?;
        let differs = comparison.compared().filter(|row| row.differs).count();
        alarms += u64::from(differs > 0);
        terminal.note(&format!(
            "pair {pair} of {of}: {differs} of {} compared figures differ",
            comparison.compared().count()
        ));
        base.push(first);
        new.push(second);
    }
    let rate = false_alarms(of.into(), alarms, Level::P95)
        .map_err(|error| CommandError::Measurement(format!("the rate of false alarms: {error}")))?;
    let (together, _) = between(&base, &new, terminal)?;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    terminal.print_sentence(&format!(
        "Rate of false alarms: {alarms} of {of} pairs of invocations differed ({}; 95 % CI {} \
         to {}), though nothing was changed.",
        percent(rate.rate),
        percent(rate.low),
        percent(rate.high)
    ))?;
    let differs = together.compared().filter(|row| row.differs).count();
    let all = together.compared().count();
    let groups = match together.can_tell {
        true => format!("{differs} of {all} compared figures differ"),
        false => format!("a comparison needs at least {} of each", together.needed),
    };
    terminal.print_sentence(&format!(
        "All of them together, {of} invocations against {of}: {groups}."
    ))?;
    drop(scratch);
    Ok(exit::DONE)
}

/// Runs one invocation of this very program. Returns whether it came to its end: a Ctrl-C ends it
/// early.
fn measure(
    command: &[&str],
    output: &Path,
    guard: &Guard,
    interrupt: &Interrupt,
) -> Result<bool, CommandError> {
    let failed = |why: String| {
        CommandError::Measurement(format!("`tare {}` failed: {why}", command.join(" ")))
    };
    let file = |error: io::Error| failed(error.to_string());
    let own = std::env::current_exe().map_err(file)?;
    let said = output.with_extension("stderr");
    let mut child = guard.spawn(
        Command::new(own)
            .args(command)
            .arg("--output")
            .arg(output)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).map_err(file)?),
    )?;
    let status = loop {
        if let Some(status) = child.wait_with_deadline(Instant::now() + LOOK)? {
            break status;
        }
        if interrupt.finish_requested() {
            child.stop_group(GRACE)?;
            return Ok(false);
        }
    };
    if status.success() {
        return Ok(true);
    }
    let said = fs::read_to_string(&said).map_err(file)?;
    Err(failed(said.trim().to_owned()))
}

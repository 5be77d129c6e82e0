//! Each load for five seconds on this machine, with its work; and nothing left of any, also after
//! `kill -9` at random times and one more command.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_guard::{Guard, Interrupt, Options, Undone};
use tare_loads::{Load, Running, availability};
use tare_results::model::{self, LoadPlace};
use tare_targets::measured::MeasuredFile;
use tare_wire::cpus::Cpus as Measured;

use crate::left::Picture;
use crate::verdict::Verdicts;
use crate::{Result, output, tare};

/// The duration of each load.
const TIME: Duration = Duration::from_secs(5);

/// The number of times that `tare` is killed.
const KILLS: usize = 20;

/// Loads that run anywhere.
pub const LOADS: [&str; 8] = [
    "dd",
    "hackbench",
    "dd+hackbench",
    "du",
    "tar",
    "nc",
    "ping",
    "stress-ng:--cpu 1 --hdd 1 --hdd-bytes 16M",
];

/// Checks the loads.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let bench = tempfile::tempdir()?;
    let before = Picture::take(bench.path())?;
    for text in LOADS.into_iter().chain(["command:find /usr -xdev"]) {
        one(text, bench.path(), verdicts)?;
        let left = Picture::take(bench.path())?.beyond(&before);
        verdicts.at_most(&format!("left of {text}: {left:?}"), left.len() as f64, 0.0);
    }
    for round in 0..KILLS {
        let load = LOADS[fastrand::usize(..LOADS.len())];
        let moment = Duration::from_millis(fastrand::u64(0..4_000));
        killed(load, moment, round, bench.path())?;
        let left = Picture::take(bench.path())?.beyond(&before);
        let what = format!("left of {load} after kill -9 at {moment:?}: {left:?}");
        verdicts.at_most(&what, left.len() as f64, 0.0);
    }
    Ok(())
}

/// Runs one load, and prints its rates.
fn one(text: &str, bench: &Path, verdicts: &mut Verdicts) -> Result<()> {
    let load = Load::parse(text)?;
    if let Err(unavailable) = availability(&load, LoadPlace::Beside) {
        return Err(format!("{text}: {}: {}", unavailable.why, unavailable.remedy).into());
    }
    let options = Options {
        scratch_root: bench.to_owned(),
        ..Options::default()
    };
    let guard = Guard::open_with(&bench.join("state"), options)?;
    let agent = MeasuredFile::agent();
    let (anywhere, interrupt) = (Measured::default(), Interrupt::detached()?);
    let running = Running::start(&load.into(), agent.path()?, &anywhere, &guard, &interrupt)?;
    thread::sleep(TIME);
    let did = running.stop()?;
    show(text, &did, verdicts)?;
    let closed = guard.close();
    let killed = |undone: &&Undone| matches!(undone, Undone::ProcessKilled { .. });
    let killed: Vec<&Undone> = closed.undone.iter().filter(killed).collect();
    let what = format!("{text}: processes that the guard had to kill: {killed:?}");
    verdicts.at_most(&what, killed.len() as f64, 0.0);
    closed
        .problems
        .into_iter()
        .next()
        .map_or(Ok(()), |problem| Err(problem.into()))
}

/// Prints the work of a load, which must not be zero.
pub fn show(what: &str, did: &model::Load, verdicts: &mut Verdicts) -> Result<()> {
    for achieved in &did.achieved {
        let rate = achieved.rate().ok_or("no time passed")?;
        println!("       {what}: {rate}");
    }
    let first = did.achieved.first().map_or(0, |achieved| achieved.amount);
    verdicts.at_least(&format!("{what}: amount"), first as f64, 1.0);
    Ok(())
}

/// Kills `tare` under a load, and cleans up by one more command.
fn killed(load: &str, moment: Duration, round: usize, bench: &Path) -> Result<()> {
    let run = bench.join(format!("run-{round}"));
    let here = |words: &str| -> Result<Command> {
        let mut command = tare(words)?;
        command
            .env("TARE_STATE_DIR", bench.join("state"))
            .env("TMPDIR", bench);
        Ok(command)
    };
    let mut command = here("noise --workload gap --runs 9 --load")?;
    command.args([load, "--output"]).arg(&run);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdin(Stdio::null()).spawn()?;
    thread::sleep(moment);
    child.kill()?;
    child.wait()?;
    output(&mut here("clean")?)?;
    if run.exists() {
        fs::remove_dir_all(run)?;
    }
    Ok(())
}

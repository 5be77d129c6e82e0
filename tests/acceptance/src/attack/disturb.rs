//! Runs that are killed, interrupted, stopped, moved to another CPU, or run out of space.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tare_results::{CellState, RunFolder};

use super::watched::{Watched, send, threads};
use super::{Ground, Wrong, names};
use crate::Result;
use crate::guests::LOADS;
use crate::left::Picture;

/// Runs of a few cells of a quarter of a second, as measured in the ground.
const RUNS: [&str; 3] = [
    "noise --workload gap,prime --repetitions 10000000 --runs 2 --output run",
    "wakeup --duration 300ms --runs 3 --output run",
    "wakeup --duration 300ms --runs 1 --load idle --output run",
];

/// The total time limit for a run, on a busy machine and with all disturbances.
const LIMIT: Duration = Duration::from_secs(120);

/// The agent, in the repository.
const AGENT: &str = "measured/target/x86_64-unknown-linux-gnu/release/tare-agent";

/// The time that two interrupts may take to end a run, where bursts of stolen time let it.
const ENDS: Duration = Duration::from_secs(8);

/// The number of moves of a thread after which its cell must have noticed.
const MOVES: usize = 50;

/// Returns the command of a run; under a load if its words name one.
fn some_run(ground: &Ground, rng: &mut Rng) -> Result<Command> {
    let words = RUNS[rng.usize(..RUNS.len())];
    let mut command = ground.tare(words)?;
    if words.contains("--load") {
        command.args(["--load", LOADS[rng.usize(..LOADS.len())]]);
    }
    Ok(command)
}

fn some_ms(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_millis(rng.u64(..most))
}

/// Starts a run, disturbs it, and checks its remains and this machine.
fn disturbed(
    ground: &Ground,
    place: &Path,
    command: &mut Command,
    codes: &[i32],
    disturb: impl FnOnce(&mut Watched) -> Result<()>,
) -> Result<Wrong> {
    let before = Picture::take(&ground.bench.join("tmp"))?;
    let mut run = Watched::start(command.current_dir(place), place)?;
    let pid = run.pid();
    disturb(&mut run)?;
    let mut wrong = run.end(LIMIT, codes)?;
    wrong.extend(ground.left(&before, pid)?);
    wrong.extend(unsound(ground, place)?);
    Ok(wrong)
}

/// Returns the parts of a run's folder that can't be shown, or are shown under a name that was not
/// measured.
fn unsound(ground: &Ground, place: &Path) -> Result<Wrong> {
    let run = place.join("run");
    if !run.join("plan.json").exists() {
        return Ok(Wrong::new());
    }
    let mut report = ground.tare("report run")?;
    let mut wrong = Watched::start(report.current_dir(place), place)?.end(LIMIT, &[0, 1])?;
    if run.join("summary.json").exists() {
        let strange = names(&run)?
            .into_iter()
            .filter(|name| !ground.names.contains(name));
        wrong.extend(strange.map(|name| format!("the report shows figures of '{name}'")));
    }
    Ok(wrong)
}

/// Ends `tare` by SIGKILL at a random moment.
pub fn kill(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let moment = some_ms(rng, 1_500);
    let mut command = some_run(ground, rng)?;
    let before = Picture::take(&ground.bench.join("tmp"))?;
    let run = Watched::start(command.current_dir(place), place)?;
    let pid = run.pid();
    thread::sleep(moment);
    drop(run);
    let mut wrong = ground.left(&before, pid)?;
    wrong.extend(unsound(ground, place)?);
    Ok(wrong)
}

/// Interrupts `tare` once or twice.
pub fn interrupt(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let mut command = some_run(ground, rng)?;
    disturbed(ground, place, &mut command, &[0, 4], |run| {
        // Before its plan is written it has begun nothing, and may die of the signal.
        while run.runs()? && !place.join("run/plan.json").exists() {
            thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..rng.u32(1..3) {
            thread::sleep(some_ms(rng, 800));
            run.signal(if rng.u32(..3) == 0 {
                Signal::TERM
            } else {
                Signal::INT
            });
        }
        Ok(())
    })
}

/// Repeatedly stops `tare` or the measuring process for some time.
pub fn stop(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let mut command = some_run(ground, rng)?;
    disturbed(ground, place, &mut command, &[0], |run| {
        for _ in 0..rng.u32(1..5) {
            thread::sleep(some_ms(rng, 400));
            let agents = run.agents();
            let pid = match rng.bool() {
                true => run.pid(),
                false => rng.choice(agents).unwrap_or(run.pid()),
            };
            send(pid, Signal::STOP);
            thread::sleep(some_ms(rng, 800));
            send(pid, Signal::CONT);
        }
        Ok(())
    })
}

/// Lets the agent write something else than records, behind its first ones or before all, without end,
/// and interrupts `tare` twice.
pub fn flood(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    const FLOODS: [&str; 5] = [
        "exec cat /dev/zero",
        "exec cat /dev/urandom",
        "exec yes 'no record'",
        "exec yes ''",
        "while sleep 0.1; do printf x; done",
    ];
    let real = std::env::current_dir()?.join(AGENT);
    let bytes = rng.u32(..20_000);
    let part = ["head", "tail"][rng.usize(..2)];
    let flood = FLOODS[rng.usize(..FLOODS.len())];
    let agent = place.join("agent");
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" | {part} -c {bytes}\n{flood}\n",
        real.display()
    );
    fs::write(&agent, script)?;
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
    let mut command = some_run(ground, rng)?;
    command.env("TARE_AGENT", &agent);
    disturbed(ground, place, &mut command, &[0, 1, 4], |run| {
        while run.runs()? && !place.join("run/plan.json").exists() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(some_ms(rng, 4_000));
        let begun = Instant::now();
        for _ in 0..2 {
            run.signal(Signal::INT);
            thread::sleep(Duration::from_millis(100));
        }
        while run.runs()? && begun.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(10));
        }
        match begun.elapsed() {
            took if took > ENDS => Err(format!("two interrupts took {took:?} to end it").into()),
            _ => Ok(()),
        }
    })
}

/// Moves the measuring threads from CPU to CPU: their cells must fail.
pub fn migrate(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    if cpus.len() < 2 {
        return Ok(Wrong::new());
    }
    let mut moved = BTreeMap::<i32, usize>::new();
    let mut command = ground.tare(RUNS[rng.usize(..2)])?;
    let mut wrong = disturbed(ground, place, &mut command, &[0, 1], |run| {
        while run.runs()? {
            for agent in run.agents() {
                let mut one = CpuSet::new();
                one.set(cpus[rng.usize(..cpus.len())]);
                for thread in threads(agent) {
                    // It may have ended.
                    let _ = sched_setaffinity(rustix::process::Pid::from_raw(thread), &one);
                }
                *moved.entry(agent).or_default() += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })?;
    let folder = RunFolder::open(&place.join("run"))?;
    let cells = folder.plan().cells.iter();
    let done = cells
        .filter(|cell| matches!(folder.state(cell.id), CellState::Done(_)))
        .count();
    let unmoved = moved.values().filter(|times| **times < MOVES).count();
    if moved.is_empty() && done > 0 {
        wrong.push("no agent was found to be moved".to_owned());
    } else if done > unmoved {
        wrong.push(format!(
            "{done} cells are done, and all but {unmoved} were moved"
        ));
    }
    Ok(wrong)
}

/// Runs on a disk that is too small, mounted in the run's own namespace.
pub fn fill(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let kib = 4 << rng.u32(..10);
    let tare = some_run(ground, rng)?;
    let script = format!(
        "mount -t tmpfs -o size={kib}k tare-attack {0} && cd {0} && exec \"$@\"",
        place.display()
    );
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    wrap(&mut command, &tare);
    // Its output is outside of the small disk.
    disturbed(ground, place, &mut command, &[0, 1], |_| Ok(()))
}

/// Runs with a limit on the size of files.
pub fn limit_file_size(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let tare = some_run(ground, rng)?;
    let bytes: u64 = 1 << rng.u32(14..20);
    let mut command = Command::new("prlimit");
    command.arg(format!("--fsize={bytes}")).arg("--");
    wrap(&mut command, &tare);
    disturbed(ground, place, &mut command, &[0, 1], |_| Ok(()))
}

/// Adds a command, with its environment, to one that executes it.
fn wrap(command: &mut Command, wrapped: &Command) {
    command.arg(wrapped.get_program()).args(wrapped.get_args());
    let environment = wrapped.get_envs();
    command.envs(environment.filter_map(|(name, value)| Some((name, value?))));
}

//! Attacks `tare` at random, for a given time: damages run folders and repairs their checksums,
//! imports damaged results of other tools, reads hostile studies, kills, stops, interrupts, moves,
//! floods with what is no record, and fills the disk.
//!
//! In any case, each command must end by itself within its limit, with a documented exit code,
//! without a panic, in bounded memory, and send nothing to the terminal that controls it; nothing
//! may be left on the machine; and no figure may have a name that was not measured. A round that
//! violates one of these is printed with its seed, which repeats it, and its folder is kept.

mod damage;
mod disturb;
mod input;
mod watched;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::guests::LOADS;
use crate::left::Picture;
use crate::verdict::Verdicts;
use crate::{Result, output, tare};

/// The faults found in a round, in sentences.
type Wrong = Vec<String>;

/// A kind of attack.
type Attack = fn(&Ground, &Path, &mut Rng) -> Result<Wrong>;

/// The kinds by name. Damage, which takes a fraction of the time of a run, is every other round;
/// the others take turns, so that none is omitted.
const ATTACKS: [(&str, Attack); 10] = [
    ("damage", damage::attack),
    ("kill", disturb::kill),
    ("interrupt", disturb::interrupt),
    ("stop", disturb::stop),
    ("flood", disturb::flood),
    ("move", disturb::migrate),
    ("fill", disturb::fill),
    ("limit file size", disturb::limit_file_size),
    ("import", input::import),
    ("study", input::study),
];

/// The place of attacks: valid runs, and a folder for everything else.
struct Ground {
    bench: PathBuf,
    runs: Vec<PathBuf>,
    /// Every experiment, target and load that was measured.
    names: BTreeSet<String>,
}

impl Ground {
    /// Measures the runs to be damaged.
    fn prepare(bench: &Path) -> Result<Self> {
        let mut ground = Self {
            bench: bench.to_owned(),
            runs: Vec::new(),
            names: BTreeSet::new(),
        };
        for (name, words) in [
            (
                "noise",
                "noise --workload gap,prime --repetitions 2000000 --runs 2",
            ),
            ("wakeup", "wakeup --duration 300ms --runs 2"),
            ("loaded", "wakeup --duration 300ms --runs 1 --load idle"),
        ] {
            let run = bench.join("runs").join(name);
            let mut command = ground.tare(words)?;
            if name == "loaded" {
                command.args(LOADS.map(|load| ["--load", load]).as_flattened());
            }
            output(command.arg("--output").arg(&run))?;
            ground.names.extend(names(&run)?);
            ground.runs.push(run);
        }
        Ok(ground)
    }

    /// Returns a command of `tare` with its state and temporary files here.
    fn tare(&self, words: &str) -> Result<std::process::Command> {
        let mut command = tare(words)?;
        let temporary = self.bench.join("tmp");
        fs::create_dir_all(&temporary)?;
        command
            .env("TARE_STATE_DIR", self.bench.join("state"))
            .env("TMPDIR", temporary)
            .env("NO_COLOR", "1")
            .current_dir(&self.bench);
        Ok(command)
    }

    /// Returns what the `tare` of this process id has left behind after one more command.
    fn left(&self, before: &Picture, pid: i32) -> Result<Wrong> {
        output(&mut self.tare("clean")?)?;
        let mut left = Picture::take(&self.bench.join("tmp"))?.beyond(before);
        // Other programs of this machine mount file systems and create namespaces, other `tare`s
        // create control groups.
        let owner = format!("-{pid}-");
        left.retain(|thing| {
            thing.starts_with("process") || thing.starts_with("file") || thing.contains(&owner)
        });
        let journals = fs::read_dir(self.bench.join("state/journal"));
        let journals = journals.into_iter().flatten().flatten();
        left.extend(
            journals
                .map(|entry| format!("journal {}", entry.path().display()))
                .filter(|path| !path.ends_with(".lock")),
        );
        Ok(left
            .into_iter()
            .map(|thing| format!("left: {thing}"))
            .collect())
    }
}

/// Returns each experiment, target and load of which a run's report has a figure.
fn names(run: &Path) -> Result<BTreeSet<String>> {
    let summary: serde_json::Value = serde_json::from_slice(&fs::read(run.join("summary.json"))?)?;
    let figures = summary["figures"]
        .as_array()
        .ok_or("a summary without figures")?;
    let name = |row: &serde_json::Value| {
        ["experiment", "target", "load"]
            .map(|key| row[key].as_str().unwrap_or("?").to_owned())
            .join(" · ")
    };
    Ok(figures.iter().map(name).collect())
}

/// Attacks for `seconds`, in rounds that follow from `seed`.
pub fn run(verdicts: &mut Verdicts, seconds: u64, seed: u64) -> Result<()> {
    let bench = tempfile::Builder::new().prefix("attack-").tempdir()?;
    let attacked = rounds(verdicts, bench.path(), seconds, seed);
    if !matches!(attacked, Ok(0)) {
        println!("       kept: {}", bench.keep().display());
    }
    attacked.map(drop)
}

/// Attacks in a folder; returns the number of failed rounds.
fn rounds(verdicts: &mut Verdicts, bench: &Path, seconds: u64, seed: u64) -> Result<usize> {
    let ground = Ground::prepare(bench)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let all = 2 * (ATTACKS.len() as u64 - 1);
    let mut done = ATTACKS.map(|_| (0, 0));
    for round in seed.. {
        // Each kind comes once, however slow the machine is.
        if round - seed >= all && Instant::now() >= end {
            break;
        }
        let mut rng = Rng::with_seed(round);
        let which = which(round);
        let (name, attack) = ATTACKS[which];
        let place = bench.join(format!("round-{round}"));
        fs::create_dir(&place)?;
        let wrong = attack(&ground, &place, &mut rng)
            .map_err(|error| format!("{name}, seed {round}: {error}"))?;
        done[which].0 += 1;
        done[which].1 += usize::from(!wrong.is_empty());
        for sentence in &wrong {
            println!("       {name}, seed {round}: {sentence}");
        }
        if wrong.is_empty() {
            fs::remove_dir_all(&place)?;
        }
    }
    for ((name, ..), (rounds, wrong)) in ATTACKS.iter().zip(done) {
        verdicts.at_most(
            &format!("{name}: {rounds} rounds, of which failed"),
            wrong as f64,
            0.0,
        );
    }
    Ok(done.iter().map(|(_, wrong)| wrong).sum())
}

/// Returns the kind of attack of a round.
fn which(round: u64) -> usize {
    match round % 2 {
        0 => 0,
        _ => 1 + (round / 2 % (ATTACKS.len() as u64 - 1)) as usize,
    }
}

//! Files that a user is given and passes on: results of other tools, and studies.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fastrand::Rng;

use super::damage::{LIMIT, TEXTS, change, change_bytes};
use super::watched::Watched;
use super::{Ground, Wrong};
use crate::Result;

/// Results of other tools, in the repository, each with its tool.
const SAMPLES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/exchange/tests/samples"
);
const RESULTS: [(&str, &str); 6] = [
    ("cyclictest", "cyclictest.json"),
    ("cyclictest", "cyclictest-live.txt"),
    ("oslat", "oslat.json"),
    ("oslat", "oslat.txt"),
    ("rtla", "rtla-timerlat.txt"),
    ("rtla", "rtla-osnoise.txt"),
];

/// Changes a result of another tool, imports it and reports what became of it.
pub fn import(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let (tool, name) = RESULTS[rng.usize(..RESULTS.len())];
    let file = place.join(name);
    fs::copy(Path::new(SAMPLES).join(name), &file)?;
    for _ in 0..rng.u32(1..4) {
        match rng.u32(..3) {
            0 => repeat_a_piece(&file, rng)?,
            _ => change(&file, &place.join("canary"), rng)?,
        }
    }
    // Waiting for whoever writes to a FIFO is right.
    if fs::metadata(&file).is_ok_and(|about| about.file_type().is_fifo()) {
        return Ok(Wrong::new());
    }
    let words = format!("import {tool} {name} --interval 500 --output run");
    let mut wrong = run(ground, place, &words, &[0, 1, 2])?;
    if place.join("run/plan.json").exists() {
        wrong.extend(run(ground, place, "report run", &[0, 1])?);
    }
    Ok(wrong)
}

/// Repeats a piece of a file until it has some MiB.
fn repeat_a_piece(file: &Path, rng: &mut Rng) -> Result<()> {
    let about = fs::symlink_metadata(file);
    if !about.is_ok_and(|about| about.is_file() && (1..1 << 20).contains(&about.len())) {
        return Ok(());
    }
    let mut content = fs::read(file)?;
    let from = rng.usize(..content.len());
    let to = rng.usize(from..content.len()) + 1;
    let piece = content[from..to.min(from + 100)].repeat((16 << 20) / 100);
    content.splice(from..from, piece);
    Ok(fs::write(file, content)?)
}

/// Writes a study with hostile texts, and has it checked, explained and planned.
pub fn study(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let mut text = |usual: &str| -> Result<String> {
        let text = match rng.u32(..3) {
            0 => TEXTS[rng.usize(..TEXTS.len())],
            _ => usual,
        };
        // A string of JSON is one of TOML.
        Ok(serde_json::to_string(text)?)
    };
    let study = format!(
        "name = {}\ntitle = {}\n{} = 1\ntargets = [{}]\nloads = [{}]\n[[experiment]]\nkind = {}\nworkload = [{}]\n",
        text("name")?,
        text("title")?,
        text("runs")?,
        text("process")?,
        text("idle")?,
        text("noise")?,
        text("prime")?,
    );
    let mut study = study.into_bytes();
    if rng.u32(..3) == 0 {
        change_bytes(&mut study, rng);
    }
    fs::write(place.join("study.toml"), study)?;
    let words = [
        "study check study.toml",
        "study explain study.toml",
        "run study.toml --dry-run",
    ];
    run(ground, place, words[rng.usize(..words.len())], &[0, 2, 5])
}

fn run(ground: &Ground, place: &Path, words: &str, codes: &[i32]) -> Result<Wrong> {
    let mut command = ground.tare(words)?;
    Watched::start(command.current_dir(place), place)?.end(LIMIT, codes)
}

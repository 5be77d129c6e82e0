//! Run folders that were changed and given valid checksums, and commands that read them.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Number, Value, json};

use super::watched::{FORGED_LINE, Watched};
use super::{Ground, Wrong, names};
use crate::Result;

/// The time limit for a command that reads a small folder, on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The content of a foreign file, to which links lead.
const CANARY: &[u8] = b"not yours";

/// Texts that must be shown without effect.
pub const TEXTS: [&str; 10] = [
    "",
    "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[31m",
    "two\r\nlines",
    FORGED_LINE,
    "\u{202e}reversed\u{9b}31m",
    "<script>alert(1)</script>",
    "../../../../etc/passwd",
    "9999-12-31T23:59:59.999999999Z",
    "-1",
    "linux,cmdline=quiet,,clock=instructions",
];

/// Maximum number of nodes by which a damaged list grows.
const MANY: usize = 100_000;

/// Files that `tare` writes to a folder besides the raw ones, including temporary ones.
const DERIVED: [&str; 6] = [
    "report.html",
    "summary.json",
    "figures.csv",
    "figures.parquet",
    ".report.html.partial",
    "lock",
];

/// Copies a run, changes a part of it, and reads it.
pub fn attack(ground: &Ground, place: &Path, rng: &mut Rng) -> Result<Wrong> {
    let from = &ground.runs[rng.usize(..ground.runs.len())];
    let run = place.join("run");
    copy(from, &run)?;
    let canary = place.join("canary");
    fs::write(&canary, CANARY)?;
    let mut is_plan_changed = false;
    for _ in 0..rng.u32(1..4) {
        if rng.u32(..8) == 0 {
            let _ = fs::remove_file(run.join(DERIVED[0]));
            let name = DERIVED[rng.usize(..DERIVED.len())];
            replace(&run.join(name), &canary, rng)?;
            continue;
        }
        let raw = raw_files(&run)?;
        let path = &raw[rng.usize(..raw.len())];
        is_plan_changed |= !path.starts_with(run.join("cells"));
        change(path, &canary, rng)?;
    }
    if is_plan_changed && is_small(&run.join("plan.json")) && rng.bool() {
        repeat_plan(&run)?;
    }
    if rng.u32(..8) != 0 {
        tare_testkit::repair_sums(&run);
        for cell in fs::read_dir(run.join("cells")).into_iter().flatten() {
            tare_testkit::repair_sums(&cell?.path());
        }
    }
    let (words, more): (&str, &[&Path]) = match rng.u32(..9) {
        0..=2 => ("report run", &[]),
        3 => ("report run --json", &[]),
        4 => ("report run --fail-if lost>2%", &[]),
        5 => ("compare run --to", &[from]),
        6 => ("export run --format raw --output exported", &[]),
        7 => ("noise --resume run --dry-run", &[]),
        _ => ("wakeup --resume run --dry-run", &[]),
    };
    let mut command = ground.tare(words)?;
    command.args(more).current_dir(place);
    let mut wrong = Watched::start(&mut command, place)?.end(LIMIT, &[0, 1, 2, 3])?;
    if fs::read(&canary)? != CANARY {
        wrong.push(format!("'{words}' writes through a link"));
    }
    if words.starts_with("report") && !is_plan_changed && is_file(&run.join("summary.json")) {
        let strange = names(&run)?
            .into_iter()
            .filter(|name| !ground.names.contains(name));
        wrong.extend(strange.map(|name| format!("'{words}' shows figures of '{name}'")));
    }
    Ok(wrong)
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

fn is_small(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file() && about.len() < 1 << 26)
}

/// Copies the measured files, without derived ones.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            copy(&path, &to.join(name))?;
        } else if !DERIVED.iter().any(|derived| name == *derived) {
            fs::copy(path, to.join(name))?;
        }
    }
    Ok(())
}

/// Lists the raw files of a run, including other things in their places.
fn raw_files(run: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![run.join("plan.json"), run.join("machine.json")];
    for cell in fs::read_dir(run.join("cells"))
        .into_iter()
        .flatten()
        .flatten()
    {
        for file in fs::read_dir(cell.path()).into_iter().flatten().flatten() {
            if file.file_name() != "SHA256SUMS" {
                found.push(file.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Changes one file: a value of it, its bytes, or its type.
pub fn change(path: &Path, canary: &Path, rng: &mut Rng) -> Result<()> {
    if !is_file(path) || rng.u32(..8) == 0 {
        return replace(path, canary, rng);
    }
    let mut content = fs::read(path)?;
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    match serde_json::from_slice::<Value>(&content) {
        Ok(mut value) if is_json && rng.u32(..6) != 0 => {
            let texts = texts(&value);
            let nodes = count(&value);
            let at = rng.usize(..nodes);
            change_value(
                node(&mut value, &mut { at }).ok_or("no such node")?,
                &texts,
                rng,
            );
            content = serde_json::to_vec_pretty(&value)?;
        }
        _ => change_bytes(&mut content, rng),
    }
    Ok(fs::write(path, content)?)
}

pub fn change_bytes(content: &mut Vec<u8>, rng: &mut Rng) {
    if content.is_empty() {
        return content.push(rng.u8(..));
    }
    let at = rng.usize(..content.len());
    match rng.u32(..4) {
        0 => content.truncate(at),
        1 => content.insert(at, rng.u8(..)),
        _ => {
            for _ in 0..rng.u32(1..5) {
                let at = rng.usize(..content.len());
                content[at] ^= 1 << rng.u32(..8);
            }
        }
    }
}

/// Replaces a file by something else.
fn replace(path: &Path, canary: &Path, rng: &mut Rng) -> Result<()> {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path)?;
    } else if fs::symlink_metadata(path).is_ok() {
        fs::remove_file(path)?;
    }
    match rng.u32(..7) {
        0 => {}
        1 => fs::create_dir(path)?,
        2 => symlink("/dev/zero", path)?,
        3 => symlink(canary, path)?,
        4 => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?,
        // The name stays when the listener ends.
        5 => drop(UnixListener::bind(path)),
        _ => File::create(path)?.set_len(8 << 30)?,
    }
    Ok(())
}

/// Counts the nodes of a tree.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(all) => all.iter().map(count).sum(),
        Value::Object(all) => all.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the node with a number, counted from the root; the rest of `at` continues the count.
fn node<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(all) => all.iter_mut().find_map(|each| node(each, at)),
        Value::Object(all) => all.values_mut().find_map(|each| node(each, at)),
        _ => None,
    }
}

/// Returns all texts of a tree.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Object(all) => all.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn change_value(value: &mut Value, texts: &[String], rng: &mut Rng) {
    let other = || {
        [
            Value::Null,
            json!(true),
            json!([]),
            json!({}),
            json!("1"),
            json!(0),
        ]
    };
    if rng.u32(..6) == 0 {
        let mut all = other();
        *value = all[rng.usize(..6)].take();
        return;
    }
    match value {
        Value::Number(number) => *value = Value::Number(change_number(number, rng)),
        Value::String(text) => {
            *text = match rng.u32(..3) {
                0 => texts[rng.usize(..texts.len())].clone(),
                1 => "x".repeat(100_000),
                _ => TEXTS[rng.usize(..TEXTS.len())].to_owned(),
            };
        }
        Value::Array(all) if !all.is_empty() => {
            let at = rng.usize(..all.len());
            match rng.u32(..4) {
                0 => drop(all.remove(at)),
                1 => all.push(all[at].clone()),
                2 => {
                    let copies = (MANY / count(&all[at])).max(1);
                    all.extend(vec![all[at].clone(); copies]);
                }
                _ => all.reverse(),
            }
        }
        Value::Object(all) => {
            let names: Vec<String> = all.keys().cloned().collect();
            if let Some(name) = rng.choice(names) {
                all.shift_remove(&name);
            }
        }
        _ => *value = json!(5e-324),
    }
}

fn change_number(number: &Number, rng: &mut Rng) -> Number {
    let real = number.as_f64().unwrap_or_default();
    let whole = number.as_u64().unwrap_or_default();
    let reals = [5e-324, 1e308, -0.0, real * 1e3, -real, real / 7.0];
    let wholes = [
        0,
        1,
        u64::MAX,
        1 << 63,
        u64::from(u32::MAX) + 1,
        whole.wrapping_add(1),
        whole.wrapping_sub(1),
        whole.wrapping_mul(1_000),
    ];
    match rng.bool() {
        true => Number::from_f64(reals[rng.usize(..reals.len())]).unwrap_or(0.into()),
        false => wholes[rng.usize(..wholes.len())].into(),
    }
}

/// Copies the run's present plan to every cell.
fn repeat_plan(run: &Path) -> Result<()> {
    let plan: Value =
        match fs::read(run.join("plan.json")).map(|plan| serde_json::from_slice(&plan)) {
            Ok(Ok(plan)) => plan,
            _ => return Ok(()),
        };
    for (number, plan) in (1..).zip(plan["cells"].as_array().into_iter().flatten()) {
        let path = run.join(format!("cells/{number:04}/cell.json"));
        if !is_small(&path) {
            continue;
        }
        if let Ok(Value::Object(mut cell)) = serde_json::from_slice(&fs::read(&path)?) {
            cell.insert("plan".to_owned(), plan.clone());
            fs::write(&path, serde_json::to_vec_pretty(&cell)?)?;
        }
    }
    Ok(())
}

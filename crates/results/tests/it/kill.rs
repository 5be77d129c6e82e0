//! A writer that is killed at any moment leaves whole cells only, and the next one goes on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::common::{RUN, alone, create, done, failed, machine, plan};
use tare_results::{CellState, ResultsError, RunFolder};

const CELLS: u32 = 60;
const KILLS: u32 = 30;

/// No test by itself: fills the run given by the environment.
#[test]
fn filler() {
    if let Some(path) = std::env::var_os(RUN) {
        fill(&PathBuf::from(path));
    }
}

fn fill(path: &Path) {
    let run = RunFolder::open_for_writing(path).unwrap();
    for plan in run.missing() {
        // Each third cell fails at first.
        if plan.id % 3 == 0 && run.state(plan.id) == CellState::Missing {
            run.write_cell(&failed(plan, "at first"), None).unwrap();
        }
        let (cell, samples) = done(plan, u64::from(plan.id));
        run.write_cell(&cell, Some(&samples)).unwrap();
        report(&run);
    }
    // The last cell may have been written before the kill, and its report not.
    report(&run);
}

fn report(run: &RunFolder) {
    let report = run.derived(None).unwrap();
    report.write("summary.json", b"{}").unwrap();
}

/// No test by itself: creates runs in the folder given by the environment.
#[test]
fn creator() {
    let Some(folder) = std::env::var_os(RUN).map(PathBuf::from) else {
        return;
    };
    for number in 0.. {
        match RunFolder::create(&folder.join(number.to_string()), &plan(2), &machine()) {
            Ok(_) | Err(ResultsError::NotEmpty { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Runs a test of this program in another process and kills that within some milliseconds.
fn kill_within(milliseconds: u64, test: &str, run: &Path) {
    let mut child = alone(test, run)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Duration::from_micros(fastrand::u64(0..milliseconds * 1_000));
    thread::sleep(deadline);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn only_whole_cells_survive_and_the_rest_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    drop(create(&path, CELLS));

    let mut kept = BTreeSet::new();
    for _ in 0..KILLS {
        kill_within(120, "kill::filler", &path);
        let run = RunFolder::open(&path).unwrap();
        let missing: BTreeSet<_> = run.missing().iter().map(|cell| cell.id).collect();
        for plan in &run.plan().cells {
            let (cell, samples) = done(plan, u64::from(plan.id));
            match run.state(plan.id) {
                CellState::Done(found) => {
                    assert_eq!(*found, cell);
                    assert_eq!(run.samples(plan.id).unwrap(), samples);
                    assert!(!missing.contains(&plan.id));
                    kept.insert(plan.id);
                }
                state @ (CellState::Missing | CellState::Failed(_)) => {
                    assert!(!kept.contains(&plan.id), "{state:?}");
                    assert!(missing.contains(&plan.id));
                }
                CellState::Damaged { path, reason } => panic!("{}: {reason}", path.display()),
            }
        }
    }

    println!("{} cells were written within {KILLS} kills", kept.len());
    fill(&path);
    assert!(RunFolder::open(&path).unwrap().missing().is_empty());
    for folder in [path.clone(), path.join("cells")] {
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with('.'), "{name} is left");
        }
    }
}

#[test]
fn a_creation_that_was_cut_off_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..12 {
        kill_within(60, "kill::creator", folder.path());
    }
    let mut cut_off = 0;
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        match RunFolder::open(&path) {
            Ok(run) => assert_eq!(*run.plan(), plan(2)),
            Err(ResultsError::NotARunFolder { .. }) => {
                cut_off += 1;
                drop(create(&path, 2));
            }
            Err(error) => panic!("{error}"),
        }
    }
    println!("{cut_off} creations were cut off");
}

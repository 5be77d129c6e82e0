//! From a run folder on the disk to the files that are derived from it.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tare_experiments::catalogue;
use tare_pages::{RunData, analyse, write_all};
use tare_results::{CellState, MachineRecord, RunFolder};
use tare_testkit::assert_contains;

use crate::synthetic::{self, Fold, HZ, Run, spin, unknown_machine};

pub fn create(path: &Path, data: &RunData) -> RunFolder {
    let machine = MachineRecord::new(unknown_machine(), Vec::new());
    RunFolder::create(path, &data.plan, &machine).unwrap()
}

pub fn write(path: &Path, data: &RunData) -> RunFolder {
    let run = create(path, data);
    for (state, samples) in &data.cells {
        match state {
            CellState::Done(cell) => run.write_cell(cell, Some(samples)).unwrap(),
            CellState::Failed(cell) => run.write_cell(cell, None).unwrap(),
            CellState::Missing | CellState::Damaged { .. } => {}
        }
    }
    run
}

fn small() -> RunData {
    let mut run = Run::new(1);
    let mut durations = vec![1_000; 1_000];
    durations[500] = 9_000;
    let gaps = [(50_000, 4_000), (90_000, 5_000)];
    for block in 1..=2 {
        run.prime(block, "process", &durations);
        run.gap(
            block,
            "process",
            spin(10_000, 20, &gaps, Fold::above(1_300)),
        );
    }
    run.failed(2, "process", "prime", "the agent ended with signal 11");
    run.data()
}

#[test]
fn all_files_are_written_and_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let data = small();
    let run = write(&path, &data);
    let analysis = analyse(&run, catalogue()).unwrap();
    let in_memory = synthetic::analyse(data);
    assert_eq!(analysis.rows(), in_memory.rows());

    let written = write_all(&run, None, &analysis).unwrap();
    assert_eq!(written.report, path.join("report.html"));
    let names: Vec<_> = written
        .csv
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(names, ["noise-process-prime.csv", "noise-process-gap.csv"]);
    let page = fs::read_to_string(&written.report).unwrap();
    let summary: Value = serde_json::from_slice(&fs::read(&written.summary).unwrap()).unwrap();
    assert_eq!(summary["schema"], 3);
    let figures = summary["figures"].as_array().unwrap();
    let figure = |measure: &str, figure: &str| {
        let mut rows = figures.iter();
        let row = rows.find(|row| row["measure"] == measure && row["figure"] == figure);
        row.unwrap()["value"].as_f64().unwrap()
    };
    assert_eq!(figure("gaps", "total"), 4.0);
    assert!((figure("duration", "max") - 9_000.0 / HZ * 1e9).abs() < 1e-6);
    assert_eq!(summary["stories"]["noise"]["refused"], json!([]));
    assert_eq!(summary["not_measured"][0]["state"], "failed");
    let headline = summary["verdict"]["headline"].as_str().unwrap();
    let words = |text: &str| text.replace(['\u{202f}', '\u{a0}', ',', ' '], "");
    assert!(words(&page).contains(&words(headline)), "{headline}");

    // Making them again changes nothing.
    let again = write_all(&run, None, &analyse(&run, catalogue()).unwrap()).unwrap();
    assert_eq!(again, written);
    assert_eq!(fs::read_to_string(&written.report).unwrap(), page);
}

#[test]
fn a_damaged_cell_is_named_and_the_others_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = write(&path, &small());
    let damaged = path.join("cells/0001/events.parquet");
    let mut content = fs::read(&damaged).unwrap();
    content[10] ^= 1;
    fs::write(&damaged, content).unwrap();

    let analysis = analyse(&run, catalogue()).unwrap();
    let summary = analysis.summary();
    assert_eq!(summary.done, 3);
    let cell = &summary.not_measured[0];
    assert_eq!(cell.id, 1);
    assert_contains(&cell.reason, &["events.parquet", "--resume"]);
}

//! `tare noise --load`: measuring under background work.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::{Bench, files};
use serde_json::Value;

const TINY: &str = "noise --workload prime --repetitions 2000 --runs 1 --cpu 0 --output run";

fn cell(run: &Path, id: u32) -> Value {
    let text = fs::read(run.join(format!("cells/{id:04}/cell.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn every_load_is_a_dimension_of_the_matrix_and_says_what_it_did() {
    let bench = Bench::new();
    let ran = bench.run(&format!("{TINY} --load idle --load dd --load cpus=0:du"));
    ran.expect(
        0,
        &[
            "3 cells",
            "under dd",
            "under cpus=0:du",
            "the load runs on the measured CPU 0",
        ],
    );
    let mut loads = Vec::new();
    for id in 1..=3 {
        let cell = cell(&bench.work().join("run"), id);
        let name = cell["plan"]["load"].as_str().unwrap().to_owned();
        if name == "idle" {
            assert!(cell["load"].is_null());
        } else {
            assert_eq!(cell["load"]["place"], "beside");
            // It was seen to work before the cell began, however cold the disk was.
            let first = &cell["load"]["achieved"][0];
            assert!(first["amount"].as_u64().unwrap() > 0, "{cell}");
            let notice = cell["load"]["notices"][0].as_str().unwrap();
            assert!(
                notice.starts_with(name.trim_start_matches("cpus=0:")),
                "{notice}"
            );
        }
        loads.push(name);
    }
    loads.sort();
    assert_eq!(loads, ["cpus=0:du", "dd", "idle"]);
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn the_cpus_of_all_loads_are_given_once() {
    let bench = Bench::new();
    let ran = bench.run(&format!(
        "{TINY} --load dd --load cpus=0:du --load-cpus others --dry-run"
    ));
    ran.expect(0, &["under cpus=others:dd", "under cpus=0:du"]);
    bench
        .run(&format!("{TINY} --load-cpus others"))
        .expect(2, &["--load"]);
    bench
        .run(&format!("{TINY} --load dd --load-cpus x"))
        .expect(2, &["all, others or a list"]);
}

#[test]
fn a_missing_tool_is_told_before_anything_starts() {
    let bench = Bench::new();
    let path = bench.work().join("bin");
    fs::create_dir(&path).unwrap();
    symlink("/usr/bin/dd", path.join("dd")).unwrap();
    let output = bench
        .command(&format!("{TINY} --load dd+hackbench"))
        .env("PATH", &path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "the load 'dd+hackbench' can't be used here: hackbench is in no folder of PATH"
        ),
        "{said}"
    );
    assert!(
        said.contains("apt-get update && apt-get install -y --no-install-recommends rt-tests"),
        "{said}"
    );
    assert!(!bench.work().join("run").exists());
}

#[test]
fn what_is_no_load_is_refused() {
    let bench = Bench::new();
    bench
        .run(&format!("{TINY} --load nothing"))
        .expect(2, &["there is no load 'nothing'", "hackbench"]);
    bench
        .run(&format!("{TINY} --load dd --load dd"))
        .expect(2, &["a load is given twice"]);
}

#[test]
fn a_load_that_fails_costs_its_cell_and_no_other() {
    let bench = Bench::new();
    let mut command = bench.command(TINY);
    command.args([
        "--load",
        "command:sh -c 'echo broken >&2; exit 4'",
        "--load",
        "idle",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the load's sh ended by itself with status 4; it said: broken"),
        "{said}"
    );
    let run = bench.work().join("run");
    let done = (1..=2).filter(|id| run.join(format!("cells/{id:04}/cell.json")).exists());
    assert_eq!(done.count(), 1);
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

//! `tare service` and `tare stream` end to end: plan, run, continue, gate, compare, and the figures
//! as rows.

use std::fs;

use serde_json::Value;

use crate::common::{self, Bench, is_root, json, skip};

/// A short measurement, its name in a plan, and a gate that fails.
const EXPERIMENTS: [(&str, &str, &str); 2] = [
    (
        "service dns --requests 200",
        "process dns",
        "answers.rate < 1e9/s",
    ),
    (
        "stream --array 1M --passes 10 --attempts 1",
        "process stream",
        "bandwidth{kernel=triad} < 1e9 GB/s",
    ),
];

#[test]
fn each_experiment_has_what_the_frame_gives() {
    for (words, name, gate) in EXPERIMENTS {
        let command = words.split(' ').next().unwrap();
        if command == "service" && !is_root() {
            skip("services", "networks of one's own require root");
            continue;
        }
        let bench = Bench::new();
        let run = bench.work().join("run");
        let measured = format!("{words} --runs 2 --output run");
        bench
            .run(&format!("{measured} --dry-run"))
            .expect(0, &["2 cells", name]);
        assert!(!run.exists());
        bench.run(&measured).expect(0, &["[2/2]", name]);
        // A missing cell is measured, and further runs that are asked for.
        fs::remove_dir_all(run.join("cells/0002")).unwrap();
        bench
            .run(&format!("{command} --resume run"))
            .expect(0, &["[1/1]"]);
        bench
            .run(&format!("{command} --resume run --runs 1 --dry-run"))
            .expect(0, &["1 cell would be added to run"]);
        bench
            .run(&format!("{command} --resume run --runs 1"))
            .expect(0, &["[1/1]"]);
        // A gate fails after everything is written.
        let mut gated = bench.command(&format!("{words} --runs 3 --output gated"));
        let gated = gated.args(["--fail-if", gate]).output().unwrap();
        common::Ran::of(gated).expect(3, &[gate.split([' ', '{', '.']).next().unwrap()]);
        bench
            .run("compare run --to gated")
            .expect(0, &["run", "gated"]);
        let summary = json(&run.join("summary.json"));
        let rows = summary["figures"].as_array().unwrap();
        assert!(rows.iter().all(|row| row["experiment"] == command));
        let table = fs::read_to_string(run.join("figures.csv")).unwrap();
        // Those over all runs are of no invocation.
        let over = table.lines().filter(|line| line.starts_with("run,,,"));
        assert_eq!(over.count(), rows.len(), "{table}");
        assert!(run.join("figures.parquet").exists());
    }
}

#[test]
fn memory_is_measured_in_every_container() {
    let _engine = common::engine();
    let bench = Bench::new();
    let targets = ["runc", "crun", "podman", "docker"];
    let named = targets.map(|target| format!("--target {target}")).join(" ");
    let (words, _, _) = EXPERIMENTS[1];
    let ran = bench.run(&format!(
        "{words} --runs 1 --json --output run {named} --start-engine"
    ));
    if ran.code == Some(5) {
        return skip("a container", &ran.err);
    }
    ran.expect(0, &[]);
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = summary["figures"].as_array().unwrap();
    for target in targets {
        for kernel in ["copy", "scale", "add", "triad"] {
            let mut own = rows.iter().filter(|row| {
                let labels = &row["labels"];
                row["target"] == target
                    && row["measure"] == "bandwidth"
                    && row["figure"] == "max"
                    && labels["kernel"] == kernel
            });
            let best = own.next().unwrap()["value"].as_f64().unwrap();
            // More than a disk, less than registers.
            assert!((1e8..1e13).contains(&best), "{target} {kernel}: {best}");
        }
    }
}

#[test]
fn a_service_is_the_load_of_another_measurement() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let tare = env!("CARGO_BIN_EXE_tare");
    let load = format!(
        "command:{tare} service --cpu 1 --rate 500 --duration 60s --runs 1 --share-cpu --target unikernel"
    );
    let (stream, _, _) = EXPERIMENTS[1];
    let gap = "noise --workload gap --repetitions 20000000";
    for (words, measure) in [(stream, "bandwidth"), (gap, "lost")] {
        let name = measure;
        let mut command = bench.command(&format!(
            "{words} --cpu 0 --runs 1 --json --output {name} --load idle --load-cpus 1"
        ));
        let ran = common::Ran::of(command.args(["--load", &load]).output().unwrap());
        ran.expect(0, &[]);
        let summary: Value = serde_json::from_str(&ran.out).unwrap();
        let rows = summary["figures"].as_array().unwrap().iter();
        let loads = rows.filter(|row| row["measure"] == measure);
        let loads = loads.map(|row| row["load"].as_str().unwrap().contains("service"));
        let loads: std::collections::BTreeSet<bool> = loads.collect();
        assert_eq!(loads.len(), 2, "{}", ran.out);
        let page = fs::read_to_string(bench.work().join(name).join("report.html")).unwrap();
        let shared = "All that the command on CPU 1 starts shares that CPU";
        assert!(page.replace('\u{a0}', " ").contains(shared), "{name}");
    }
    crate::start::assert_nothing_is_left(&bench);
}

#[test]
fn the_least_memory_of_a_guest_is_found() {
    if !is_root() {
        return skip("services", "networks of one's own require root");
    }
    let bench = Bench::new();
    let words = "service --least-memory --requests 100 --runs 1 --json --output run";
    let ran = bench.run(&format!("{words} --target unikernel"));
    ran.expect(0, &["with the least memory"]);
    assert!(!ran.err.contains("of memory"), "{ran:?}");
    let summary: Value = serde_json::from_str(&ran.out).unwrap();
    let mut rows = summary["figures"].as_array().unwrap().iter();
    let least = rows.find(|row| row["measure"] == "least-memory").unwrap();
    let mib = least["value"].as_f64().unwrap() / 1_048_576.0;
    assert!((2.0..=8.0).contains(&mib), "{mib}");
    let less = format!(
        "--requests 100 --runs 1 --output less --target unikernel,mem={}M",
        mib - 1.0
    );
    let ran = bench.run(&format!("service {less}"));
    assert!([1, 2].contains(&ran.code.unwrap()), "{ran:?}");
    bench
        .run("service --least-memory --target process --dry-run")
        .expect(2, &["--least-memory is for guests"]);
    crate::start::assert_nothing_is_left(&bench);
}

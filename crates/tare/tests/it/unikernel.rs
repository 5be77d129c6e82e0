//! The same work as a process and on the unikernel, in one run.

use std::fs;

use crate::common::{self, Bench, skip};
use tare_results::model::{Cell, Labels};

/// Says whether the unikernel can be booted here.
fn is_usable(bench: &Bench) -> bool {
    let targets = bench.run("targets --json");
    let list: serde_json::Value = serde_json::from_str(&targets.out).unwrap();
    let mut rows = list.as_array().unwrap().iter();
    let unikernel = rows.find(|row| row["name"] == "unikernel").unwrap();
    let is_usable = unikernel["state"] == "usable";
    if !is_usable {
        skip("unikernel", &unikernel["why"].to_string());
    }
    is_usable
}

#[test]
fn what_a_target_needed_to_start_is_remembered_for_the_next_plan() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    let words = "noise --workload prime --repetitions 1000 --runs 1 --target unikernel";
    bench.run(&format!("{words} --output run")).expect(0, &[]);
    let file = bench.state().join("starts.json");
    let text = fs::read_to_string(&file).unwrap();
    let starts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let starts = starts.as_object().unwrap();
    let (key, seconds) = starts.iter().next().unwrap();
    assert!(key == "unikernel; tcg" || key == "unikernel; kvm", "{text}");
    assert!(seconds.as_f64().unwrap() > 0.0);
    // As on a machine that needs two minutes.
    fs::write(&file, format!("{{\"{key}\": 120.0}}")).unwrap();
    let planned = bench.run(&format!("{words} --dry-run"));
    planned.expect(0, &["2 min 1 s"]);
    fs::remove_file(&file).unwrap();
    let planned = bench.run(&format!("{words} --dry-run"));
    planned.expect(0, &[" 1 s in all"]);
}

#[test]
fn process_and_unikernel_do_the_same_work_and_stand_in_one_report() {
    let bench = Bench::new();
    if !is_usable(&bench) {
        return;
    }
    bench
        .run(
            "noise --workload prime --limit 22 --repetitions 20000 --runs 1 --output run \
             --target process --target unikernel,irq=on --target unikernel,irq=off",
        )
        .expect(0, &["process", "unikernel", "unikernel,irq=off"]);
    let mut environments = Vec::new();
    for cell in 1..=3 {
        let path = bench.work().join(format!("run/cells/{cell:04}/cell.json"));
        let text = fs::read_to_string(path).unwrap();
        let cell: Cell = serde_json::from_str(&text).unwrap();
        let record = cell.outcome.record().unwrap();
        for (measure, expected) in [("result", 8.0), ("work", 84.0)] {
            assert_eq!(record.value(measure, &Labels::default()), Some(expected));
        }
        let agent = &record.programs[0].agent;
        assert_eq!(
            agent.accelerator.is_some(),
            agent.environment == "unikernel"
        );
        environments.push(agent.environment.clone());
    }
    environments.sort();
    assert_eq!(environments, ["linux", "unikernel", "unikernel"]);
    let mark = bench.state().display().to_string();
    assert_eq!(
        common::processes_with(&mark),
        Vec::<u32>::new(),
        "a QEMU is left"
    );
}

#[test]
fn options_that_make_no_sense_are_usage_errors() {
    let bench = Bench::new();
    for (words, said) in [
        ("noise --target unikernel,irq=maybe", "irq"),
        ("noise --target unikernel,machine=vax", "machine"),
        ("noise --target unikernel,irq=on,irq=off", "irq"),
        ("noise --target unikernel,clock=instructions,cpus=2", "cpus"),
    ] {
        bench.run(words).expect(2, &[said]);
    }
}

//! The same work as a process and on the unikernel, in one run.

use std::fs;

use crate::common::{self, Bench, skip};
use tare_results::model::{Cell, Labels};

#[test]
fn process_and_unikernel_do_the_same_work_and_stand_in_one_report() {
    let bench = Bench::new();
    let targets = bench.run("targets --json");
    let list: serde_json::Value = serde_json::from_str(&targets.out).unwrap();
    let unikernel = list
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "unikernel");
    let unikernel = unikernel.unwrap();
    if unikernel["state"] != "usable" {
        return skip("unikernel", &unikernel["why"].to_string());
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

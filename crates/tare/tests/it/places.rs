//! Half of all places in one run: one report, which groups them.
//!
//! All of them are checked by `tare-acceptance places`.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{self, Bench, is_root, skip};
use tare_results::model::{Cell, Labels};

const TARGETS: [&str; 9] = [
    "process",
    "docker",
    "crun",
    "linux,kernel=debian-cloud-6.1",
    "linux,kernel=debian-rt-6.1",
    "linux,kernel=debian-6.1,preempt=full",
    "linux,kernel=debian-cloud-6.12,cpus=2,isolate=1,nohz_full=1",
    "unikernel",
    "unikernel,irq=off",
];

#[test]
fn half_of_all_places_stand_in_one_report_by_group() {
    let _alone = common::alone();
    if !is_root() {
        return skip("containers", "crun and a private engine take root");
    }
    let bench = Bench::new();
    let words = format!(
        "noise --workload prime --repetitions 5000 --runs 1 --start-engine --output run --target {}",
        TARGETS.join(" --target ")
    );
    let ran = bench.run(&words);
    if ran.code == Some(5) {
        return skip("a place", &ran.err);
    }
    ran.expect(0, &["Containers", "Linux guests", "Unikernel"]);
    let run = bench.work().join("run");
    let read = |path: &str| -> serde_json::Value {
        let text = fs::read_to_string(run.join(path)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut preemption = Vec::new();
    for cell in 1..=TARGETS.len() {
        let cell = read(&format!("cells/{cell:04}/cell.json"));
        let cell: Cell = serde_json::from_value(cell).unwrap();
        let record = cell.outcome.record().unwrap();
        assert_eq!(record.value("result", &Labels::default()), Some(8.0));
        let target = cell.plan.target.text.as_str();
        let model = record.programs[0].fact("preemption model");
        if let (true, Some(model)) = (target.starts_with("linux"), model) {
            preemption.push(model.to_owned());
        }
        let with_engine = cell.daemons.iter().any(|daemon| daemon == "dockerd");
        assert!(with_engine || target != "docker", "{cell:?}");
    }
    preemption.sort();
    assert_eq!(preemption, ["full", "rt", "voluntary", "voluntary"]);
    let summary = read("summary.json");
    let figures = summary["figures"].as_array().unwrap();
    let groups: BTreeSet<&str> = figures
        .iter()
        .map(|figure| figure["group"].as_str().unwrap())
        .collect();
    let all = ["container", "linux_guest", "process", "unikernel"];
    assert_eq!(groups, BTreeSet::from(all));
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    for group in ["Containers", "Linux guests", "Unikernel"] {
        assert!(page.contains(group), "{group}");
    }
    let mark = bench.state().display().to_string();
    assert_eq!(common::processes_with(&mark), Vec::<u32>::new());
}

//! Repeats landolfi-2018 with short phases: with the machine's clock, and in guests that count instructions.

use std::path::Path;

use crate::common::{Bench, is_root, skip};
use serde_json::Value;

const PHASES: [&str; 7] = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];
const MODELS: [&str; 4] = ["none", "voluntary", "full", "rt"];

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap()
}

/// Says whether this machine has what the study takes: kernels, QEMU, and the right to SCHED_FIFO.
fn can_measure(bench: &Bench, words: &str) -> bool {
    if !is_root() {
        skip("landolfi-2018", "the loads of the study need root");
        return false;
    }
    let ran = bench.run(&format!("reproduce landolfi-2018 {words} --dry-run"));
    if ran.code == Some(5) {
        skip("landolfi-2018", ran.err.trim());
        return false;
    }
    ran.expect(0, &[]);
    true
}

/// Asserts that each target has figures of each phase, and that every activation is accounted for.
fn assert_complete(summary: &Value, targets: usize, activations: u64) {
    assert_eq!(list(summary, "wakeups").len(), targets);
    for target in list(summary, "wakeups") {
        let phases = list(target, "phases");
        let loads: Vec<&str> = phases
            .iter()
            .map(|phase| phase["load"].as_str().unwrap())
            .collect();
        assert_eq!(loads, PHASES, "{}", target["label"]);
        let due: u64 = phases
            .iter()
            .map(|phase| phase["woken"].as_u64().unwrap() + phase["missed"].as_u64().unwrap())
            .sum();
        // A late wake-up at the very end answers for what would have been due until it ran: up to 1 s here.
        let allowed = activations..activations + 10_000;
        assert!(allowed.contains(&due), "{due}: {}", target["label"]);
    }
    let reproduction = &summary["reproduction"];
    assert_eq!(reproduction["study"], "landolfi-2018");
    assert_eq!(list(reproduction, "claims").len(), 4);
    assert_eq!(list(&reproduction["tables"][0], "rows").len(), 28);
}

#[test]
fn the_study_runs_from_one_command_on_four_kernels_and_this_one() {
    let bench = Bench::new();
    if !can_measure(&bench, "--quick --phase 1") {
        return;
    }
    bench
        .run("reproduce landolfi-2018 --quick --phase 1 --output run")
        .expect(0, &["Claims of landolfi-2018", "Missed activations"]);
    let summary = summary(&bench.work().join("run"));
    assert_complete(&summary, 5, 70_000);
    let models: Vec<&str> = list(&summary, "wakeups")
        .iter()
        .filter(|target| target["group"] == "linux_guest")
        .map(|target| target["preemption"].as_str().unwrap())
        .collect();
    assert_eq!(models, MODELS);
}

#[test]
fn where_instructions_are_time_only_the_real_time_kernel_bounds_the_maximum() {
    let bench = Bench::new();
    if !can_measure(&bench, "--deterministic --phase 0.1") {
        return;
    }
    bench
        .run("reproduce landolfi-2018 --deterministic --phase 0.1 --output run")
        .expect(0, &["+ Only the real-time kernel bounds the maximum."]);
    let summary = summary(&bench.work().join("run"));
    assert_complete(&summary, 4, 7_000);
    let maxima: Vec<(String, f64)> = list(&summary, "wakeups")
        .iter()
        .map(|target| {
            let under_load = list(target, "phases")
                .iter()
                .filter(|phase| phase["load"] != "idle");
            let longest_ns = under_load
                .map(|phase| phase["service"]["max"]["highest"].as_f64().unwrap())
                .fold(0.0, f64::max);
            let model = target["preemption"].as_str().unwrap();
            (model.to_owned(), longest_ns)
        })
        .collect();
    let models: Vec<&str> = maxima.iter().map(|(model, _)| model.as_str()).collect();
    assert_eq!(models, MODELS);
    let (_, real_time_ns) = maxima[3];
    for (model, longest_ns) in &maxima[..3] {
        assert!(real_time_ns < *longest_ns, "{model}: {maxima:?}");
    }
}

//! Repeats landolfi-2018 with short phases. Its deterministic lane is checked by `tare-acceptance`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{self, Bench, is_root, skip};
use serde_json::Value;

const PHASES: [&str; 7] = ["idle", "ping", "idle", "dd+hackbench", "du", "tar", "nc"];
const MODELS: [&str; 4] = ["none", "voluntary", "full", "rt"];

fn summary(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("summary.json")).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap()
}

/// Returns whether this machine has what the study takes: kernels, QEMU, and the right to
/// SCHED_FIFO.
fn can_measure(bench: &Bench) -> bool {
    if !is_root() {
        skip("landolfi-2018", "the loads of the study need root");
        return false;
    }
    let ran = bench.run("reproduce landolfi-2018 --quick --dry-run");
    if ran.code == Some(5) {
        skip("landolfi-2018", ran.err.trim());
        return false;
    }
    ran.expect(0, &[]);
    true
}

/// Returns the figures over all runs of some measures of all threads together.
fn rows<'a>(
    summary: &'a Value,
    measures: &'a [&str],
    figure: &'a str,
) -> impl Iterator<Item = &'a Value> {
    let rows = list(summary, "figures").iter();
    rows.filter(move |row| {
        let measure = row["measure"].as_str().unwrap();
        row["figure"] == figure && measures.contains(&measure) && row["labels"]["thread"].is_null()
    })
}

fn targets(summary: &Value) -> BTreeSet<&str> {
    let rows = rows(summary, &["latency"], "max");
    rows.map(|row| row["target"].as_str().unwrap()).collect()
}

/// Returns the preemption model of the kernel of each target that reports it.
fn models(summary: &Value, group: &str) -> BTreeMap<String, String> {
    let places = list(summary, "places").iter();
    let of_group = places.filter(|place| place["group"] == group);
    let models = of_group.filter_map(|place| {
        let mut facts = list(place, "facts").iter();
        let fact = facts.find(|fact| fact["name"] == "preemption model")?;
        let model = fact["values"][0]["value"].as_str()?;
        Some((place["target"].as_str()?.to_owned(), model.to_owned()))
    });
    models.collect()
}

/// Asserts that each target has figures of each phase, and that every activation is accounted for.
fn assert_complete(summary: &Value, activations: u64) {
    assert_eq!(targets(summary).len(), 5);
    for target in targets(summary) {
        let own = |measures, figure| {
            let rows = rows(summary, measures, figure);
            rows.filter(|row| row["target"] == target)
        };
        let phases: BTreeMap<u64, &str> = own(&["wake-ups", "absent"], "total")
            .map(|row| {
                let phase = row["labels"]["phase"].as_str().unwrap();
                (phase.parse().unwrap(), row["load"].as_str().unwrap())
            })
            .collect();
        assert!(phases.into_values().eq(PHASES), "{target}");
        // What falls between two phases, where a load took long to end, is counted apart.
        const COUNTED: [&str; 4] = ["wake-ups", "missed", "between", "missed between"];
        let due = own(&COUNTED, "total").map(|row| row["value"].as_f64().unwrap() as u64);
        let due: u64 = due.sum();
        // A late wake-up at the very end answers for what would have been due until it ran: up to
        // 10,000 here.
        let allowed = activations..activations + 10_000;
        assert!(allowed.contains(&due), "{due}: {target}");
    }
    let reproduction = &summary["reproduction"];
    assert_eq!(reproduction["study"], "landolfi-2018");
    assert_eq!(list(reproduction, "claims").len(), 4);
    assert_eq!(list(&reproduction["tables"][0], "rows").len(), 28);
}

#[test]
fn the_study_runs_from_one_command_on_four_kernels_and_this_one() {
    let _alone = common::alone();
    let bench = Bench::new();
    if !can_measure(&bench) {
        return;
    }
    // An emulator with neighbours holds no interval of 100 µs: setting a timer in it may take as
    // long.
    let study = include_str!("../../../../studies/landolfi-2018.toml");
    let slower = study
        .replace("interval = \"100us\"", "interval = \"1ms\"")
        .replace("phase = \"3s\"", "phase = \"500ms\"");
    std::fs::write(bench.work().join("study.toml"), slower).unwrap();
    bench
        .run("run study.toml --quick --output run")
        .expect(0, &["Claims of landolfi-2018", "interval"]);
    let summary = summary(&bench.work().join("run"));
    assert_complete(&summary, 3_500);
    let models = models(&summary, "linux_guest").into_values();
    assert_eq!(
        models.collect::<BTreeSet<_>>(),
        MODELS.map(String::from).into()
    );
}

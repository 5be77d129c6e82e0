//! A study becomes the plan that it says.

use std::collections::HashSet;

use proptest::prelude::*;
use tare_lab::plan::Frame;
use tare_results::model::{Plan, Schedule};
use tare_studies::{Study, Variant, explain, included};

fn frame(seed: u64) -> Frame {
    Frame {
        seed,
        cpu: 1,
        cpu_reason: "1 was asked for".to_owned(),
        command: vec!["tare".to_owned(), "run".to_owned()],
        ..Frame::default()
    }
}

fn plan(text: &str, variant: Variant) -> Plan {
    let study = Study::parse("s.toml", text, variant).unwrap_or_else(|error| panic!("{error}"));
    study.plan(frame(7)).unwrap()
}

fn labels(plan: &Plan) -> HashSet<String> {
    plan.cells.iter().map(|cell| cell.label()).collect()
}

const MATRIX: &str = r#"
targets = ["process", "unikernel,irq=off"]
runs = 4
seed = 3
cpu = 0
cell-limit = "90s"
settings = { "vm.stat_interval" = "120" }

[quick]
runs = 1
targets = ["process"]

[[experiment]]
kind = "noise"
workload = ["prime", "copy"]
limit = [10, 14]
size = 25
repetitions = 1_000

[experiment.quick]
limit = [10]

[[experiment]]
kind = "noise"
workload = ["gap"]
targets = ["process"]
runs = 2
threshold = "2us"

[[exclude]]
target = "unikernel,irq=off"
workload = "prime"
size = 14
"#;

#[test]
fn a_matrix_is_the_product_of_its_lists_without_what_is_excluded() {
    let plan = plan(MATRIX, Variant::Full);
    assert_eq!(plan.cells.len(), 5 * 4 + 2);
    let expected = [
        "process prime 10",
        "process prime 14",
        "process copy 25",
        "unikernel,irq=off prime 10",
        "unikernel,irq=off copy 25",
        "process gap",
    ];
    assert_eq!(labels(&plan), expected.map(str::to_owned).into());
    for cell in &plan.cells {
        assert_eq!(cell.limit_seconds, 90.0);
        let is_gap = cell.work.id == "gap";
        assert_eq!(
            cell.work.words.contains("threshold=2000ns"),
            is_gap,
            "{}",
            cell.work.words
        );
        let repetitions = if is_gap { 80_000_000 } else { 1_000 };
        let words = format!("repetitions={repetitions} ");
        assert!(cell.work.words.contains(&words), "{}", cell.work.words);
    }
    let study = plan.study.as_ref().unwrap();
    assert_eq!((study.name.as_str(), study.quick), ("s", false));
    assert_eq!(study.text, MATRIX);
    assert_eq!(plan.resume_command(), "tare run --resume");
}

#[test]
fn the_shorter_variant_takes_what_its_tables_say() {
    let plan = plan(MATRIX, Variant::Quick);
    let expected = ["process prime 10", "process copy 25", "process gap"];
    assert_eq!(labels(&plan), expected.map(str::to_owned).into());
    // The second experiment's own number of runs stays.
    assert_eq!(plan.cells.len(), 2 + 2);
    assert!(plan.study.unwrap().quick);
}

#[test]
fn a_study_plans_what_the_same_arguments_plan() {
    use tare_experiments::experiments;
    use tare_lab::experiment::Conditions;
    use tare_lab::parameter::Values;
    use tare_lab::plan::of_one;

    let conditions = Conditions {
        targets: vec![tare_targets::process::spec()],
        loads: vec![Schedule::idle()],
        cpu: 1,
        cpus: None,
        cell_limit: None,
        is_watched: false,
    };
    for (name, given) in [
        ("noise", &[][..]),
        (
            "noise",
            &[
                ("workload", "\"prime\""),
                ("limit", "10"),
                ("threshold", "\"2us\""),
            ],
        ),
        ("wakeup", &[]),
        (
            "wakeup",
            &[("interval", "\"250\""), ("threads", "2"), ("trace", "3")],
        ),
        ("wakeup", &[("trace-above", "\"1ms\"")]),
    ] {
        let experiment = *experiments().iter().find(|e| e.name() == name).unwrap();
        let mut values = Values::default();
        let mut text = format!("[[experiment]]\nkind = \"{name}\"\n");
        for (key, value) in given {
            let all = experiment.parameters();
            let parameter = all.iter().find(|known| known.name == *key).unwrap();
            let read = parameter.read(value.trim_matches('"')).unwrap();
            values.give(parameter.name, vec![read]);
            text += &format!("{key} = {value}\n");
        }
        let runs = experiment.default_runs(&values);
        let command = of_one(experiment, &conditions, &values, runs, frame(7)).unwrap();
        assert_eq!(plan(&text, Variant::Full).cells, command.cells, "{text}");
    }
}

#[test]
fn a_study_is_explained_with_every_default() {
    let study = Study::parse("s.toml", MATRIX, Variant::Full).unwrap();
    insta::assert_snapshot!(explain::explain(&study, false).unwrap());
}

#[test]
fn the_studies_that_come_with_tare_are_in_order() {
    for file in included::STUDIES {
        for variant in [Variant::Full, Variant::Quick] {
            let study = file.study(variant).unwrap();
            assert_eq!(study.name, file.name);
            let published = study.reproduces.as_deref().unwrap();
            assert!(tare_experiments::catalogue().study(published).is_some());
            assert!(included::find(published).is_some());
        }
    }
    let kot = included::find("kot-2019").unwrap();
    let quick = kot.study(Variant::Quick).unwrap();
    insta::assert_snapshot!(explain::explain(&quick, false).unwrap());
    let first = included::find("quick").unwrap();
    let first = first.study(Variant::Full).unwrap();
    assert_eq!(first.name, "quick");
    assert_eq!(first.plan(frame(7)).unwrap().cells.len(), 2 * 3 * 6);
    assert!(included::find("kot").is_none());
}

#[test]
fn the_study_of_wakeups_puts_its_phases_into_one_cell_and_traces_once_more() {
    let published = included::find("landolfi-2018").unwrap();
    let deterministic = included::deterministic("landolfi-2018").unwrap();
    let mut full = published.study(Variant::Full).unwrap();
    insta::assert_snapshot!(explain::explain(&full, false).unwrap());
    let plan = full.plan(frame(7)).unwrap();
    assert_eq!(plan.cells.len(), 5 * (3 + 1));
    let counted = deterministic.study(Variant::Full).unwrap();
    for cell in counted.plan(frame(7)).unwrap().cells {
        assert_eq!(cell.phases, plan.cells[0].phases);
        // The same kernels, without what the host has a hand in.
        let same = cell
            .target
            .text
            .replace("mem=2G,clock=instructions", "cpus=2,mem=1G,disk=scratch:4G");
        assert!(
            plan.cells.iter().any(|other| other.target == *same),
            "{same}"
        );
    }

    assert!(full.set_phase(500_000_000));
    let plan = full.plan(frame(7)).unwrap();
    assert!(
        plan.cells
            .iter()
            .all(|cell| cell.phase_seconds == Some(0.5))
    );
    let mut kot = Study::parse("s.toml", MATRIX, Variant::Full).unwrap();
    assert!(!kot.set_phase(500_000_000));
}

#[test]
fn a_load_comes_again_only_as_a_phase() {
    let study = |more: &str| {
        format!("loads = [\"idle\", \"dd\", \"idle\"]\n[[experiment]]\nkind = \"wakeup\"\n{more}")
    };
    let plan = plan(&study("phase = \"1s\""), Variant::Full);
    assert_eq!(plan.cells[0].load.as_str(), "1s:idle;dd;idle");
    let error = Study::parse("s.toml", &study(""), Variant::Full).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("s.toml:1:24: this is given twice"),
        "{error}"
    );
}

fn list(values: &HashSet<u32>) -> String {
    let values: Vec<String> = values.iter().map(u32::to_string).collect();
    format!("[{}]", values.join(", "))
}

proptest! {
    #[test]
    fn every_combination_runs_as_often_as_asked_for(
        limits in proptest::collection::hash_set(3_u32..60_000, 1..6),
        sizes in proptest::collection::hash_set(1_u32..10_000, 1..6),
        runs in 1_u32..6,
        fewer in 1_u32..6,
        seed: u64,
    ) {
        let fewer = fewer.min(runs);
        let text = format!(
            "runs = {runs}\n[[experiment]]\nkind = \"noise\"\nworkload = [\"prime\"]\nlimit = {}\n\
             [[experiment]]\nkind = \"noise\"\nworkload = [\"copy\"]\nsize = {}\nruns = {fewer}\n",
            list(&limits),
            list(&sizes),
        );
        let study = Study::parse("s.toml", &text, Variant::Full).unwrap();
        let plan = study.plan(frame(seed)).unwrap();
        for (workload, values, runs) in [("prime", &limits, runs), ("copy", &sizes, fewer)] {
            for value in values {
                let blocks: HashSet<u32> = plan
                    .cells
                    .iter()
                    .filter(|cell| cell.name == format!("{workload} {value}"))
                    .map(|cell| cell.block)
                    .collect();
                prop_assert_eq!(blocks.len(), runs as usize);
            }
        }
        prop_assert_eq!(
            plan.cells.len(),
            limits.len() * runs as usize + sizes.len() * fewer as usize
        );
        prop_assert!(plan.cells.is_sorted_by_key(|cell| cell.block));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(.|\n){0,200}") {
        let _ = Study::parse("s.toml", &text, Variant::Full);
    }

    #[test]
    fn a_study_with_anything_put_into_it_is_read_or_refused(
        place in 0_usize..2_000,
        length in 0_usize..40,
        put in r#"[\[\]{}=,."'#a-z0-9 \n-]{0,12}"#,
    ) {
        let text = included::STUDIES[0].text;
        let mut characters: Vec<char> = text.chars().collect();
        let from = place.min(characters.len());
        let to = (from + length).min(characters.len());
        characters.splice(from..to, put.chars());
        let text: String = characters.into_iter().collect();
        for variant in [Variant::Full, Variant::Quick] {
            if let Ok(study) = Study::parse("s.toml", &text, variant) {
                explain::explain(&study, false).unwrap();
            }
        }
    }
}

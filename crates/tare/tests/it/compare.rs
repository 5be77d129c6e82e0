//! `tare compare` from the command line to the exit code.

use crate::common::{Bench, agents_of, files, processes_with, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// A short measurement that any machine can do: a thread woken 200 times, in this number of runs.
fn wakeup(bench: &Bench, folder: &str, runs: u32) {
    let words = "wakeup -i 1000 -l 200 --policy other -a 0";
    let ran = bench.run(&format!("{words} --runs {runs} --output {folder}"));
    ran.expect(0, &[]);
}

fn noise(bench: &Bench, folder: &str, rest: &str) {
    let words = "noise --workload prime --limit 10 --repetitions 2000 --cpu 0";
    let ran = bench.run(&format!("{words} {rest} --output {folder}"));
    ran.expect(0, &[]);
}

fn json(bench: &Bench, words: &str) -> Vec<Value> {
    let ran = bench.run(&format!("{words} --json"));
    ran.expect(0, &[]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert!(json["schema"].is_u64());
    json["comparisons"].as_array().unwrap().clone()
}

#[test]
fn several_invocations_are_compared_and_gates_judge_their_shift() {
    let bench = Bench::new();
    for number in 1..=4 {
        wakeup(&bench, &format!("a{number}"), 1);
        wakeup(&bench, &format!("b{number}"), 1);
    }
    let four = "compare a1 a2 a3 a4 --to b1 b2 b3 b4";
    let compared = json(&bench, four);
    let [compared] = compared.as_slice() else {
        panic!("{compared:?}");
    };
    assert_eq!(compared["unit"], "invocations");
    assert_eq!(compared["repetitions"], serde_json::json!([4, 4]));
    assert_eq!(compared["can_tell"], true);
    assert_eq!(compared["differences"], Value::Array(Vec::new()));
    let rows = compared["rows"].as_array().unwrap();
    let row = |figure: &str| {
        rows.iter()
            .find(|row| row["measure"] == "response" && row["figure"] == figure)
            .unwrap()
    };
    // Beside other tests the activations may have two modes, and the median be in either.
    assert!(row("mean")["low"].is_f64() && row("mean")["adjusted_p_value"].is_f64());
    // p99 of 200 activations has two beyond it.
    let refused = row("p99")["refused"].as_str().unwrap();
    assert!(
        refused.contains("needs 1,000 samples in each run"),
        "{refused}"
    );

    let ran = bench.run(four);
    ran.expect(
        0,
        &["BASE: a1, a2, a3, a4 (4 invocations)", "p99 needs 1,000"],
    );
    let ran = bench.run(&format!("{four} --markdown --fail-if response.mean>+1000s"));
    ran.expect(0, &["| figure | BASE | NEW | shift |", "passed"]);
    // A figure that the runs can't carry fails its gate.
    let ran = bench.run(&format!("{four} --fail-if response.p99>+5%"));
    ran.expect(3, &[]);
    assert!(
        ran.out.contains("is inconclusive: p99 needs 1,000"),
        "{}",
        ran.out
    );
    let ran = bench.run(&format!("{four} --json --fail-if response.p99>+5%"));
    ran.expect(3, &[]);
    serde_json::from_str::<Value>(&ran.out).unwrap();
    assert!(ran.err.contains("Gate not passed"), "{}", ran.err);

    let ran = bench.run("compare a1 a2 --to b1 b2 --fail-if response.mean>+5%");
    ran.expect(3, &["it needs 4 invocations of each, not 2 and 2"]);
    assert!(
        ran.out
            .contains("is inconclusive with 2 against 2 invocations; it needs 4 of each"),
        "{}",
        ran.out
    );
    for (gate, said) in [
        ("lost>+5%", "matches no figure"),
        ("response>+5points", "a different unit"),
        ("response>5", "has no unit"),
    ] {
        bench
            .run(&format!("{four} --fail-if {gate}"))
            .expect(2, &[said]);
    }
}

#[test]
fn loads_are_compared_within_a_run() {
    let bench = Bench::new();
    noise(&bench, "run", "--runs 4 --load idle --load dd");
    let by_load = json(&bench, "compare run --by load");
    assert_eq!(by_load[0]["names"], serde_json::json!(["idle", "dd"]));
    assert_eq!(by_load[0]["unit"], "conditions");
    bench
        .run("compare run --by load --markdown --fail-if duration.mean{load=dd}>+1000s")
        .expect(0, &["process and process under dd", "passed"]);
    bench
        .run("compare run --by load --fail-if duration{load=cp}>+1000s")
        .expect(2, &["matches no figure"]);
    bench
        .run("compare run --by target")
        .expect(2, &["the run has only one target, process"]);
    bench
        .run("compare run run --by load")
        .expect(2, &["give one folder"]);
}

#[test]
fn a_machine_is_compared_with_itself() {
    let bench = Bench::new();
    // Two runs a side can't tell anything, so nothing is compared or a false alarm.
    let measured = "noise --workload prime --limit 10 --repetitions 2000 --runs 2";
    let ran = bench.run(&format!("compare --self --pairs 2 -- {measured}"));
    ran.expect(
        0,
        &[
            "pair 2 of 2: 0 of 0 compared figures differ",
            "0 of 2 pairs of invocations differed (0 %; 95 % CI 0 % to 84 %)",
            "a comparison needs at least 4 of each",
        ],
    );
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
    assert_eq!(files(&bench.work()), Vec::<String>::new());
    bench
        .run("compare --self --pairs 1 -- noise --workload nothing")
        .expect(
            1,
            &["`tare noise --workload nothing` failed", "invalid value"],
        );
    bench.run("compare --self a").expect(2, &[]);
}

#[test]
fn an_interrupted_comparison_with_itself_leaves_nothing() {
    let bench = Bench::new();
    let started = bench.start("compare --self -- wakeup -i 1000 -D 600 --policy other --runs 1");
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    wait_for("an agent", || {
        let all = processes_with(&mark);
        all.into_iter().find(|pid| !agents_of(*pid).is_empty())
    });
    started.signal(Signal::INT);
    started.end().expect(4, &[]);
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn what_cannot_be_compared_says_why() {
    let bench = Bench::new();
    noise(&bench, "noise", "--runs 1");
    wakeup(&bench, "wakeup", 1);
    bench.run("compare noise --to wakeup").expect(
        2,
        &["noise and wakeup can't be compared: give two runs of one experiment"],
    );
    bench
        .run("compare noise --to nowhere")
        .expect(1, &["nowhere"]);
    bench.run("compare noise").expect(2, &["--to"]);
    bench
        .run("compare noise --to wakeup ./noise")
        .expect(2, &["./noise is given twice"]);
}

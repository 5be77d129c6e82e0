//! `tare compare` from the command line to the exit code.

use crate::common::Bench;
use serde_json::Value;

/// Is a short measurement that any machine can do: a thread woken 200 times, in so many runs.
fn measure(bench: &Bench, folder: &str, runs: u32) {
    let words = "wakeup -i 1000 -l 200 --policy other -a 0 --seed 1";
    let ran = bench.run(&format!("{words} --runs {runs} --output {folder}"));
    ran.expect(0, &[]);
}

#[test]
fn two_runs_are_compared_and_a_gate_needs_enough_of_them() {
    let bench = Bench::new();
    measure(&bench, "a", 1);
    measure(&bench, "b", 1);
    let ran = bench.run("compare a b");
    ran.expect(0, &[]);
    assert!(ran.out.contains("cannot be told"), "{}", ran.out);
    // p99 of 200 activations has two beyond it.
    assert!(
        ran.out.contains("p99 needs 1,000 activations in each run"),
        "{}",
        ran.out
    );

    let ran = bench.run("compare a b --json");
    ran.expect(0, &[]);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&json["experiment"], &json["can_tell"]),
        (&"wakeup".into(), &false.into())
    );
    assert_eq!(json["rows"].as_array().unwrap().len(), 5);
    assert_eq!(json["differences"], Value::Array(Vec::new()));

    bench
        .run("compare a b --fail-on-regression")
        .expect(1, &["the gate can't tell"]);
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let bench = Bench::new();
    measure(&bench, "a", 6);
    let ran = bench.run("compare a a --fail-on-regression");
    ran.expect(0, &[]);
    assert!(ran.out.contains("is said to differ"), "{}", ran.out);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let bench = Bench::new();
    bench
        .run("noise --workload prime --repetitions 1000 --runs 1 --output noise")
        .expect(0, &[]);
    bench
        .run("compare noise noise")
        .expect(1, &["the first run", "has no wake-ups"]);
    bench.run("compare noise nowhere").expect(1, &["nowhere"]);
    bench.run("compare noise").expect(2, &["RUN_B"]);
}

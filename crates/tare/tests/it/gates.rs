//! Gates: limits that figures of a run must not exceed, and what decides about the exit code.

use crate::common::{Bench, files, json};
use rustix::process::Signal;
use serde_json::Value;

const PRIME: &str = "noise --workload prime --limit 10 --repetitions 2000 --runs 1 --cpu 0";
/// A thread that is woken 200 times.
const WAKEUP: &str = "wakeup -i 1000 -l 200 --policy other -a 0 --runs 1";

#[test]
fn a_figure_above_its_limit_ends_with_code_3_and_a_sentence() {
    let bench = Bench::new();
    // No machine counts primes within a nanosecond, or takes a second for it.
    let ran = bench.run(&format!("{PRIME} --output run --fail-if duration>1ns"));
    ran.expect(3, &[]);
    let failed = "Gate failed: duration.p50 of process, prime 10 is ";
    assert!(ran.out.contains(failed), "{ran:?}");
    assert!(ran.out.contains(", above 1.00 ns."), "{ran:?}");
    let ran = bench.run("report run --fail-if noise/duration.p50{target=process,size=10}>1s");
    ran.expect(0, &[]);
    assert!(ran.out.contains("Gate passed: duration.p50"), "{ran:?}");
    // Each gate says its sentence, and one that fails is enough.
    let both = bench.run("report run --fail-if duration>1s --fail-if duration.max>1ns");
    both.expect(
        3,
        &["Gate passed: duration.p50", "Gate failed: duration.max"],
    );
}

#[test]
fn a_figure_that_the_run_cannot_carry_fails_its_gate() {
    let bench = Bench::new();
    bench.run(&format!("{PRIME} --output run")).expect(0, &[]);
    let ran = bench.run("report run --fail-if duration.p99.99>1s");
    ran.expect(3, &[]);
    let needed = "is inconclusive: p99.99 needs 100,000 samples in each run, a run has 2,000: measure longer, not more often.";
    assert!(ran.out.contains(needed), "{ran:?}");
}

#[test]
fn gates_of_wake_ups() {
    let bench = Bench::new();
    let ran = bench.run(&format!(
        "{WAKEUP} --output run --fail-if latency>1ns --fail-if missed>99%"
    ));
    ran.expect(3, &[]);
    let said = [
        "Gate failed: latency.max of process",
        "Gate passed: missed.share",
    ];
    assert!(said.iter().all(|said| ran.out.contains(said)), "{ran:?}");
    bench
        .run("report run --fail-if response.max{load=idle}>100s")
        .expect(0, &["Gate passed: response.max of process"]);
    // There is nothing of the other experiment, and no such load.
    for gate in ["lost>1%", "noise/latency>1us", "latency{load=dd}>1us"] {
        bench
            .run(&format!("report run --fail-if {gate}"))
            .expect(2, &["matches no figure of this run"]);
    }
}

#[test]
fn what_no_figure_of_the_plan_can_match_is_said_before_measuring() {
    let bench = Bench::new();
    for (command, gate, said) in [
        (PRIME, "nothing>1", "it has noise/lost, noise/gaps"),
        (PRIME, "wakeup/latency>1us", "it has noise/lost"),
        (PRIME, "lost.p99>1%", "lost has share"),
        (
            PRIME,
            "lost{target=unikernel}>1%",
            "lost is measured of process",
        ),
        (PRIME, "lost>1us", "a different unit from its figure"),
        (PRIME, "lost{load=dd}>1%", "lost is measured of process"),
        (
            PRIME,
            "lost{workload=gpa}>1%",
            "lost is measured of process with workload=prime",
        ),
        (PRIME, "lost>2", "write a percentage"),
        (PRIME, "lost", "is not a gate: it has no '>'"),
        (WAKEUP, "lost>1%", "it has wakeup/latency"),
        (
            WAKEUP,
            "p99.9>1us",
            "p99.9 is a figure: write latency.p99.9",
        ),
        (
            WAKEUP,
            "latency{thread=1}>1us",
            "only runs with several threads have the label 'thread'",
        ),
        (
            WAKEUP,
            "latency.p99.9>1us",
            "p99.9 needs 10,000 samples in each run, and the plan of process wakeup is sure of 200 only",
        ),
        (PRIME, "duration.p99.9>1us", "is sure of"),
        ("quick", "latency>1us", "it has noise/lost"),
        (
            "reproduce kot-2019 --quick",
            "latency>1us",
            "it has noise/lost",
        ),
    ] {
        for dry in ["", "--dry-run"] {
            bench
                .run(&format!("{command} {dry} --fail-if {gate}"))
                .expect(2, &[said]);
        }
    }
    assert_eq!(files(&bench.work()), Vec::<String>::new());
    // That `prime` has no gaps is known when it has run: the run is kept.
    bench
        .run(&format!("{PRIME} --output run --fail-if lost>1%"))
        .expect(2, &["matches no figure of this run"]);
    bench.run("report run").expect(0, &[]);
}

#[test]
fn with_json_the_sentence_goes_to_standard_error() {
    let bench = Bench::new();
    let ran = bench.run(&format!(
        "{PRIME} --json --output run --fail-if duration>1ns"
    ));
    ran.expect(3, &[]);
    assert!(ran.err.contains("Gate failed: duration.p50"), "{ran:?}");
    serde_json::from_str::<Value>(&ran.out).unwrap();
    let ran = bench.run("report run --json --fail-if duration>1ns");
    assert!(
        ran.code == Some(3) && ran.err.contains("Gate failed"),
        "{ran:?}"
    );
    serde_json::from_str::<Value>(&ran.out).unwrap();
}

#[test]
fn an_interrupted_run_is_not_judged_yet() {
    let bench = Bench::new();
    let words = "wakeup -i 1000 -D 3 --policy other --runs 2 --output run --fail-if latency>1ns";
    let started = bench.start(words);
    started.wakes();
    started.signal(Signal::INT);
    let ran = started.end();
    ran.expect(4, &["one cell was cut short, 1 cell is missing"]);
    assert!(!ran.out.contains("Gate"), "{ran:?}");
    bench
        .run("wakeup --resume run --fail-if latency>1ns")
        .expect(3, &["Gate failed: latency.max"]);
}

#[test]
fn a_limit_at_once_says_what_exceeded_what_and_lists_only_that() {
    let bench = Bench::new();
    let words = "wakeup -i 1000 -D 60 --policy other -a 0 --trace 0 --output";
    let ran = bench.run(&format!("{words} run --trace-above 1ns"));
    ran.expect(3, &[]);
    let line = ran
        .out
        .lines()
        .find(|line| line.starts_with("Limit exceeded"));
    let line = line.unwrap();
    assert!(
        line.starts_with("Limit exceeded: latency of ")
            && line.contains("in cell 1 (process wakeup)")
    );
    assert!(line.contains("above 1.00 ns"), "{line}");
    // Nobody waits for a minute: nothing is above it, and nothing is listed.
    let ran = bench.run(&format!("{words} none -l 200 --trace-above 60s"));
    ran.expect(0, &[]);
    assert!(!ran.out.contains("Worst wake-ups"), "{}", ran.out);
    assert!(!ran.out.contains("Limit exceeded"), "{}", ran.out);
    let summary = json(&bench.work().join("none/summary.json"));
    let worst = summary["stories"]["wakeup"]["worst"].as_array();
    assert_eq!(worst.map(Vec::len), Some(0), "{summary}");
}

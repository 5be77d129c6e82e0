//! Studies from the file to the report: checked, explained, run, interrupted, resumed, reproduced.

use std::fs;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{Bench, files, skip};
use crate::unikernel;
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tare_testkit::assert_contains;

const SMALL: &str = r#"
runs = 2
[quick]
runs = 1
[[experiment]]
kind = "noise"
workload = ["prime", "copy"]
limit = [10, 22]
repetitions = 1000
[[experiment]]
kind = "noise"
workload = ["gap"]
repetitions = 20_000_000
"#;

fn bench_with(name: &str, study: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.work().join(name), study).unwrap();
    bench
}

#[test]
fn a_study_is_checked_explained_planned_and_run() {
    let bench = bench_with("small.toml", SMALL);
    bench
        .run("study check small.toml")
        .expect(0, &["small.toml: in order"]);
    let few = "with 2 runs, no intervals for means, rates and shares (3 runs needed)";
    bench
        .run("study explain small.toml")
        .expect(0, &["limit        10, 22", "8 cells, a", "(default)", few]);
    bench
        .run("run small.toml --dry-run")
        .expect(0, &["8 cells", "block 2", "prime 22", few]);
    bench
        .run("run small.toml --quick --dry-run")
        .expect(0, &["4 cells"]);
    assert_eq!(files(&bench.work()), ["small.toml"]);

    let ran = bench.run("run small.toml --quick --json");
    ran.expect(0, &["small: 4 cells"]);
    let summary: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(summary["done"], 4);
    assert!(summary["reproduction"].is_null());
    assert!(
        files(&bench.work())
            .iter()
            .any(|name| name.contains("-small/report.html"))
    );
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn an_estimate_for_a_busy_cpu_says_so_wherever_it_is_given() {
    let bench = bench_with("small.toml", &format!("cpu = 0\n{SMALL}"));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut cpu = CpuSet::new();
            cpu.set(0);
            sched_setaffinity(None, &cpu).unwrap();
            while !ends.load(Ordering::Relaxed) {
                spin_loop();
            }
        });
        let ran = ["study explain small.toml", "run small.toml --dry-run"].map(|w| bench.run(w));
        ends.store(true, Ordering::Relaxed);
        for ran in ran {
            ran.expect(
                0,
                &[
                    "8 cells, about",
                    "in all; longer if the measured CPU stays busy",
                ],
            );
        }
    });
}

#[test]
fn an_interrupted_study_is_resumed_as_it_was_planned() {
    let bench = bench_with("small.toml", SMALL);
    let started = bench.start("run small.toml --output run");
    started.agent();
    started.signal(Signal::INT);
    started.end().expect(
        4,
        &[
            "cells are missing",
            "`tare run --resume run` continues the run",
        ],
    );

    // By another file it is not continued, by none and by the same one it is.
    fs::write(
        bench.work().join("other.toml"),
        SMALL.replace("runs = 2", "runs = 3"),
    )
    .unwrap();
    bench
        .run("run other.toml --resume run")
        .expect(2, &["has changed since"]);
    bench
        .run("run --resume run --dry-run")
        .expect(0, &["cells, a"]);
    bench
        .run("run small.toml --resume run")
        .expect(0, &["report.html"]);
    bench
        .run("run --resume run")
        .expect(0, &["is complete: there is nothing to measure"]);
    let report = bench.run("report run");
    report.expect(0, &[]);
    assert!(!report.out.contains("Not measured"), "{}", report.out);
    bench
        .run("noise --repetitions 1000 --runs 1 --workload prime --output plain")
        .expect(0, &[]);
    bench
        .run("run small.toml --resume plain")
        .expect(2, &["not made by a study"]);
}

#[test]
fn several_studies_run_one_after_the_other_and_are_checked_before() {
    let bench = bench_with("one.toml", &format!("name = \"one\"\n{SMALL}"));
    fs::write(
        bench.work().join("two.toml"),
        format!("name = \"two\"\n{SMALL}"),
    )
    .unwrap();
    fs::write(bench.work().join("bad.toml"), "runs = 5\nrun = 6\n").unwrap();
    bench
        .run("run one.toml bad.toml --quick")
        .expect(2, &["bad.toml:2:1"]);
    bench
        .run("run one.toml two.toml --output run")
        .expect(2, &["leave it out"]);
    assert!(
        !files(&bench.work())
            .iter()
            .any(|name| name.contains("plan.json"))
    );
    let ran = bench.run("run one.toml two.toml --quick");
    ran.expect(0, &["one: 4 cells", "two: 4 cells"]);
    // The second one has the choice of the first, although tare itself kept off the CPU of the
    // first.
    let only = "the only one in the affinity mask of this process";
    let allowed = sched_getaffinity(None).unwrap().count();
    assert!(allowed == 1 || !ran.err.contains(only), "{}", ran.err);

    // What failed first is not forgotten.
    let failing = "runs = 1\n[quick]\nruns = 1\n[[experiment]]\nkind = \"wakeup\"\npolicy = \"other\"\ninterval = \"1us\"\nloops = 1000\n";
    fs::write(bench.work().join("failing.toml"), failing).unwrap();
    bench
        .run("run failing.toml one.toml --quick")
        .expect(1, &["warning: 1 of 1 cells failed", "one: 4 cells"]);

    let started = bench.start("run one.toml two.toml");
    started.agent();
    started.signal(Signal::INT);
    started.end().expect(
        4,
        &[
            "`tare run --resume ",
            "not begun: two.toml; `tare run two.toml` runs what is left",
        ],
    );
}

#[test]
fn a_reproduction_is_resumed() {
    let bench = Bench::new();
    let planned = bench.run("reproduce kot-2019 --quick --dry-run");
    if planned.code == Some(5) {
        return skip("kot-2019", &planned.err);
    }
    let started = bench.start("reproduce kot-2019 --quick --output run");
    started.agent();
    started.signal(Signal::INT);
    let ran = started.end();
    ran.expect(4, &["`tare reproduce --resume run` continues the run"]);
    for words in ["reproduce --resume run", "reproduce kot-2019 --resume run"] {
        bench
            .run(&format!("{words} --dry-run"))
            .expect(0, &["cells"]);
    }
    bench.run("reproduce landolfi-2018 --resume run").expect(
        2,
        &[
            "it reproduces kot-2019, not landolfi-2018",
            "`tare reproduce --resume run` continues it",
        ],
    );
    bench
        .run("reproduce kot-2019 --resume run --quick")
        .expect(2, &["cannot be used with"]);
    let claims = [
        "Delays above 2,000 cycles occur only under Linux.",
        "The unikernel's delays, with interrupts, are short",
        "The unikernel's delays, with interrupts, are regular.",
        "Without interrupts there are practically none",
        "Cycles grow linearly with the number of divisions",
        "Under Linux, delays above 2,000 cycles cost about the same share",
        "Under Linux, delays above 2,000 cycles cost about three times",
    ];
    bench.run("reproduce --resume run").expect(0, &claims);
    let page = fs::read_to_string(bench.work().join("run/report.html")).unwrap();
    let pictures = [
        "prime 22",
        "copy 100",
        "500 in a row",
        "over time",
        "Every run",
    ];
    assert_contains(&page, &pictures);
}

#[test]
fn a_bad_study_is_told_before_anything_starts() {
    let bench = bench_with(
        "bad.toml",
        "runs = 5\n[[experiment]]\nkind = \"noise\"\nlimt = [22]\n",
    );
    let place =
        "bad.toml:4:1: an experiment of kind noise has no key 'limt'; did you mean 'limit'?";
    for command in [
        "run bad.toml",
        "study check bad.toml",
        "study explain bad.toml",
    ] {
        bench
            .run(command)
            .expect(2, &[place, "  4 | limt = [22]", "    | ^^^^"]);
    }
    bench.run("run none.toml").expect(1, &["none.toml"]);
    bench.run("run .").expect(1, &["can't be read"]);
    bench.run("run").expect(2, &["STUDY.toml"]);
    bench
        .run("run bad.toml --resume run --quick")
        .expect(2, &["cannot be used with"]);
    fs::write(bench.work().join("noise.bin"), [0xff; 100]).unwrap();
    bench.run("run noise.bin").expect(2, &["not UTF-8 text"]);
    fs::write(bench.work().join("huge.toml"), vec![b'\n'; 2 << 20]).unwrap();
    bench
        .run("study check huge.toml bad.toml")
        .expect(2, &["larger than", "bad.toml:4:1"]);
    assert_eq!(files(&bench.work()), ["bad.toml", "huge.toml", "noise.bin"]);
}

#[test]
fn a_target_that_can_not_be_used_ends_a_study_before_it_starts() {
    let bench = bench_with("small.toml", SMALL);
    let output = bench
        .command("run small.toml --output run")
        .env("TARE_AGENT", "/nowhere/tare-agent")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("make build"), "{said}");
    assert_eq!(files(&bench.work()), ["small.toml"]);
}

#[test]
fn the_published_studies_are_listed() {
    let bench = Bench::new();
    bench
        .run("reproduce kot-2091")
        .expect(2, &["known: kot-2019"]);
    bench.run("reproduce --list").expect(
        0,
        &[
            "kot-2019        ",
            "landolfi-2018   ",
            "calder-2020     ",
            "cse221-2022     ",
            "includeos-2015  What does a service cost",
        ],
    );
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn the_study_of_noise_is_planned_in_both_variants() {
    let bench = Bench::new();
    if !unikernel::is_usable(&bench) {
        return;
    }
    bench
        .run("reproduce kot-2019 --dry-run")
        .expect(0, &["10075 cells"]);
    bench.run("reproduce kot-2019 --quick --dry-run").expect(
        0,
        &["78 cells", "unikernel,irq=off prime 46", "nohz_full=1 gap"],
    );
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn the_study_of_wakeups_is_planned_in_all_variants() {
    let bench = Bench::new();
    let planned = bench.run("reproduce landolfi-2018 --dry-run");
    if planned.code == Some(5) {
        return skip("landolfi-2018", planned.err.trim());
    }
    planned.expect(
        0,
        &["20 cells", "process wakeup in 7 phases of 25 s traced"],
    );
    bench
        .run("reproduce landolfi-2018 --quick --dry-run")
        .expect(0, &["5 cells", "kernel=debian-rt", "7 phases of 3 s"]);
    bench
        .run("reproduce landolfi-2018 --deterministic --phase 0.5 --dry-run")
        .expect(0, &["4 cells", "clock=instructions", "7 phases of 0.5 s"]);
    bench
        .run("reproduce kot-2019 --deterministic --dry-run")
        .expect(2, &["kot-2019 has no deterministic variant"]);
    bench
        .run("reproduce kot-2019 --phase 1 --dry-run")
        .expect(2, &["kot-2019 has no phases"]);
    bench
        .run("reproduce landolfi-2018 --phase 10ns --dry-run")
        .expect(2, &["'10ns' is no length of a phase"]);
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

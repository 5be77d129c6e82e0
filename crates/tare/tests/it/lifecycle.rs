//! A run ends cleanly however it ends: by itself, by Ctrl-C, by `kill -9`.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::common::{self, Bench, agents_of, files, processes_with, wait_for};
use rustix::process::Signal;

/// A run of three cells of about two seconds.
const RUN: &str = "noise --workload gap --repetitions 200000000 --runs 3 --output run";

fn cells(run: &Path) -> usize {
    let whole = |name: &String| name.starts_with("cells/0") && name.ends_with("cell.json");
    files(run).iter().filter(|name| whole(name)).count()
}

#[test]
fn the_first_interrupt_finishes_the_cell_and_resuming_runs_only_what_is_missing() {
    let bench = Bench::new();
    let started = bench.start(RUN);
    started.measures();
    started.signal(Signal::INT);
    let said = [
        "interrupted: 2 cells are missing",
        "--resume",
        "report.html",
    ];
    started.end().expect(4, &said);
    let run = bench.work().join("run");
    assert_eq!(cells(&run), 1);
    assert!(run.join("report.html").exists());
    let first = run.join("cells/0001/cell.json");
    let before = fs::read(&first).unwrap();

    bench
        .run("noise --resume run --dry-run")
        .expect(0, &["2 cells"]);
    bench.run("noise --resume run").expect(0, &["[2/2]"]);
    assert_eq!(cells(&run), 3);
    assert_eq!(fs::read(&first).unwrap(), before);
    bench
        .run("noise --resume run")
        .expect(0, &["run is complete"]);
}

#[test]
fn the_second_interrupt_stops_at_once_and_leaves_no_process() {
    let bench = Bench::new();
    let started =
        bench.start("noise --workload gap --repetitions 5000000000 --runs 2 --output run");
    let (tare, agent) = (started.pid(), started.agent());
    started.measures();
    started.signal(Signal::INT);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(
        agents_of(tare),
        [agent],
        "the first one lets the cell go on"
    );
    started.signal(Signal::INT);
    started.end().expect(4, &["2 cells are missing"]);
    assert!(!Path::new(&format!("/proc/{agent}")).exists());
}

#[test]
fn a_termination_signal_stops_at_once() {
    let bench = Bench::new();
    let started =
        bench.start("noise --workload gap --repetitions 5000000000 --runs 1 --output run");
    started.agent();
    started.signal(Signal::TERM);
    started.end().expect(4, &[]);
}

#[test]
fn after_kill_9_at_any_moment_one_more_command_leaves_nothing() {
    const ROUNDS: u64 = 8;
    const CPU: u32 = 0;
    let bench = Bench::new();
    let (_alone, switches, settings) = common::switches(CPU);
    let isolate = format!("--isolate {}", switches.join(","));
    let read = || Vec::from_iter(settings.iter().map(|path| fs::read_to_string(path).ok()));
    let before = read();
    // For the whole run, and all of them for every second cell.
    let set = if common::is_root() {
        ["--set vm.stat_interval=93", &isolate]
    } else {
        common::skip("a setting left by kill -9", "changing one requires root");
        ["", ""]
    };
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    for round in 0..ROUNDS {
        let set = set[round as usize % 2];
        let words = format!(
            "noise --workload gap,prime --repetitions 3000000 --runs 3 --cpu {CPU} --output run-{round} {set}"
        );
        let started = bench.start(&words);
        // From the very start to well into the run.
        let moment = Duration::from_millis(fastrand::u64(0..1_400));
        println!("round {round}: killed after {moment:?}");
        thread::sleep(moment);
        started.signal(Signal::KILL);
        drop(started);

        bench.run("clean").expect(0, &[]);
        wait_for("the end of all processes", || {
            processes_with(&mark).is_empty().then_some(())
        });
        assert_eq!(read(), before, "round {round}");
        assert_eq!(
            files(&bench.scratch()),
            Vec::<String>::new(),
            "round {round}"
        );
        let mut journals = files(&bench.state().join("journal"));
        journals.retain(|name| !name.ends_with(".lock"));
        assert_eq!(journals, Vec::<String>::new(), "round {round}");
    }
    // Whatever was begun can be finished.
    let begun: Vec<u64> = (0..ROUNDS)
        .filter(|n| bench.work().join(format!("run-{n}/plan.json")).exists())
        .collect();
    let last = begun
        .last()
        .expect("at least one run got as far as its plan");
    bench
        .run(&format!("noise --resume run-{last}"))
        .expect(0, &[]);
}

#[test]
fn two_runs_at_once_do_not_touch_each_other() {
    let bench = Bench::new();
    let first = bench.start("noise --workload gap --repetitions 100000000 --runs 1 --output a");
    first.agent();
    bench.run("clean").expect(0, &["nothing was left behind"]);
    bench.run("noise --resume a").expect(1, &["another"]);
    first.end().expect(0, &[]);
}

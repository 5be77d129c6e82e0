//! `tare wakeup` from the command line to the exit code.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::common::{Bench, OtherUser, Ran, files, is_root, processes_with, skip, wait_for};
use rustix::process::Signal;
use tare_results::model::{Cell, Labels, Record};

/// A short measurement that any machine can do: woken 100 times.
const SHORT: &str = "wakeup -i 1000 -l 100 --policy other";

fn cell(run: &Path, id: u32) -> Cell {
    let text = fs::read(run.join(format!("cells/{id:04}/cell.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Reads what was measured in a cell.
fn record(run: &Path, id: u32) -> Record {
    let outcome = cell(run, id).outcome;
    outcome.record().expect("it was measured").clone()
}

/// Returns a fact about the first thread.
fn told<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    record.programs[0].fact_of(name, &Labels::of([("thread", "0")]))
}

#[test]
fn arguments_that_make_no_sense_are_usage_errors() {
    let bench = Bench::new();
    for (words, said) in [
        ("-i 0.5", "interval must be from 1 µs to 60 s, not 500 ns"),
        ("-i 61s", "interval must be from 1 µs to 60 s, not 61 s"),
        ("-i soon", "want a number, of us or with a unit"),
        ("-p 100", "priority must be from 1 to 99, not 100"),
        ("-p 0", "priority must be from 1 to 99, not 0"),
        ("--policy other -p 3", "SCHED_OTHER has no priority"),
        ("--policy batch", "invalid value 'batch'"),
        ("-D 32d", "duration must be from 1 µs to 2678400 s"),
        ("-D 50us", "nothing would be woken within 50 µs"),
        ("-l 0", "loops must be from 1"),
        ("-t 2000", "threads must be from 0 to 1024, not 2000"),
        ("-t 2 -S", "omit threads and affinity"),
        ("-a 9999", "want CPUs"),
        ("-a 1023", "CPU 1023 is not online"),
        (
            "-a 0 --mainaffinity 0",
            "leaves the thread that starts and watches the measurement no CPU",
        ),
        ("--load idle --phase 1 -D 5", "leave out duration and loops"),
        ("--load idle --load idle", "a load is given twice"),
        ("--threshold 0", "a threshold of 0 would list every wake-up"),
        ("--trace 101", "trace must be from 0 to 100, not 101"),
        ("--on-threshold continue", "'on-threshold' has no effect"),
        (
            "--trace-above 5 --on-threshold stop",
            "want report (or trace), signal:NAME",
        ),
        (
            "--trace-above 5 --on-threshold signal:99",
            "want a signal from 1 to 31",
        ),
        ("--target dokcer", "there is no target 'dokcer'"),
        ("--resume run -i 5", "cannot be used with"),
    ] {
        bench.run(&format!("wakeup {words}")).expect(2, &[said]);
    }
    bench
        .run("wakeup --dry-run --policy other -t1 -d0")
        .expect(0, &[]);
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn a_dry_run_prints_the_plan_and_leaves_nothing() {
    let bench = Bench::new();
    let ran = bench.run(
        "wakeup -a 0 -i 250 --policy other --runs 2 --seed 1 --trace --dry-run --phase 1.5 --load idle \
         --load dd --load idle",
    );
    ran.expect(0, &[]);
    // The reason for that CPU, and whether it may take longer, depend on how busy it is just now.
    let out = ran
        .out
        .replace("; longer if the measured CPU stays busy", "");
    let plan: Vec<&str> = out
        .lines()
        .filter(|line| !line.starts_with("on CPU"))
        .collect();
    insta::assert_snapshot!(plan.join("\n"));
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

#[test]
fn a_run_keeps_what_every_activation_came_to() {
    let bench = Bench::new();
    let ran = bench.run(&format!("{SHORT} --runs 2 --output run"));
    ran.expect(
        0,
        &[
            "2 cells",
            "a thread under SCHED_OTHER, woken every 1 ms",
            "report.html",
        ],
    );
    for id in 1..=2 {
        let record = record(&bench.work().join("run"), id);
        assert_eq!(told(&record, "scheduling policy"), Some("other"));
        let [head] = &record.sets[..] else {
            panic!("{record:?}");
        };
        assert_eq!((head.measure.as_str(), head.n), ("latency", 100));
        assert!(head.max >= head.min);
    }
    bench.run("report run").expect(0, &["report.html"]);
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn a_thread_on_each_cpu_is_measured() {
    let bench = Bench::new();
    bench
        .run(&format!("{SHORT} -S --runs 1 --output run"))
        .expect(0, &["every CPU that tare may use is measured"]);
    let record = record(&bench.work().join("run"), 1);
    let cpus = rustix::thread::sched_getaffinity(None).unwrap().count();
    assert_eq!(record.sets.len(), cpus as usize);
    assert!(record.sets.iter().all(|head| head.period == 1_000_000));
}

#[test]
fn an_interval_that_leaves_no_time_to_sleep_is_a_failed_cell() {
    let bench = Bench::new();
    let ran = bench.run("wakeup -i 1 -l 1000 --policy other --runs 1 --output run");
    ran.expect(1, &["1 of 1 cells failed"]);
}

#[test]
fn a_late_wake_up_ends_the_measurement_with_its_own_exit_code_and_acts() {
    let bench = Bench::new();
    // No machine wakes a thread within a nanosecond.
    let mut command = bench.command(
        "wakeup -i 1000 -D 60 --policy other --trace-above 1ns --trace 0 --output run --on-threshold",
    );
    command.arg("command:echo $TARE_LATENCY_NS $TARE_THREAD $TARE_ACTIVATION > late; echo heard");
    let ran = Ran::of(command.output().unwrap());
    ran.expect(3, &["1 cell", "above the limit, sample ", "heard"]);
    assert!(!ran.out.contains("heard"), "{ran:?}");
    let written = fs::read_to_string(bench.work().join("late")).unwrap();
    let words: Vec<u64> = written
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    let record = record(&bench.work().join("run"), 1);
    let exceeded = record.exceeded[0];
    let told = [exceeded.value, exceeded.set.into(), exceeded.index];
    assert_eq!(words, told);
    // It stopped long before its sixty seconds were over.
    assert!(record.sets[0].n < 60_000);
    bench.run("report run").expect(0, &[]);
}

#[test]
fn a_late_wake_up_is_signalled() {
    let bench = Bench::new();
    let words = "wakeup -i 1000 -D 60 --policy other --trace-above 1ns --trace 0 --output";
    // To the parent, which is a shell that waits for it.
    let output = Command::new("sh")
        .args([
            "-c",
            "trap 'echo heard' USR1; \"$@\"; echo ended with $?",
            "sh",
        ])
        .arg(env!("CARGO_BIN_EXE_tare"))
        .args(words.split_whitespace())
        .args([
            "parent",
            "--on-threshold",
            "signal:USR1",
            "--on-threshold",
            "report",
        ])
        .current_dir(bench.work())
        .env("TARE_STATE_DIR", bench.state())
        .output()
        .unwrap();
    Ran::of(output).expect(0, &["heard\n", "ended with 3\n"]);
    // To another process, which that ends.
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let to = format!("signal:TERM,pid={}", sleep.id());
    let ran = bench.run(&format!("{words} other --on-threshold {to}"));
    let alive = sleep.try_wait().unwrap().is_none();
    if alive {
        sleep.kill().unwrap();
    }
    let status = sleep.wait().unwrap();
    ran.expect(3, &["above the limit"]);
    assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
    // It is gone: that is reported, and the measurement is kept.
    bench
        .run(&format!("{words} gone --on-threshold {to}"))
        .expect(3, &["could not be sent to process", "report.html"]);
}

#[test]
fn a_deadline_thread_runs_on_any_cpu_unless_one_is_named() {
    let bench = Bench::new();
    let ran = bench.run("wakeup --policy deadline -i 5000 -D 0.2 --runs 1 --output run");
    if ran.code == Some(5) || ran.out.contains("is refused") && !ran.out.contains("pinned") {
        return skip("SCHED_DEADLINE", ran.err.trim());
    }
    ran.expect(0, &["a thread under SCHED_DEADLINE on any CPU"]);
    let record = record(&bench.work().join("run"), 1);
    assert_eq!(told(&record, "scheduling policy"), Some("deadline"));
    assert_eq!(told(&record, "CPU"), None);
}

#[test]
fn measuring_goes_on_after_a_late_wake_up_if_asked_to() {
    let bench = Bench::new();
    let run = bench.work().join("run");
    let mut command = bench.command(&format!(
        "{SHORT} --trace-above 1ns --trace 0 --runs 1 --output run --on-threshold continue \
         --on-threshold"
    ));
    command.arg("command:echo late >> log; until [ -e enough ]; do sleep 0.1; done");
    let child = command.spawn().unwrap();
    wait_for("the cell", || {
        run.join("cells/0001/cell.json").exists().then_some(())
    });
    fs::write(bench.work().join("enough"), "").unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap());
    ran.expect(3, &["more times while the command of an action still ran"]);
    let record = record(&run, 1);
    assert_eq!(record.sets[0].n, 100);
    assert!(record.exceeded.len() > 1);
    // It ran on, so it was started once, and did not outlive the run.
    assert_eq!(
        fs::read_to_string(bench.work().join("log")).unwrap(),
        "late\n"
    );
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
}

#[test]
fn without_the_right_to_real_time_it_is_told_what_to_do() {
    let Some(user) = OtherUser::new() else {
        return skip("another user", "becoming one requires root and setpriv");
    };
    user.run("wakeup").expect(
        5,
        &[
            "SCHED_FIFO can't be used here",
            "to make it usable",
            "--policy other",
        ],
    );
    assert!(!user.folder().join("tare-runs").exists());
    user.run("wakeup -i 1000 -l 50 --runs 1 --policy other")
        .expect(0, &[]);
}

#[test]
fn without_a_real_time_budget_it_is_told_what_to_do() {
    const GROUPS: &str = "/sys/fs/cgroup/cpu";
    if !is_root() || !Path::new(GROUPS).join("cpu.rt_runtime_us").exists() {
        return skip("RT_GROUP_SCHED", "its control groups are not here");
    }
    let bench = Bench::new();
    let group = format!("{GROUPS}/test-of-tare-{}", std::process::id());
    if let Err(error) = fs::create_dir(&group) {
        return skip(
            "RT_GROUP_SCHED",
            &format!("no control group can be made: {error}"),
        );
    }
    let output = Command::new("sh")
        .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"", &group])
        .args([env!("CARGO_BIN_EXE_tare"), "wakeup"])
        .current_dir(bench.work())
        .env("TARE_STATE_DIR", bench.state())
        .output()
        .unwrap();
    fs::remove_dir(&group).unwrap();
    Ran::of(output).expect(
        5,
        &[
            "no real-time budget",
            &format!("sudo tee {group}/cpu.rt_runtime_us"),
        ],
    );
    assert_eq!(files(&bench.work()), Vec::<String>::new());
}

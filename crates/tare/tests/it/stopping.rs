//! What the user's impatience costs: nothing that was measured, and no more than a moment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{
    self, Bench, Started, files, is_root, json, processes_with, send, skip, wait_for,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
use rustix::process::Signal;
use tare_results::model::Cell;

/// Longer than the two seconds that anything here may take where bursts of stolen time let it, and
/// much shorter than the limits that it must not take.
const MOMENT: Duration = Duration::from_secs(6);

/// A measurement of a minute.
const MINUTE: &str = "wakeup -D 60 -i 1000 --policy other --output run";

fn cell(run: &Path, id: u32) -> Cell {
    let text = fs::read(run.join(format!("cells/{id:04}/cell.json"))).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn an_interrupt_ends_wakeups_at_once_and_reports_all_of_them_as_cut_short() {
    for signal in [Signal::INT, Signal::TERM] {
        let bench = Bench::new();
        let started = bench.start(&format!("{MINUTE} --runs 2"));
        started.wakes();
        let begun = Instant::now();
        started.signal(signal);
        let ran = started.end();
        assert!(begun.elapsed() < MOMENT, "{:?}", begun.elapsed());
        ran.expect(
            4,
            &[
                "ending this cell",
                "Cut short: cell 1 (interrupted after ",
                "one cell was cut short, 1 cell is missing",
                "`tare wakeup --resume run` continues the run",
            ],
        );
        let run = bench.work().join("run");
        let cell = cell(&run, 1);
        let why = cell.outcome.cut_short().unwrap();
        assert!(why.starts_with("interrupted after "), "{why}");
        let n = cell.outcome.record().unwrap().sets[0].n;
        assert!((1..59_000).contains(&n), "{n}");
        // All of them, woken or missed, until it was asked to end, but for those of the time in
        // which it got no CPU at first.
        let summary = json(&run.join("summary.json"));
        let totals = summary["figures"].as_array().unwrap().iter();
        let totals = totals.filter(|row| {
            let is_of = |measure| row["measure"] == measure;
            row["figure"] == "total" && (is_of("wake-ups") || is_of("missed"))
        });
        let due: f64 = totals.map(|row| row["value"].as_f64().unwrap()).sum();
        let seconds = why.split(' ').nth(2).unwrap().parse::<f64>().unwrap();
        assert!(due >= 500.0 * seconds, "{why}: {due}");
        let page = fs::read_to_string(run.join("report.html")).unwrap();
        assert!(page.contains("Cut short: cell 1"));
        let alarms = &json(&run.join("summary.json"))["alarms"];
        assert!(alarms.to_string().contains("\"cut-short\""), "{alarms}");
        // It is no whole cell.
        bench
            .run("wakeup --resume run --dry-run")
            .expect(0, &["2 cells"]);
        bench.run("report run").expect(0, &["Cut short: cell 1"]);
        bench
            .run("export run --format csv --cell 1")
            .expect(0, &["cell 1 was cut short (interrupted after "]);
        bench
            .run("wakeup -D 0.5 -i 1000 --policy other --runs 1 --output whole")
            .expect(0, &[]);
        bench
            .run("compare whole --to run")
            .expect(0, &["Cut short: cell 1 of run."]);
    }
}

#[test]
fn what_went_wrong_after_an_interrupt_is_told() {
    let bench = Bench::new();
    let started = bench.start(MINUTE);
    started.wakes();
    fs::remove_dir_all(bench.work().join("run/cells")).unwrap();
    started.signal(Signal::INT);
    let ran = started.end();
    assert!(!ran.err.contains("nothing was measured"), "{ran:?}");
    ran.expect(1, &["run/cells"]);
}

#[test]
fn an_interrupt_ends_quick_before_it_measures() {
    let bench = Bench::new();
    let folder = hanging(&bench, &["qemu-system-x86_64"]);
    let started = start_with(&bench, &folder, "quick");
    wait_for_helper(&folder);
    started.signal(Signal::INT);
    started.signal(Signal::TERM);
    started.end().expect(4, &["interrupted"]);
    assert_nothing_is_left(&bench);
}

#[test]
fn the_first_interrupt_says_how_long_the_cell_takes_yet() {
    let bench = Bench::new();
    let started = bench.start("noise --workload gap --repetitions 200000000 --runs 2 --output run");
    started.measures();
    started.signal(Signal::INT);
    let ran = started.end();
    ran.expect(4, &["finishing this cell (", "); again to stop"]);
}

/// Makes a folder with programs of these names that do nothing, forever, and ignore requests to
/// end.
fn hanging(bench: &Bench, names: &[&str]) -> PathBuf {
    let folder = bench.work().with_file_name("hanging");
    fs::create_dir(&folder).unwrap();
    for name in names {
        let path = folder.join(name);
        let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo QEMU emulator version 7.2.0 && exit\n\
                      trap '' INT TERM HUP\nwhile :; do sleep 1000; done\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Starts `tare` with a folder in front of PATH.
fn start_with(bench: &Bench, folder: &Path, words: &str) -> Started {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", folder.display());
    Started::of(bench.command(words).env("PATH", path))
}

/// Waits until a helper in a folder runs.
fn wait_for_helper(folder: &Path) {
    let program = folder.display().to_string();
    wait_for("a helper", || {
        let runs = |entry: fs::DirEntry| {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            words.contains(&program) && !words.contains("--version")
        };
        let mut processes = fs::read_dir("/proc").unwrap().flatten();
        processes.any(runs).then_some(())
    });
}

fn assert_nothing_is_left(bench: &Bench) {
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

const NOISE: &str = "noise --workload prime --repetitions 1000 --runs 1 --output run";

#[test]
fn no_helper_that_hangs_outlasts_the_second_interrupt() {
    for (helpers, target, takes_root) in [
        (&["ssh"][..], "ssh,host=somewhere", false),
        (&["qemu-system-x86_64"], "unikernel,accel=tcg", false),
        (&["podman"], "podman", true),
        (&["dockerd", "containerd"], "docker --start-engine", true),
    ] {
        if takes_root && !is_root() {
            skip(target, "it requires root");
            continue;
        }
        let _engine = target.starts_with("docker").then(common::engine);
        let bench = Bench::new();
        let folder = hanging(&bench, helpers);
        let mut command = bench.command(&format!("{NOISE} --target {target}"));
        // Neither the user's engine nor the one of this machine.
        let nowhere = format!("unix://{}/none", folder.display());
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let started = Started::of(command.env("PATH", path).env("DOCKER_HOST", nowhere));
        wait_for_helper(&folder);
        let begun = Instant::now();
        for _ in 0..2 {
            started.signal(Signal::INT);
            thread::sleep(Duration::from_millis(100));
        }
        let ran = started.end();
        assert!(begun.elapsed() < MOMENT, "{target}: {:?}", begun.elapsed());
        ran.expect(4, &["interrupted"]);
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn the_limit_of_a_cell_holds_for_its_preparation() {
    if !is_root() {
        return skip("podman", "it requires root");
    }
    let bench = Bench::new();
    let folder = hanging(&bench, &["podman"]);
    let begun = Instant::now();
    let words = format!("{NOISE} --target podman --cell-limit 1s");
    let ran = start_with(&bench, &folder, &words).end();
    assert!(begun.elapsed() < 2 * MOMENT, "{:?}", begun.elapsed());
    ran.expect(
        1,
        &["timed out after 1 s while preparing its target and its load"],
    );
    assert_nothing_is_left(&bench);
}

#[test]
fn time_in_which_tare_was_stopped_does_not_count() {
    let bench = Bench::new();
    let started = bench
        .start("noise --workload gap --repetitions 5000000 --runs 1 --cell-limit 3s --output run");
    let agent = started.agent();
    // As when a virtual machine is suspended.
    started.signal(Signal::STOP);
    send(agent, Signal::STOP);
    thread::sleep(Duration::from_millis(3_500));
    send(agent, Signal::CONT);
    started.signal(Signal::CONT);
    started.end().expect(0, &["report.html"]);
}

/// Starts wake-ups under a load, and waits until they are measured. Returns the process ids of the
/// load's driver and of the measured agent, too.
fn under_a_load(bench: &Bench, words: &str) -> (Started, u32, u32) {
    let words = format!("wakeup -i 1000 --policy other --runs 1 --output run {words}");
    let started = bench.start(&words);
    let (driver, agent) = wait_for("two agents", || {
        // The load was there first.
        match common::agents_of(started.pid())[..] {
            [driver, agent] => Some((driver.min(agent), driver.max(agent))),
            _ => None,
        }
    });
    wait_for("a measuring thread", || {
        let tasks = fs::read_dir(format!("/proc/{agent}/task")).ok()?;
        let mut names = tasks.map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        let measures = |name: String| name.starts_with("tare-measure");
        names.any(|name| name.is_some_and(measures)).then_some(())
    });
    thread::sleep(Duration::from_secs(1));
    (started, driver, agent)
}

#[test]
fn an_interrupt_ends_wakeups_under_a_load_and_in_phases() {
    for loads in ["--load dd -D 60", "--load dd --load idle --phase 40"] {
        let bench = Bench::new();
        let (started, _, _) = under_a_load(&bench, loads);
        started.signal(Signal::INT);
        let ran = started.end();
        ran.expect(4, &["Cut short: cell 1 (interrupted after "]);
        let cell = cell(&bench.work().join("run"), 1);
        assert!(cell.load.is_some(), "{:?}", cell.notices);
        let heads = &cell.outcome.record().unwrap().sets;
        let n: u64 = heads.iter().map(|head| head.n).sum();
        assert!((1..59_000).contains(&n), "{n}");
        assert_nothing_is_left(&bench);
    }
}

#[test]
fn wakeups_are_kept_whose_load_does_not_end() {
    let bench = Bench::new();
    let (started, driver, agent) = under_a_load(&bench, "--load dd -D 60");
    send(driver, Signal::STOP);
    started.signal(Signal::INT);
    wait_for("the end of the agent", || {
        let is_left = common::agents_of(started.pid()).contains(&agent);
        (!is_left).then_some(())
    });
    let begun = Instant::now();
    started.signal(Signal::INT);
    let ran = started.end();
    assert!(begun.elapsed() < MOMENT, "{:?}", begun.elapsed());
    ran.expect(4, &["Cut short: cell 1 (interrupted after "]);
    assert_is_kept_without_its_load(&bench, "the load could not be ended in time");
}

#[test]
fn the_limit_of_a_cell_holds_for_its_end() {
    let bench = Bench::new();
    let (started, driver, _) = under_a_load(&bench, "--load dd -D 3 --cell-limit 10s");
    send(driver, Signal::STOP);
    started.end().expect(0, &["report.html"]);
    assert_is_kept_without_its_load(&bench, "timed out after 10 s while ending its load");
}

fn assert_is_kept_without_its_load(bench: &Bench, notice: &str) {
    let cell = cell(&bench.work().join("run"), 1);
    assert!(cell.load.is_none());
    let said = cell.notices.iter().any(|said| said.contains(notice));
    assert!(said, "{:?}", cell.notices);
    let n = cell.outcome.record().unwrap().sets[0].n;
    assert!(n >= 1, "{n}");
    assert_nothing_is_left(bench);
}

#[test]
fn a_signal_ends_waiting_for_whoever_writes_to_a_pipe() {
    for words in ["import oslat pipe", "run pipe", "study check pipe"] {
        for signal in [Signal::INT, Signal::TERM] {
            let bench = Bench::new();
            let pipe = bench.work().join("pipe");
            mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
            let started = bench.start(words);
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let writer = wait_for("a reader", || open(&pipe, flags, Mode::empty()).ok());
            started.signal(signal);
            let status = started.wait();
            assert_eq!(status.signal(), Some(signal.as_raw()), "{words}");
            drop(writer);
        }
    }
}

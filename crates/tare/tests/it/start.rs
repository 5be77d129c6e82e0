//! Starting instances, with the real engines, runtimes and guests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tare_results::RunFolder;
use tare_results::model::{Cell, Instance, InstanceOutcome};

use crate::common::{self, Bench, Started, files, is_root, processes_with, send, skip, wait_for};

/// All kinds of target, the study's and ours, on a ladder that ends soon.
const STUDY: &str = r#"
name = "starts"
reproduces = "calder-2020"
runs = 1
start-engine = true

[[experiment]]
kind = "start"
targets = ["process", "crun", "runc", "podman", "docker", "unikernel,accel=tcg"]
interval = ["alone", "1/2s..1/4s"]
warmup = "100ms"
measure = "1s"

[[experiment]]
kind = "start"
targets = ["linux,kernel=debian-cloud-6.1,accel=tcg", "linux,root=debian,accel=tcg"]
interval = "alone"
warmup = "0s"
measure = "1s"
"#;

pub fn run_of(bench: &Bench) -> PathBuf {
    bench.work().join("run")
}

/// Returns the cells of a run, in their order, without attempts that failed.
pub fn cells(bench: &Bench) -> Vec<Cell> {
    let folder = run_of(bench).join("cells");
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    names.retain(|entry| !entry.file_name().to_string_lossy().contains('.'));
    names.sort_by_key(fs::DirEntry::file_name);
    let read = |entry: &fs::DirEntry| {
        serde_json::from_value(common::json(&entry.path().join("cell.json"))).unwrap()
    };
    names.iter().map(read).collect()
}

/// Returns the instances of a cell that is done.
pub fn instances(bench: &Bench, cell: &Cell) -> Vec<Instance> {
    let folder = RunFolder::open(&run_of(bench)).unwrap();
    folder.read(cell.plan.id).1.instances
}

/// Returns the cell of a target at an interval.
fn cell<'a>(cells: &'a [Cell], target: &str, interval: &str) -> &'a Cell {
    let found = cells.iter().find(|cell| {
        cell.plan.target == target && cell.plan.labels.get("interval") == Some(interval)
    });
    found.unwrap_or_else(|| panic!("no {target} at {interval}"))
}

pub fn assert_nothing_is_left(bench: &Bench) {
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn every_kind_of_target_is_started_beside_the_published_figures() {
    let _engine = common::engine();
    if !is_root() {
        return skip("containers", "crun and a private engine require root");
    }
    let bench = Bench::new();
    fs::write(bench.work().join("starts.toml"), STUDY).unwrap();
    let ran = bench.run("run starts.toml --output run");
    if ran.code == Some(5) {
        return skip("a place", &ran.err);
    }
    ran.expect(0, &["Claims of calder-2020", "sustained"]);
    let cells = cells(&bench);
    assert_eq!(cells.len(), 6 * 3 + 2);
    for cell in cells
        .iter()
        .filter(|cell| cell.plan.labels.get("interval") == Some("alone"))
    {
        let all = instances(&bench, cell);
        let counted = all.iter().filter(|one| one.counts == 1);
        let name = cell.plan.label();
        // One that ends as soon as it is ready may be gone before its memory is read.
        assert!(counted.clone().any(|one| one.peak_bytes > 0), "{name}");
        for one in counted {
            assert_eq!(one.outcome(), InstanceOutcome::Done, "{name}: {one:?}");
            let stamps = [one.planned_ns, one.started_ns, one.ready_ns, one.exited_ns];
            assert!(one.planned_ns > 0 && stamps.is_sorted(), "{name}: {one:?}");
            // A daemon's CPU time for an instance belongs to no process that was waited for.
            let has_cpu_time = cell.plan.target != "docker";
            assert_eq!(
                one.user_ns + one.system_ns > 0,
                has_cpu_time,
                "{name}: {one:?}"
            );
            let is_guest = cell.plan.target.kernel().is_guest();
            assert_eq!(one.kernel_ns > 0, is_guest, "{name}: {one:?}");
        }
        let record = cell.outcome.record().unwrap();
        assert_eq!(record.programs[0].agent.sha256.len(), 64, "{name}");
    }
    let with_engine = cells
        .iter()
        .filter(|cell| cell.daemons.iter().any(|daemon| daemon == "dockerd"));
    assert!(with_engine.clone().all(|cell| cell.plan.target == "docker"));
    assert_eq!(with_engine.count(), 3);
    let csv = fs::read_to_string(run_of(&bench).join("start.csv")).unwrap();
    assert!(
        csv.contains("\n,linux-tcg,") && csv.contains("\n0.25,process,"),
        "{csv}"
    );
    let page = fs::read_to_string(run_of(&bench).join("report.html")).unwrap();
    for text in [
        "Latency against offered rate",
        "Throughput against offered rate",
        "published",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_nothing_is_left(&bench);
}

/// Writes a script that can be executed.
fn script(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let path = bench.work().join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs a command of the user's own at two intervals.
fn command(bench: &Bench, words: &str) -> common::Ran {
    let mut command = bench.command(
        "start --interval alone,1/50s --warmup 0 --measure 0.4 --runs 1 --cell-limit 8s --output run --work",
    );
    command.arg(format!("command:{words}"));
    common::Ran::of(command.output().unwrap())
}

#[test]
fn commands_of_one_s_own_are_started_and_failures_have_reasons() {
    let bench = Bench::new();
    let fine = script(&bench, "fine", "echo ready");
    command(&bench, &fine.display().to_string()).expect(0, &["Ready after"]);
    for (name, text, mode, reason) in [
        (
            "fails",
            "echo oops >&2; exit 7",
            0o755,
            "it ended with status 7; it said: oops",
        ),
        (
            "hangs",
            "sleep 1000",
            0o755,
            "1 not ended; an instance is measured until it ends",
        ),
        ("silent", "exit 0", 0o755, "status 0, but it wrote nothing"),
        (
            "closed",
            "exec >&-; sleep 0.05",
            0o755,
            "status 0, but it closed its standard output without having written",
        ),
    ] {
        let bench = Bench::new();
        let path = script(&bench, name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let ran = command(&bench, &path.display().to_string());
        ran.expect(
            1,
            &[
                "no instance did its work; of ",
                reason,
                "1 of 2 cells failed, 1 not tried, see the report",
            ],
        );
        assert_nothing_is_left(&bench);
    }
    // What can't be executed is known before anything is started.
    let bench = Bench::new();
    let forbidden = script(&bench, "forbidden", "echo never");
    fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o644)).unwrap();
    command(&bench, &forbidden.display().to_string())
        .expect(5, &["lacks the permission", "chmod +x"]);
    let text = bench.work().join("text");
    for (begin, why) in [
        (
            "echo never\n",
            "without a first line that names its interpreter",
        ),
        (
            "#!/nowhere/sh\necho\n",
            "wants the interpreter '/nowhere/sh'",
        ),
    ] {
        fs::write(&text, begin).unwrap();
        fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
        command(&bench, &text.display().to_string()).expect(5, &[why]);
    }
    // A failed first instance takes none of the others with it.
    let bench = Bench::new();
    let text = "test -e begun || { : >begun; exit 7; }; echo ready";
    let once = script(&bench, "once", text);
    command(&bench, &once.display().to_string()).expect(
        0,
        &["Ready after", "1 instance of ", " failed in the warm-up:"],
    );
    // The lowest rate of a ladder is no other case.
    let bench = Bench::new();
    let words = "start --rate 4..16 --measure 1 --warmup 0 --runs 1 --output run --work";
    bench.run(&format!("{words} command:/bin/false")).expect(
        1,
        &["Nothing was measured: cell 1 ", "it ended with status 1"],
    );
    let bench = Bench::new();
    let parent = script(&bench, "parent", "sleep 1000 & echo ready");
    let ran = command(&bench, &parent.display().to_string());
    ran.expect(0, &["Ready after", "child processes of theirs still ran"]);
    assert_nothing_is_left(&bench);
    command(&Bench::new(), "/nowhere/at/all").expect(5, &["there is no program"]);
}

#[test]
fn instances_do_the_work_that_is_asked_for() {
    for work in ["thumbnail", "prime:1000"] {
        let bench = Bench::new();
        let words = "start --interval 1/20s --warmup 0 --measure 0.5 --runs 1 --output run --work";
        bench.run(&format!("{words} {work}")).expect(0, &["Ready"]);
        let cells = cells(&bench);
        let all = instances(&bench, &cells[0]);
        let is_done = |one: &Instance| one.outcome() == InstanceOutcome::Done;
        assert!(all.len() >= 10 && all.iter().all(is_done), "{all:?}");
    }
}

/// Copies an image into the working folder, and returns it as a guest that is ready by a line. None
/// if it is not built.
fn guest(bench: &Bench, ready: &str) -> Option<String> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measured/target/x86_64-unknown-linux-gnu/release/hello");
    let image = bench.work().join("own.elf");
    if fs::copy(built, &image).is_err() {
        skip("unikernel", "its images are not built");
        return None;
    }
    let image = image.display();
    Some(format!(
        "guest,image={image},ready={ready},success=33,machine=microvm,accel=tcg,mem=64M"
    ))
}

#[test]
fn an_image_that_vanishes_fails_those_that_come_later() {
    let bench = Bench::new();
    let Some(target) = guest(&bench, "^hello") else {
        return;
    };
    let started = bench.start(&format!(
        "start --target {target} --interval 1/4s --warmup 0 --measure 6 --runs 1 --output run"
    ));
    wait_for("a guest, or the end of tare", || {
        let mark = format!("TARE_STATE_DIR={}", bench.state().display());
        (processes_with(&mark).len() > 1 || started.has_ended()).then_some(())
    });
    if started.has_ended() {
        return skip("qemu", &started.end().err);
    }
    thread::sleep(Duration::from_secs(3));
    fs::remove_file(bench.work().join("own.elf")).unwrap();
    started.end().expect(0, &["saturated", "own.elf"]);
    let cells = cells(&bench);
    let all = instances(&bench, &cells[0]);
    for fate in [InstanceOutcome::Done, InstanceOutcome::Failed] {
        assert!(all.iter().any(|one| one.outcome() == fate), "{all:?}");
    }
    assert_nothing_is_left(&bench);
}

#[test]
fn an_engine_that_dies_costs_its_cell_and_not_the_ladder() {
    let _engine = common::engine();
    if !is_root() {
        return skip("a private engine", "it requires root");
    }
    let bench = Bench::new();
    let nowhere = format!("unix://{}/none", bench.work().display());
    let words = "start --target docker --start-engine --interval 2s..1/2s --warmup 0 --measure 4 --runs 1 --output run";
    let started = Started::of(bench.command(words).env("DOCKER_HOST", &nowhere));
    let first = run_of(&bench).join("cells/0001/cell.json");
    wait_for("the first rung, or the end of tare", || {
        (first.exists() || started.has_ended()).then_some(())
    });
    if started.has_ended() {
        let ran = started.end();
        assert_eq!(ran.code, Some(5), "{ran:#?}");
        return skip("a private engine", &ran.err);
    }
    // The second rung takes four seconds at least.
    thread::sleep(Duration::from_secs(1));
    let mark = format!("TMPDIR={}", bench.scratch().display());
    let is_engine = |pid: &u32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim() == "dockerd")
    };
    let engine = processes_with(&mark).into_iter().find(is_engine).unwrap();
    send(engine, Signal::KILL);
    started.end().expect(
        1,
        &[
            "cell 2 (docker hello at 1/s) failed: the engine that it needs no longer runs",
            "1 of 3 cells failed",
        ],
    );
    let all = instances(&bench, cell(&cells(&bench), "docker", "1/2s"));
    assert!(
        all.iter().any(|one| one.outcome() == InstanceOutcome::Done),
        "{all:?}"
    );
    let mut resumed = bench.command("start --resume run");
    Started::of(resumed.env("DOCKER_HOST", &nowhere))
        .end()
        .expect(0, &[]);
    let all = cells(&bench);
    assert!(all.len() == 3 && all.iter().all(|cell| cell.outcome.record().is_some()));
    assert_nothing_is_left(&bench);
}

#[test]
fn a_target_without_room_costs_its_cells_and_no_others() {
    if !is_root() {
        return skip("a full disk", "mounting one requires root");
    }
    let bench = Bench::new();
    fs::create_dir(bench.work().join("full")).unwrap();
    // In a separate mount namespace, so that nothing is left mounted.
    let script = "mount -t tmpfs -o size=200k tmpfs full && exec \"$0\" start --target crun --target process \
                  --interval alone,1/20s --warmup 0 --measure 0.5 --runs 1 --output run";
    let mut command = bench.command_of(
        Path::new("unshare"),
        &["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tare")],
    );
    let output = command.env("TMPDIR", bench.work().join("full")).output();
    let ran = common::Ran::of(output.unwrap());
    if ran.err.contains("unshare: ") || ran.err.contains("mount: ") {
        return skip("a full disk", &ran.err);
    }
    ran.expect(1, &["No space left on device", "Ready"]);
    for cell in cells(&bench) {
        let is_done = cell.outcome.record().is_some();
        assert_eq!(is_done, cell.plan.target == "process", "{:?}", cell.outcome);
    }
    assert_nothing_is_left(&bench);
}

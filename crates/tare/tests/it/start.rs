//! Starting instances, with the real engines, runtimes and guests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tare_results::RunFolder;
use tare_results::model::{Cell, Fate, Instance, Labels};

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

fn run_of(bench: &Bench) -> PathBuf {
    bench.work().join("run")
}

/// Returns the cells of a run, in their order, without attempts that failed.
fn cells(bench: &Bench) -> Vec<Cell> {
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
fn instances(bench: &Bench, cell: &Cell) -> Vec<Instance> {
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

fn assert_nothing_is_left(bench: &Bench) {
    let mark = format!("TARE_STATE_DIR={}", bench.state().display());
    assert_eq!(processes_with(&mark), Vec::<u32>::new());
    assert_eq!(files(&bench.scratch()), Vec::<String>::new());
}

#[test]
fn every_kind_of_target_is_started_beside_the_published_figures() {
    let _alone = common::alone();
    if !is_root() {
        return skip("containers", "crun and a private engine take root");
    }
    let bench = Bench::new();
    fs::write(bench.work().join("starts.toml"), STUDY).unwrap();
    let ran = bench.run("run starts.toml --output run");
    if ran.code == Some(5) {
        return skip("a place", &ran.err);
    }
    ran.expect(
        0,
        &[
            "Claims of calder-2020",
            "sustained",
            "Executed by an emulator",
        ],
    );
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
            assert_eq!(one.fate(), Fate::Done, "{name}: {one:?}");
            let stamps = [one.planned_ns, one.started_ns, one.ready_ns, one.exited_ns];
            assert!(one.planned_ns > 0 && stamps.is_sorted(), "{name}: {one:?}");
            // What a daemon spends for an instance is nobody's who was waited for.
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
        "Latency against interval",
        "Throughput against offered rate",
        "published",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert_nothing_is_left(&bench);
}

#[test]
fn overload_is_a_result() {
    let _alone = common::alone();
    if !is_root() {
        return skip("containers", "a private engine takes root");
    }
    let bench = Bench::new();
    let cap = 2_u64 << 30;
    let ran = bench.run(
        "start --target docker --target linux,kernel=debian-cloud-6.1,accel=tcg --start-engine --interval 1/4s,1/64s \
         --concurrency-limit 4 --memory-limit 2G --warmup 0.1 --measure 3 --runs 1 --output run",
    );
    if ran.code == Some(5) {
        return skip("a place", &ran.err);
    }
    ran.expect(0, &["saturated"]);
    let cells = cells(&bench);
    let linux = "linux,kernel=debian-cloud-6.1,accel=tcg";
    for target in ["docker", linux] {
        // Where other work runs, docker may not keep the longer interval, and the shorter one is left out.
        let of_target = cells.iter().filter(|cell| cell.plan.target == *target);
        let mut measured = of_target.filter_map(|cell| Some((cell, cell.outcome.record()?)));
        let (cell, record) = measured.next_back().unwrap();
        let arrived = record.arrived.as_ref().unwrap();
        assert!(arrived.saturated.is_some(), "{target}: {arrived:?}");
        let all = instances(&bench, cell);
        // Each was planned at its time, whatever became of those before.
        let interval_ns = cell.plan.arrivals.as_ref().unwrap().interval_ns.unwrap();
        assert!(
            all.windows(2)
                .all(|two| two[1].planned_ns - two[0].planned_ns == interval_ns)
        );
        let live = record.value("live", &Labels::default()).unwrap();
        // Docker may already fall behind at the longer interval, where a few are alive.
        let is_refused = all.iter().any(|one| one.fate() == Fate::Refused);
        let is_long = cell.plan.labels.get("interval") == Some("1/4s");
        assert!(is_refused || target == "docker" && is_long, "{target}");
        let used = record.value("memory in use", &Labels::default());
        assert!(
            live <= 4.0 && used.unwrap() <= 1.2 * cap as f64,
            "{target}: {live} took {used:?}"
        );
    }
    let left_out = cell(&cells, linux, "1/64s");
    assert!(
        left_out.outcome.record().is_none(),
        "{:?}",
        left_out.outcome
    );
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
        ("fails", "echo oops >&2; exit 7", 0o755, "oops"),
        ("hangs", "sleep 1000", 0o755, "not ended"),
        ("forbidden", "echo never", 0o644, "Permission denied"),
    ] {
        let bench = Bench::new();
        let path = script(&bench, name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let ran = command(&bench, &path.display().to_string());
        ran.expect(0, &["No instance became ready"]);
        let told = cells(&bench).into_iter().filter_map(|cell| {
            let arrived = cell.outcome.record()?.arrived.clone()?;
            let failures = arrived
                .failures
                .iter()
                .map(|failure| failure.reason.clone());
            Some(
                failures
                    .chain(arrived.saturated.clone())
                    .collect::<Vec<_>>(),
            )
        });
        let told: Vec<String> = told.flatten().collect();
        assert!(
            told.iter().any(|text| text.contains(reason)),
            "{name}: {told:?}"
        );
        assert_nothing_is_left(&bench);
    }
    command(&Bench::new(), "/nowhere/at/all").expect(1, &["there is no program"]);
}

#[test]
fn instances_do_the_work_that_is_asked_for() {
    for work in ["thumbnail", "prime:1000"] {
        let bench = Bench::new();
        let words = "start --interval 1/20s --warmup 0 --measure 0.5 --runs 1 --output run --work";
        bench.run(&format!("{words} {work}")).expect(0, &["Ready"]);
        let cells = cells(&bench);
        let all = instances(&bench, &cells[0]);
        let is_done = |one: &Instance| one.fate() == Fate::Done;
        assert!(all.len() >= 10 && all.iter().all(is_done), "{all:?}");
    }
}

/// Copies an image into the working folder, and returns it as a guest that is ready by a line. None if it is not built.
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
fn a_guest_that_never_gets_ready_is_told_and_others_go_on() {
    let bench = Bench::new();
    let (Some(fine), Some(never)) = (guest(&bench, "^hello"), guest(&bench, "^never$")) else {
        return;
    };
    let ran = bench.run(&format!(
        "start --target process --target {fine} --target {never} --interval alone,1/2s --warmup 0 --measure 1 --runs 1 \
         --output run"
    ));
    if ran.code == Some(5) {
        return skip("qemu", &ran.err);
    }
    ran.expect(0, &["matched ready=^never$"]);
    let cells = cells(&bench);
    for (is, fate) in [
        ("ready=^hello", Fate::Done),
        ("ready=^never$", Fate::Failed),
    ] {
        let found = cells.iter().find(|cell| {
            cell.plan.target.text.contains(is) && cell.plan.labels.get("interval") == Some("alone")
        });
        let all = instances(&bench, found.unwrap());
        let counted: Vec<_> = all.iter().filter(|one| one.counts == 1).collect();
        assert!(
            !counted.is_empty() && counted.iter().all(|one| one.fate() == fate),
            "{is}: {counted:?}"
        );
    }
    // The guest that fails ended its ladder, not that of others.
    let process = cell(&cells, "process", "1/2s").outcome.record().unwrap();
    let arrived = process.arrived.as_ref().unwrap();
    assert!(arrived.saturated.is_none(), "{arrived:?}");
    assert_nothing_is_left(&bench);
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
    for fate in [Fate::Done, Fate::Failed] {
        assert!(all.iter().any(|one| one.fate() == fate), "{all:?}");
    }
    assert_nothing_is_left(&bench);
}

#[test]
fn an_engine_that_dies_costs_its_cell_and_not_the_ladder() {
    let _alone = common::alone();
    if !is_root() {
        return skip("a private engine", "it takes root");
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
            "cell 2 (docker hello every 1s) failed: the engine that it needs no longer runs",
            "1 of 3 cells failed",
        ],
    );
    let all = instances(&bench, cell(&cells(&bench), "docker", "1/2s"));
    assert!(all.iter().any(|one| one.fate() == Fate::Done), "{all:?}");
    let mut resumed = bench.command("start --resume run");
    Started::of(resumed.env("DOCKER_HOST", &nowhere))
        .end()
        .expect(0, &[]);
    let all = cells(&bench);
    assert!(all.len() == 3 && all.iter().all(|cell| cell.outcome.record().is_some()));
    assert_nothing_is_left(&bench);
}

#[test]
fn a_gate_on_a_rung_that_was_left_out_fails() {
    let bench = Bench::new();
    // None of these ends as it should, so no rate is tried.
    let ran = bench.run(
        "start --work command:false --interval alone,100ms --warmup 0 --measure 0.2 --runs 1 --output run \
         --fail-if rate{interval=100ms}<9/s",
    );
    ran.expect(
        3,
        &["'rate{interval=100ms}<9/s' is inconclusive", "was left out"],
    );
    bench
        .run("report run --fail-if rate{interval=200ms}<9/s")
        .expect(2, &["matches no figure"]);
}

#[test]
fn a_ladder_that_was_interrupted_goes_on_where_it_was() {
    let bench = Bench::new();
    let words = "start --rate 1..64 --warmup 0 --measure 1 --runs 1 --output run";
    let started = bench.start(words);
    wait_for("the second rung", || {
        run_of(&bench)
            .join("cells/0002/cell.json")
            .exists()
            .then_some(())
    });
    started.signal(Signal::INT);
    started.end().expect(4, &["--resume"]);
    let before = cells(&bench);
    assert!((2..7).contains(&before.len()), "{}", before.len());
    bench.run("start --resume run").expect(0, &["sustained"]);
    let after = cells(&bench);
    assert_eq!(after.len(), 7);
    for (old, new) in before.iter().zip(&after) {
        let is_whole = old.outcome.cut_short().is_none();
        assert_eq!(
            old.started_at == new.started_at,
            is_whole,
            "{:?}",
            new.plan.labels
        );
    }
}

/// Writes an image as `docker save` does: one layer with the agent, which is started by it. None if that is not built.
fn saved_image(bench: &Bench) -> Option<PathBuf> {
    let agent = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../measured/target/x86_64-unknown-linux-gnu/release/tare-agent");
    let folder = bench.work().join("image");
    fs::create_dir(&folder).unwrap();
    if fs::copy(agent, folder.join("own")).is_err() {
        skip("agent", "it is not built");
        return None;
    }
    let sh = |script: &str| {
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(&folder)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let sum = sh("tar -cf layer.tar own; sha256sum layer.tar");
    let config = serde_json::json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": ["/own"], "Cmd": ["workload=start"] },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", &sum[..64])] },
    });
    let manifest = serde_json::json!([{
        "Config": "config.json",
        "RepoTags": ["tare-own-image:1"],
        "Layers": ["layer.tar"],
    }]);
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
    sh("tar -cf ../own.tar manifest.json config.json layer.tar");
    Some(bench.work().join("own.tar"))
}

#[test]
fn images_of_one_s_own_are_started_by_both_engines() {
    let _alone = common::alone();
    if !is_root() {
        return skip("containers", "a private engine takes root");
    }
    let bench = Bench::new();
    let Some(image) = saved_image(&bench) else {
        return;
    };
    let image = image.display();
    let words = format!(
        "--target docker,image={image} --target podman,image={image} --start-engine --interval alone --warmup 0 --measure 1 \
         --runs 1"
    );
    let ran = bench.run(&format!("start {words} --output run"));
    if ran.code == Some(5) {
        return skip("an engine", &ran.err);
    }
    ran.expect(0, &["Ready", "boot alone"]);
    for cell in cells(&bench) {
        let all = instances(&bench, &cell);
        let is_fine = |one: &Instance| one.fate() == Fate::Done && one.ready_ns > one.started_ns;
        assert!(!all.is_empty() && all.iter().all(is_fine), "{all:?}");
    }
    assert_nothing_is_left(&bench);
    // With a command of one's own, which says nothing: it is done all the same.
    fs::remove_dir_all(run_of(&bench)).unwrap();
    let mut command = bench.command(&format!("start {words} --output run --work"));
    let output = command
        .arg("command:workload=start work=thumbnail")
        .output();
    common::Ran::of(output.unwrap()).expect(0, &["work=command:workload=start work=thumbnail"]);
    bench
        .run(&format!(
            "noise --target docker,image={image} --start-engine"
        ))
        .expect(2, &["runs no plans"]);
    bench
        .run("start --target podman,image=alpine")
        .expect(2, &["podman save"]);
    bench
        .run("start --target docker,image=/nowhere.tar --start-engine")
        .expect(2, &["image=/nowhere.tar", "that is there"]);
}

#[test]
fn a_target_without_room_costs_its_cells_and_no_others() {
    if !is_root() {
        return skip("a full disk", "mounting one takes root");
    }
    let bench = Bench::new();
    fs::create_dir(bench.work().join("full")).unwrap();
    // In a mount namespace of its own, so that nothing is left mounted.
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

//! A run that starts an engine may die at any moment. Whenever that is, one sweep leaves nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tare_docker::Docker;
use tare_guard::{Guard, OWNER_LABEL, Options, sweep_with};
use tare_results::work::Work;
use tare_targets::engine::{Running, daemons, startable};
use tare_targets::{Availability, Engine, Job, spec};
use tare_testkit::skip;
use tare_wire::cpus::Cpus;

const STAGE: &str = "TARE_TEST_STAGE";
const MOMENTS: u32 = 6;
const LATEST_MILLISECONDS: u64 = 1_500;
/// Takes minutes.
fn long() -> Work {
    Work {
        cpus: Some(Cpus::one(0)),
        ..Work::new("gap", "repetitions=100000000000 capacity=10")
    }
}

fn options(stage: &Path) -> Options {
    Options {
        scratch_root: stage.join("s"),
        ..Options::default()
    }
}

fn guard(stage: &Path) -> Guard {
    Guard::open_with(&stage.join("state"), options(stage)).unwrap()
}

#[test]
fn nothing_of_an_engine_is_left_after_kill_9_at_random_moments() {
    if let Availability::Unusable { why, .. } = startable(Engine::Docker) {
        return skip("docker", &why);
    }
    let stage = tempfile::tempdir().unwrap();
    fs::create_dir(stage.path().join("s")).unwrap();
    let shared = shared_places();
    for round in 0..MOMENTS {
        let moment = Duration::from_millis(fastrand::u64(0..LATEST_MILLISECONDS));
        let mut owner = Command::new(std::env::current_exe().unwrap())
            .args([
                "engine::part_owner",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(STAGE, stage.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(moment);
        owner.kill().unwrap();
        owner.wait().unwrap();
        let report = sweep_with(&stage.path().join("state"), &options(stage.path()));
        let told = report.sentences();
        assert!(
            report.undo.is_complete(),
            "round {round}, after {moment:?}: {told:#?}"
        );
        println!("round {round}, after {moment:?}: {told:?}");
        let folders = fs::read_dir(stage.path().join("s")).unwrap().count();
        assert_eq!(folders, 0, "round {round}: scratch is left");
        let pid = format!("-{}-", owner.id());
        let none = [""; 0].map(PathBuf::from);
        assert_eq!(cgroups_with(&pid), none, "round {round}");
        assert_eq!(in_cgroups_with(&pid), [0_u32; 0], "round {round}");
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(stage.path().to_str().unwrap()));
    assert_eq!(shared_places(), shared);
}

/// Whoever may write to the socket of an engine is root on its host.
#[test]
fn only_root_reaches_a_private_engine() {
    if let Availability::Unusable { why, .. } = startable(Engine::Docker) {
        return skip("docker", &why);
    }
    let stage = tempfile::tempdir().unwrap();
    fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let scratch = stage.path().join("s");
    fs::create_dir(&scratch).unwrap();
    let guard = guard(stage.path());
    let engine = Running::start(Engine::Docker, &guard).unwrap();
    let socket = engine.socket();
    let mode = |path: &Path| {
        let of = fs::metadata(path).unwrap();
        assert_eq!(of.uid(), 0, "{path:?}");
        of.mode() & 0o777
    };
    assert_eq!(mode(socket) & 0o007, 0, "the socket itself");
    let folders = socket
        .ancestors()
        .skip(1)
        .take_while(|path| *path != scratch);
    let folders: Vec<_> = folders.collect();
    assert!(
        folders.iter().any(|path| mode(path) == 0o700),
        "{folders:?}"
    );
    let as_others = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "stat"])
        .arg(socket)
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&as_others.stderr);
    assert!(why.contains("Permission denied"), "{as_others:?}");
    engine.stop().unwrap();
    assert!(guard.close().is_complete());
}

#[test]
fn part_owner() {
    let Some(stage) = std::env::var_os(STAGE).map(PathBuf::from) else {
        return;
    };
    let guard = guard(&stage);
    let engine = Running::start(Engine::Docker, &guard).unwrap();
    assert!(daemons().contains(&"dockerd".to_owned()));
    let target = spec::parse("docker").unwrap();
    target.use_engine(Some(engine.socket()));
    let _instance = target.start(&Job::idle(&long()), &guard).unwrap();
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn what_a_dead_run_left_at_an_engine_of_others_is_removed() {
    if let Availability::Unusable { why, .. } = startable(Engine::Docker) {
        return skip("docker", &why);
    }
    let stage = tempfile::tempdir().unwrap();
    fs::create_dir(stage.path().join("s")).unwrap();
    let others = tempfile::tempdir().unwrap();
    fs::create_dir(others.path().join("s")).unwrap();
    let others_guard = guard(others.path());
    let engine = Running::start(Engine::Docker, &others_guard).unwrap();
    let docker = Docker::at(engine.socket());
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([
            "engine::part_guest",
            "--exact",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(STAGE, stage.path())
        .env(
            "DOCKER_HOST",
            format!("unix://{}", engine.socket().display()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let id = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("owns: ").map(|(_, id)| id.to_owned()))
        .unwrap();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let label = format!("{OWNER_LABEL}={id}");
    assert_eq!(docker.containers_with(&label).unwrap().len(), 1);
    assert_eq!(docker.images_with(&label).unwrap().len(), 1);
    let report = sweep_with(&stage.path().join("state"), &options(stage.path()));
    assert!(report.undo.is_complete(), "{:?}", report.sentences());
    assert_eq!(docker.containers_with(&label).unwrap(), [""; 0]);
    assert_eq!(docker.images_with(&label).unwrap(), [""; 0]);
    engine.stop().unwrap();
    assert!(others_guard.close().is_complete());
}

#[test]
fn part_guest() {
    let Some(stage) = std::env::var_os(STAGE).map(PathBuf::from) else {
        return;
    };
    let guard = guard(&stage);
    let target = spec::parse("docker").unwrap();
    let _instance = target.start(&Job::idle(&long()), &guard).unwrap();
    println!("owns: {}", guard.owner());
    thread::sleep(Duration::from_secs(60));
}

/// Lists the places into which engines write, as far as they are there.
fn shared_places() -> Vec<PathBuf> {
    let places = [
        "/opt/containerd",
        "/run/docker",
        "/run/docker.pid",
        "/run/containerd",
        "/etc/docker/key.json",
        "/var/lib/docker",
        "/var/lib/containerd",
    ];
    let all = places.into_iter().map(PathBuf::from);
    all.filter(|place| place.exists()).collect()
}

fn cgroups_with(mark: &str) -> Vec<PathBuf> {
    fn below(folder: &Path, depth: u32, mark: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("tare-engine") && name.contains(mark) {
                    found.push(entry.path());
                }
                if depth > 0 {
                    below(&entry.path(), depth - 1, mark, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), 2, mark, &mut found);
    found
}

/// Lists the living processes in such groups.
fn in_cgroups_with(mark: &str) -> Vec<u32> {
    let living = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let groups = fs::read_to_string(entry.path().join("cgroup")).ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let ours = groups.contains("/tare-engine") && groups.contains(mark);
            (ours && !stat.contains(") Z")).then_some(pid)
        });
    living.collect()
}

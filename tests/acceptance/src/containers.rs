//! The overhead of `tare start` on starting a container, compared with doing it manually.
//!
//! Start to exit of the agent that writes a line, in alternation: by `tare start`, one instance
//! after the other; by the engine's interface, one call after the other; and by `docker run`,
//! `runc run` and `crun run` in a shell. A private engine runs during the check, and is stopped
//! before the runtimes are timed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;
use tare_docker::Docker;
use tare_guard::{Guard, Interrupt, OWNER_LABEL, Options};
use tare_results::RunFolder;
use tare_results::model::InstanceOutcome;
use tare_results::work::Work;
use tare_targets::engine::Running;
use tare_targets::instance::{Ending, OutputEvent};
use tare_targets::{Engine, Job, spec};

use crate::verdict::Verdicts;
use crate::{Result, median, output, tare};

/// The number of turns, and of manual starts in each turn. Medians are compared within a turn: runc
/// takes 17 to 20 ms by hand from one turn to another.
const ROUNDS: usize = 15;
const BY_HAND: usize = 8;

/// The limit on the median of `tare start` relative to manual starts: at most 5 % more. Less is no
/// fault, since manual times include the fork of the shell.
const MOST: f64 = 1.05;

/// Returns the work of the containers.
fn work() -> Work {
    Work::new("start", "work=hello")
}

const LIMIT: Duration = Duration::from_secs(60);

/// Times all of them.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let options = Options {
        scratch_root: scratch.path().to_owned(),
        ..Options::default()
    };
    let guard = Guard::open_with(&scratch.path().join("state"), options)?;
    docker(scratch.path(), &guard, verdicts)?;
    for name in ["crun", "runc"] {
        runtime(name, scratch.path(), &guard, verdicts)?;
    }
    match guard.close().problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

fn docker(scratch: &Path, guard: &Guard, verdicts: &mut Verdicts) -> Result<()> {
    let engine = Running::start(Engine::Docker, guard)?;
    let host = format!("unix://{}", engine.socket().display());
    let target = spec::parse("docker")?;
    target.use_engine(Some(engine.socket()));
    // Imports the image, and warms everything up.
    once("docker", target.as_ref(), guard)?;
    let docker = Docker::at(engine.socket());
    let label = format!("{OWNER_LABEL}={}", guard.owner());
    let image = docker
        .images_with(&label)?
        .pop()
        .ok_or("the image is gone")?;
    let run = format!(
        "docker --host={host} run --network=none --log-driver=none --memory=512m --cap-add=IPC_LOCK --cap-add=SYS_NICE \
         {image} {}",
        work()
    );
    let [mut by_us, mut by_calls, mut by_command] = [const { Vec::new() }; 3];
    for round in 0..ROUNDS {
        by_us.push(median(ours("docker", &host, scratch, round)?));
        let calls: Result<Vec<f64>> = (0..BY_HAND).map(|_| calls(&docker, &image)).collect();
        by_calls.push(median(calls?));
        by_command.push(median(by_hand("", &run)?));
    }
    target.use_engine(None);
    engine.stop()?;
    let ratios = [&by_calls, &by_command].map(|others| ratio(&by_us, others));
    let (us, calls, command) = (median(by_us), median(by_calls), median(by_command));
    println!(
        "       docker, start to exit, ms: {us:.1} by tare start, {calls:.1} by the same calls, {command:.1} by docker run"
    );
    verdicts.at_most(
        "docker by tare / by the engine's interface",
        ratios[0],
        MOST,
    );
    verdicts.at_most("docker by tare / by docker run", ratios[1], MOST);
    Ok(())
}

fn runtime(name: &str, scratch: &Path, guard: &Guard, verdicts: &mut Verdicts) -> Result<()> {
    let target = spec::parse(name)?;
    once(name, target.as_ref(), guard)?;
    let prefix = format!("tare-{name}-");
    let find = |folder: &Path, is_it: &dyn Fn(&Path) -> bool| -> Result<PathBuf> {
        let mut paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
        Ok(paths.find(|path| is_it(path)).ok_or("the bundle is gone")?)
    };
    let folder = find(scratch, &|path| path.to_string_lossy().contains(&prefix))?;
    let bundle = find(&folder, &|path| path.join("config.json").exists())?;
    let group = guard.reserve_cgroup("by-hand")?;
    let bundle = bundle_like(name, &bundle, scratch, group.name())?;
    let state = scratch.join(format!("state-{name}"));
    let run = format!(
        "{name} --root {} run --bundle {} {}",
        state.display(),
        bundle.display(),
        group.name()
    );
    // crun 1.8 fails with control groups of both versions.
    let unified = Path::new("/sys/fs/cgroup/unified");
    let before = match (name, unified.is_dir()) {
        ("crun", true) => "umount /sys/fs/cgroup/unified",
        _ => "",
    };
    let [mut by_us, mut hand] = [const { Vec::new() }; 2];
    for round in 0..ROUNDS {
        by_us.push(median(ours(name, "", scratch, round)?));
        hand.push(median(by_hand(before, &run)?));
    }
    let ratio = ratio(&by_us, &hand);
    let (us, hand) = (median(by_us), median(hand));
    println!("       {name}, start to exit, ms: {us:.1} by tare start, {hand:.1} by {name} run");
    verdicts.at_most(&format!("{name} by tare / by hand"), ratio, MOST);
    Ok(())
}

/// Returns the median over turns of what `tare start` took relative to the other way.
fn ratio(us: &[f64], other: &[f64]) -> f64 {
    median(us.iter().zip(other).map(|(us, other)| us / other))
}

/// Launches once by the target, which creates everything needed.
fn once(name: &str, target: &dyn tare_targets::Target, guard: &Guard) -> Result<()> {
    let instance = target.start(&Job::idle(&work()), guard)?;
    let ended = instance.watch(LIMIT, &Interrupt::detached()?, &mut |_: OutputEvent<'_>| {})?;
    match ended.how {
        Ending::Done => Ok(()),
        other => Err(format!("the first container of {name}: {other:?}").into()),
    }
}

/// Returns the duration of each instance from its start to its end, in ms, by `tare start`.
fn ours(target: &str, host: &str, scratch: &Path, round: usize) -> Result<Vec<f64>> {
    let path = scratch.join(format!("run-{target}-{round}"));
    let words = format!("start --target {target} --interval alone --warmup 0 --measure 1 --runs 1");
    let mut command = tare(&words)?;
    if !host.is_empty() {
        command.env("DOCKER_HOST", host);
    }
    output(command.arg("--output").arg(&path))?;
    let (_, samples) = RunFolder::open(&path)?.read(1);
    let done = samples
        .instances
        .iter()
        .filter(|one| one.outcome() == InstanceOutcome::Done);
    Ok(done
        .map(|one| (one.exited_ns - one.started_ns) as f64 / 1e6)
        .collect())
}

/// Returns the same in a shell, after a preparation in its own mount namespace.
fn by_hand(before: &str, run: &str) -> Result<Vec<f64>> {
    let script = format!(
        "{before}\nfor ((i = 0; i < {BY_HAND}; i++)); do a=$EPOCHREALTIME; {run} >/dev/null; b=$EPOCHREALTIME; \
         echo $((${{b/./}} - ${{a/./}})); done"
    );
    let words = ["--mount", "--propagation=private", "bash", "-ec", &script];
    let told = output(Command::new("unshare").args(words))?;
    let each = told.lines().map(|us| Ok(us.parse::<f64>()? / 1e3));
    each.collect()
}

/// Makes the engine's calls one after the other.
fn calls(docker: &Docker, image: &str) -> Result<f64> {
    let words = work().to_string();
    let words: Vec<&str> = words.split(' ').collect();
    let device = "/dev/cpu_dma_latency";
    let devices: Vec<serde_json::Value> = Path::new(device)
        .exists()
        .then(|| json!({ "PathOnHost": device, "PathInContainer": device, "CgroupPermissions": "rw" }))
        .into_iter()
        .collect();
    let config = json!({
        "Image": image, "Cmd": words, "AttachStdout": true, "AttachStderr": true,
        "NetworkDisabled": true,
        "HostConfig": {
            "NetworkMode": "none", "LogConfig": { "Type": "none" }, "Memory": 512 << 20,
            "CapAdd": ["IPC_LOCK", "SYS_NICE"], "Devices": devices,
        },
    });
    let begun = Instant::now();
    let id = docker.create(&config)?.id;
    let mut attached = docker.attach(&id)?;
    docker.start(&id)?;
    let mut exit = docker.exit(&id)?;
    let mut status = None;
    while status.is_none() || !attached.ended() {
        let mut news = Vec::new();
        if !attached.ended() {
            news.push(PollFd::new(&attached, PollFlags::IN));
        }
        if status.is_none() {
            news.push(PollFd::new(&exit, PollFlags::IN));
        }
        poll(&mut news, None)?;
        drop(news);
        attached.read(|_, _| {})?;
        status = exit.status()?;
    }
    let took = begun.elapsed();
    docker.remove_container(&id)?;
    match status {
        Some(0) => Ok(took.as_secs_f64() * 1e3),
        other => Err(format!("the container by hand ended with {other:?}").into()),
    }
}

/// Copies a bundle's configuration, with another control group.
fn bundle_like(name: &str, bundle: &Path, scratch: &Path, group: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(bundle.join("config.json"))?;
    let mut config: serde_json::Value = serde_json::from_str(&text)?;
    config["linux"]["cgroupsPath"] = json!(format!("/{group}"));
    let copy = scratch.join(format!("bundle-{name}"));
    fs::create_dir(&copy)?;
    fs::write(copy.join("config.json"), config.to_string())?;
    Ok(copy)
}

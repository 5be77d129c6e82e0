//! What `tare` adds to starting a container, against the same done by hand.
//!
//! Start to exit of the agent with a plan of a few milliseconds, in alternation: by the target
//! `docker`, by the engine's interface called one after the other, and by `docker run`; by the
//! target `crun`, and by the command `crun run` on the same bundle. A private engine is started for
//! the time of the check, and stopped before crun is timed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::json;
use tare_docker::Docker;
use tare_guard::{Guard, Interrupt, OWNER_LABEL, Options};
use tare_results::work::Work;
use tare_targets::engine::Running;
use tare_targets::instance::{Ending, Watcher};
use tare_targets::{Engine, Job, Target, spec};
use tare_wire::cpus::Cpus;

use crate::verdict::Verdicts;
use crate::{Result, median, output};

const ROUNDS: usize = 21;

/// Returns what is measured.
fn work() -> Work {
    Work {
        cpus: Some(Cpus::one(0)),
        ..Work::new("prime", "limit=22 repetitions=1000")
    }
}

const LIMIT: Duration = Duration::from_secs(60);

/// Times both kinds.
pub fn run(verdicts: &mut Verdicts) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let options = Options {
        scratch_root: scratch.path().to_owned(),
        ..Options::default()
    };
    let guard = Guard::open_with(&scratch.path().join("state"), options)?;
    docker(&guard, verdicts)?;
    crun(scratch.path(), &guard, verdicts)?;
    match guard.close().problems.into_iter().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

fn docker(guard: &Guard, verdicts: &mut Verdicts) -> Result<()> {
    let engine = Running::start(Engine::Docker, guard)?;
    let target = spec::parse("docker")?;
    target.use_engine(Some(engine.socket()));
    // Imports the image, and warms everything up.
    ours(target.as_ref(), guard)?;
    let docker = Docker::at(engine.socket());
    let label = format!("{OWNER_LABEL}={}", guard.owner());
    let image = docker
        .images_with(&label)?
        .pop()
        .ok_or("the image is gone")?;
    let [mut by_us, mut by_calls, mut by_command] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        by_us.push(ours(target.as_ref(), guard)?);
        by_calls.push(calls(&docker, &image)?);
        by_command.push(docker_run(engine.socket(), &image)?);
    }
    target.use_engine(None);
    engine.stop()?;
    let (us, calls, command) = (median(by_us), median(by_calls), median(by_command));
    println!(
        "       docker, start to exit, ms: {us:.1} by tare, {calls:.1} by the same calls, \
         {command:.1} by docker run"
    );
    let what = "docker by tare / by the engine's interface";
    verdicts.at_most(what, us / calls, 1.1);
    verdicts.at_most("docker by tare / by docker run", us / command, 1.1);
    Ok(())
}

fn crun(scratch: &Path, guard: &Guard, verdicts: &mut Verdicts) -> Result<()> {
    let target = spec::parse("crun")?;
    ours(target.as_ref(), guard)?;
    let folder = fs::read_dir(scratch)?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("tare-crun-"))
        .ok_or("the bundle is gone")?;
    let group = guard.reserve_cgroup("by-hand")?;
    let bundle = bundle_like(&folder.join("bundle-1"), scratch, group.name())?;
    let state = scratch.join("state-by-hand");
    let [mut by_us, mut by_hand] = [const { Vec::new() }; 2];
    for _ in 0..ROUNDS {
        by_us.push(ours(target.as_ref(), guard)?);
        by_hand.push(crun_run(&state, &bundle, group.name())?);
    }
    let (us, hand) = (median(by_us), median(by_hand));
    println!("       crun, start to exit, ms: {us:.1} by tare, {hand:.1} by crun run");
    verdicts.at_most("crun by tare / by hand", us / hand, 1.1);
    Ok(())
}

/// Launches by the target; returns start to exit in ms.
fn ours(target: &dyn Target, guard: &Guard) -> Result<f64> {
    struct Nobody;
    impl Watcher for Nobody {
        fn line(&mut self, _line: &[u8], _at_ns: u64) {}
    }
    let instance = target.launch(&Job::idle(&work()), guard)?;
    let started_ns = instance.started_ns;
    let ended = instance.watch(LIMIT, &Interrupt::detached()?, &mut Nobody)?;
    match ended.how {
        Ending::Done => Ok((ended.exited_ns - started_ns) as f64 / 1e6),
        other => Err(format!("the container of tare: {other:?}").into()),
    }
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
            "NetworkMode": "none", "LogConfig": { "Type": "none" }, "Memory": 64 << 20,
            "CpusetCpus": "0", "CapAdd": ["IPC_LOCK", "SYS_NICE"], "Devices": devices,
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

fn docker_run(socket: &Path, image: &str) -> Result<f64> {
    let mut command = Command::new("docker");
    command
        .arg(format!("--host=unix://{}", socket.display()))
        .args(["run", "--network=none", "--log-driver=none", "--memory=64m"])
        .args([
            "--cpuset-cpus=0",
            "--cap-add=IPC_LOCK",
            "--cap-add=SYS_NICE",
        ])
        .arg(image)
        .args(work().to_string().split(' '));
    timed(&mut command)
}

/// Copies a bundle's configuration, with a control group of its own.
fn bundle_like(bundle: &Path, scratch: &Path, group: &str) -> Result<PathBuf> {
    let text = fs::read_to_string(bundle.join("config.json"))?;
    let mut config: serde_json::Value = serde_json::from_str(&text)?;
    config["linux"]["cgroupsPath"] = json!(format!("/{group}"));
    let copy = scratch.join("bundle-by-hand");
    fs::create_dir(&copy)?;
    fs::write(copy.join("config.json"), config.to_string())?;
    Ok(copy)
}

/// Runs crun as a person would: where control groups of both versions are mounted, which crun 1.8
/// can't bear, under `unshare` and without those of version 2.
fn crun_run(state: &Path, bundle: &Path, name: &str) -> Result<f64> {
    let run = format!(
        "exec crun --root {} run --bundle {} {name}",
        state.display(),
        bundle.display()
    );
    let unified = Path::new("/sys/fs/cgroup/unified");
    if !unified.is_dir() {
        return timed(Command::new("sh").args(["-c", &run]));
    }
    let script = format!("umount {}; {run}", unified.display());
    let words = ["--mount", "--propagation=private", "sh", "-c", &script];
    timed(Command::new("unshare").args(words))
}

fn timed(command: &mut Command) -> Result<f64> {
    let begun = Instant::now();
    output(command)?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}

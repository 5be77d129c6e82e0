//! Runs the agent in real containers, one at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tare_guard::{Guard, Interrupt};
use tare_results::receive::Incomplete;
use tare_testkit::skip;

use super::Settings;
use super::docker::DockerTarget;
use super::podman::Podman;
use super::runtime::Runtime;
use crate::engine::{Running, startable};
use crate::instance::{Ended, Ending, OutputEvent};
use crate::measured::MeasuredFile;
use crate::spec;
use crate::tests::{
    BATCH, LONG, SHORT, Seen, TIMERS, cut_short, record, result, timers, watch, work,
};
use crate::{Availability, Engine, Instance, Job, Target};

const LIMIT: Duration = Duration::from_secs(60);

/// A target with the guard and, for docker, the engine that it uses.
struct Place {
    target: Box<dyn Target>,
    engine: Option<Running>,
    guard: Guard,
    before: Traces,
    _state: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    /// Prepares a place; None if something is missing here. `agent` is the real one unless said
    /// otherwise.
    fn new(name: &str, options: &str, agent: Option<&Path>) -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let state = tempfile::tempdir().unwrap();
        let before = Traces::see();
        let guard = Guard::open(state.path()).unwrap();
        let agent = agent.map_or_else(MeasuredFile::agent, MeasuredFile::agent_at);
        let settings = |name| Settings::read(&spec::options(name, options)).unwrap();
        let with_agent = |mut target: Runtime| {
            target.agent = agent.clone();
            Box::new(target)
        };
        let mut engine = None;
        let target: Box<dyn Target> = match name {
            "docker" => {
                if let Availability::Unusable { why, .. } = startable(Engine::Docker) {
                    skip("docker", &why);
                    return None;
                }
                let mut target = DockerTarget::new(settings("docker"));
                target.agent = agent;
                let running = Running::start(Engine::Docker, &guard).unwrap();
                target.use_engine(Some(running.socket()));
                engine = Some(running);
                Box::new(target)
            }
            "podman" => {
                let mut target = Podman::new(settings("podman"));
                target.agent = agent;
                Box::new(target)
            }
            "runc" => with_agent(Runtime::runc(settings("runc"))),
            _ => with_agent(Runtime::crun(settings("crun"))),
        };
        if let Availability::Unusable { why, .. } = target.availability() {
            skip(name, &why);
            return None;
        }
        Some(Self {
            target,
            engine,
            guard,
            before,
            _state: state,
            _turn: turn,
        })
    }

    fn launch(&self, words: &str) -> Instance {
        self.target
            .start(&Job::idle(&work(words)), &self.guard)
            .unwrap()
    }

    fn run(&self, words: &str) -> Seen {
        watch(self.launch(words), LIMIT)
    }

    /// Closes everything, and fails if something is left.
    #[track_caller]
    fn close(self) {
        self.target.use_engine(None);
        drop(self.target);
        if let Some(engine) = self.engine {
            engine.stop().unwrap();
        }
        let report = self.guard.close();
        assert!(report.is_complete(), "{:?}", report.sentences());
        self.before.assert_same();
    }
}

const ALL: [&str; 4] = ["runc", "crun", "podman", "docker"];

/// What containers leave traces in, as far as it is nobody else's.
#[derive(Debug, PartialEq, Eq)]
struct Traces {
    files: BTreeSet<PathBuf>,
    cgroups: BTreeSet<PathBuf>,
    mounts: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Traces {
    fn see() -> Self {
        let mut files = BTreeSet::new();
        for place in [
            "/run",
            "/opt",
            "/dev/shm",
            "/etc/docker",
            "/etc/cni",
            "/var/lib/docker",
            "/var/lib/containerd",
            "/var/lib/containers",
            "/var/lib/cni",
            "/var/cache/containers",
        ] {
            below(Path::new(place), 3, &|_| true, &mut files);
        }
        let ours = |path: &Path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("tare-"))
        };
        let mut cgroups = BTreeSet::new();
        below(Path::new("/sys/fs/cgroup"), 2, &ours, &mut cgroups);
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mounts = mounts
            .lines()
            .filter(|line| line.contains("tare-") || line.contains("netns"));
        let processes = fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| {
                let name = fs::read_to_string(entry.path().join("comm")).ok()?;
                // Whoever adopts an orphan may take seconds to reap it.
                let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
                if stat.contains(") Z") {
                    return None;
                }
                let cgroups = fs::read_to_string(entry.path().join("cgroup")).ok()?;
                cgroups.contains("/tare-").then(|| name.trim().to_owned())
            });
        Self {
            files,
            cgroups,
            mounts: mounts.map(str::to_owned).collect(),
            processes: processes.collect(),
        }
    }

    /// Fails if there is more than before. Others may have come and gone in between.
    #[track_caller]
    fn assert_same(&self) {
        let after = Self::see();
        for (before, after) in [(&self.files, &after.files), (&self.cgroups, &after.cgroups)] {
            let new: Vec<&PathBuf> = after.difference(before).collect();
            assert!(new.is_empty(), "left behind: {new:?}");
        }
        assert_eq!(
            (&self.mounts, &self.processes),
            (&after.mounts, &after.processes)
        );
    }
}

fn below(folder: &Path, depth: u32, counts: &dyn Fn(&Path) -> bool, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if counts(&path) {
            found.insert(path.clone());
        }
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&path, depth - 1, counts, found);
        }
    }
}

#[test]
fn records_arrive_from_every_kind_of_container() {
    for name in ALL {
        let Some(place) = Place::new(name, "", None) else {
            continue;
        };
        for _ in 0..2 {
            let seen = place.run(&format!("{SHORT} cpu=1"));
            assert_eq!(seen.ended.how, Ending::Done, "{name}");
            let received = seen.received.unwrap();
            assert_eq!(received.program.agent.environment, "linux");
            assert_eq!(received.program.preparation.cpu, Some(1), "{name}");
            assert!(
                received.program.preparation.locked,
                "{name}: memory could not be locked"
            );
            assert_eq!(
                received.program.preparation.latency_held,
                Path::new("/dev/cpu_dma_latency").exists(),
                "{name}: {:?}",
                received.notices
            );
            let record = record(received);
            assert_eq!(result(&record), (Some(8.0), Some(84.0)));
        }
        place.close();
    }
}

#[test]
fn a_container_may_run_on_the_measured_cpu_alone_unless_said_otherwise() {
    for name in ALL {
        for (options, allowed) in [("", "0"), ("cpus=all", "0-")] {
            let Some(place) = Place::new(name, options, None) else {
                continue;
            };
            let instance = place.launch(&format!("{LONG} cpu=0"));
            let agent = agent_in(&place.guard);
            let status = fs::read_to_string(format!("/proc/{agent}/status")).unwrap();
            let pinned = status.lines().any(|line| line == "Cpus_allowed_list:\t0");
            let cpuset = fs::read_to_string(format!("/proc/{agent}/cpuset")).unwrap();
            let list = fs::read_to_string(format!(
                "/sys/fs/cgroup/cpuset{}/cpuset.cpus",
                cpuset.trim()
            ))
            .or_else(|_| {
                fs::read_to_string(format!(
                    "/sys/fs/cgroup{}/cpuset.cpus.effective",
                    cpuset.trim()
                ))
            });
            assert!(
                pinned || options == "cpus=all" || name == "podman",
                "{name}: {status}"
            );
            assert!(list.unwrap().starts_with(allowed), "{name} {options}");
            assert!(agent > 0);
            drop(instance);
            place.close();
        }
    }
}

/// Waits for the agent of a container of this guard, and returns its process id.
fn agent_in(guard: &Guard) -> u32 {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mark = format!("TARE_OWNER={}/0", guard.owner());
    while Instant::now() < deadline {
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            let cgroup = fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let marked = environment
                .split(|b| *b == 0)
                .any(|one| one == mark.as_bytes());
            if name.trim() == "tare-agent" && (marked || cgroup.contains(guard.owner().as_str())) {
                return entry.file_name().to_str().unwrap().parse().unwrap();
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
    panic!("no agent came");
}

#[test]
fn an_agent_that_is_killed_hangs_or_lacks_memory_is_told() {
    for name in ALL {
        let Some(place) = Place::new(name, "mem=32M", None) else {
            continue;
        };
        let instance = place.launch(&format!("{LONG} cpu=0"));
        let agent = agent_in(&place.guard);
        let killed = Command::new("kill")
            .args(["-9", &agent.to_string()])
            .status();
        assert!(killed.unwrap().success());
        let seen = watch(instance, LIMIT);
        assert!(
            seen.why()
                .starts_with("the program was killed in its container"),
            "{name}: {}",
            seen.why()
        );

        let seen = watch(
            place.launch(&format!("{LONG} cpu=0")),
            Duration::from_secs(1),
        );
        assert_eq!(seen.ended.how, Ending::TimedOut { doing: None }, "{name}");

        let seen = place.run(&format!("{BATCH} repetitions=10000000 cpu=0"));
        assert!(seen.why().contains("mem="), "{name}: {}", seen.why());
        place.close();
    }
}

#[test]
fn a_plan_that_fails_is_told_by_its_record() {
    for name in ALL {
        let Some(place) = Place::new(name, "cpus=all", None) else {
            continue;
        };
        let seen = place.run(&format!("{BATCH} repetitions=1 cpu=999"));
        assert!(seen.why().contains("status 1"), "{name}: {}", seen.why());
        let Err(Incomplete::Failed { text }) = seen.received else {
            panic!("{name}")
        };
        assert!(text.contains("CPU"), "{name}: {text}");
        place.close();
    }
}

#[test]
fn an_agent_that_is_no_program_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("tare-agent");
    fs::write(&wrong, "this is no program").unwrap();
    fs::set_permissions(&wrong, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in ALL {
        let Some(place) = Place::new(name, "cpus=all", Some(&wrong)) else {
            continue;
        };
        let why = match place.target.start(&Job::idle(&work(SHORT)), &place.guard) {
            Ok(instance) => watch(instance, LIMIT).why().to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(
            why.to_lowercase().contains("exec format error"),
            "{name}: {why}"
        );
        place.close();
    }
}

#[test]
fn an_engine_that_ends_in_the_middle_is_told() {
    let Some(mut place) = Place::new("docker", "", None) else {
        return;
    };
    let instance = place.launch(&format!("{LONG} cpu=0"));
    agent_in(&place.guard);
    let engine = place.engine.take().unwrap();
    let stopped = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        engine.stop()
    });
    let mut nobody = |_: OutputEvent<'_>| {};
    let interrupt = Interrupt::detached().unwrap();
    let why = match instance.watch(LIMIT, &interrupt, &mut nobody) {
        Ok(Ended {
            how: Ending::Failed { why },
            ..
        }) => why,
        Ok(other) => panic!("{other:?}"),
        Err(error) => error.to_string(),
    };
    assert!(
        why.contains("engine has ended") || why.contains("killed"),
        "{why}"
    );
    stopped.join().unwrap().unwrap();
    place.close();
}

#[test]
fn every_kind_of_container_reports_what_it_has_when_it_is_asked_to_end() {
    for name in ALL {
        let Some(place) = Place::new(name, "", None) else {
            continue;
        };
        cut_short(place.target.as_ref(), "cpu=0", &place.guard);
        place.close();
    }
}

/// Also where the kernel gives a new control group no real-time time (RT_GROUP_SCHED).
#[test]
fn timers_are_measured_under_fifo_in_every_kind_of_container() {
    for name in ALL {
        let Some(place) = Place::new(name, "", None) else {
            continue;
        };
        // Twice: what the first one was given is to be free again.
        for _ in 0..2 {
            let words = "policy=fifo interval=5ms duration=200ms cpu=1";
            let seen = place.run(&format!("{TIMERS} {words}"));
            let received = seen.received.unwrap_or_else(|error| {
                panic!(
                    "{name}: {error}; {:?} {:?}",
                    seen.ended.how, seen.ended.notices
                )
            });
            assert_eq!(seen.ended.how, Ending::Done, "{name}");
            assert!(received.program.preparation.locked, "{name}");
            let record = record(received);
            for (fact, expected) in [("scheduling policy", "fifo"), ("CPU", "1")] {
                let threads = timers(&record, fact);
                assert_eq!(threads, [(40, Some(expected))], "{name}");
            }
        }
        place.close();
    }
}

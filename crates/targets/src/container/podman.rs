//! `podman`: the agent in a container of an engine without a daemon, by its command line.
//!
//! podman keeps images and state where it is told to, and here that is a scratch folder; what it
//! writes elsewhere (`/run`, `/dev/shm`, `/var/lib`, `/var/cache`) goes into mounts that only it
//! sees. So the user's own containers are neither seen nor touched, and nothing has to be undone.
//! Its monitor, conmon, loses the mark in the environment; it is in a control group.

use std::cell::RefCell;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use tare_guard::{Guard, OwnedCgroup, OwnedChild, OwnerId, ScratchDir, private_mounts};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::image;
use super::judge::{Contained, Runner};
use super::settings::CAPABILITIES;
use super::{Settings, hide, is_root, program, without_hybrid_cgroups};
use crate::error::TargetError;
use crate::instance::{Instance, now_ns};
use crate::measured::MeasuredFile;
use crate::{Availability, Job, Program, Target};

/// Is the target's name and the program's.
pub(crate) const NAME: &str = "podman";

/// Is how long importing the image may take.
const IMPORT_LIMIT: Duration = Duration::from_secs(120);

/// Runs the agent in a container of podman.
#[derive(Debug)]
pub struct Podman {
    settings: Settings,
    pub(super) agent: MeasuredFile,
    prepared: RefCell<Option<Prepared>>,
}

/// Is a storage with the image, for containers of one guard.
#[derive(Debug)]
struct Prepared {
    owner: OwnerId,
    folder: ScratchDir,
    image: String,
}

impl Podman {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            prepared: RefCell::default(),
        }
    }

    /// Returns the scratch folder and the image, made when they are first asked for.
    fn prepare(&self, guard: &Guard) -> Result<(PathBuf, String), TargetError> {
        let mut prepared = self.prepared.borrow_mut();
        if prepared.as_ref().is_none_or(|p| p.owner != *guard.owner()) {
            let folder = guard.scratch(NAME)?;
            let image = self.import(folder.path(), guard)?;
            *prepared = Some(Prepared {
                owner: guard.owner().clone(),
                folder,
                image,
            });
        }
        let prepared = prepared.as_ref().expect("it was just made");
        Ok((prepared.folder.path().to_owned(), prepared.image.clone()))
    }

    /// Imports the agent's image and returns its id.
    fn import(&self, folder: &Path, guard: &Guard) -> Result<String, TargetError> {
        let failed = |why: String| TargetError::Container {
            why: format!("podman can't import the agent's image: {why}"),
        };
        let archive = folder.join("image.tar");
        fs::write(&archive, image::archive(&self.agent)?)
            .map_err(|error| failed(error.to_string()))?;
        let mut command = podman(folder)?;
        command.args(["import", "--quiet"]);
        for change in image::changes(guard.owner()) {
            command.args(["--change", &change]);
        }
        command.arg(&archive);
        let (mut child, _group) = start(command, guard)?;
        let mut said = [String::new(), String::new()];
        let pipes: [Option<Box<dyn Read + Send>>; 2] = [
            child.take_stdout().map(|p| Box::new(p) as _),
            child.take_stderr().map(|p| Box::new(p) as _),
        ];
        let status = child.wait_with_deadline(Instant::now() + IMPORT_LIMIT)?;
        let Some(status) = status else {
            return Err(failed("it takes too long".to_owned()));
        };
        // It has ended: what it wrote, a few lines, is in the pipes.
        for (text, pipe) in said.iter_mut().zip(pipes) {
            let read = pipe.map(|mut pipe| pipe.read_to_string(text));
            read.transpose()
                .map_err(|error| failed(error.to_string()))?;
        }
        let [id, problem] = said;
        match (status.success(), id.trim()) {
            (true, id) if !id.is_empty() => Ok(id.to_owned()),
            _ => Err(failed(problem.trim().replace('\n', " / "))),
        }
    }
}

impl Target for Podman {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        if let Err(error) = self.agent.path() {
            return Availability::unusable(error, "make build");
        }
        if program(NAME).is_none() {
            return Availability::unusable(
                "podman is in no folder of PATH",
                "apt-get update && apt-get install -y --no-install-recommends podman",
            );
        }
        if !is_root() {
            return Availability::unusable(
                "podman is used as root, since else it can't limit a container to the measured CPU",
                "run tare as root, with sudo for example",
            );
        }
        Availability::Usable
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn resources(&self, work: &Work) -> Option<String> {
        Some(self.settings.resources(work).to_string())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        let resources = self.settings.resources(job.work);
        let (folder, image) = self.prepare(guard)?;
        let containers = match resources.real_time {
            Some(real_time) => real_time.group(NAME, guard)?,
            None => guard.reserve_cgroup(NAME)?,
        };
        let mut command = podman(&folder)?;
        command
            .args(["run", "--rm", "--network", "none", "--log-driver", "none"])
            .arg(format!("--cgroup-parent=/{}", containers.name()))
            .arg(format!("--memory={}", resources.memory_bytes));
        for name in CAPABILITIES {
            command.arg(format!("--cap-add={name}"));
        }
        if let Some(cpus) = resources.cpus {
            command.arg(format!("--cpuset-cpus={cpus}"));
        }
        if let Some(real_time) = resources.real_time {
            command.arg(format!("--cpu-rt-period={}", real_time.period_us));
            command.arg(format!("--cpu-rt-runtime={}", real_time.runtime_us));
        }
        if let Some(device) = resources.latency_device {
            command.arg(format!("--device={device}"));
        }
        let mut notices = Vec::new();
        if !may_raise_limits() {
            for limit in lower_limits() {
                command.arg(limit);
            }
            notices.push(
                "podman's own limits of open files and processes are not set: raising a limit \
                 takes CAP_SYS_RESOURCE, which tare lacks; lower ones are set"
                    .to_owned(),
            );
        }
        command
            .arg(image)
            .args(job.work.to_string().split_whitespace());
        command.stdin(Stdio::null());
        let started_ns = now_ns();
        let (child, own) = start(command, guard)?;
        let attendant = Contained::new(Runner::Podman, notices, vec![containers, own]);
        Instance::of_child(child, started_ns, Box::new(attendant))
    }
}

/// Makes a command of podman that keeps all it has in `folder`.
fn podman(folder: &Path) -> Result<Command, TargetError> {
    let program = program(NAME).ok_or_else(|| TargetError::Container {
        why: "podman is in no folder of PATH".to_owned(),
    })?;
    let mut command = Command::new(program);
    command.arg("--root").arg(folder.join("root"));
    // Its monitor leaves a file where it stands when a container runs out of memory.
    command.current_dir(folder);
    // What lasts as long as the machine runs is to last as long as one command. podman refuses a
    // path of more than 50 characters for it.
    command.args(["--runroot=/run/tare", "--tmpdir=/run/libpod"]);
    // Neither systemd nor its journal is asked: both would outlive the run.
    command.args(["--cgroup-manager=cgroupfs", "--events-backend=none"]);
    let mut mounts = hide(
        &["/run", "/dev/shm", "/var/lib", "/var/cache", "/etc/cni"],
        folder,
    );
    mounts.extend(without_hybrid_cgroups());
    private_mounts(&mut command, &mounts);
    Ok(command)
}

/// Starts a command of podman in a control group of its own.
fn start(mut command: Command, guard: &Guard) -> Result<(OwnedChild, OwnedCgroup), TargetError> {
    let group = guard.cgroup("podman-own", &[])?;
    group.enter(&mut command)?;
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok((guard.spawn(&mut command)?, group))
}

fn may_raise_limits() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_RESOURCE))
}

/// Asks for limits that need not be raised: half of what this process itself may have, since podman
/// lowers its own before it sets its container's.
fn lower_limits() -> [String; 2] {
    let half = |resource, most: u64| {
        let limit = getrlimit(resource).maximum.unwrap_or(most);
        (limit / 2).clamp(1, most)
    };
    let (files, processes) = (half(Resource::Nofile, 4096), half(Resource::Nproc, 1000));
    [
        format!("--ulimit=nofile={files}:{files}"),
        format!("--ulimit=nproc={processes}:{processes}"),
    ]
}

//! `podman`: the agent in a container of an engine without a daemon, by its command line.
//!
//! podman keeps images and state where it is told to, and here that is a scratch folder; what it
//! writes elsewhere (`/run`, `/dev/shm`, `/var/lib`, `/var/cache`) goes into mounts that only it
//! sees. So the user's own containers are neither seen nor touched, and nothing has to be undone.
//! Its monitor, conmon, loses the mark in the environment; it is in a control group.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use tare_guard::{Guard, OwnedCgroup, ScratchDir, private_mounts};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::monitor::ContainerMonitor;
use super::settings::CAPABILITIES;
use super::{Prepared, Settings, hide, image, runner, without_hybrid_cgroups};
use crate::error::TargetError;
use crate::instance::{Instance, now_ns};
use crate::measured::MeasuredFile;
use crate::{Availability, Job, Program, Target, programs};

/// The target's name and the program's.
pub(crate) const NAME: &str = "podman";

/// How long importing the image may take.
const IMPORT_LIMIT: Duration = Duration::from_secs(120);

/// The agent in a container of podman.
#[derive(Debug)]
pub struct Podman {
    settings: Settings,
    pub(super) agent: MeasuredFile,
    prepared: Prepared<(ScratchDir, String)>,
}

impl Podman {
    /// Make the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            prepared: Prepared::nothing(),
        }
    }

    /// Import the agent's image into a storage of its own. Return the storage's folder and the image's id.
    fn prepare(&self, guard: &Guard) -> Result<(ScratchDir, String), TargetError> {
        let failed = |why: String| {
            TargetError::Failed(format!("podman can't import the agent's image: {why}"))
        };
        let folder = guard.scratch(NAME)?;
        let archive = folder.path().join("image.tar");
        fs::write(&archive, image::archive(&self.agent)?)
            .map_err(|error| failed(error.to_string()))?;
        let (mut command, _group) = self.podman(folder.path(), guard)?;
        command.args(["import", "--quiet"]);
        for change in image::changes(guard.owner()) {
            command.args(["--change", &change]);
        }
        let output = programs::run(command.arg(&archive), IMPORT_LIMIT, guard)?;
        match output.status {
            None => Err(failed("it takes too long".to_owned())),
            Some(status) if status.success() && !output.stdout.is_empty() => {
                Ok((folder, output.stdout))
            }
            Some(_) => Err(failed(output.stderr.replace('\n', " / "))),
        }
    }

    /// Prepare a command of podman that keeps all it has in `folder`, in a control group of its own.
    fn podman(&self, folder: &Path, guard: &Guard) -> Result<(Command, OwnedCgroup), TargetError> {
        let mut command = Command::new(runner(NAME, &self.agent)?);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.arg("--root").arg(folder.join("root"));
        // Its monitor leaves a file where it stands when a container runs out of memory.
        command.current_dir(folder);
        // What lasts as long as the machine runs is to last as long as one command. podman refuses a
        // path of more than 50 characters for it.
        command.args(["--runroot=/run/tare", "--tmpdir=/run/libpod"]);
        // Neither systemd nor its journal is asked: both would outlive the run.
        command.args(["--cgroup-manager=cgroupfs", "--events-backend=none"]);
        let shared = ["/run", "/dev/shm", "/var/lib", "/var/cache", "/etc/cni"];
        let mut mounts = hide(&shared, folder);
        mounts.extend(without_hybrid_cgroups());
        private_mounts(&mut command, &mounts);
        let group = guard.cgroup("podman-own", &[])?;
        group.enter(&mut command)?;
        Ok((command, group))
    }
}

impl Target for Podman {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn present(&self) -> Availability {
        Availability::of(runner(NAME, &self.agent))
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn resources(&self, work: &Work) -> Option<String> {
        Some(self.settings.resources(work).to_string())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        let resources = self.settings.resources(job.work);
        let prepared = self.prepared.get(guard, || self.prepare(guard))?;
        let (folder, image) = &*prepared;
        let containers = match resources.real_time {
            Some(real_time) => real_time.group(NAME, guard)?,
            None => guard.reserve_cgroup(NAME)?,
        };
        let (mut command, own) = self.podman(folder.path(), guard)?;
        command
            .args(["run", "--rm", "--network", "none", "--log-driver", "none"])
            .arg(format!("--cgroup-parent=/{}", containers.name()))
            .arg(format!("--memory={}", resources.memory_bytes));
        command.args(CAPABILITIES.map(|name| format!("--cap-add={name}")));
        command.args(resources.cpus.map(|cpus| format!("--cpuset-cpus={cpus}")));
        if let Some(real_time) = resources.real_time {
            command.arg(format!("--cpu-rt-period={}", real_time.period_us));
            command.arg(format!("--cpu-rt-runtime={}", real_time.runtime_us));
        }
        command.args(
            resources
                .dma_device
                .map(|device| format!("--device={device}")),
        );
        let mut notices = Vec::new();
        if !may_raise_limits() {
            command.args(lower_limits());
            notices.push(
                "podman's own limits of open files and processes are not set: raising a limit \
                 takes CAP_SYS_RESOURCE, which tare lacks; lower ones are set"
                    .to_owned(),
            );
        }
        command
            .arg(image)
            .args(job.work.to_string().split_whitespace());
        let started_ns = now_ns();
        let child = guard.spawn(&mut command)?;
        let monitor = ContainerMonitor {
            runner: NAME,
            notices,
            _groups: vec![containers, own],
        };
        Instance::of_child(child, started_ns, monitor)
    }
}

fn may_raise_limits() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_RESOURCE))
}

/// Ask for limits that need not be raised: half of what this process itself may have, since podman
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

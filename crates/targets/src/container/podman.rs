//! `podman`: the agent in a container of an engine without a daemon, by its command line.
//!
//! podman keeps images and state in a scratch folder. Its other files (in `/run`, `/dev/shm`,
//! `/var/lib`, `/var/cache`) go into mounts that only it sees. So the user's own containers are
//! neither seen nor touched, and nothing has to be undone. Its monitor, conmon, loses the mark in
//! the environment; it is in a control group.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use tare_guard::{Guard, OwnedCgroup, PrivateMount, ScratchDir, private_mounts};
use tare_networks::Network;
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::monitor::container_judge;
use super::settings::{CAPABILITIES, Image, Resources};
use super::{Prepared, Settings, hide, image, runner, without_hybrid_cgroups};
use crate::error::TargetError;
use crate::launch::{self, Launch};
use crate::measured::MeasuredFile;
use crate::server::Server;
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
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            prepared: Prepared::nothing(),
        }
    }

    /// Imports the agent's image into a new storage. Returns the storage's folder and the image's
    /// id.
    fn prepare(&self, guard: &Guard) -> Result<(ScratchDir, String), TargetError> {
        let failed =
            |why: String| TargetError::Failed(format!("podman can't import the image: {why}"));
        let folder = guard.scratch(NAME)?;
        let (mut command, _group) = self.podman(folder.path(), guard)?;
        match &self.settings.image {
            Some(Image::Archive(path)) => command.args(["load", "--quiet", "--input"]).arg(path),
            Some(Image::Name(_)) | None => {
                let archive = folder.path().join("image.tar");
                fs::write(&archive, image::archive(&self.agent)?)
                    .map_err(|error| failed(error.to_string()))?;
                command.args(["import", "--quiet"]);
                for change in image::changes(guard.owner()) {
                    command.args(["--change", &change]);
                }
                command.arg(archive)
            }
        };
        let output = programs::run(&mut command, IMPORT_LIMIT, guard)?;
        match output.status {
            None => Err(failed("it takes too long".to_owned())),
            Some(status) if status.success() && !output.stdout.is_empty() => {
                let name = output.stdout.trim().rsplit(": ").next().unwrap_or_default();
                Ok((folder, name.to_owned()))
            }
            Some(_) => Err(failed(output.stderr.replace('\n', " / "))),
        }
    }

    /// Prepares a podman command that keeps its files in `folder` and runs in a new control group.
    fn podman(&self, folder: &Path, guard: &Guard) -> Result<(Command, OwnedCgroup), TargetError> {
        let mut command = Command::new(runner(NAME, &self.agent)?);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.args(places(folder));
        // Its monitor leaves a file where it stands when a container runs out of memory.
        command.current_dir(folder);
        private_mounts(&mut command, &mounts(folder));
        let group = guard.cgroup("podman-own", &[])?;
        group.enter(&mut command)?;
        Ok((command, group))
    }

    /// Returns the words of `podman run` for one container whose group is below `containers`, up to
    /// those that it executes.
    fn run(
        &self,
        image: &str,
        resources: &Resources,
        containers: &str,
        network: &str,
        server: Option<&Server>,
    ) -> Vec<String> {
        let words = format!("run --rm --network {network} --log-driver none");
        let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        if let Some(server) = server {
            words.push("--tmpfs=/tmp".to_owned());
            words.extend(server.mounts().iter().map(|(path, is_writable)| {
                let access = if *is_writable { "rw" } else { "ro" };
                format!("--volume={path}:{path}:{access}")
            }));
            words.push(format!("--entrypoint={}", server.path()));
        }
        words.push(format!("--cgroup-parent=/{containers}"));
        words.push(format!("--memory={}", resources.memory_bytes));
        if self.settings.image.is_none() {
            words.extend(CAPABILITIES.map(|name| format!("--cap-add={name}")));
            words.extend(
                resources
                    .dma_device
                    .map(|device| format!("--device={device}")),
            );
        }
        words.extend(resources.cpus.map(|cpus| format!("--cpuset-cpus={cpus}")));
        if let Some(real_time) = resources.real_time {
            words.push(format!("--cpu-rt-period={}", real_time.period_us));
            words.push(format!("--cpu-rt-runtime={}", real_time.runtime_us));
        }
        if !may_raise_limits() {
            words.extend(lower_limits());
        }
        words.push(image.to_owned());
        words
    }
}

/// Returns the options by which podman keeps its files in `folder`, for as long as its mounts last.
fn places(folder: &Path) -> Vec<OsString> {
    let root = folder.join("root");
    let mut words = vec!["--root".into(), root.into_os_string()];
    // What lasts as long as the machine runs is to last as long as its mounts. podman refuses a
    // path of more than 50 characters for it. Neither systemd nor its journal is asked: both would
    // outlive the run.
    let others =
        "--runroot=/run/tare --tmpdir=/run/libpod --cgroup-manager=cgroupfs --events-backend=none";
    words.extend(others.split(' ').map(OsString::from));
    words
}

/// Returns what podman must not see, or not write to.
fn mounts(folder: &Path) -> Vec<PrivateMount> {
    let shared = ["/run", "/dev/shm", "/var/lib", "/var/cache", "/etc/cni"];
    let mut mounts = hide(&shared, folder);
    mounts.extend(without_hybrid_cgroups());
    mounts
}

impl Target for Podman {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(runner(NAME, &self.agent))
    }

    fn program(&self) -> Result<Program, TargetError> {
        match &self.settings.image {
            Some(Image::Archive(path)) => Ok(Program {
                sha256: image::sha256(path)?,
                ..Program::default()
            }),
            Some(Image::Name(_)) | None => Program::native(&self.agent),
        }
    }

    fn resources(&self, work: &Work) -> Option<String> {
        Some(self.settings.resources(work).to_string())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        self.settings.must_have_agent(job)?;
        let program = runner(NAME, &self.agent)?;
        let resources = self.settings.resources(job.work);
        let prepared = self.prepared.get(guard, || self.prepare(guard))?;
        let (folder, image) = &*prepared;
        let folder = folder.path().to_owned();
        let containers = match resources.real_time {
            Some(real_time) => super::realtime::group(real_time, NAME, guard)?,
            None => guard.reserve_cgroup(NAME)?,
        };
        let own = guard.cgroup("podman-own", &[])?;
        let network = job.network.map(Network::member).transpose()?;
        let network = network.map_or("none".to_owned(), |own| format!("ns:{}", own.path()));
        let server = Server::of_job(job, guard)?;
        let (name, of) = (containers.name(), server.as_ref());
        let run = self.run(image, &resources, name, &network, of);
        let own_words = self.settings.words(job, of);
        let mut words = places(&folder);
        words.extend(run.into_iter().chain(own_words).map(OsString::from));
        let (mounts, entry) = (mounts(&folder), own.entry()?);
        let start = move |_| {
            let mut exec = launch::exec(&program, &words)?;
            exec.in_folder(&folder)?;
            exec.enter(&entry)?;
            Ok(exec.into())
        };
        let mut notices = Vec::new();
        if !may_raise_limits() {
            notices.push(
                "podman's own limits of open files and processes are not set: raising a limit \
                 takes CAP_SYS_RESOURCE, which tare lacks; lower ones are set"
                    .to_owned(),
            );
        }
        Ok(Launch {
            mounts,
            ready: self.settings.ready(),
            judge: container_judge(NAME),
            engine_bytes: PODMAN_BYTES,
            // Its monitor has them, and is nobody's child.
            waits_for_own: false,
            notices,
            ..Launch::of_program(NAME, start)
        }
        .keeping([containers, own])
        .of_server(server))
    }
}

/// What podman and its monitor take, about.
const PODMAN_BYTES: u64 = 64 << 20;

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

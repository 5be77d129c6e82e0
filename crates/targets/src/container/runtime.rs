//! `runc` and `crun`: the agent in a container of a runtime alone, from a bundle made here.
//!
//! runc is the reference runtime, which Docker uses; crun is the one in C that podman uses.
//!
//! The bundle's root holds the agent and nothing else. The runtime keeps its state in the same
//! scratch folder, so that containers of others are neither seen nor touched.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use tare_guard::{Guard, PrivateMount, ScratchDir};
use tare_networks::{Network, NetworkNamespace};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::monitor::container_judge;
use super::oci::Container;
use super::{AGENT, Prepared, Settings, runner, unwritable, without_hybrid_cgroups};
use crate::error::TargetError;
use crate::launch::{self, Launch};
use crate::measured::MeasuredFile;
use crate::server::Server;
use crate::{Availability, Job, Program, Target};

/// The agent in a container of a runtime.
#[derive(Debug)]
pub(crate) struct Runtime {
    settings: Settings,
    pub(super) agent: MeasuredFile,
    /// The mounts to hide from it.
    mounts: fn() -> Vec<PrivateMount>,
    prepared: Prepared<ScratchDir>,
}

impl Runtime {
    /// Makes the target `runc`.
    pub(crate) fn runc(settings: Settings) -> Self {
        Self::new(settings, Vec::new)
    }

    /// Makes the target `crun`.
    ///
    /// crun 1.8, which Debian 12 has, fails where control groups of both versions are mounted.
    /// There it runs in a mount namespace without those of version 2.
    pub(crate) fn crun(settings: Settings) -> Self {
        Self::new(settings, without_hybrid_cgroups)
    }

    fn new(settings: Settings, mounts: fn() -> Vec<PrivateMount>) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            mounts,
            prepared: Prepared::nothing(),
        }
    }

    /// Makes a folder with a root file system.
    fn prepare(&self, guard: &Guard) -> Result<ScratchDir, TargetError> {
        let folder = guard.scratch(self.settings.name)?;
        copy_agent(&self.agent, &folder.path().join("rootfs"))?;
        Ok(folder)
    }
}

impl Target for Runtime {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(runner(self.settings.name, &self.agent))
    }

    fn program(&self) -> Result<Program, TargetError> {
        Program::native(&self.agent)
    }

    fn resources(&self, work: &Work) -> Option<String> {
        Some(self.settings.resources(work).to_string())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        let name = self.settings.name;
        let program = runner(name, &self.agent)?;
        let resources = self.settings.resources(job.work);
        let prepared = self.prepared.get(guard, || self.prepare(guard))?;
        let folder = prepared.path().to_owned();
        let group = match resources.real_time {
            Some(real_time) => super::realtime::group(real_time, name, guard)?,
            None => guard.reserve_cgroup(name)?,
        };
        let is_alone = job.is_alone && resources.real_time.is_none();
        let (id, owner) = (group.name().to_owned(), guard.owner().clone());
        let network = job.network.map(Network::member).transpose()?;
        let network = network.map(NetworkNamespace::path);
        let server = Server::of_job(job, guard)?;
        let arguments = match &server {
            Some(server) => [vec![server.path()], server.words.clone()].concat(),
            None => [vec![AGENT.to_owned()], job.words()].concat(),
        };
        let mounts_of_server = server.as_ref().map(Server::mounts).unwrap_or_default();
        let started = AtomicU32::new(0);
        let start = move |number: u32| {
            let bundle = folder.join(format!("{id}-{number}"));
            if !bundle.exists() {
                let config = Container {
                    rootfs: &folder.join("rootfs"),
                    arguments: &arguments,
                    network: network.as_deref(),
                    mounts: &mounts_of_server,
                    cgroup: &match is_alone {
                        true => id.clone(),
                        false => format!("{id}/{number}"),
                    },
                    resources,
                    owner: &owner,
                };
                fs::create_dir(&bundle)?;
                fs::write(bundle.join("config.json"), config.config().to_string())?;
            }
            let state = folder.join("state");
            // Of a runtime that was killed, the container is still known by its name.
            let container = format!("{id}-{}", started.fetch_add(1, Ordering::Relaxed));
            let words = [
                OsStr::new("--root"),
                state.as_os_str(),
                OsStr::new("run"),
                OsStr::new("--bundle"),
                bundle.as_os_str(),
                OsStr::new(&container),
            ];
            Ok(launch::exec(&program, words)?.into())
        };
        let mounts = (self.mounts)();
        let notice = (!mounts.is_empty()).then(|| {
            format!(
                "{name} runs without the mount of control groups of version 2: it can't be used \
                 alongside version 1"
            )
        });
        Ok(Launch {
            mounts,
            judge: container_judge(name),
            notices: notice.into_iter().collect(),
            ..Launch::of_program(name, start)
        }
        .keeping(group)
        .of_server(server))
    }
}

/// Makes a root file system with nothing but the agent.
fn copy_agent(agent: &MeasuredFile, rootfs: &Path) -> Result<(), TargetError> {
    fs::create_dir(rootfs).map_err(|error| unwritable(rootfs, &error))?;
    let to = rootfs.join(&AGENT[1..]);
    fs::copy(agent.path()?, &to).map_err(|error| unwritable(&to, &error))?;
    // Runtimes make these in a root that can be written; this one is to be left as it is.
    for folder in ["proc", "dev", "sys"] {
        let folder = rootfs.join(folder);
        fs::create_dir(&folder).map_err(|error| unwritable(&folder, &error))?;
    }
    Ok(())
}

//! What `runc` and `crun` share: a bundle made here, run by the runtime alone.
//!
//! The bundle's root holds the agent and nothing else. The runtime keeps its state in the same
//! scratch folder, so that containers of others are neither seen nor touched.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tare_guard::{Guard, OwnerId, PrivateMount, ScratchDir, private_mounts};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use super::judge::{Contained, Runner};
use super::oci::Container;
use super::{AGENT, Settings, is_root, program};
use crate::error::TargetError;
use crate::instance::{Instance, now_ns};
use crate::measured::MeasuredFile;
use crate::{Availability, Job, Program, Target};

/// Runs the agent in a container of a runtime.
#[derive(Debug)]
pub(crate) struct Runtime {
    settings: Settings,
    pub(super) agent: MeasuredFile,
    /// What it can't bear to see mounted.
    mounts: fn() -> Vec<PrivateMount>,
    prepared: RefCell<Option<Prepared>>,
    launched: Cell<u32>,
}

/// Is a folder with a root file system, for containers of one guard.
#[derive(Debug)]
struct Prepared {
    owner: OwnerId,
    folder: ScratchDir,
}

impl Runtime {
    pub(super) fn new(settings: Settings, mounts: fn() -> Vec<PrivateMount>) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            mounts,
            prepared: RefCell::default(),
            launched: Cell::new(0),
        }
    }

    /// Returns the scratch folder, made when it is first asked for.
    fn folder(&self, guard: &Guard) -> Result<PathBuf, TargetError> {
        let mut prepared = self.prepared.borrow_mut();
        if prepared.as_ref().is_none_or(|p| p.owner != *guard.owner()) {
            let folder = guard.scratch(self.settings.name())?;
            copy_agent(&self.agent, &folder.path().join("rootfs"))?;
            let owner = guard.owner().clone();
            *prepared = Some(Prepared { owner, folder });
        }
        let prepared = prepared.as_ref().expect("it was just made");
        Ok(prepared.folder.path().to_owned())
    }
}

impl Target for Runtime {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        let name = self.settings.name();
        if let Err(error) = self.agent.path() {
            return Availability::unusable(error, "make build");
        }
        if program(name).is_none() {
            let why = format!("{name} is in no folder of PATH");
            return Availability::unusable(
                why,
                &format!("apt-get update && apt-get install -y --no-install-recommends {name}"),
            );
        }
        if !is_root() {
            let why = format!("{name} needs root to limit a container to the measured CPU");
            return Availability::unusable(why, "run tare as root, with sudo for example");
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
        let name = self.settings.name();
        let resources = self.settings.resources(job.work);
        let folder = self.folder(guard)?;
        let (group, path) = match resources.real_time {
            Some(real_time) => {
                let group = real_time.group(name, guard)?;
                let path = format!("{}/agent", group.name());
                (group, path)
            }
            None => {
                let group = guard.reserve_cgroup(name)?;
                let path = group.name().to_owned();
                (group, path)
            }
        };
        let number = self.launched.get() + 1;
        self.launched.set(number);
        let container = Container {
            rootfs: &folder.join("rootfs"),
            work: job.work,
            cgroup: &path,
            resources,
            owner: guard.owner(),
        };
        let bundle = folder.join(format!("bundle-{number}"));
        let config = bundle.join("config.json");
        fs::create_dir(&bundle)
            .and_then(|()| fs::write(&config, container.config().to_string()))
            .map_err(|source| unwritable(&config, source))?;
        let runtime = program(name).ok_or_else(|| TargetError::Container {
            why: format!("{name} is in no folder of PATH"),
        })?;
        let mut command = Command::new(runtime);
        command
            .arg("--root")
            .arg(folder.join("state"))
            .args(["run", "--bundle"])
            .arg(&bundle)
            .arg(group.name())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mounts = (self.mounts)();
        let mut notices = Vec::new();
        if !mounts.is_empty() {
            private_mounts(&mut command, &mounts);
            notices.push(format!(
                "{name} runs without the mount of control groups of version 2: it can't be used \
                 beside version 1"
            ));
        }
        let attendant = Contained::new(Runner::Runtime(name), notices, vec![group]);
        let started_ns = now_ns();
        let child = guard.spawn(&mut command)?;
        Instance::of_child(child, started_ns, Box::new(attendant))
    }
}

/// Makes a root file system with nothing but the agent.
fn copy_agent(agent: &MeasuredFile, rootfs: &Path) -> Result<(), TargetError> {
    let place = rootfs.join(&AGENT[1..]);
    let source = agent.path()?;
    fs::create_dir(rootfs)
        .and_then(|()| fs::copy(source, &place))
        .map_err(|source| unwritable(&place, source))?;
    // Runtimes make these in a root that can be written; this one is to be left as it is.
    for folder in ["proc", "dev", "sys"] {
        let place = rootfs.join(folder);
        fs::create_dir(&place).map_err(|source| unwritable(&place, source))?;
    }
    Ok(())
}

fn unwritable(path: &Path, source: io::Error) -> TargetError {
    TargetError::Container {
        why: format!("{} can't be written: {source}", path.display()),
    }
}

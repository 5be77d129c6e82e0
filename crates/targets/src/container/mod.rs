//! Containers: the agent under this machine's kernel, in namespaces and control groups.
//!
//! There are three ways to start one. [`docker`] asks an engine, which asks a runtime; [`podman`]
//! does the same without a daemon; [`runtime`] is the runtimes runc and crun alone. All run the
//! same static agent from an image that holds nothing else, without network, on the measured CPU
//! alone and with as much memory as the plan needs, which is what a guest gets, too. If an engine
//! rejects a resource, the container is started without it, with a notice. A server replaces the
//! agent: its files are mounted, and it gets a network.
//!
//! Each keeps its files in a scratch folder: images, bundles, states of runtimes. Its
//! processes are in control groups that carry the owner's id, because the mark in the environment
//! does not reach through an engine.

pub(crate) mod docker;
mod image;
mod monitor;
mod oci;
pub(crate) mod podman;
pub(crate) mod realtime;
#[cfg(test)]
mod run_tests;
pub(crate) mod runtime;
mod settings;

use std::cell::{Ref, RefCell};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_guard::{CgroupVersion, Guard, OwnerId, PrivateMount};
use tare_host::CgroupMount;

use crate::error::TargetError;
use crate::measured::MeasuredFile;
use crate::programs;

pub(crate) use settings::{OPTIONS, Settings, WITH_IMAGE};

/// The agent's path in every container.
const AGENT: &str = "/tare-agent";

/// A value that is made once for all containers of one guard.
#[derive(Debug)]
struct Prepared<T>(RefCell<Option<(OwnerId, T)>>);

impl<T> Prepared<T> {
    const fn nothing() -> Self {
        Self(RefCell::new(None))
    }

    /// Returns the value for a guard, making it the first time.
    fn get(
        &self,
        guard: &Guard,
        make: impl FnOnce() -> Result<T, TargetError>,
    ) -> Result<Ref<'_, T>, TargetError> {
        let is_made = self
            .0
            .borrow()
            .as_ref()
            .is_some_and(|(owner, _)| owner == guard.owner());
        if !is_made {
            let made = make()?;
            self.0.replace(Some((guard.owner().clone(), made)));
        }
        Ok(Ref::map(self.0.borrow(), |made| {
            &made.as_ref().expect("it was just made").1
        }))
    }
}

/// Returns the program that runs containers of the agent, if there is an agent and the program can.
fn runner(name: &str, agent: &MeasuredFile) -> Result<PathBuf, TargetError> {
    agent.path()?;
    let program = programs::require(name, name)?;
    let why = format!("{name} needs root to limit a container to the measured CPU");
    programs::require_root(&why)?;
    Ok(program)
}

/// Hides the control groups of version 2 where version 1 is mounted too: crun does not run there.
fn without_hybrid_cgroups() -> Vec<PrivateMount> {
    let mounts = CgroupMount::all().unwrap_or_default();
    let of = |version| mounts.iter().find(|mount| mount.version == version);
    match (of(CgroupVersion::One), of(CgroupVersion::Two)) {
        (Some(_), Some(unified)) => vec![PrivateMount::Without(unified.point.clone())],
        _ => Vec::new(),
    }
}

/// Hides shared folders into which a program writes, those that exist and do not hold `kept`.
pub(crate) fn hide(folders: &[&str], kept: &Path) -> Vec<PrivateMount> {
    let folders = folders
        .iter()
        .filter_map(|folder| fs::canonicalize(folder).ok());
    folders
        .filter(|folder| !kept.starts_with(folder))
        .filter_map(|folder| folder.to_str().map(str::to_owned))
        .map(PrivateMount::Empty)
        .collect()
}

/// Makes the error of a file that can't be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> TargetError {
    TargetError::Failed(format!("{} can't be written: {error}", path.display()))
}

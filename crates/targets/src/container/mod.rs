//! Containers: the agent under this machine's kernel, in namespaces and control groups.
//!
//! Four ways to the same place. [`docker`] asks an engine, which asks a runtime; [`podman`] does the
//! same without a daemon; [`runc`] and [`crun`] are the runtimes alone. All run the same static
//! agent from an image that holds nothing else, without network, on the measured CPU alone and with
//! as much memory as the plan needs, which is what a guest gets, too. What an engine refuses is
//! asked for less, and said.
//!
//! Each has what belongs to it in a scratch folder: images, bundles, states of runtimes. Its
//! processes are in control groups that carry the owner's id, because the mark in the environment
//! does not reach through an engine.

pub(crate) mod crun;
pub(crate) mod docker;
mod image;
mod judge;
mod oci;
pub(crate) mod podman;
pub(crate) mod realtime;
#[cfg(test)]
mod run_tests;
pub(crate) mod runc;
mod runtime;
mod settings;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tare_guard::PrivateMount;

pub(crate) use settings::Settings;

/// Is the agent's path in every container.
const AGENT: &str = "/tare-agent";

/// Looks for a program in PATH, and where daemons are that an ordinary user's PATH lacks.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    // What a package installed is what its name says; a file put into /usr/local may be anything.
    let mut found: Vec<PathBuf> = folders
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file())
        .collect();
    found.sort_by_key(|path| path.starts_with("/usr/local"));
    found.into_iter().next()
}

/// Says whether this process is root, with all that this brings except what a container may lack.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Takes away what keeps crun from running where control groups are of both versions: version 2
/// beside the controllers of version 1.
fn without_hybrid_cgroups() -> Vec<PrivateMount> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_kind = |kind: &str| {
        let mut lines = mounts.lines().map(|line| line.split(' '));
        lines.find_map(|mut fields| {
            let (point, found) = (fields.nth(1)?, fields.next()?);
            (found == kind).then(|| point.to_owned())
        })
    };
    match (of_kind("cgroup"), of_kind("cgroup2")) {
        (Some(_), Some(unified)) => vec![PrivateMount::Without(unified)],
        _ => Vec::new(),
    }
}

/// Hides shared places into which a program writes, those that exist and do not hold `kept`.
pub(crate) fn hide(places: &[&str], kept: &Path) -> Vec<PrivateMount> {
    let places = places
        .iter()
        .filter_map(|place| fs::canonicalize(place).ok());
    places
        .filter(|place| !kept.starts_with(place))
        .filter_map(|place| place.to_str().map(str::to_owned))
        .map(PrivateMount::Empty)
        .collect()
}

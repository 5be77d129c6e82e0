//! The kinds of load: one file for each.
//!
//! A kind defines the tools it executes, its differences from the load that the study published,
//! and the tasks for the driver. A new one is a file here and a line in [`KINDS`].

mod command;
mod dd;
mod du;
mod hackbench;
mod nc;
mod ping;
mod stress_ng;
mod tar;

use std::path::PathBuf;

use tare_wire::cpus::Cpus;

pub(crate) use command::COMMAND;

use crate::error::DriverError;
use crate::task::Task;
use crate::tools::Tool;
use crate::tree;

/// A kind of load.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// Its notation.
    pub usage: &'static str,
    /// A summary in a few words.
    pub summary: &'static str,
    /// The programs that it executes.
    pub tools: &'static [Tool],
    /// Its differences from the published load, on any system.
    pub deviations: &'static [&'static str],
    /// An example, if it takes words.
    pub(crate) example: Option<&'static str>,
    /// Returns why a word is invalid, if it is.
    pub(crate) refuses: fn(&str) -> Option<&'static str>,
    /// The reason why it requires root, if it does.
    pub(crate) root: Option<&'static str>,
    /// Whether it uses the loopback device.
    pub(crate) loopback: bool,
    /// Whether it needs the generated tree on this machine.
    pub(crate) needs_tree: fn(&Walk) -> bool,
    /// The greatest number of bytes written, apart from the tree; None if it uses all free space.
    pub(crate) writes: fn(&Setup) -> Option<u64>,
    /// Creates its tasks.
    pub(crate) tasks: fn(&mut Setup, &[String]) -> Result<Vec<Task>, DriverError>,
}

/// The defaults of a kind.
const PLAIN: Kind = Kind {
    name: "",
    usage: "",
    summary: "",
    tools: &[],
    deviations: &[],
    example: None,
    refuses: |_| None,
    root: None,
    loopback: false,
    needs_tree: |_| false,
    writes: |_| Some(0),
    tasks: |_, _| Ok(Vec::new()),
};

/// No load at all.
pub(crate) const IDLE: Kind = Kind {
    name: "idle",
    usage: "idle",
    summary: "nothing",
    ..PLAIN
};

/// The kinds of load.
pub const KINDS: &[Kind] = &[
    IDLE,
    dd::DD,
    hackbench::HACKBENCH,
    du::DU,
    tar::TAR,
    nc::NC,
    ping::PING,
    stress_ng::STRESS_NG,
    COMMAND,
];

/// The folder that `du` walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// The root file system.
    Root,
    /// The generated tree, because the root is a RAM disk.
    Tree,
}

/// The resources for tasks.
#[derive(Debug)]
pub(crate) struct Setup {
    /// CPUs of the load, at least one.
    pub(crate) cpus: Cpus,
    /// The driver's folder on the scratch file system.
    pub(crate) dir: PathBuf,
    /// The limit on written bytes, apart from the tree.
    pub(crate) room: u64,
    /// The tree, if a kind needs it.
    pub(crate) tree: Option<(PathBuf, tree::Size)>,
    pub(crate) walk: Walk,
    /// Notices.
    pub(crate) notices: Vec<String>,
}

impl Setup {
    /// Returns the tree.
    fn tree(&self) -> Result<&(PathBuf, tree::Size), DriverError> {
        let missing = || DriverError("the load's tree of files was not made".to_owned());
        self.tree.as_ref().ok_or_else(missing)
    }
}

const DD_TOOL: Tool = Tool::new("dd", "coreutils");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_describes_itself() {
        for kind in KINDS {
            assert!(kind.usage.starts_with(kind.name) && !kind.summary.is_empty());
            assert_eq!(
                kind.example.is_some(),
                kind.usage.contains(':'),
                "{}",
                kind.name
            );
        }
    }
}

//! The targets: how to reach each place where measured code can run.
//!
//! A target is written as on a QEMU command line, a name and options: `unikernel,irq=off`. Every
//! target is launched the same way, prints the same records and yields the same four time stamps,
//! so experiments do not depend on its kind.
//!
//! * [`spec`]: the table of the kinds that exist, and how a target is made from a text;
//! * [`options`]: the options of targets, as data;
//! * [`launch`]: how instances of a target are started and judged, one by itself or many;
//! * [`instance`]: one instance by itself, watched to its end;
//! * [`output`]: what one instance writes;
//! * [`measured`]: where the programs and images of the measured code are found;
//! * [`server`]: the programs that serve, ours and others;
//! * [`start`]: how long targets take to start;
//! * [`process`], [`linux`], [`unikernel`]: one file or folder for each target;
//! * `container`: targets in control groups and namespaces; [`engine`]: the daemon that Docker
//!   needs;
//! * `qemu`: what targets that run in QEMU share.
//!
//! A new target is a file that implements [`Target`], and an entry in [`spec::KINDS`], or in the
//! table that another program installs ([`spec::install`]; see `docs/adding-a-target.md`).
#![forbid(unsafe_code)]

mod container;
mod elf;
pub mod engine;
mod error;
pub mod foreign;
pub mod instance;
pub mod launch;
pub mod linux;
pub mod measured;
pub mod memory;
pub mod options;
pub mod output;
pub mod process;
mod programs;
mod qemu;
mod remembered;
pub mod server;
pub mod spec;
pub mod ssh;
pub mod start;
#[cfg(test)]
mod tests;
pub mod unikernel;

use std::cell::OnceCell;
use std::fmt;
use std::path::Path;

use serde::Serialize;
use tare_guard::{Guard, OwnedCgroup};
use tare_networks::Network;
use tare_results::model::{Agent, Schedule};
pub use tare_results::target::Engine;
use tare_results::target::TargetSpec;
use tare_results::work::Work;

pub use error::TargetError;
pub use instance::Instance;
pub use launch::Launch;

use crate::measured::MeasuredFile;

/// A place where measured code can run.
pub trait Target: fmt::Debug {
    /// Returns what it is, options in canonical order.
    fn spec(&self) -> TargetSpec;

    /// Returns whether its requirements are installed, and if not, the remedy. Starts no program
    /// and talks to none.
    fn present(&self) -> Availability;

    /// Returns whether instances can be launched now, and if not, the remedy.
    fn availability(&self) -> Availability {
        self.present()
    }

    /// Returns whether a command of the user's own is there to be started, as far as that can be
    /// seen without starting anything.
    fn finds(&self, _command: &[String]) -> Availability {
        Availability::Usable
    }

    /// Returns whether instances can be launched in an engine that is started for them, where it
    /// takes one.
    fn in_private_engine(&self) -> Availability {
        Availability::Usable
    }

    /// Returns the program that executes the measured code.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the program or image can't be read.
    fn program(&self) -> Result<Program, TargetError>;

    /// Uses the engine behind this socket, or by default the engine that it finds by itself.
    /// Removes what it made at the previous engine.
    fn use_engine(&self, _socket: Option<&Path>) {}

    /// Returns the resources of an instance in a few words, if they are fewer than those of a
    /// process: `CPU 3 alone, 517 MiB of memory`.
    fn resources(&self, _work: &Work) -> Option<String> {
        None
    }

    /// Returns what its start time depends on besides its options: its kernel, its accelerator.
    /// Starts nothing to find out.
    fn circumstances(&self) -> String {
        String::new()
    }

    /// Returns whether this machine cannot page out memory that the measured code locks. It can
    /// page out a guest's, unless QEMU locks it.
    fn keeps_memory(&self) -> bool {
        true
    }

    /// Prepares to start one instance by itself, or many.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if something that they need is missing, or the target can't do the
    /// job.
    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError>;

    /// Starts one instance by itself.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if nothing could be started.
    fn start(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        Instance::start(self.launch(job, guard)?, guard)
    }

    /// Checks the requested properties of the target from inside.
    ///
    /// # Errors
    ///
    /// Returns the property that differs, and what to do. The figures are then those of another
    /// target.
    fn verify(&self, _facts: Facts<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// The facts that the measured code reported about its target, by name.
pub type Facts<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// The job of instances.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The work of the measured code.
    pub work: &'a Work,
    /// A command line in place of the measured code.
    pub command: Option<&'a [String]>,
    /// The load inside of the target; None if there is none or it runs outside.
    pub load: Option<&'a Schedule>,
    /// The network in which it is a server, if it is one: the work's id is then the name of the
    /// service, and the server runs until it is ended.
    pub network: Option<&'a Network>,
    /// The control group in which it starts, of a process.
    pub group: Option<&'a OwnedCgroup>,
    /// Whether it is one instance by itself, which may have a dialogue; else many are started, each
    /// at the least cost.
    pub is_alone: bool,
}

impl<'a> Job<'a> {
    /// Makes the job of one instance without a load.
    pub fn idle(work: &'a Work) -> Self {
        Self {
            work,
            command: None,
            load: None,
            network: None,
            group: None,
            is_alone: true,
        }
    }

    /// Returns the words of the agent's plan.
    pub fn words(&self) -> Vec<String> {
        let words = self.work.to_string();
        words.split_whitespace().map(str::to_owned).collect()
    }
}

/// Whether a target can be used, and if not, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Availability {
    /// It can be used.
    Usable,
    /// It can't.
    Unusable {
        /// Why not.
        why: String,
        /// The command that makes it usable.
        remedy: String,
    },
}

impl Availability {
    /// Returns whether what a target needs was found.
    pub fn of<T>(found: Result<T, TargetError>) -> Self {
        match found {
            Ok(_) => Self::Usable,
            Err(TargetError::Ssh { why, remedy, .. }) => Self::Unusable { why, remedy },
            Err(error) => Self::Unusable {
                why: error.to_string(),
                remedy: error.remedy(),
            },
        }
    }
}

/// Returns the value of a cell, finding it the first time.
pub(crate) fn once<T>(
    cell: &OnceCell<T>,
    find: impl FnOnce() -> Result<T, TargetError>,
) -> Result<&T, TargetError> {
    if let Some(found) = cell.get() {
        return Ok(found);
    }
    let found = find()?;
    Ok(cell.get_or_init(|| found))
}

/// The program or image that holds the measured code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// Whether an emulator executes it.
    pub emulated: bool,
    /// The accelerator that executes it in a guest: `TCG of QEMU 7.2.22`.
    pub accelerator: Option<String>,
    /// A notice about its figures, for example why KVM is not used.
    pub notice: Option<String>,
    /// The kernel beneath it that the target brings along: `6.1.0-56-amd64
    /// (linux-image-6.1.0-56-amd64 6.1.192-2), sha256 …`.
    pub kernel: Option<String>,
}

impl Program {
    /// Returns the facts about the program that the laboratory knows; the program reports the rest.
    pub fn agent(&self) -> Agent {
        Agent {
            sha256: self.sha256.clone(),
            emulated: self.emulated,
            accelerator: self.accelerator.clone(),
            kernel: self.kernel.clone(),
            ..Agent::default()
        }
    }

    /// Describes the agent executed by this machine's CPU under this machine's kernel.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if its file can't be read.
    pub fn native(agent: &MeasuredFile) -> Result<Self, TargetError> {
        Ok(Self {
            sha256: agent.sha256()?,
            ..Self::default()
        })
    }
}

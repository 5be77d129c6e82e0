//! The targets: how to reach each place where measured code can run.
//!
//! A target is written as on a QEMU command line, a name and options: `unikernel,irq=off`. Whatever
//! it is, it is launched the same way, prints the same records and yields the same four time stamps, so
//! that whoever runs an experiment need not know its kind.
//!
//! * [`spec`]: the table of the kinds that exist, and how a target is made from a text;
//! * [`options`]: the options of targets, as data;
//! * [`launch`]: how instances of a target are started and judged, one by itself or many;
//! * [`instance`]: one instance by itself, watched to its end;
//! * [`output`]: what one instance writes;
//! * [`measured`]: where the programs and images of the measured code are found;
//! * [`start`]: how long targets take to start;
//! * [`process`], [`linux`], [`unikernel`]: one file or folder for each target;
//! * `container`: those in control groups and namespaces; [`engine`]: the daemon that one needs;
//! * `qemu`: what targets that run in QEMU share.
//!
//! A new target is a file that implements [`Target`], and an entry in [`spec::KINDS`], or in the table
//! that a program of its own installs ([`spec::install`]; see `docs/adding-a-target.md`).
#![forbid(unsafe_code)]

mod container;
pub mod engine;
mod error;
pub mod foreign;
pub mod instance;
pub mod launch;
pub mod linux;
pub mod measured;
mod memory;
pub mod options;
pub mod output;
pub mod process;
mod programs;
mod qemu;
mod remembered;
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
use tare_guard::Guard;
use tare_results::model::Agent;
pub use tare_results::target::Engine;
use tare_results::target::TargetSpec;
use tare_results::work::Work;

pub use error::TargetError;
pub use instance::Instance;
pub use launch::Launch;

use crate::measured::MeasuredFile;

/// A place where measured code can run.
pub trait Target: fmt::Debug {
    /// Return what it is, options in canonical order.
    fn spec(&self) -> TargetSpec;

    /// Tell whether what it needs is here, and what would have to be done, as far as that can be found out without
    /// starting a program or speaking to one.
    fn present(&self) -> Availability;

    /// Tell whether instances can be launched here and now, and what would have to be done.
    fn availability(&self) -> Availability {
        self.present()
    }

    /// Return what executes the measured code.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the program or image can't be read.
    fn program(&self) -> Result<Program, TargetError>;

    /// Use the engine behind this socket, or again the one that it finds by itself. What
    /// it made at the engine before is removed.
    fn use_engine(&self, _socket: Option<&Path>) {}

    /// Say in a few words what an instance gets for a plan, if it gets less than a process:
    /// `CPU 3 alone, 517 MiB of memory, no network`.
    fn resources(&self, _work: &Work) -> Option<String> {
        None
    }

    /// Return what its time to start depends on beside its options: its kernel, what executes it. Nothing is started
    /// to find that out.
    fn circumstances(&self) -> String {
        String::new()
    }

    /// Tell whether memory that the measured code locks can't be paged out by this machine either. A
    /// guest's can, unless QEMU locks it.
    fn keeps_memory(&self) -> bool {
        true
    }

    /// Prepare to start one instance by itself, or many.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if something that they need is missing, or the target can't do the job.
    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError>;

    /// Start one instance by itself.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if nothing could be started.
    fn start(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        Instance::start(self.launch(job, guard)?, guard)
    }

    /// Check that the target looks from inside as it was asked for.
    ///
    /// # Errors
    ///
    /// Returns what is otherwise, and what to do. The figures are then those of another target.
    fn verify(&self, _facts: Facts<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// The facts that the measured code told of its target, by name.
pub type Facts<'a> = &'a dyn Fn(&str) -> Option<&'a str>;

/// What instances are to do.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What the measured code is asked to do.
    pub work: &'a Work,
    /// A command line in place of the measured code.
    pub command: Option<&'a [String]>,
    /// The load that is to run inside, as written on the command line; None if there is none or it
    /// runs beside.
    pub load: Option<&'a str>,
    /// Whether it is one instance by itself, which may have a dialogue; else many are started, each
    /// at the least cost.
    pub is_alone: bool,
}

impl<'a> Job<'a> {
    /// Makes the job of one instance without a load.
    #[must_use]
    pub fn idle(work: &'a Work) -> Self {
        Self {
            work,
            command: None,
            load: None,
            is_alone: true,
        }
    }

    /// Returns the words of the agent's plan.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = self.work.to_string();
        words.split_whitespace().map(str::to_owned).collect()
    }
}

/// Whether a target can be used, and what would have to be done.
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
    /// Tell by what was found, or was not.
    pub(crate) fn of<T>(found: Result<T, TargetError>) -> Self {
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

/// Return what a cell holds, and find it the first time.
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
    /// What executes it if it runs in a guest: `TCG of QEMU 7.2.22`.
    pub accelerator: Option<String>,
    /// What the reader of its figures should know, for example why KVM is not used.
    pub notice: Option<String>,
    /// The kernel beneath it that the target brings along: `6.1.0-56-amd64
    /// (linux-image-6.1.0-56-amd64 6.1.192-2), sha256 …`.
    pub kernel: Option<String>,
}

impl Program {
    /// Return what the laboratory knows of who runs; the rest the program tells itself.
    #[must_use]
    pub fn agent(&self) -> Agent {
        Agent {
            sha256: self.sha256.clone(),
            emulated: self.emulated,
            accelerator: self.accelerator.clone(),
            kernel: self.kernel.clone(),
            ..Agent::default()
        }
    }

    /// Describe a program that this machine's CPU executes under this machine's kernel.
    pub(crate) fn native(agent: &MeasuredFile) -> Result<Self, TargetError> {
        Ok(Self {
            sha256: agent.sha256()?,
            ..Self::default()
        })
    }
}

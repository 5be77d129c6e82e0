//! How to reach each place where measured code can run.
//!
//! A target is written as on a QEMU command line, a name and options: `unikernel,irq=off`. Whatever
//! it is, it is launched the same way, prints the same records and yields the same four time stamps, so
//! that whoever runs an experiment need not know what kind of place it is.
//!
//! * [`spec`]: the grammar of a target, and the table of those that exist;
//! * [`instance`]: one started instance, watched to its end;
//! * [`measured`]: where the programs and images of the measured code are found;
//! * [`process`], [`unikernel`]: one file or folder for each target;
//! * `qemu`: what targets that run in QEMU share.
//!
//! A new target is a file that implements [`Target`], and a line in [`spec::KINDS`].
#![forbid(unsafe_code)]

mod error;
pub mod instance;
pub mod measured;
mod options;
pub mod process;
mod qemu;
pub mod spec;
pub mod unikernel;

use std::fmt;

use serde::Serialize;
use tare_guard::Guard;

pub use error::TargetError;
pub use instance::Instance;

/// Is a place where measured code can run.
pub trait Target: fmt::Debug {
    /// Returns the target as it is written on the command line, options in canonical order.
    fn spec(&self) -> String;

    /// Says whether instances can be launched here and now, and what would have to be done.
    fn availability(&self) -> Availability;

    /// Says what executes the measured code.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if the program or image can't be read.
    fn program(&self) -> Result<Program, TargetError>;

    /// Starts one instance that runs the plan in `words`.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if nothing could be started.
    fn launch(&self, words: &str, guard: &Guard) -> Result<Instance, TargetError>;
}

/// Says whether a target can be used, and what would have to be done.
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

/// Names the program or image that holds the measured code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// SHA-256 of its file, in hexadecimal.
    pub sha256: String,
    /// Whether an emulator executes it.
    pub emulated: bool,
    /// What executes it if it runs in a guest: `TCG of QEMU 7.2.22`.
    pub accelerator: Option<String>,
    /// What the reader of its figures should know, for example why KVM is not used.
    pub notice: Option<String>,
}

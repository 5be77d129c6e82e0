//! What guests run on here: which QEMU, and what executes a guest's instructions.

use std::cell::OnceCell;
use std::path::Path;

use tare_guard::{Guard, default_state_dir};
use tare_results::target::Clock;

use super::Qemu;
use super::accelerator::{Accelerator, Choice, try_kvm};
use crate::error::TargetError;
use crate::measured::MeasuredFile;
use crate::memory;

/// Is what guests run on here.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) qemu: Qemu,
    pub(crate) accelerator: Accelerator,
    /// Whether QEMU locks a guest's memory.
    pub(crate) locks_memory: bool,
    /// Why another accelerator than one might expect.
    pub(crate) notice: Option<String>,
}

impl Host {
    /// Returns what is in `found`, and finds it the first time. Without a `state_dir` the user's own is
    /// taken.
    ///
    /// # Errors
    ///
    /// As [`find`](Self::find).
    pub(crate) fn once<'a>(
        found: &'a OnceCell<Self>,
        choice: Choice,
        clock: Clock,
        state_dir: Option<&Path>,
    ) -> Result<&'a Self, TargetError> {
        if let Some(host) = found.get() {
            return Ok(host);
        }
        let host = match state_dir {
            Some(folder) => Self::find(choice, clock, folder)?,
            None => Self::find(choice, clock, &default_state_dir()?)?,
        };
        Ok(found.get_or_init(|| host))
    }

    /// Finds QEMU and the accelerator: that may boot a guest. `state_dir` is where the guard of that
    /// trial keeps its journal.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if there is no QEMU that can be used, or KVM is asked for and does not
    /// work.
    pub(crate) fn find(
        choice: Choice,
        clock: Clock,
        state_dir: &Path,
    ) -> Result<Self, TargetError> {
        // A guard of its own: this is asked also by those who start nothing else.
        let guard = Guard::open(state_dir)?;
        let qemu = Qemu::find(&guard)?;
        let kvm = || try_kvm(&qemu, &MeasuredFile::image("hello"), &guard, state_dir);
        let (accelerator, notice) = match choice {
            Choice::Tcg => (Accelerator::Tcg, None),
            Choice::Auto if clock == Clock::Instructions => (Accelerator::Tcg, None),
            Choice::Auto => match kvm()? {
                Ok(()) => (Accelerator::Kvm, None),
                Err(why) => {
                    let notice = format!("emulated, since KVM does not work here: {why}");
                    (Accelerator::Tcg, Some(notice))
                }
            },
            Choice::Kvm => match kvm()? {
                Ok(()) => (Accelerator::Kvm, None),
                Err(why) => return Err(TargetError::NoKvm { why }),
            },
        };
        Ok(Self {
            qemu,
            accelerator,
            locks_memory: memory::is_locked(accelerator),
            notice,
        })
    }

    /// Names what executes a guest's instructions: `TCG of QEMU 7.2.22`.
    pub(crate) fn label(&self) -> String {
        let name = match self.accelerator {
            Accelerator::Kvm => "KVM with",
            Accelerator::Tcg => "TCG of",
        };
        format!("{name} QEMU {}", self.qemu.version)
    }
}

/// Returns the command that makes a target in QEMU usable.
pub(crate) fn remedy(error: &TargetError) -> &'static str {
    match error {
        TargetError::NoQemu { .. } => {
            "apt-get update && apt-get install -y --no-install-recommends qemu-system-x86"
        }
        TargetError::NoKvm { .. } => "accel=tcg, or accel=auto, which takes what works",
        TargetError::NotBuilt { .. } | TargetError::Unreadable { .. } => "make build",
        TargetError::KernelCanNot { .. } => {
            "leave that option out, or name another kernel= of `tare kernel list`"
        }
        _ => "see the message",
    }
}

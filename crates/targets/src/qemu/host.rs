//! What guests run on here: which QEMU, and what executes a guest's instructions.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use tare_guard::{Guard, default_state_dir};
use tare_host::{Cpuid, TCG_SIGNATURE};
use tare_results::target::Clock;

use super::Qemu;
use super::accelerator::{Accelerator, Choice, expected, try_kvm};
use crate::error::TargetError;
use crate::measured::MeasuredFile;
use crate::memory::{self, Locking};
use crate::{Program, once};

/// What guests run on here.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) qemu: Qemu,
    pub(crate) accelerator: Accelerator,
    /// Whether an emulator executes guests: QEMU's here, or one below this machine.
    is_emulated: bool,
    /// How QEMU locks a guest's memory.
    pub(crate) locking: Locking,
    /// Why another accelerator than one might expect.
    pub(crate) notice: Option<String>,
}

/// What guests run on here, found when it is first asked for: that may boot a guest.
#[derive(Debug)]
pub(crate) struct LazyHost {
    choice: Choice,
    clock: Clock,
    /// Where the guard of the trial keeps its journal; the user's own folder if None.
    pub(crate) state_dir: Option<PathBuf>,
    found: OnceCell<Host>,
}

impl LazyHost {
    /// Asks for an accelerator that has such a clock.
    pub(crate) fn new(choice: Choice, clock: Clock) -> Self {
        Self {
            choice,
            clock,
            state_dir: None,
            found: OnceCell::new(),
        }
    }

    /// Returns what guests run on.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if there is no QEMU that can be used, or KVM is asked for and does
    /// not work.
    pub(crate) fn get(&self) -> Result<&Host, TargetError> {
        once(&self.found, || match &self.state_dir {
            Some(folder) => Host::find(self.choice, self.clock, folder),
            None => Host::find(self.choice, self.clock, &default_state_dir()?),
        })
    }

    /// Returns what is to be expected to execute a guest's instructions, as far as that is known
    /// without starting QEMU.
    pub(crate) fn expected(&self) -> Option<Accelerator> {
        let is_counted = self.choice == Choice::Auto && self.clock == Clock::Instructions;
        match (self.choice, self.found.get()) {
            (_, Some(host)) => Some(host.accelerator),
            (Choice::Tcg, None) => Some(Accelerator::Tcg),
            _ if is_counted => Some(Accelerator::Tcg),
            _ => match &self.state_dir {
                Some(folder) => expected(folder),
                None => expected(&default_state_dir().ok()?),
            },
        }
    }
}

/// Returns a notice if this machine is itself emulated by QEMU: its KVM is, too.
fn emulated_below() -> Option<String> {
    let cpuid = Cpuid::read();
    let below = cpuid.known()?.hypervisor.as_deref()?;
    (below == TCG_SIGNATURE).then(|| {
        "emulated, although by KVM: this machine is itself a guest that QEMU's TCG emulates"
            .to_owned()
    })
}

impl Host {
    /// Finds QEMU and the accelerator. `state_dir` is where the guard of the trial keeps its
    /// journal.
    fn find(choice: Choice, clock: Clock, state_dir: &Path) -> Result<Self, TargetError> {
        // A separate guard: callers may have started nothing and have none.
        let guard = Guard::open(state_dir)?;
        let qemu = Qemu::find(&guard)?;
        let is_counted = choice == Choice::Auto && clock == Clock::Instructions;
        let (accelerator, notice) = if choice == Choice::Tcg || is_counted {
            (Accelerator::Tcg, None)
        } else {
            let is_wanted = choice == Choice::Kvm;
            let hello = MeasuredFile::image("hello");
            match try_kvm(&qemu, &hello, &guard, state_dir, is_wanted)? {
                None => (Accelerator::Kvm, emulated_below()),
                Some(why) if is_wanted => {
                    let why = format!("KVM does not work here: {why}");
                    let remedy = "accel=tcg, or accel=auto, which takes what works";
                    return Err(TargetError::unusable(why, remedy));
                }
                Some(why) => {
                    let notice = format!("emulated, since KVM does not work here: {why}");
                    (Accelerator::Tcg, Some(notice))
                }
            }
        };
        Ok(Self {
            locking: memory::locking(accelerator, &qemu.version),
            qemu,
            accelerator,
            is_emulated: accelerator == Accelerator::Tcg || notice.is_some(),
            notice,
        })
    }

    /// Describes the program of a guest.
    pub(crate) fn program(&self, sha256: String) -> Program {
        let label = match self.accelerator {
            Accelerator::Kvm => "KVM with",
            Accelerator::Tcg => "TCG of",
        };
        Program {
            sha256,
            emulated: self.is_emulated,
            accelerator: Some(format!("{label} QEMU {}", self.qemu.version)),
            notice: self.notice.clone(),
            kernel: None,
        }
    }
}

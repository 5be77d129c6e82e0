//! `guest`: any other image that QEMU boots, unchanged.
//!
//! The image is a kernel (ELF with PVH or multiboot, bzImage), a disk (qcow2, raw) or a CD,
//! distinguished by its first bytes. It is never changed: writes of the guest go to a scratch
//! folder. It runs no agent and prints no records, so it runs no plans: what can be measured of it
//! is how it starts and ends. `ready` is when a line of its serial console matches, also one that
//! has no end yet, such as `login:`. `exited` is when QEMU has ended. It can serve, if it takes the
//! address of a service by itself or from its command line.
//!
//! Regular expressions are those of the crate regex-lite: without dependencies, in time linear in
//! the text, and small to compile, which the tables of Unicode classes of `regex` are not.

mod image;
mod monitor;
mod settings;

use std::cell::OnceCell;
use std::path::Path;

use tare_guard::Guard;
use tare_results::target::{Clock, TargetSpec};
use tare_results::work::Work;

use self::image::Kind;
use self::settings::Interface;
use crate::error::TargetError;
use crate::launch::{Launch, Ready};
use crate::options::Word;
use crate::qemu::accelerator::Choice;
use crate::qemu::host::LazyHost;
use crate::qemu::{Boot, Control, Guest, Machine, Qemu};
use crate::{Availability, Job, Program, Target, once};

pub(crate) use self::settings::{OPTIONS, Settings};

/// A guest from somebody else's image.
#[derive(Debug)]
pub struct Foreign {
    settings: Settings,
    host: LazyHost,
    /// Of the image as it was when it was first asked for.
    sha256: OnceCell<String>,
}

impl Foreign {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            host: LazyHost::new(settings.accelerator, Clock::Host),
            settings,
            sha256: OnceCell::new(),
        }
    }

    /// Returns the kind of the image, if it goes with the other settings.
    fn kind(&self) -> Result<Kind, TargetError> {
        let kind = Kind::of(&self.settings.image)?;
        let refused = |what, why| Err(TargetError::contradiction(settings::NAME, what, why));
        if kind == Kind::Kernel {
            return Ok(kind);
        }
        if self.settings.command_line.is_some() {
            let why = "what it boots has its own command line; leave cmdline= out";
            return refused("cmdline with a disk or CD", why);
        }
        if self.settings.machine == Machine::Microvm {
            let why = "its firmware boots kernels only; use machine=q35 or machine=pc";
            return refused("machine=microvm with a disk or CD", why);
        }
        Ok(kind)
    }

    /// Returns what is booted; what the guest writes to a disk goes to a folder.
    fn booted<'a>(&'a self, kind: Kind, changes: &'a Path) -> Boot<'a> {
        let settings = &self.settings;
        match kind {
            Kind::Kernel => Boot::Kernel {
                path: &settings.image,
                command_line: settings.command_line.as_deref().unwrap_or_default(),
            },
            Kind::Cd | Kind::Qcow2 | Kind::Raw => Boot::Drive {
                path: &settings.image,
                format: if kind == Kind::Qcow2 { "qcow2" } else { "raw" },
                device: match (kind, settings.interface) {
                    (Kind::Cd, _) => "ide-cd",
                    (_, Interface::Virtio) => "virtio-blk-pci",
                    (_, Interface::Ide) => "ide-hd",
                },
                changes,
            },
        }
    }
}

impl Target for Foreign {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(self.kind().and_then(|_| Qemu::program()))
    }

    fn availability(&self) -> Availability {
        Availability::of(self.kind().and_then(|_| self.host.get()))
    }

    fn program(&self) -> Result<Program, TargetError> {
        let host = self.host.get()?;
        let image = &self.settings.image;
        let sha256 = once(&self.sha256, || {
            let unreadable = |error| image::refused(image, &format!("can't be read: {error}"));
            tare_kernels::file_sha256(image).map_err(unreadable)
        })?;
        Ok(host.program(sha256.clone()))
    }

    fn circumstances(&self) -> String {
        self.host.expected().map_or("", Word::word).to_owned()
    }

    /// Prepares to boot the image. A plan is refused.
    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        if job.network.is_none() && *job.work != Work::default() {
            return Err(TargetError::RunsNoPlans {
                target: self.spec().text,
            });
        }
        let (settings, host) = (&self.settings, self.host.get()?);
        let changes = guard.scratch("changes")?;
        let guest = Guest {
            cpus: settings.cpus,
            network: job.network,
            control: match job.is_alone {
                true => Control::Dialogue,
                false => Control::Events,
            },
            ..Guest::new(
                settings.machine,
                host.accelerator,
                settings.memory,
                self.booted(self.kind()?, changes.path()),
            )
        };
        let success = settings.success;
        Ok(Launch {
            ready: Ready::Line(settings.ready.clone()),
            judge: Box::new(move |ended| monitor::judge(success, ended)),
            ..host.qemu.launch(settings::NAME, &guest, &[])?
        }
        .keeping(changes))
    }
}

/// Returns whether guests can be booted here, whatever their image.
pub(crate) fn here() -> Availability {
    Availability::of(LazyHost::new(Choice::Auto, Clock::Host).get())
}

#[cfg(test)]
mod boot_tests;

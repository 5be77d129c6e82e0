//! `guest`: anything else that QEMU boots, as it is.
//!
//! ```text
//! guest,image=FILE,ready=REGEX,success=N|shutdown|reset[,mem=SIZE][,cpus=N]
//!      [,machine=microvm|q35|pc][,accel=auto|kvm|tcg][,drive=virtio|ide][,cmdline=WORDS]
//! ```
//!
//! The image is a kernel (ELF with PVH or multiboot, bzImage), a disk (qcow2, raw) or a CD; which one
//! is told by its first bytes. It is never changed: what the guest writes to its disk goes to a
//! scratch folder. It runs no agent and prints no records, so it runs no plans: what can be measured
//! of it is how it starts and ends. `ready` is when a line of its serial console matches, also one
//! that has no end yet, such as `login:`. `exited` is when QEMU has ended.
//!
//! Regular expressions are those of the crate regex-lite: without dependencies, in time linear in
//! the text, and small to compile, which the tables of Unicode classes of `regex` are not.

mod image;
mod settings;
mod warden;

use std::cell::OnceCell;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use tare_guard::{Guard, default_state_dir};
use tare_results::target::{Clock, TargetSpec};
use tare_results::work::Work;

use self::image::Kind;
use self::settings::Interface;
use self::warden::Warden;
use crate::error::TargetError;
use crate::instance::Instance;
use crate::qemu::accelerator::{Accelerator, Choice};
use crate::qemu::host::{self, Host};
use crate::qemu::{Boot, Guest, Machine};
use crate::{Availability, Job, Program, Target};

pub(crate) use self::settings::{FORM, Settings};

/// Boots somebody else's image.
#[derive(Debug)]
pub struct Foreign {
    settings: Settings,
    /// Where the guard of trials keeps its journal; the user's own folder if None.
    state_dir: Option<PathBuf>,
    /// Found when it is first asked for: that may boot a guest.
    host: OnceCell<Host>,
    /// Of the image as it was when it was first asked for.
    sha256: OnceCell<String>,
}

impl Foreign {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            state_dir: None,
            host: OnceCell::new(),
            sha256: OnceCell::new(),
        }
    }

    fn host(&self) -> Result<&Host, TargetError> {
        let state_dir = self.state_dir.as_deref();
        Host::once(
            &self.host,
            self.settings.accelerator,
            Clock::Host,
            state_dir,
        )
    }

    /// Returns the kind of the image, if it goes with the other settings.
    fn kind(&self) -> Result<Kind, TargetError> {
        let kind = Kind::of(&self.settings.image)?;
        let refused = |what: &str, why| TargetError::Contradiction {
            target: settings::NAME,
            what: what.to_owned(),
            why,
        };
        if kind == Kind::Kernel {
            return Ok(kind);
        }
        if self.settings.command_line.is_some() {
            let why = "what it boots has its own command line; leave cmdline= out";
            return Err(refused("cmdline with a disk or CD", why));
        }
        if self.settings.machine == Machine::Microvm {
            let why = "its firmware boots kernels only; use machine=q35 or machine=pc";
            return Err(refused("machine=microvm with a disk or CD", why));
        }
        Ok(kind)
    }

    fn hash(&self) -> io::Result<String> {
        let mut file = File::open(&self.settings.image)?;
        let mut hasher = Sha256::new();
        // Disks may be larger than the memory.
        let mut bytes = vec![0; 1 << 20];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => break,
                Ok(n) => hasher.update(&bytes[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut text = String::new();
        for byte in hasher.finalize() {
            write!(text, "{byte:02x}").expect("a String takes everything");
        }
        Ok(text)
    }
}

impl Target for Foreign {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        match self.kind().and_then(|_| self.host()) {
            Ok(_) => Availability::Usable,
            Err(error) => Availability::Unusable {
                why: error.to_string(),
                remedy: match &error {
                    TargetError::Image { .. } => "name another file with image=".to_owned(),
                    error => host::remedy(error).to_owned(),
                },
            },
        }
    }

    fn program(&self) -> Result<Program, TargetError> {
        let host = self.host()?;
        let sha256 = match self.sha256.get() {
            Some(sha256) => sha256,
            None => {
                let sha256 = self.hash().map_err(|source| TargetError::Image {
                    path: self.settings.image.clone(),
                    why: format!("can't be read: {source}"),
                })?;
                self.sha256.get_or_init(|| sha256)
            }
        };
        Ok(Program {
            sha256: sha256.clone(),
            emulated: host.accelerator == Accelerator::Tcg,
            accelerator: Some(host.label()),
            notice: host.notice.clone(),
            ..Program::default()
        })
    }

    fn runs_plans(&self) -> bool {
        false
    }

    /// Boots the image. The job must be empty.
    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        if *job.work != Work::default() {
            return Err(TargetError::RunsNoPlans {
                target: self.spec().text,
            });
        }
        let host = self.host()?;
        let kind = self.kind()?;
        let changes = match kind {
            Kind::Kernel => None,
            Kind::Cd | Kind::Qcow2 | Kind::Raw => Some(guard.scratch("changes")?),
        };
        let boot = match &changes {
            None => Boot::Kernel {
                path: &self.settings.image,
                command_line: self.settings.command_line.as_deref().unwrap_or_default(),
            },
            Some(changes) => Boot::Drive {
                path: &self.settings.image,
                format: if kind == Kind::Qcow2 { "qcow2" } else { "raw" },
                device: match (kind, self.settings.interface) {
                    (Kind::Cd, _) => "ide-cd",
                    (_, Interface::Virtio) => "virtio-blk-pci",
                    (_, Interface::Ide) => "ide-hd",
                },
                changes: changes.path(),
            },
        };
        let guest = Guest {
            machine: self.settings.machine,
            accelerator: host.accelerator,
            cpus: self.settings.cpus,
            memory: self.settings.memory,
            clock: Clock::Host,
            boot,
            locks_memory: false,
            gdb_port: None,
            linux: None,
        };
        let mut started = host.qemu.start(&guest, guard)?;
        started.go()?;
        let warden = Warden::new(started.qmp, &self.settings, changes);
        Instance::of_child(started.child, started.started_ns, Box::new(warden))
    }
}

/// Says whether guests can be booted here, whatever their image.
pub(crate) fn here() -> Availability {
    let found = default_state_dir()
        .map_err(TargetError::from)
        .and_then(|state_dir| Host::find(Choice::Auto, Clock::Host, &state_dir));
    match found {
        Ok(_) => Availability::Usable,
        Err(error) => Availability::Unusable {
            why: error.to_string(),
            remedy: host::remedy(&error).to_owned(),
        },
    }
}

#[cfg(test)]
mod boot_tests;

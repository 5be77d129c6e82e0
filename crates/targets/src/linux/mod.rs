//! `linux`: the measured code as a guest in QEMU, under its own Linux kernel.
//!
//! The guest is a kernel from the store and an initramfs that is made for it ([`initramfs`]): the
//! agent is its first process; with `root=debian` a whole Debian follows ([`debian`]). Its records
//! come over a virtio port; its serial console explains failures ([`monitor`]). The requested
//! properties are compared with those that the guest reports ([`verify`]). As for the unikernel,
//! the plan's CPU is one of the host, to which the thread of the guest's measured CPU is pinned:
//! the last one that is isolated or tickless, or the last one.

mod command_line;
mod debian;
mod disk;
mod initramfs;
mod monitor;
mod scratch;
mod settings;
mod threads;
mod tools;
mod verify;

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use tare_guard::{Guard, ScratchDir};
use tare_kernels::debian_root::{self, DebianRoot};
use tare_kernels::{ConfigOption, Kernel, Store, default_store_dir};
use tare_results::model::Schedule;
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::guest::{PORT, SCRATCH_SERIAL};

use self::initramfs::Needs;
use self::scratch::Scratch;
use self::settings::{Preempt, Root};
use crate::container::unwritable;
use crate::error::TargetError;
use crate::launch::Launch;
use crate::measured::MeasuredFile;
use crate::memory;
use crate::options::{Size, Word};
use crate::qemu::host::LazyHost;
use crate::qemu::{self, Boot, Control, Disk, Guest, Machine, Qemu};
use crate::{Availability, Facts, Job, Program, Target, once};

pub(crate) use self::settings::{OPTIONS, Settings};

/// The agent under its own kernel.
#[derive(Debug)]
pub struct Linux {
    settings: Settings,
    agent: MeasuredFile,
    /// Where kernels are; the user's own folder if None.
    store_dir: Option<PathBuf>,
    host: LazyHost,
    /// Found when it is first asked for: its file is read and checked.
    kernel: OnceCell<Kernel>,
    /// The initramfs of guests without a load.
    plain_initramfs: OnceCell<Vec<u8>>,
}

impl Linux {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            host: LazyHost::new(settings.accelerator, settings.clock),
            settings,
            agent: MeasuredFile::agent(),
            store_dir: None,
            kernel: OnceCell::new(),
            plain_initramfs: OnceCell::new(),
        }
    }

    fn store(&self) -> Result<Store, TargetError> {
        Ok(match &self.store_dir {
            Some(folder) => Store::open(folder)?,
            None => Store::open(&default_store_dir()?)?,
        })
    }

    /// Finds the Debian, if it is to be the root.
    fn debian(&self) -> Result<Option<DebianRoot>, TargetError> {
        Ok(match self.settings.root {
            Root::Initramfs => None,
            Root::Debian => Some(debian_root::find(&self.store()?)?),
        })
    }

    fn kernel(&self) -> Result<&Kernel, TargetError> {
        once(&self.kernel, || {
            let kernel = self.store()?.find(&self.settings.kernel)?;
            check(&self.settings, &kernel).map(|()| kernel)
        })
    }

    /// Finds all files that a launch needs.
    fn find_files(&self) -> Result<(), TargetError> {
        self.agent.path()?;
        Qemu::program()?;
        self.kernel()?;
        self.debian()?;
        Ok(())
    }

    /// Writes the initramfs into a folder.
    fn write_initramfs(&self, needs: &Needs, folder: &Path) -> Result<PathBuf, TargetError> {
        let made = || {
            let (agent, kernel) = (self.agent.read()?, self.kernel()?);
            Ok(initramfs::archive(&agent, kernel, needs)?)
        };
        let archive = match *needs == Needs::plain() {
            true => once(&self.plain_initramfs, made)?,
            false => &made()?,
        };
        let path = folder.join("initramfs");
        fs::write(&path, archive).map_err(|error| unwritable(&path, &error))?;
        Ok(path)
    }

    /// Makes the disks that there are to be.
    fn disks(
        &self,
        scratch: Option<Size>,
        folder: &ScratchDir,
        guard: &Guard,
    ) -> Result<Vec<Disk>, TargetError> {
        let mut disks = Vec::new();
        if let Some(root) = self.debian()? {
            disks.push(debian::disk(&root, self.agent.read()?, guard)?);
        }
        if let Some(size) = scratch {
            let path = folder.path().join("disk");
            disk::make(&path, size, guard)?;
            disks.push(Disk {
                path,
                is_kept_as_it_is: false,
                serial: SCRATCH_SERIAL,
            });
        }
        Ok(disks)
    }

    /// Returns where the load writes, or would.
    fn scratch(&self, load: Option<&Schedule>) -> Option<Scratch> {
        let of_load = || load.map(|_| Scratch::of_load(self.settings.clock));
        self.settings.scratch.or_else(of_load)
    }

    /// Returns what the load needs in the guest.
    fn needs(&self, load: Option<&Schedule>) -> Result<Needs, TargetError> {
        let scratch = self.scratch(load);
        Ok(Needs {
            scratch: scratch.is_some(),
            disk: scratch.and_then(Scratch::disk).is_some(),
            port: true,
            services: None,
            root: self.settings.root == Root::Debian,
            programs: match self.settings.root {
                Root::Initramfs => load.map_or(Ok(Vec::new()), tools::programs)?,
                // It has its own.
                Root::Debian => Vec::new(),
            },
        })
    }
}

impl Target for Linux {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(self.find_files())
    }

    fn availability(&self) -> Availability {
        let ready = self.host.get().and_then(|_| self.find_files());
        Availability::of(ready)
    }

    fn program(&self) -> Result<Program, TargetError> {
        let (host, kernel) = (self.host.get()?, self.kernel()?);
        Ok(Program {
            kernel: Some(match self.debian()? {
                None => label(kernel),
                Some(root) => format!("{}; {}", label(kernel), debian::label(&root)),
            }),
            ..host.program(self.agent.sha256()?)
        })
    }

    /// A kernel that is no one of the store is known by its name, which is among the options.
    fn circumstances(&self) -> String {
        let store = self.store().ok();
        let kernel = store.and_then(|store| store.peek(&self.settings.kernel));
        let kernel = kernel.as_ref().map(label).unwrap_or_default();
        format!("{kernel}; {}", self.host.expected().map_or("", Word::word))
    }

    fn resources(&self, work: &Work) -> Option<String> {
        let Settings { cpus, memory, .. } = self.settings;
        let memory = memory.unwrap_or_else(|| memory::needed(work.buffer_bytes));
        Some(memory::guest_resources(cpus, memory))
    }

    fn keeps_memory(&self) -> bool {
        self.host
            .get()
            .is_ok_and(|host| host.locking.keeps_memory())
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Launch, TargetError> {
        let (settings, host) = (&self.settings, self.host.get()?);
        let is_alone = job.is_alone;
        let load = job.load;
        let scratch = self.scratch(load).filter(|_| is_alone);
        let files = guard.scratch("guest")?;
        let services = match job.network {
            Some(_) if settings.root == Root::Debian => {
                let why = "a service is started by the first process, which is Debian's own there";
                return Err(TargetError::contradiction("linux", "root=debian", why));
            }
            Some(_) => Some(MeasuredFile::services().read()?),
            None => None,
        };
        let needs = Needs {
            port: is_alone,
            services,
            ..self.needs(load)?
        };
        let initrd = self.write_initramfs(&needs, files.path())?;
        let disks = self.disks(scratch.and_then(Scratch::disk), &files, guard)?;
        let line = match is_alone {
            true => command_line::command_line(settings, job, scratch)?,
            false => command_line::direct(settings, job.work)?,
        };
        // The RAM disk takes memory in addition to the plan.
        let needed = memory::needed(job.work.buffer_bytes)
            .and(scratch.map_or(Size::mib(0), Scratch::memory));
        let boot = Boot::Kernel {
            path: &self.kernel()?.vmlinuz,
            command_line: &line,
        };
        let guest = Guest {
            cpus: settings.cpus,
            clock: settings.clock,
            locking: host.locking,
            control: Control::of(job),
            network: job.network,
            linux: Some(qemu::Linux {
                initrd: Some(&initrd),
                port: is_alone.then_some(PORT),
                disks: &disks,
                changes: (!is_alone).then_some(files.path()),
            }),
            ..Guest::new(
                Machine::Q35,
                host.accelerator,
                settings.memory.unwrap_or(needed),
                boot,
            )
        };
        let pins = threads::measured(job.work, settings).pins(job.work);
        Ok(Launch {
            judge: Box::new(monitor::judge),
            ..host.qemu.launch("linux", &guest, &pins)?
        }
        .keeping(files))
    }

    fn verify(&self, facts: Facts<'_>) -> Result<(), String> {
        let kernel = self.kernel().map_err(|error| error.to_string())?;
        verify::verify(&self.settings, &kernel.release, facts)
    }
}

/// Checks that the kernel supports the settings, as far as its configuration is known. The guest
/// reports the properties in force ([`verify`]).
fn check(settings: &Settings, kernel: &Kernel) -> Result<(), TargetError> {
    let has = |name| Some(kernel.option(name)? == ConfigOption::Yes);
    let lacks = |name| has(name) == Some(false);
    let refuse = |option: String, why: &str| {
        let why = format!("the kernel '{}' can't have {option}: {why}", kernel.name);
        let remedy = "leave that option out, or name another kernel= of `tare kernel list`";
        Err(TargetError::unusable(why, remedy))
    };
    if let Some(preempt) = settings.preempt {
        let option = format!("preempt={}", preempt.word());
        if has("PREEMPT_RT") == Some(true) && lacks("PREEMPT_DYNAMIC") {
            let why = "it is a PREEMPT_RT kernel, which preempts itself everywhere and has no choice; \
                       leave preempt= out";
            return refuse(option, why);
        }
        if lacks("PREEMPT_DYNAMIC") {
            let why = "it was built without PREEMPT_DYNAMIC, and takes no preempt=; choose a kernel \
                       of the right model (tare kernel list)";
            return refuse(option, why);
        }
        if preempt == Preempt::Lazy && lacks("ARCH_HAS_PREEMPT_LAZY") {
            let why = "it has no lazy preemption, which came with Linux 6.13";
            return refuse(option, why);
        }
    }
    if !settings.nohz_full.is_empty() && lacks("NO_HZ_FULL") {
        let option = format!("nohz_full={}", settings.nohz_full);
        return refuse(option, "it was built without NO_HZ_FULL");
    }
    Ok(())
}

/// Names a kernel exactly.
fn label(kernel: &Kernel) -> String {
    let origin = match (&kernel.package, &kernel.version) {
        (Some(package), Some(version)) => format!("{package} {version}"),
        _ => kernel.vmlinuz.display().to_string(),
    };
    format!("{} ({origin}), SHA-256 {}", kernel.release, kernel.sha256)
}

#[cfg(test)]
mod boot_tests;

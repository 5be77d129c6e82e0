//! `linux`: the measured code as a guest in QEMU, under a Linux kernel of its own.
//!
//! ```text
//! linux[,kernel=NAME|PATH][,preempt=none|voluntary|full|lazy][,cpus=N][,mem=SIZE]
//!      [,isolate=CPUS][,nohz_full=CPUS][,cmdline=WORDS][,disk=scratch:SIZE|ram:SIZE]
//!      [,root=initramfs|debian][,accel=auto|kvm|tcg][,clock=host|instructions]
//! ```
//!
//! A comma inside of a value is written twice: `isolate=1,,3`.
//!
//! The guest is a kernel from the store and an initramfs that is made for it ([`initramfs`]): the
//! agent is its first process; with `root=debian` it goes on into a whole Debian ([`debian`]). Its records come over a virtio port; its serial console is kept to
//! tell why it failed ([`warden`]). What it was asked to be is compared with what it tells of itself
//! ([`verify`]). As for the unikernel, the plan's CPU is one of the host, to which the thread of the
//! guest's measured CPU is pinned: the last one that is isolated or tickless, or the last one.

mod command_line;
mod debian;
mod disk;
mod initramfs;
mod scratch;
mod settings;
mod threads;
mod tools;
mod verify;
mod warden;

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use tare_guard::{Guard, ScratchDir};
use tare_kernels::debian_root::{self, DebianRoot};
use tare_kernels::{ConfigOption, Kernel, Store, default_store_dir};
use tare_results::model::LoadPlace;
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::guest::{PORT, SCRATCH_SERIAL};

use self::initramfs::Needs;
use self::scratch::Scratch;
use self::settings::{Preempt, Root};
use self::warden::Warden;
use crate::error::TargetError;
use crate::instance::Instance;
use crate::measured::MeasuredFile;
use crate::memory;
use crate::options::{Size, Word};
use crate::qemu::accelerator::Accelerator;
use crate::qemu::host::{self, Host};
use crate::qemu::{self, Boot, Disk, Guest, Machine, Pin};
use crate::{Availability, Facts, Job, Program, Target};

pub(crate) use self::settings::Settings;

/// Is the load that is none.
const IDLE: &str = "idle";

/// Runs the agent under a kernel of its own.
#[derive(Debug)]
pub struct Linux {
    settings: Settings,
    agent: MeasuredFile,
    /// Where the guard of trials keeps its journal; the user's own folder if None.
    state_dir: Option<PathBuf>,
    /// Where kernels are; the user's own folder if None.
    store_dir: Option<PathBuf>,
    /// Found when it is first asked for: that may boot a guest.
    host: OnceCell<Host>,
    /// Found when it is first asked for: its file is read and checked.
    kernel: OnceCell<Kernel>,
    /// What a guest without a load boots into.
    plain_initramfs: OnceCell<Vec<u8>>,
}

impl Linux {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            agent: MeasuredFile::agent(),
            state_dir: None,
            store_dir: None,
            host: OnceCell::new(),
            kernel: OnceCell::new(),
            plain_initramfs: OnceCell::new(),
        }
    }

    fn host(&self) -> Result<&Host, TargetError> {
        let state_dir = self.state_dir.as_deref();
        Host::once(
            &self.host,
            self.settings.accelerator,
            self.settings.clock,
            state_dir,
        )
    }

    fn store(&self) -> Result<Store, TargetError> {
        let store_dir = match &self.store_dir {
            Some(folder) => folder.clone(),
            None => default_store_dir()?,
        };
        Ok(Store::open(&store_dir)?)
    }

    /// Finds the Debian, if it is to be the root.
    fn debian(&self) -> Result<Option<DebianRoot>, TargetError> {
        Ok(match self.settings.root {
            Root::Initramfs => None,
            Root::Debian => Some(debian_root::find(&self.store()?)?),
        })
    }

    fn kernel(&self) -> Result<&Kernel, TargetError> {
        if let Some(kernel) = self.kernel.get() {
            return Ok(kernel);
        }
        let kernel = self.store()?.find(&self.settings.kernel)?;
        check(&self.settings, &kernel)?;
        Ok(self.kernel.get_or_init(|| kernel))
    }

    /// Finds everything that a launch needs.
    fn find_all(&self) -> Result<(), TargetError> {
        self.agent.path()?;
        self.host()?;
        self.kernel()?;
        self.debian()?;
        Ok(())
    }

    /// Writes the initramfs into a folder.
    fn write_initramfs(&self, needs: &Needs, folder: &Path) -> Result<PathBuf, TargetError> {
        let made = |needs| -> Result<Vec<u8>, TargetError> {
            Ok(initramfs::archive(
                &self.agent.read()?,
                self.kernel()?,
                needs,
            )?)
        };
        let plain = Needs::default();
        let archive = if *needs != plain {
            &made(needs)?
        } else if let Some(archive) = self.plain_initramfs.get() {
            archive
        } else {
            let archive = made(&plain)?;
            self.plain_initramfs.get_or_init(|| archive)
        };
        let path = folder.join("initramfs");
        fs::write(&path, archive).map_err(|source| TargetError::Unwritable {
            path: path.clone(),
            source,
        })?;
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
    fn scratch(&self, load: Option<&str>) -> Option<Scratch> {
        let of_load = || load.map(|_| Scratch::of_load(self.settings.clock));
        self.settings.scratch.or_else(of_load)
    }

    /// Returns what the load needs in the guest.
    fn needs(&self, load: Option<&str>) -> Result<Needs, TargetError> {
        let scratch = self.scratch(load);
        Ok(Needs {
            scratch: scratch.is_some(),
            disk: scratch.and_then(Scratch::disk).is_some(),
            root: self.settings.root == Root::Debian,
            programs: match self.settings.root {
                Root::Initramfs => load.map_or(Ok(Vec::new()), tools::programs)?,
                // It has its own.
                Root::Debian => Vec::new(),
            },
        })
    }

    fn boot(
        &self,
        command_line: &str,
        memory: Size,
        load: Option<&str>,
        pins: &[Pin],
        guard: &Guard,
    ) -> Result<Instance, TargetError> {
        let (host, kernel) = (self.host()?, self.kernel()?);
        let files = guard.scratch("guest")?;
        let needs = self.needs(load)?;
        let initrd = self.write_initramfs(&needs, files.path())?;
        let scratch = self.scratch(load);
        let disks = self.disks(scratch.and_then(Scratch::disk), &files, guard)?;
        // What the RAM disk takes comes on top of what a plan needs.
        let memory = memory.and(scratch.map_or(Size::mib(0), Scratch::memory));
        let guest = Guest {
            machine: Machine::Q35,
            accelerator: host.accelerator,
            cpus: self.settings.cpus,
            memory: self.settings.memory.unwrap_or(memory),
            clock: self.settings.clock,
            boot: Boot::Kernel {
                path: &kernel.vmlinuz,
                command_line,
            },
            locks_memory: host.locks_memory,
            gdb_port: None,
            linux: Some(qemu::Linux {
                initrd: Some(&initrd),
                port: PORT,
                disks: &disks,
            }),
        };
        let mut started = host.qemu.start(&guest, guard)?;
        for pin in pins {
            started.pin(pin)?;
        }
        started.go()?;
        let warden = Warden::new(started.qmp, Some(files));
        Instance::of_child(started.child, started.started_ns, Box::new(warden))
    }
}

impl Target for Linux {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        match self.find_all() {
            Ok(()) => Availability::Usable,
            Err(error) => Availability::Unusable {
                why: error.to_string(),
                remedy: match &error {
                    TargetError::Kernel(error) => {
                        error.remedy().unwrap_or("tare kernel list").to_owned()
                    }
                    error => host::remedy(error).to_owned(),
                },
            },
        }
    }

    fn program(&self) -> Result<Program, TargetError> {
        let (host, kernel) = (self.host()?, self.kernel()?);
        Ok(Program {
            sha256: self.agent.sha256()?,
            emulated: host.accelerator == Accelerator::Tcg,
            accelerator: Some(host.label()),
            notice: host.notice.clone(),
            kernel: Some(match self.debian()? {
                None => label(kernel),
                Some(root) => format!("{}; {}", label(kernel), debian::label(&root)),
            }),
        })
    }

    fn load_place(&self) -> LoadPlace {
        LoadPlace::Inside
    }

    fn resources(&self, work: &Work) -> Option<String> {
        let settings = &self.settings;
        Some(memory::guest_resources(
            work,
            settings.cpus,
            settings.memory,
        ))
    }

    fn keeps_memory(&self) -> bool {
        self.host().is_ok_and(|host| host.locks_memory)
    }

    fn launch(&self, job: &Job<'_>, guard: &Guard) -> Result<Instance, TargetError> {
        let load = job.load.filter(|load| *load != IDLE);
        let line = command_line::command_line(&self.settings, job.work, load, self.scratch(load))?;
        let memory = memory::needed(job.work.buffer_bytes);
        let pins = threads::pins(job.work, &self.settings);
        self.boot(&line, memory, load, &pins, guard)
    }

    fn verify(&self, facts: Facts<'_>) -> Result<(), String> {
        let kernel = self.kernel().map_err(|error| error.to_string())?;
        verify::verify(&self.settings, &kernel.release, facts)
    }
}

/// Checks that the kernel can be what is asked for, as far as its configuration is known. What it is
/// in the end, the guest tells ([`verify`]).
fn check(settings: &Settings, kernel: &Kernel) -> Result<(), TargetError> {
    let has = |name| {
        kernel
            .option(name)
            .map(|option| option == ConfigOption::Yes)
    };
    let lacks = |name| has(name) == Some(false);
    let refuse = |option: String, why: &str| {
        Err(TargetError::KernelCanNot {
            kernel: kernel.name.clone(),
            option,
            why: why.to_owned(),
        })
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

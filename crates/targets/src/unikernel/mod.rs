//! `unikernel`: the measured code as a guest in QEMU, with nothing beneath it but its own library
//! OS.
//!
//! ```text
//! unikernel[,irq=on|off][,timer-hz=N][,cpus=N][,mem=SIZE][,machine=microvm|q35|pc]
//!          [,accel=auto|kvm|tcg][,clock=host|instructions]
//! ```
//!
//! The guest gets the plan in the agent's own words. Only `cpu=` means something else there: the
//! plan's CPU is one of the host, to which the thread of the guest's measured CPU is pinned. The
//! measured CPU is the guest's last one, so that all of them are up while it measures. Of wake-ups on several
//! CPUs, each thread has one of the guest's last ones (`threads`).

mod crash;
mod image;
mod settings;
mod threads;
mod warden;

use std::cell::OnceCell;
use std::path::PathBuf;

use tare_guard::Guard;
use tare_results::target::TargetSpec;
use tare_results::work::Work;
use tare_wire::image as words;

use self::settings::Switch;
use self::warden::Warden;
use crate::error::TargetError;
use crate::instance::Instance;
use crate::measured::MeasuredFile;
use crate::memory;
use crate::options::Size;
use crate::qemu::accelerator::Accelerator;
use crate::qemu::host::{self, Host};
use crate::qemu::{Boot, Guest, Pin};
use crate::{Availability, Job, Program, Target};

pub use self::image::Image;
pub(crate) use self::settings::Settings;

/// Is the service that runs plans, and the name of its image.
const SERVICE: &str = "bench";

/// Runs an image as a guest.
#[derive(Debug)]
pub struct Unikernel {
    settings: Settings,
    image: MeasuredFile,
    /// Where the guard of trials keeps its journal; the user's own folder if None.
    state_dir: Option<PathBuf>,
    /// Found when it is first asked for: that may boot a guest.
    host: OnceCell<Host>,
}

impl Unikernel {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        Self::of(settings, MeasuredFile::image(SERVICE))
    }

    fn of(settings: Settings, image: MeasuredFile) -> Self {
        Self {
            settings,
            image,
            state_dir: None,
            host: OnceCell::new(),
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

    /// Boots the image, with the threads of its measured CPUs where they belong. With a port for gdb it
    /// is left to gdb to let it run.
    fn boot(
        &self,
        command_line: &str,
        memory: Size,
        pins: &[Pin],
        gdb_port: Option<u16>,
        guard: &Guard,
    ) -> Result<Instance, TargetError> {
        let host = self.host()?;
        let guest = Guest {
            machine: self.settings.machine,
            accelerator: host.accelerator,
            cpus: self.settings.cpus,
            memory: self.settings.memory.unwrap_or(memory),
            clock: self.settings.clock,
            boot: Boot::Kernel {
                path: self.image.path()?,
                command_line,
            },
            locks_memory: host.locks_memory,
            gdb_port,
            linux: None,
        };
        let mut started = host.qemu.start(&guest, guard)?;
        for pin in pins {
            started.pin(pin)?;
        }
        if gdb_port.is_none() {
            started.go()?;
        }
        let warden = Warden::new(started.qmp, self.image.clone());
        Instance::of_child(started.child, started.started_ns, Box::new(warden))
    }
}

impl Target for Unikernel {
    fn spec(&self) -> TargetSpec {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        let usable = self.image.path().and_then(|_| self.host());
        match usable {
            Ok(_) => Availability::Usable,
            Err(error) => Availability::Unusable {
                why: error.to_string(),
                remedy: host::remedy(&error).to_owned(),
            },
        }
    }

    fn program(&self) -> Result<Program, TargetError> {
        let host = self.host()?;
        Ok(Program {
            sha256: self.image.sha256()?,
            emulated: host.accelerator == Accelerator::Tcg,
            accelerator: Some(host.label()),
            notice: host.notice.clone(),
            kernel: None,
        })
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
        let line = command_line(&self.settings, job.work);
        let memory = memory::needed(job.work.buffer_bytes);
        let pins = threads::pins(job.work, self.settings.cpus);
        self.boot(&line, memory, &pins, None, guard)
    }
}

/// Returns the words for the image.
fn command_line(settings: &Settings, work: &Work) -> String {
    let image = words::Settings {
        service: Some(SERVICE),
        timer_hz: (settings.irq == Switch::On).then_some(settings.timer_hz),
        cpus: settings.cpus,
    };
    format!("{image} {}", threads::for_guest(work, settings.cpus))
}

#[cfg(test)]
mod boot_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests_work::work;

    #[test]
    fn the_image_gets_the_plan_with_its_own_cpu() {
        let plan = work("workload=prime limit=22 repetitions=10 cpu=5");
        let settings = Settings {
            cpus: 2,
            ..Settings::default()
        };
        assert_eq!(
            command_line(&settings, &plan),
            "service=bench irq=on timer-hz=250 cpus=2 workload=prime limit=22 repetitions=10 cpu=1"
        );
        let settings = Settings {
            irq: Switch::Off,
            ..Settings::default()
        };
        let line = command_line(&settings, &plan);
        assert!(line.starts_with("service=bench irq=off cpus=1 "), "{line}");
        assert!(line.ends_with(" cpu=0"), "{line}");
    }
}

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
//! measured CPU is the guest's last one, so that all of them are up while it measures.

mod crash;
mod memory;
mod settings;
mod warden;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use tare_guard::{Guard, default_state_dir};
use tare_wire::image;
use tare_wire::plan::Plan;

use self::settings::{Clock, Switch};
use self::warden::Warden;
use crate::error::TargetError;
use crate::instance::Instance;
use crate::measured::MeasuredFile;
use crate::options::Size;
use crate::qemu::accelerator::{Accelerator, Choice, try_kvm};
use crate::qemu::{Guest, Qemu};
use crate::{Availability, Program, Target};

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
        Self {
            settings,
            image: MeasuredFile::image(SERVICE),
            state_dir: None,
            host: OnceCell::new(),
        }
    }

    fn host(&self) -> Result<&Host, TargetError> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        let state_dir = match &self.state_dir {
            Some(folder) => folder.clone(),
            None => default_state_dir()?,
        };
        let host = Host::find(&self.settings, &state_dir)?;
        Ok(self.host.get_or_init(|| host))
    }

    /// Boots the image, with the thread of its measured CPU on `cpu`.
    fn boot(
        &self,
        command_line: &str,
        memory: Size,
        cpu: Option<u32>,
        guard: &Guard,
    ) -> Result<Instance, TargetError> {
        let host = self.host()?;
        let guest = Guest {
            machine: self.settings.machine,
            accelerator: host.accelerator,
            cpus: self.settings.cpus,
            memory: self.settings.memory.unwrap_or(memory),
            counts_instructions: self.settings.clock == Clock::Instructions,
            kernel: self.image.path()?,
            command_line,
        };
        let mut started = host.qemu.start(&guest, guard)?;
        if let Some(cpu) = cpu {
            started.pin(self.settings.measured_cpu(), cpu)?;
        }
        started.go()?;
        let warden = Warden::new(started.qmp, self.image.clone());
        Instance::of_child(started.child, started.started_ns, Box::new(warden))
    }
}

impl Target for Unikernel {
    fn spec(&self) -> String {
        self.settings.canonical()
    }

    fn availability(&self) -> Availability {
        let usable = self.image.path().and_then(|_| self.host());
        match usable {
            Ok(_) => Availability::Usable,
            Err(error) => Availability::Unusable {
                why: error.to_string(),
                remedy: remedy(&error).to_owned(),
            },
        }
    }

    fn program(&self) -> Result<Program, TargetError> {
        let host = self.host()?;
        let name = match host.accelerator {
            Accelerator::Kvm => "KVM with",
            Accelerator::Tcg => "TCG of",
        };
        Ok(Program {
            sha256: self.image.sha256()?,
            emulated: host.accelerator == Accelerator::Tcg,
            accelerator: Some(format!("{name} QEMU {}", host.qemu.version)),
            notice: host.notice.clone(),
        })
    }

    fn launch(&self, words: &str, guard: &Guard) -> Result<Instance, TargetError> {
        let plan = Plan::parse(words.split_whitespace()).map_err(|error| TargetError::Plan {
            problem: error.to_string(),
        })?;
        let line = command_line(&self.settings, &plan);
        self.boot(&line, memory::needed(&plan), plan.cpu, guard)
    }
}

/// Is what guests run on here.
#[derive(Debug)]
struct Host {
    qemu: Qemu,
    accelerator: Accelerator,
    /// Why another accelerator than one might expect.
    notice: Option<String>,
}

impl Host {
    fn find(settings: &Settings, state_dir: &Path) -> Result<Self, TargetError> {
        // A guard of its own: this is asked also by those who start nothing else.
        let guard = Guard::open(state_dir)?;
        let qemu = Qemu::find(&guard)?;
        let kvm = || try_kvm(&qemu, &MeasuredFile::image("hello"), &guard, state_dir);
        let (accelerator, notice) = match settings.accelerator {
            Choice::Tcg => (Accelerator::Tcg, None),
            Choice::Auto if settings.clock == Clock::Instructions => (Accelerator::Tcg, None),
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
            notice,
        })
    }
}

/// Returns the words for the image.
fn command_line(settings: &Settings, plan: &Plan) -> String {
    let image = image::Settings {
        service: Some(SERVICE),
        timer_hz: (settings.irq == Switch::On).then_some(settings.timer_hz),
        cpus: settings.cpus,
    };
    let plan = Plan {
        cpu: Some(settings.measured_cpu()),
        ..*plan
    };
    format!("{image} {plan}")
}

fn remedy(error: &TargetError) -> &'static str {
    match error {
        TargetError::NoQemu { .. } => "apt-get install qemu-system-x86",
        TargetError::NoKvm { .. } => "accel=tcg, or accel=auto, which takes what works",
        TargetError::NotBuilt { .. } | TargetError::Unreadable { .. } => "make build",
        _ => "see the message",
    }
}

#[cfg(test)]
mod boot_tests;

#[cfg(test)]
mod tests {
    use tare_wire::plan::Workload;

    use super::*;

    #[test]
    fn the_image_gets_the_plan_with_its_own_cpu() {
        let plan = Plan {
            cpu: Some(5),
            ..Plan::new(Workload::Prime { limit: 22 }, 10)
        };
        let settings = Settings {
            cpus: 2,
            ..Settings::default()
        };
        assert_eq!(
            command_line(&settings, &plan),
            "service=bench irq=on timer-hz=250 cpus=2 workload=prime limit=22 repetitions=10 \
             warmup=1000 timing=fenced threshold=auto capacity=1048576 bins=1000 window=500 cpu=1"
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

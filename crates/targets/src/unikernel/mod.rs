//! `unikernel`: the measured code as a guest in QEMU, with nothing beneath it but its own library
//! OS.
//!
//! The guest gets the plan in the agent's own words. Only `cpu=` means something else there: the
//! plan's CPU is one of the host, to which the thread of the guest's measured CPU is pinned. The
//! measured CPU is the guest's last one, so that all of them are up while it measures. Of several
//! threads, each has one of the guest's last CPUs (`threads`).

mod crash;
mod image;
mod monitor;
mod note;
mod settings;
mod threads;

use tare_guard::Guard;
use tare_networks::{Network, TapNetwork};
use tare_results::target::TargetSpec;
use tare_results::work::Work;

use crate::error::TargetError;
use crate::launch::Launch;
use crate::measured::MeasuredFile;
use crate::memory;
use crate::options::{Size, Word};
use crate::qemu::host::LazyHost;
use crate::qemu::{Boot, Control, Guest, Pin, Qemu};
use crate::{Availability, Job, Program, Target};

pub use self::image::Image;
pub(crate) use self::settings::{OPTIONS, Settings};

/// The service that runs plans, and the name of its image.
const SERVICE: &str = "bench";

/// An image as a guest.
#[derive(Debug)]
pub struct Unikernel {
    settings: Settings,
    image: MeasuredFile,
    host: LazyHost,
}

impl Unikernel {
    /// Makes the target.
    pub(crate) fn new(settings: Settings) -> Self {
        let image = match &settings.image {
            Some(path) => MeasuredFile::at(path),
            None => MeasuredFile::image(SERVICE),
        };
        Self::of(settings, image)
    }

    fn of(settings: Settings, image: MeasuredFile) -> Self {
        Self {
            image,
            host: LazyHost::new(settings.accelerator, settings.clock),
            settings,
        }
    }

    /// Finds the image, and QEMU. An image of the user's own says itself whether it can be
    /// measured.
    fn find_files(&self) -> Result<(), TargetError> {
        let path = self.image.path()?;
        if self.settings.image.is_some() {
            note::check(path, &self.image.read()?)?;
        }
        Qemu::program().map(drop)
    }

    /// Prepares to boot the image, with the threads of its measured CPUs where they belong. With a
    /// port for gdb it is left to gdb to let it run.
    fn prepare(
        &self,
        command_line: &str,
        memory: Size,
        pins: &[Pin],
        reached: Reached<'_>,
    ) -> Result<Launch, TargetError> {
        let (settings, host) = (&self.settings, self.host.get()?);
        let memory = settings.memory.unwrap_or(memory);
        let boot = Boot::Kernel {
            path: self.image.path()?,
            command_line,
        };
        let guest = Guest {
            cpus: settings.cpus,
            clock: settings.clock,
            locking: host.locking,
            control: reached.control,
            gdb_port: reached.gdb_port,
            network: reached.network,
            ..Guest::new(settings.machine, host.accelerator, memory, boot)
        };
        let image = self.image.clone();
        Ok(Launch {
            judge: Box::new(move |ended| monitor::judge(&image, ended)),
            ..host.qemu.launch("unikernel", &guest, pins)?
        })
    }

    /// Prepares to boot the image of a service in a network, instead of the one for plans.
    fn serve(&self, network: &Network, work: &Work) -> Result<Launch, TargetError> {
        let settings = &self.settings;
        if settings.image.is_some() {
            let why = "the image of a service is the one of its name";
            return Err(TargetError::contradiction(settings::NAME, "image=", why));
        }
        let service = Self::of(settings.clone(), MeasuredFile::service(&work.id));
        let line = format!(
            "{} {} {}",
            settings.for_image(None),
            TapNetwork::WORDS,
            work.words
        );
        let pins = threads::measured(work, settings.cpus).pins(work);
        let reached = Reached {
            network: Some(network),
            ..Reached::default()
        };
        service.prepare(&line, MEMORY, &pins, reached)
    }
}

/// The memory of an image of whose buffers nothing is known.
const MEMORY: Size = Size::mib(64);

/// How a guest is reached from outside.
#[derive(Clone, Copy, Debug)]
struct Reached<'a> {
    /// How it is watched over.
    control: Control,
    /// The port for gdb.
    gdb_port: Option<u16>,
    /// The network of its card.
    network: Option<&'a Network>,
}

impl Default for Reached<'_> {
    fn default() -> Self {
        Self {
            control: Control::Dialogue,
            gdb_port: None,
            network: None,
        }
    }
}

impl Target for Unikernel {
    fn spec(&self) -> TargetSpec {
        self.settings.spec.clone()
    }

    fn present(&self) -> Availability {
        Availability::of(self.find_files())
    }

    fn availability(&self) -> Availability {
        Availability::of(self.find_files().and_then(|()| self.host.get()))
    }

    fn program(&self) -> Result<Program, TargetError> {
        Ok(self.host.get()?.program(self.image.sha256()?))
    }

    fn resources(&self, work: &Work) -> Option<String> {
        let Settings { cpus, memory, .. } = self.settings;
        let memory = memory.unwrap_or_else(|| self.settings.needed(work.buffer_bytes));
        Some(memory::guest_resources(cpus, memory))
    }

    fn keeps_memory(&self) -> bool {
        self.host
            .get()
            .is_ok_and(|host| host.locking.keeps_memory())
    }

    fn circumstances(&self) -> String {
        self.host.expected().map_or("", Word::word).to_owned()
    }

    fn launch(&self, job: &Job<'_>, _guard: &Guard) -> Result<Launch, TargetError> {
        if let Some(network) = job.network {
            return self.serve(network, job.work);
        }
        let line = command_line(&self.settings, job.work);
        let memory = self.settings.needed(job.work.buffer_bytes);
        let pins = threads::measured(job.work, self.settings.cpus).pins(job.work);
        let reached = Reached {
            control: Control::of(job),
            ..Reached::default()
        };
        self.prepare(&line, memory, &pins, reached)
    }
}

/// Returns the words for the image.
fn command_line(settings: &Settings, work: &Work) -> String {
    let image = settings.for_image(Some(SERVICE));
    format!(
        "{image} {}",
        threads::measured(work, settings.cpus).work(work)
    )
}

#[cfg(test)]
mod boot_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;
    use crate::tests::work;

    #[test]
    fn the_image_gets_the_plan_with_its_own_cpu() {
        let plan = work("workload=nap limit=22 repetitions=10 cpu=5");
        let settings = |text| Settings::read(&spec::options("unikernel", text)).unwrap();
        assert_eq!(
            command_line(&settings("cpus=2"), &plan),
            "service=bench irq=on timer-hz=250 cpus=2 workload=nap limit=22 repetitions=10 cpu=1"
        );
        let line = command_line(&settings("irq=off"), &plan);
        assert!(line.starts_with("service=bench irq=off cpus=1 "), "{line}");
        assert!(line.ends_with(" cpu=0"), "{line}");
    }
}

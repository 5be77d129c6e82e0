//! The options of containers, and the resources that they stand for.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use tare_results::target::{Group, TargetSpec};
use tare_results::work::Work;
use tare_wire::cpus::Cpus as CpuSet;

use super::realtime;
use crate::Job;
use crate::error::TargetError;
use crate::launch::Ready;
use crate::memory;
use crate::options::{Opt, Options, Size, Value, Word, non_empty, not_wanted};
use crate::server::Server;

/// Engines refuse less than 6 MiB.
const MEMORY: Opt = Opt::memory(Size::mib(8)).means("limit of the container's memory");
const CPUS: Opt = Opt::word::<Cpus>("cpus")
    .default("measured")
    .means("CPUs in its cpuset: the measured one or all");
const IMAGE: Opt = Opt::text(
    "image",
    "NAME|FILE",
    "the name of an image, or the path of an archive that is there",
    existing,
)
.unset("the agent's")
.means("an [image of your own](containers.md#an-image-of-your-own)");

/// The options of a container of a runtime.
pub(crate) const OPTIONS: &[Opt] = &[MEMORY, CPUS];

/// The options of a container of an engine.
pub(crate) const WITH_IMAGE: &[Opt] = &[MEMORY, CPUS, IMAGE];

/// The device by which the agent keeps CPUs out of deep C-states.
const DMA_DEVICE: &str = "/dev/cpu_dma_latency";

/// The properties of a container.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) spec: TargetSpec,
    /// The target's name.
    pub(super) name: &'static str,
    /// As much as the plan needs if None.
    memory: Option<Size>,
    cpus: Cpus,
    /// Somebody else's image in place of the agent's.
    pub(super) image: Option<Image>,
}

/// An image of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// One that the engine has.
    Name(String),
    /// An archive as `docker save` writes it.
    Archive(PathBuf),
}

impl Value for Image {
    /// Reads it: a text with a slash at its beginning, or with the ending of an archive, is a file.
    fn parse(text: &str) -> Option<Self> {
        let is_file = text.starts_with(['/', '.']) || text.ends_with(".tar");
        match is_file {
            true => PathBuf::parse(text).map(Self::Archive),
            false => non_empty(text).map(Self::Name),
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }
}

/// Returns the canonical text of an image; None if it is a file that does not exist.
fn existing(text: &str) -> Option<String> {
    let image = Image::parse(text)?;
    let exists = match &image {
        Image::Name(_) => true,
        Image::Archive(path) => path.is_file(),
    };
    exists.then(|| image.text())
}

impl Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Archive(path) => path.display().fmt(f),
        }
    }
}

/// The CPUs on which a container may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpus {
    /// On the measured one alone.
    Measured,
    /// On all, as a process.
    All,
}

impl Word for Cpus {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Measured, "measured"), (Self::All, "all")];
}

impl Settings {
    /// Reads the options of a kind of container.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for the name of an image where only a file can be used.
    pub(crate) fn read(options: &Options) -> Result<Self, TargetError> {
        let (name, image) = (options.kind, options.find(&IMAGE));
        if let (Some(Image::Name(image)), "podman") = (&image, name) {
            let wanted = "an archive that podman save wrote, with its path: podman keeps its images apart here";
            return Err(not_wanted(name, IMAGE.key, image, wanted));
        }
        Ok(Self {
            spec: options.spec(match image {
                Some(_) => Group::Foreign,
                None => Group::Container,
            }),
            name,
            memory: options.find(&MEMORY),
            cpus: options.get(&CPUS),
            image,
        })
    }

    /// Refuses a plan for an image that has no agent: its instances can only be started.
    pub(super) fn must_have_agent(&self, job: &Job<'_>) -> Result<(), TargetError> {
        match self.image {
            Some(_) if job.is_alone => Err(TargetError::RunsNoPlans {
                target: self.spec.text.clone(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns by what an instance is ready: the first output where there is no agent.
    pub(super) fn ready(&self) -> Ready {
        match self.image {
            None => Ready::Record,
            Some(_) => Ready::Output,
        }
    }

    /// Returns the words that follow the image's name: a command in place of the image's own, the
    /// server's words, or the agent's plan.
    pub(super) fn words(&self, job: &Job<'_>, server: Option<&Server>) -> Vec<String> {
        match (&self.image, server) {
            (Some(_), _) => job.command.unwrap_or_default().to_vec(),
            (None, Some(server)) => server.words.clone(),
            (None, None) => job.words(),
        }
    }

    /// Returns the resources of a container for its work.
    pub(super) fn resources(&self, work: &Work) -> Resources {
        let memory = self
            .memory
            .unwrap_or_else(|| memory::needed(work.buffer_bytes));
        Resources {
            memory_bytes: memory.mib << 20,
            cpus: match self.cpus {
                Cpus::Measured => work.used_cpus(),
                Cpus::All => None,
            },
            real_time: realtime::for_rights(&work.rights),
            dma_device: Path::new(DMA_DEVICE).exists().then_some(DMA_DEVICE),
        }
    }
}

/// The resources of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resources {
    /// Limit of its memory.
    pub(super) memory_bytes: u64,
    /// The CPUs on which it may run; any if None.
    pub(super) cpus: Option<CpuSet>,
    /// The real-time time of its control group, where the kernel wants it to have one.
    pub(super) real_time: Option<tare_host::realtime::RealTime>,
    /// The device by which deep C-states are kept off, where the host has one.
    pub(super) dma_device: Option<&'static str>,
}

impl Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cpus {
            Some(cpus) => write!(f, "CPU {cpus} alone")?,
            None => f.write_str("all CPUs")?,
        }
        write!(f, ", {} MiB of memory", self.memory_bytes >> 20)
    }
}

/// The capabilities that measuring needs: memory that can't be paged out, and a scheduling
/// class of one's own.
pub(super) const CAPABILITIES: [&str; 2] = ["IPC_LOCK", "SYS_NICE"];

/// The capability that a service needs for its port.
pub(super) const SERVING: &str = "NET_BIND_SERVICE";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec;
    use crate::tests::work;

    #[test]
    fn the_canonical_form_has_a_fixed_order_and_no_defaults() {
        for (text, canonical) in [
            ("docker,cpus=measured", "docker"),
            ("podman,cpus=all,mem=1024M", "podman,mem=1G,cpus=all"),
            ("runc,mem=64M", "runc,mem=64M"),
            ("crun", "crun"),
        ] {
            assert_eq!(spec::parse(text).unwrap().spec(), canonical);
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (text, message) in [
            (
                "docker,mem=4M",
                "the target 'docker' can't have 'mem=4M': want a size in MiB or GiB from 8M to \
                 1024G, such as 64M or 2G",
            ),
            (
                "crun,cpus=2",
                "the target 'crun' can't have 'cpus=2': want measured or all",
            ),
            (
                "runc,net=host",
                "the target 'runc' has no option 'net'; it takes: mem=SIZE, cpus=measured|all",
            ),
        ] {
            assert_eq!(spec::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_container_gets_the_plans_cpu_and_memory() {
        let work = work("workload=nap limit=22 repetitions=1000 cpu=3");
        let settings = |text: &str| Settings::read(&spec::options("docker", text)).unwrap();
        let resources = settings("").resources(&work);
        assert_eq!(
            (resources.cpus, resources.memory_bytes),
            (Some(CpuSet::one(3)), 513 << 20)
        );
        let resources = settings("mem=64M,cpus=all").resources(&work);
        assert_eq!((resources.cpus, resources.memory_bytes), (None, 64 << 20));
    }

    #[test]
    fn measuring_threads_get_their_cpus_and_the_watching_one_its() {
        let settings = Settings::read(&spec::options("docker", "")).unwrap();
        let cpus = |more: &str| {
            let cpus = settings
                .resources(&work(&format!("workload=nap {more}")))
                .cpus;
            cpus.map(|cpus| cpus.to_string())
        };
        assert_eq!(cpus("cpu=2-3").as_deref(), Some("2-3"));
        assert_eq!(cpus("cpu=2 main=0").as_deref(), Some("0,2"));
        assert_eq!(cpus(""), None);
    }
}

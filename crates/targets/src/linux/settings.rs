//! The options of the target `linux`.

use tare_results::target::{Clock, Group, TargetSpec};
use tare_wire::cpus::Cpus;
use tare_wire::guest::IDLE_LIMIT;

use super::scratch::{self, Scratch};
use crate::error::TargetError;
use crate::options::{Opt, Options, Size, Word, canonical, non_empty};
use crate::qemu::accelerator::Choice;
use crate::qemu::{ACCEL, CLOCK, check_counting};

pub(super) const NAME: &str = "linux";

/// The size of Linux's command line on x86 in bytes, with the final zero.
pub(super) const COMMAND_LINE_BYTES: usize = 2_048;

/// The default is the distribution's kernel for virtual machines, which boots in less than half the
/// time of the one for any PC.
const KERNEL: Opt = Opt::text("kernel", "NAME|PATH", "a name or a path", non_empty)
    .default("debian-cloud")
    .means(
        "name of a kernel in the store, `host` for that of this machine, or the path of a vmlinuz",
    );
const PREEMPT: Opt = Opt::word::<Preempt>("preempt")
    .unset("the kernel's own")
    .means("`none`, `voluntary`, `full` or `lazy`; checked inside");
/// QEMU's machine has up to 255 CPUs without further devices.
const CPUS: Opt = Opt::number("cpus", 1, 255)
    .default("1")
    .means("number of CPUs");
/// No kernel of a distribution boots in less.
const MEMORY: Opt = Opt::memory(Size::mib(16));
const ISOLATE: Opt = list("isolate").means("CPUs that its scheduler avoids; checked inside");
const NOHZ_FULL: Opt =
    list("nohz_full").means("CPUs whose tick stops while one task runs; checked inside");
const COMMAND_LINE: Opt =
    Opt::text("cmdline", "WORDS", PARAMETERS, parameters).means("further kernel parameters");
const DISK: Opt = Opt::text(
    "disk",
    scratch::USAGE,
    scratch::WANTED,
    canonical::<Scratch>,
)
.unset("none, or 512 MiB for a load")
.means("`scratch:SIZE`: a disk with some thousands of files; `ram:SIZE`: the same in memory");
const ROOT: Opt = Opt::word::<Root>("root")
    .default("initramfs")
    .means("`debian`: a whole Debian, and labelled so");

/// The options.
pub(crate) const OPTIONS: &[Opt] = &[
    KERNEL,
    PREEMPT,
    CPUS,
    MEMORY,
    ISOLATE,
    NOHZ_FULL,
    COMMAND_LINE,
    DISK,
    ROOT,
    ACCEL,
    CLOCK,
];

const fn list(key: &'static str) -> Opt {
    const CPUS: &str = "a list of CPUs, such as 1 or 1-2,,4 (a comma is doubled)";
    Opt::text(key, "CPUS", CPUS, canonical::<Cpus>)
}

/// The properties of a guest.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) spec: TargetSpec,
    /// Name of a kernel in the store, or path of one.
    pub(super) kernel: String,
    /// The kernel's own choice if None.
    pub(super) preempt: Option<Preempt>,
    pub(super) cpus: u32,
    /// As much as the plan needs if None.
    pub(super) memory: Option<Size>,
    /// CPUs that the scheduler avoids.
    pub(super) isolate: Cpus,
    /// CPUs whose tick stops while a single task runs.
    pub(super) nohz_full: Cpus,
    /// Further words for the kernel, in their order.
    pub(super) command_line: String,
    /// The place that loads write to; None if there is none unless a load needs it.
    pub(super) scratch: Option<Scratch>,
    pub(super) root: Root,
    pub(super) accelerator: Choice,
    pub(super) clock: Clock,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for options that contradict each other.
    pub(crate) fn read(options: &Options) -> Result<Self, TargetError> {
        let root = options.get(&ROOT);
        let settings = Self {
            spec: options.spec(match root {
                Root::Initramfs => Group::LinuxGuest,
                Root::Debian => Group::DebianGuest,
            }),
            kernel: options.get(&KERNEL),
            preempt: options.find(&PREEMPT),
            cpus: options.get(&CPUS),
            memory: options.find(&MEMORY),
            isolate: options.find(&ISOLATE).unwrap_or_default(),
            nohz_full: options.find(&NOHZ_FULL).unwrap_or_default(),
            command_line: options.find(&COMMAND_LINE).unwrap_or_default(),
            scratch: options.find(&DISK),
            root,
            accelerator: options.get(&ACCEL),
            clock: options.get(&CLOCK),
        };
        settings.check()?;
        Ok(settings)
    }

    /// Rejects options that contradict each other.
    fn check(&self) -> Result<(), TargetError> {
        let refused = |what: String, why| Err(TargetError::contradiction(NAME, what, why));
        let cpus = self.cpus;
        for (key, list) in [("isolate", &self.isolate), ("nohz_full", &self.nohz_full)] {
            if list.last().is_some_and(|last| last >= cpus) {
                let why = "the guest's CPUs are numbered from 0 to cpus-1";
                return refused(format!("{key}={list} with cpus={cpus}"), why);
            }
        }
        if self.kept_free().contains(0) {
            // Linux would quietly take it off the list, or all other CPUs with it.
            let why = "CPU 0 does the kernel's own work; use cpus=2 and CPU 1";
            return refused("isolate or nohz_full with CPU 0".to_owned(), why);
        }
        if self.clock == Clock::Instructions {
            check_counting(NAME, self.accelerator, cpus)?;
            if self.root == Root::Debian || self.scratch.and_then(Scratch::disk).is_some() {
                let why = "a disk answers when the host does, so that no run is like another; \
                           loads can write to disk=ram:SIZE";
                return refused("clock=instructions with a disk".to_owned(), why);
            }
        }
        if let (Some(memory), Some(scratch)) = (self.memory, self.scratch)
            && scratch.memory() >= memory
        {
            let why = "the RAM disk is a part of the guest's memory; give it more than that";
            return refused(format!("disk={scratch} with mem={memory}"), why);
        }
        Ok(())
    }

    /// Returns the guest's CPUs that are kept free of other work.
    pub(super) fn kept_free(&self) -> Cpus {
        self.isolate.union(&self.nohz_full)
    }
}

/// A way in which a kernel preempts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preempt {
    None,
    Voluntary,
    Full,
    Lazy,
}

impl Word for Preempt {
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::None, "none"),
        (Self::Voluntary, "voluntary"),
        (Self::Full, "full"),
        (Self::Lazy, "lazy"),
    ];
}

/// The system that the guest boots into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// The agent, and nothing else.
    Initramfs,
    /// A whole Debian on a disk.
    Debian,
}

impl Word for Root {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Initramfs, "initramfs"), (Self::Debian, "debian")];
}

/// The values of `cmdline=`.
const PARAMETERS: &str = "parameters of the kernel, without quotes, --, init=, rdinit=, root=, \
                          panic=, tare.… but tare.idle=SECONDS, and those that have their own option: preempt=, \
                          isolcpus=, nohz_full=, rcu_nocbs=, maxcpus=, nr_cpus=, mem=";

/// Returns further words for the kernel; None if one of them would make the guest another one than
/// the target says.
fn parameters(text: &str) -> Option<String> {
    const OURS: &str =
        "init rdinit root panic preempt isolcpus nohz_full rcu_nocbs maxcpus nr_cpus mem";
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_allowed = |word: &&str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        let is_limit = key == IDLE_LIMIT && value.parse::<u32>().is_ok();
        // Linux takes `-` and `_` for the same.
        let key = key.replace('-', "_");
        !(OURS.split(' ').any(|ours| ours == key)
            || key.starts_with("tare.") && !is_limit
            || *word == "--"
            || word.contains(['"', '\'']))
    };
    let is_printable = text.chars().all(|c| !c.is_control());
    (!words.is_empty() && is_printable && words.iter().all(is_allowed)).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use crate::spec;

    #[test]
    fn the_canonical_form_has_a_fixed_order_and_no_defaults() {
        for (text, canonical) in [
            ("linux", "linux"),
            ("linux,kernel=debian-cloud,cpus=1,root=initramfs", "linux"),
            (
                "linux,clock=instructions,preempt=full,mem=1024M,kernel=debian-rt-6.12",
                "linux,kernel=debian-rt-6.12,preempt=full,mem=1G,clock=instructions",
            ),
            (
                "linux,nohz_full=1,,3,,2,isolate=1-3,cpus=4",
                "linux,cpus=4,isolate=1-3,nohz_full=1-3",
            ),
            (
                "linux,cmdline=mitigations=off  log_buf_len=1M,,x,disk=scratch:1024M,cpus=5,isolate=2,,4",
                "linux,cpus=5,isolate=2,,4,cmdline=mitigations=off log_buf_len=1M,,x,disk=scratch:1G",
            ),
            ("linux,kernel=/k/vm,,linuz", "linux,kernel=/k/vm,,linuz"),
            (
                "linux,clock=instructions,disk=ram:256M",
                "linux,disk=ram:256M,clock=instructions",
            ),
            ("linux,root=debian,accel=tcg", "linux,root=debian,accel=tcg"),
        ] {
            let target = spec::parse(text).unwrap();
            assert_eq!(target.spec(), canonical);
            assert_eq!(spec::parse(canonical).unwrap().spec(), canonical);
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (text, part) in [
            (
                "linux,preempt=maybe",
                "'preempt=maybe': want none, voluntary, full or lazy",
            ),
            (
                "linux,isolate=1",
                "isolate=1 with cpus=1: the guest's CPUs are numbered",
            ),
            ("linux,cpus=2,isolate=0", "CPU 0 does the kernel's own work"),
            (
                "linux,cpus=2,nohz_full=0-1",
                "CPU 0 does the kernel's own work",
            ),
            ("linux,cpus=4,isolate=1,3", "has no option '3'"),
            (
                "linux,cpus=4,isolate=1,3",
                "a comma inside a value is doubled",
            ),
            ("linux,isolate=", "want a list of CPUs"),
            ("linux,kernel=", "want a name or a path"),
            ("linux,disk=512M", "want scratch: or ram: and a size"),
            ("linux,disk=scratch:1M", "want scratch: or ram: and a size"),
            ("linux,disk=nvme:1G", "want scratch: or ram: and a size"),
            (
                "linux,disk=ram:1G,mem=1G",
                "the RAM disk is a part of the guest's memory",
            ),
            ("linux,mem=1M", "want a size in MiB or GiB from 16M"),
            (
                "linux,cmdline=quiet init=/bin/sh",
                "want parameters of the kernel",
            ),
            ("linux,cmdline=nohz-full=1", "want parameters of the kernel"),
            ("linux,cmdline=-- x", "want parameters of the kernel"),
            (
                "linux,cmdline=tare.idle=long",
                "tare.… but tare.idle=SECONDS",
            ),
            ("linux,cmdline=", "want parameters of the kernel"),
            (
                "linux,cpus=2,clock=instructions",
                "QEMU counts the instructions of one CPU",
            ),
            (
                "linux,accel=kvm,clock=instructions",
                "only TCG counts instructions",
            ),
            (
                "linux,disk=scratch:1G,clock=instructions",
                "a disk answers when the host does",
            ),
            ("linux,root=arch", "want initramfs or debian"),
            ("linux,cpus=2,cpus=2", "is given twice"),
        ] {
            let message = spec::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}

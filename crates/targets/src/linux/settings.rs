//! The options of the target `linux`.

use tare_host::CpuList;
use tare_results::target::{Clock, Group, TargetSpec};

use super::scratch::{self, Scratch};
use crate::error::TargetError;
use crate::options::{Canonical, Options, Size, Word};
use crate::qemu::accelerator::Choice;
use crate::qemu::check_counting;

pub(super) const NAME: &str = "linux";

/// The kernel unless another one is asked for: the distribution's for virtual machines, which
/// boots in less than half the time of the one for any PC.
const DEFAULT_KERNEL: &str = "debian-cloud";

/// The greatest number of CPUs: as many as QEMU's machine has without more devices.
const MOST_CPUS: u32 = 255;
/// The least memory that can be given. No kernel of a distribution starts in less.
const LEAST_MEMORY: Size = Size::mib(16);
/// The number of bytes that Linux reads of its command line on x86, with the final zero.
pub(super) const COMMAND_LINE_BYTES: usize = 2_048;

/// What the guest is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Name of a kernel in the store, or path of one.
    pub(super) kernel: String,
    /// The kernel's own choice if None.
    pub(super) preempt: Option<Preempt>,
    pub(super) cpus: u32,
    /// As much as the plan needs if None.
    pub(super) memory: Option<Size>,
    /// CPUs that the scheduler leaves alone.
    pub(super) isolate: CpuList,
    /// CPUs whose tick stops while a single task runs.
    pub(super) nohz_full: CpuList,
    /// Further words for the kernel, in their order.
    pub(super) command_line: String,
    /// Where loads write; None if nowhere unless a load wants it.
    pub(super) scratch: Option<Scratch>,
    pub(super) root: Root,
    pub(super) accelerator: Choice,
    pub(super) clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kernel: DEFAULT_KERNEL.to_owned(),
            preempt: None,
            cpus: 1,
            memory: None,
            isolate: CpuList::new(),
            nohz_full: CpuList::new(),
            command_line: String::new(),
            scratch: None,
            root: Root::Initramfs,
            accelerator: Choice::Auto,
            clock: Clock::Host,
        }
    }
}

impl Settings {
    /// Read the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an option that does not exist, is given twice, has no possible
    /// value or contradicts another one.
    pub(crate) fn read(mut options: Options) -> Result<Self, TargetError> {
        const CPUS: &str = "a list of CPUs, such as 1 or 1-2,,4 (a comma is written twice)";
        let default = Self::default();
        let list = |text: &str| text.parse().ok().filter(|list: &CpuList| !list.is_empty());
        let settings = Self {
            kernel: options
                .text("kernel", "NAME|PATH", "a name or a path", |text| {
                    (!text.is_empty()).then(|| text.to_owned())
                })?
                .unwrap_or(default.kernel),
            preempt: options.word("preempt")?,
            cpus: options.number("cpus", 1..=MOST_CPUS)?.unwrap_or(1),
            memory: options.memory(LEAST_MEMORY)?,
            isolate: options
                .text("isolate", "CPUS", CPUS, list)?
                .unwrap_or_default(),
            nohz_full: options
                .text("nohz_full", "CPUS", CPUS, list)?
                .unwrap_or_default(),
            command_line: options
                .text("cmdline", "WORDS", PARAMETERS, parameters)?
                .unwrap_or_default(),
            scratch: options.text("disk", scratch::USAGE, scratch::WANTED, Scratch::parse)?,
            root: options.word("root")?.unwrap_or(default.root),
            accelerator: options.word("accel")?.unwrap_or(default.accelerator),
            clock: options.word("clock")?.unwrap_or(default.clock),
        };
        options.finish()?;
        settings.check()?;
        Ok(settings)
    }

    /// Refuse options that contradict each other.
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

    /// Return the guest's CPUs that are kept free of other work.
    pub(super) fn kept_free(&self) -> CpuList {
        self.isolate.union(&self.nohz_full)
    }

    /// Return the target's canonical form.
    pub(super) fn canonical(&self) -> TargetSpec {
        let default = Self::default();
        let list = |list: &CpuList| (!list.is_empty()).then(|| list.to_string());
        let kernel = (self.kernel != default.kernel).then_some(&self.kernel);
        let words = (!self.command_line.is_empty()).then_some(&self.command_line);
        Canonical::new(NAME)
            .option("kernel", kernel)
            .option("preempt", self.preempt.map(Word::word))
            .option("cpus", (self.cpus != default.cpus).then_some(self.cpus))
            .option("mem", self.memory)
            .option("isolate", list(&self.isolate))
            .option("nohz_full", list(&self.nohz_full))
            .option("cmdline", words)
            .option("disk", self.scratch)
            .word("root", self.root, default.root)
            .word("accel", self.accelerator, default.accelerator)
            .word("clock", self.clock, default.clock)
            .of_group(match self.root {
                Root::Initramfs => Group::LinuxGuest,
                Root::Debian => Group::DebianGuest,
            })
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

/// What the guest boots into.
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

/// What `cmdline=` takes.
const PARAMETERS: &str = "parameters of the kernel, without quotes, --, init=, rdinit=, root=, \
                          panic=, tare.…, and those that have an option of their own: preempt=, \
                          isolcpus=, nohz_full=, rcu_nocbs=, maxcpus=, nr_cpus=, mem=";

/// Read further words for the kernel; None if one of them would turn the guest into something
/// else than the target says.
fn parameters(text: &str) -> Option<String> {
    const OURS: &str =
        "init rdinit root panic preempt isolcpus nohz_full rcu_nocbs maxcpus nr_cpus mem";
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_allowed = |word: &&str| {
        let key = word.split_once('=').map_or(*word, |(key, _)| key);
        // Linux takes `-` and `_` for the same.
        let key = key.replace('-', "_");
        !(OURS.split(' ').any(|ours| ours == key)
            || key.starts_with("tare.")
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
                "a comma inside of a value is written twice",
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

//! The options of the target `unikernel`.

use std::path::PathBuf;

use tare_results::target::{Clock, Group, TargetSpec};
use tare_wire::image::{self, Pages};

use crate::error::TargetError;
use crate::memory;
use crate::options::{Opt, Options, Size, Word};
use crate::qemu::accelerator::Choice;
use crate::qemu::{ACCEL, CLOCK, MACHINE, Machine, check_counting};

pub(super) const NAME: &str = "unikernel";

const IRQ: Opt = Opt::word::<Switch>("irq")
    .default("on")
    .means("whether a timer interrupts the measured code, as in a conventional kernel");
const TIMER_HZ: Opt = Opt::number("timer-hz", 1, image::MAX_TIMER_HZ)
    .default("250")
    .means("how often, per second");
const CPUS: Opt = Opt::number("cpus", 1, image::MAX_CPUS)
    .default("1")
    .means("number of CPUs; the last measures");
const PAGES: Opt = Opt::word::<Pages>("pages")
    .unset("2M, but 4K in the first 4 MiB")
    .means("the size of the pages that map the buffers");
/// The hello image boots in 2 MiB.
const MEMORY: Opt = Opt::memory(Size::mib(2));
const ON_MICROVM: Opt = MACHINE.default("microvm");
const IMAGE: Opt = Opt::file("image", "the path of an image")
    .unset("`bench`, which comes with `tare`")
    .means("an [image of your own](unikernel.md#an-image-of-your-own)");

/// The options.
pub(crate) const OPTIONS: &[Opt] = &[
    IRQ, TIMER_HZ, CPUS, PAGES, MEMORY, ON_MICROVM, ACCEL, CLOCK, IMAGE,
];

/// The properties of a guest.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) spec: TargetSpec,
    pub(super) irq: Switch,
    pub(super) timer_hz: u32,
    pub(super) cpus: u32,
    pub(super) pages: Option<Pages>,
    /// As much as the plan needs if None.
    pub(super) memory: Option<Size>,
    pub(super) machine: Machine,
    pub(super) accelerator: Choice,
    pub(super) clock: Clock,
    /// The image to boot; the one that comes with tare if None.
    pub(super) image: Option<PathBuf>,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for options that contradict each other.
    pub(crate) fn read(options: &Options) -> Result<Self, TargetError> {
        let settings = Self {
            spec: options.spec(Group::Unikernel),
            irq: options.get(&IRQ),
            timer_hz: options.get(&TIMER_HZ),
            cpus: options.get(&CPUS),
            pages: options.find(&PAGES),
            memory: options.find(&MEMORY),
            machine: options.get(&ON_MICROVM),
            accelerator: options.get(&ACCEL),
            clock: options.get(&CLOCK),
            image: options.find(&IMAGE),
        };
        if settings.irq == Switch::Off && options.has(&TIMER_HZ) {
            let why = "without interrupts the timer has no rate";
            return Err(TargetError::contradiction(
                NAME,
                "irq=off with timer-hz",
                why,
            ));
        }
        if settings.clock == Clock::Instructions {
            check_counting(NAME, settings.accelerator, settings.cpus)?;
        }
        Ok(settings)
    }

    /// Returns the words for an image.
    pub(super) fn for_image<'a>(&self, service: Option<&'a str>) -> image::Settings<'a> {
        image::Settings {
            service,
            timer_hz: (self.irq == Switch::On).then_some(self.timer_hz),
            cpus: self.cpus,
            pages: self.pages,
        }
    }

    /// Returns the memory of a guest for buffers of this size.
    pub(super) fn needed(&self, buffer_bytes: u64) -> Size {
        match self.pages {
            // The image is in the first GiB; it refuses what does not fit below 3 GiB.
            Some(Pages::Giant) => Size::mib((1 + buffer_bytes.div_ceil(1 << 30)) << 10),
            _ => memory::needed(buffer_bytes),
        }
    }
}

impl Word for Pages {
    const WORDS: &'static [(Self, &'static str)] = &Self::WORDS;
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

impl Word for Switch {
    const WORDS: &'static [(Self, &'static str)] = &[(Self::On, "on"), (Self::Off, "off")];
}

#[cfg(test)]
mod tests {
    use crate::spec;

    #[test]
    fn the_canonical_form_has_a_fixed_order_and_no_defaults() {
        for (text, canonical) in [
            ("unikernel", "unikernel"),
            ("unikernel,irq=on,cpus=1,accel=auto", "unikernel"),
            ("unikernel,irq=off", "unikernel,irq=off"),
            ("unikernel,pages=1G,cpus=2", "unikernel,cpus=2,pages=1G"),
            (
                "unikernel,clock=instructions,accel=tcg,machine=pc,mem=1024M,timer-hz=1000",
                "unikernel,timer-hz=1000,mem=1G,machine=pc,accel=tcg,clock=instructions",
            ),
            (
                "unikernel,image=/a/b,,c,irq=off",
                "unikernel,irq=off,image=/a/b,,c",
            ),
            (
                "unikernel,cpus=02,machine=q35",
                "unikernel,cpus=2,machine=q35",
            ),
        ] {
            let target = spec::parse(text).unwrap();
            assert_eq!(target.spec(), canonical);
            assert_eq!(spec::parse(canonical).unwrap().spec(), canonical);
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (text, message) in [
            (
                "unikernel,irq=maybe",
                "the target 'unikernel' can't have 'irq=maybe': want on or off",
            ),
            (
                "unikernel,timer-hz=0",
                "the target 'unikernel' can't have 'timer-hz=0': want a whole number from 1 to 100000",
            ),
            (
                "unikernel,machine=virt",
                "the target 'unikernel' can't have 'machine=virt': want microvm, q35 or pc",
            ),
            (
                "unikernel,mem=1M",
                "the target 'unikernel' can't have 'mem=1M': want a size in MiB or GiB from 2M to \
                 1024G, such as 64M or 2G",
            ),
            (
                "unikernel,ram=1G",
                "the target 'unikernel' has no option 'ram'; it takes: irq=on|off, timer-hz=N, \
                 cpus=N, pages=4K|2M|1G, mem=SIZE, machine=microvm|q35|pc, accel=auto|kvm|tcg, \
                 clock=host|instructions, image=FILE",
            ),
            (
                "unikernel,irq=off,timer-hz=100",
                "the target 'unikernel' can't have irq=off with timer-hz: without interrupts the \
                 timer has no rate",
            ),
            (
                "unikernel,clock=instructions,cpus=2",
                "the target 'unikernel' can't have clock=instructions with several CPUs: QEMU \
                 counts the instructions of one CPU; use cpus=1",
            ),
            (
                "unikernel,clock=instructions,accel=kvm",
                "the target 'unikernel' can't have clock=instructions with accel=kvm: only TCG \
                 counts instructions; use accel=tcg",
            ),
            (
                "unikernel,irq=on,irq=on",
                "the option 'irq' of the target 'unikernel' is given twice",
            ),
        ] {
            assert_eq!(spec::parse(text).unwrap_err().to_string(), message);
        }
    }
}

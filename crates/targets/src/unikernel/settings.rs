//! The options of the target `unikernel`.

use std::path::{Path, PathBuf};

use tare_results::target::{Clock, Group, TargetSpec};
use tare_wire::image;

use crate::error::TargetError;
use crate::options::{Canonical, Options, Size, Word, file};
use crate::qemu::accelerator::Choice;
use crate::qemu::{Machine, check_counting};

pub(super) const NAME: &str = "unikernel";

/// The least memory that can be given: the hello image boots in it.
const LEAST_MEMORY: Size = Size::mib(2);

/// What the guest is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether a timer interrupts the measured code, as in a conventional kernel.
    pub(super) irq: Switch,
    /// How often it does, per second.
    pub(super) timer_hz: u32,
    pub(super) cpus: u32,
    /// As much as the plan needs if None.
    pub(super) memory: Option<Size>,
    pub(super) machine: Machine,
    pub(super) accelerator: Choice,
    pub(super) clock: Clock,
    /// The image that is booted; the one that comes with tare if None.
    pub(super) image: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            irq: Switch::On,
            timer_hz: image::DEFAULT_TIMER_HZ,
            cpus: 1,
            memory: None,
            machine: Machine::Microvm,
            accelerator: Choice::Auto,
            clock: Clock::Host,
            image: None,
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
        let default = Self::default();
        let irq = options.word("irq")?.unwrap_or(default.irq);
        let timer_hz = options.number("timer-hz", 1..=image::MAX_TIMER_HZ)?;
        let settings = Self {
            irq,
            timer_hz: timer_hz.unwrap_or(default.timer_hz),
            cpus: options
                .number("cpus", 1..=image::MAX_CPUS)?
                .unwrap_or(default.cpus),
            memory: options.memory(LEAST_MEMORY)?,
            machine: options.word("machine")?.unwrap_or(default.machine),
            accelerator: options.word("accel")?.unwrap_or(default.accelerator),
            clock: options.word("clock")?.unwrap_or(default.clock),
            image: options.text("image", "FILE", "the path of an image", file)?,
        };
        options.finish()?;
        if irq == Switch::Off && timer_hz.is_some() {
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

    /// Return the words for an image.
    pub(super) fn for_image<'a>(&self, service: Option<&'a str>) -> image::Settings<'a> {
        image::Settings {
            service,
            timer_hz: (self.irq == Switch::On).then_some(self.timer_hz),
            cpus: self.cpus,
        }
    }

    /// Return the target's canonical form.
    pub(super) fn canonical(&self) -> TargetSpec {
        let default = Self::default();
        let number = |value: u32, default: u32| (value != default).then_some(value);
        Canonical::new(NAME)
            .word("irq", self.irq, default.irq)
            .option("timer-hz", number(self.timer_hz, default.timer_hz))
            .option("cpus", number(self.cpus, default.cpus))
            .option("mem", self.memory)
            .word("machine", self.machine, default.machine)
            .word("accel", self.accelerator, default.accelerator)
            .word("clock", self.clock, default.clock)
            .option("image", self.image.as_deref().map(Path::display))
            .of_group(Group::Unikernel)
    }
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
                 cpus=N, mem=SIZE, machine=microvm|q35|pc, accel=auto|kvm|tcg, \
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

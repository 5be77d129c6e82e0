//! The options of the target `guest`.

use std::path::{Path, PathBuf};

use regex_lite::Regex;

use tare_results::target::{Group, TargetSpec};

use crate::error::TargetError;
use crate::options::{Canonical, Options, Size, Word, file, missing, not_wanted};
use crate::qemu::Machine;
use crate::qemu::accelerator::Choice;

pub(super) const NAME: &str = "guest";

/// How the target is written.
pub(crate) const FORM: &str = "guest,image=FILE,ready=REGEX,success=N|shutdown|reset[,mem=SIZE][,cpus=N]\
    [,machine=microvm|q35|pc][,accel=auto|kvm|tcg][,drive=virtio|ide][,cmdline=WORDS]";

/// The memory unless said otherwise. What the guest does not touch costs the host nothing.
const DEFAULT_MEMORY: Size = Size::mib(512);
const LEAST_MEMORY: Size = Size::mib(2);
/// The most CPUs that QEMU's machines have in common.
const MOST_CPUS: u32 = 255;

/// What is booted, and how its readiness and success are told.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) image: PathBuf,
    /// Matches the line of its console by which it is ready.
    pub(super) ready: Regex,
    pub(super) success: Success,
    pub(super) memory: Size,
    pub(super) cpus: u32,
    pub(super) machine: Machine,
    pub(super) accelerator: Choice,
    pub(super) interface: Interface,
    pub(super) command_line: Option<String>,
}

/// The end that counts as success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Success {
    /// The guest ends QEMU with this status, through the device isa-debug-exit.
    Status(u32),
    /// It powers itself off.
    Shutdown,
    /// It resets itself, or faults for the third time, which is the same to the hardware.
    Reset,
}

/// How a disk is connected. A CD always is by IDE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interface {
    /// By virtio: what cloud images expect.
    Virtio,
    /// By AHCI or IDE, as the machine has it: what systems without a driver for virtio need.
    Ide,
}

impl Word for Interface {
    const WORDS: &'static [(Self, &'static str)] = &[(Self::Virtio, "virtio"), (Self::Ide, "ide")];
}

impl Settings {
    /// Read the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an option that does not exist, is given twice, has no possible
    /// value, or is missing.
    pub(crate) fn read(mut options: Options) -> Result<Self, TargetError> {
        let image = options.text("image", "FILE", "the path of an image", file)?;
        let ready = options.text(
            "ready",
            "REGEX",
            "a regular expression for a line of the guest's serial console",
            |text| (!text.is_empty()).then(|| text.to_owned()),
        )?;
        let success = options.text(
            "success",
            "N|shutdown|reset",
            "an exit status of QEMU from 1 to 255 (a guest that writes v to port 0xf4 ends it with \
             2v+1), shutdown or reset",
            Success::parse,
        )?;
        let memory = options.memory(LEAST_MEMORY)?;
        let cpus = options.number("cpus", 1..=MOST_CPUS)?;
        let machine = options.word("machine")?;
        let accelerator = options.word("accel")?;
        let interface = options.word("drive")?;
        let command_line = options.text(
            "cmdline",
            "WORDS",
            "words for the kernel, without control characters",
            |text| (!text.contains(char::is_control)).then(|| text.to_owned()),
        )?;
        options.finish()?;
        let missing = |option| missing(NAME, option, FORM);
        let image = image.ok_or_else(|| missing("image"))?;
        let ready = ready.ok_or_else(|| missing("ready"))?;
        Ok(Self {
            image,
            ready: Regex::new(&ready).map_err(|error| {
                let wanted = format!("a regular expression ({error})");
                not_wanted(NAME, "ready", &ready, &wanted)
            })?,
            success: success.ok_or_else(|| missing("success"))?,
            memory: memory.unwrap_or(DEFAULT_MEMORY),
            cpus: cpus.unwrap_or(1),
            machine: machine.unwrap_or(Machine::Q35),
            accelerator: accelerator.unwrap_or(Choice::Auto),
            interface: interface.unwrap_or(Interface::Virtio),
            command_line,
        })
    }

    /// Return the target's canonical form.
    pub(super) fn canonical(&self) -> TargetSpec {
        let memory = (self.memory != DEFAULT_MEMORY).then_some(self.memory);
        Canonical::new(NAME)
            .option("image", Some(Path::display(&self.image)))
            .option("ready", Some(&self.ready))
            .option("success", Some(self.success.text()))
            .option("mem", memory)
            .option("cpus", (self.cpus != 1).then_some(self.cpus))
            .word("machine", self.machine, Machine::Q35)
            .word("accel", self.accelerator, Choice::Auto)
            .word("drive", self.interface, Interface::Virtio)
            .option("cmdline", self.command_line.as_ref())
            .of_group(Group::Foreign)
    }
}

impl Success {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "shutdown" => Some(Self::Shutdown),
            "reset" => Some(Self::Reset),
            number => {
                let status = number.parse().ok()?;
                (1..=255).contains(&status).then_some(Self::Status(status))
            }
        }
    }

    pub(super) fn text(self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::Shutdown => "shutdown".to_owned(),
            Self::Reset => "reset".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::spec;

    #[test]
    fn the_canonical_form_has_a_fixed_order_and_no_defaults() {
        for (text, canonical) in [
            (
                "guest,success=033,ready=hello,image=/a,mem=512M,cpus=1,machine=q35,accel=auto",
                "guest,image=/a,ready=hello,success=33",
            ),
            (
                r"guest,ready=^a{1,,2}=\d$,image=/a,,b,success=shutdown,drive=ide,cmdline=x=y quiet",
                r"guest,image=/a,,b,ready=^a{1,,2}=\d$,success=shutdown,drive=ide,cmdline=x=y quiet",
            ),
        ] {
            assert_eq!(spec::parse(text).unwrap().spec(), canonical);
            assert_eq!(spec::parse(canonical).unwrap().spec(), canonical);
        }
        let here = std::env::current_dir().unwrap();
        let relative = spec::parse("guest,image=disk,ready=x,success=reset").unwrap();
        let image = format!("image={}/disk,", here.display());
        let relative = relative.spec().text;
        assert!(relative.contains(&image), "{relative}");
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for (options, said) in [
            (
                "",
                "needs 'image': it is written guest,image=FILE,ready=REGEX,",
            ),
            ("image=/a,success=1", "needs 'ready'"),
            ("image=/a,ready=x", "needs 'success'"),
            ("image=,ready=x,success=1", "'image='"),
            ("image=/a,ready=,success=1", "'ready='"),
            (
                "image=/a,ready=a(b,success=1",
                "'ready=a(b': want a regular expression (",
            ),
            ("image=/a,ready=x,success=0", "from 1 to 255"),
            ("image=/a,ready=x,success=256", "from 1 to 255"),
            ("image=/a,ready=x,success=ok", "shutdown or reset"),
            ("image=/a,ready=x,success=1,mem=1", "'mem=1'"),
            ("image=/a,ready=x,success=1,irq=on", "no option 'irq'"),
            (
                "image=/a,ready=x,success=1,drive=floppy",
                "want virtio or ide",
            ),
        ] {
            let text = if options.is_empty() {
                "guest".to_owned()
            } else {
                format!("guest,{options}")
            };
            let message = spec::parse(&text).unwrap_err().to_string();
            assert!(message.contains(said), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            image in "/[^\0/.]{1,20}",
            ready in "[^\\p{C}]{1,20}",
            success in prop_oneof!["[1-9]", Just("shutdown".to_owned()), Just("reset".to_owned())],
            mem in 2_u64..4096,
            cpus in 1..=255_u32,
            command_line in prop::option::of("[^\\p{C}]{0,20}"),
        ) {
            let spec = Canonical::new(NAME)
                .option("image", Some(image))
                .option("ready", Some(regex_lite::escape(&ready)))
                .option("success", Some(success))
                .option("mem", Some(Size::mib(mem)))
                .option("cpus", Some(cpus))
                .option("cmdline", command_line)
                .of_group(Group::Foreign);
            let canonical = spec::parse(&spec.text).unwrap().spec();
            prop_assert_eq!(&spec::parse(&canonical.text).unwrap().spec(), &canonical);
            let escaped = regex_lite::escape(&ready);
            prop_assert_eq!(canonical.option("ready"), Some(&*escaped));
        }
    }
}

//! The options of the target `guest`.

use std::path::PathBuf;

use regex_lite::Regex;

use tare_results::target::{Group, TargetSpec};

use crate::error::TargetError;
use crate::options::{Opt, Options, Size, Value, Word, canonical, non_empty, not_wanted};
use crate::qemu::accelerator::Choice;
use crate::qemu::{ACCEL, MACHINE, Machine};

pub(super) const NAME: &str = "guest";

const IMAGE: Opt = Opt::file("image", "the path of an image").required().means(
    "an ELF kernel (PVH, multiboot), a bzImage, a multiboot kernel; a disk, raw or qcow2; an \
         ISO 9660 CD. Detected by content",
);
const READY: Opt = Opt::text("ready", "REGEX", PATTERN, non_empty)
    .required()
    .means("regular expression that a line of its serial console (COM1) matches once it is ready");
const PATTERN: &str = "a regular expression for a line of the guest's serial console";
const SUCCESS: Opt = Opt::text("success", "N|shutdown|reset", END, canonical::<Success>)
    .required()
    .means("the end that counts as success, see below");
const END: &str = "an exit status of QEMU from 1 to 255 (a guest that writes v to port 0xf4 ends it with \
                   2v+1), shutdown or reset";
/// The host does not pay for memory that the guest leaves untouched.
const MEMORY: Opt = Opt::memory(Size::mib(2)).default("512M");
/// At most 255, which each of the machines supports.
const CPUS: Opt = Opt::number("cpus", 1, 255)
    .default("1")
    .means("number of CPUs");
const ON_Q35: Opt = MACHINE.default("q35");
const DRIVE: Opt = Opt::word::<Interface>("drive").default("virtio").means(
    "how a disk is connected: `virtio`, or `ide` (AHCI on q35) for systems without a virtio driver",
);
const COMMAND_LINE: Opt =
    Opt::text("cmdline", "WORDS", WORDS, printable).means("command line of a kernel");
const WORDS: &str = "words for the kernel: at most 4,096 bytes without control characters";
/// The longest command line. QEMU 7.2 loads 30,000 bytes over its own boot code, and the guest never
/// begins.
const LONGEST: usize = 4_096;

/// The options.
pub(crate) const OPTIONS: &[Opt] = &[
    IMAGE,
    READY,
    SUCCESS,
    MEMORY,
    CPUS,
    ON_Q35,
    ACCEL,
    DRIVE,
    COMMAND_LINE,
];

fn printable(text: &str) -> Option<String> {
    (text.len() <= LONGEST && !text.contains(char::is_control)).then(|| text.to_owned())
}

/// The image, and how its readiness and success are recognised.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) spec: TargetSpec,
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
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] for an invalid regular expression.
    pub(crate) fn read(options: &Options) -> Result<Self, TargetError> {
        let ready: String = options.get(&READY);
        Ok(Self {
            spec: options.spec(Group::Foreign),
            image: options.get(&IMAGE),
            ready: Regex::new(&ready).map_err(|error| {
                let wanted = format!("a regular expression ({error})");
                not_wanted(NAME, READY.key, &ready, &wanted)
            })?,
            success: options.get(&SUCCESS),
            memory: options.get(&MEMORY),
            cpus: options.get(&CPUS),
            machine: options.get(&ON_Q35),
            accelerator: options.get(&ACCEL),
            interface: options.get(&DRIVE),
            command_line: options.find(&COMMAND_LINE),
        })
    }
}

impl Value for Success {
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

    fn text(&self) -> String {
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
    use tare_results::target::TargetOption;

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
            image in "/[^\\p{C}\\p{Zl}\\p{Zp}/.]{1,20}",
            ready in "[^\\p{C}\\p{Zl}\\p{Zp}]{1,20}",
            success in prop_oneof!["[1-9]", Just("shutdown".to_owned()), Just("reset".to_owned())],
            mem in 2_u64..4096,
            cpus in 1..=255_u32,
            command_line in prop::option::of("[^\\p{C}\\p{Zl}\\p{Zp}]{0,20}"),
        ) {
            let values = [
                ("image", Some(image)),
                ("ready", Some(regex_lite::escape(&ready))),
                ("success", Some(success)),
                ("mem", Some(Size::mib(mem).to_string())),
                ("cpus", Some(cpus.to_string())),
                ("cmdline", command_line),
            ];
            let options = values.into_iter().filter_map(|(key, value)| {
                Some(TargetOption { key: key.to_owned(), value: value? })
            });
            let spec = TargetSpec::new(NAME, options.collect(), Group::Foreign);
            let canonical = spec::parse(&spec.text).unwrap().spec();
            prop_assert_eq!(&spec::parse(&canonical.text).unwrap().spec(), &canonical);
            let escaped = regex_lite::escape(&ready);
            prop_assert_eq!(canonical.option("ready"), Some(&*escaped));
        }
    }
}

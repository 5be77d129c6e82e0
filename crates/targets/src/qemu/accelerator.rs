//! What executes a guest's instructions: the processor, by KVM, or a program, by TCG.
//!
//! That `/dev/kvm` can be opened does not mean that a guest runs in it: there are machines on which
//! QEMU then aborts, and others on which the guest hangs forever. So KVM is tried by booting the
//! hello image, with a short limit. The answer is remembered in the state folder, for this boot of
//! this machine and this QEMU.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tare_guard::{Guard, Interrupt};

use super::{Boot, Guest, Machine, Qemu};
use crate::error::TargetError;
use crate::instance::{Ending, Instance, OutputEvent};
use crate::launch::Launch;
use crate::measured::MeasuredFile;
use crate::options::{Size, Word};
use crate::remembered;

const DEVICE: &str = "/dev/kvm";

/// How long the hello image may take. With KVM it needs a twentieth of that.
const LIMIT: Duration = Duration::from_secs(2);

/// The beginning of its line.
const HELLO: &[u8] = b"hello from tare";

/// The file in the state folder that holds the answer.
const FILE: &str = "accel.json";

/// What executes a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The processor.
    Kvm,
    /// QEMU's emulation.
    Tcg,
}

impl Word for Accelerator {
    const WORDS: &'static [(Self, &'static str)] = &[(Self::Kvm, "kvm"), (Self::Tcg, "tcg")];
}

/// The accelerator that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// KVM where it works, else TCG.
    Auto,
    Kvm,
    Tcg,
}

impl Word for Choice {
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Auto, "auto"), (Self::Kvm, "kvm"), (Self::Tcg, "tcg")];
}

/// Returns why KVM does not work; None if it does. What once failed is tried again if KVM is wanted
/// by its name: the machine may only have been busy.
///
/// # Errors
///
/// Returns [`TargetError`] if it can't be tried: then nothing is known.
pub(crate) fn try_kvm(
    qemu: &Qemu,
    hello: &MeasuredFile,
    guard: &Guard,
    state: &Path,
    is_wanted: bool,
) -> Result<Option<String>, TargetError> {
    // Checked each time, since it depends on the user.
    if let Err(error) = open() {
        return Ok(Some(refusal(&error)));
    }
    let asked = Question::here(&qemu.version);
    let path = state.join(FILE);
    let answer = match remembered::read::<Answer>(&path) {
        Some(answer) if answer.asked == asked && (answer.why_not.is_none() || !is_wanted) => answer,
        _ => {
            let why_not = boot(qemu, hello, guard)?;
            let answer = Answer { asked, why_not };
            // One that can't be remembered is found again the next time.
            let _ = remembered::write(&path, &answer);
            answer
        }
    };
    let path = path.display();
    Ok(answer.why_not.map(|why| {
        format!("{why} (found once for this boot; delete {path} to have it tried again)")
    }))
}

/// Returns what is to be expected of [`try_kvm`], as far as that is known without starting QEMU.
pub(crate) fn expected(state: &Path) -> Option<Accelerator> {
    if open().is_err() {
        return Some(Accelerator::Tcg);
    }
    let answer: Answer = remembered::read(&state.join(FILE))?;
    let is_of_now = answer.asked == Question::here(&answer.asked.qemu);
    is_of_now.then_some(match answer.why_not {
        None => Accelerator::Kvm,
        Some(_) => Accelerator::Tcg,
    })
}

/// Returns why the device can't be opened, and what to do.
fn refusal(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => format!("there is no {DEVICE}"),
        Some(Errno::NODEV | Errno::NXIO) => format!(
            "no module of the kernel drives {DEVICE} ({error}): load it with `modprobe kvm-intel` or \
             `modprobe kvm-amd`; if it refuses, virtualisation is turned off in the firmware, or by \
             the hypervisor that this machine is a guest of"
        ),
        Some(Errno::ACCESS | Errno::PERM) => {
            format!("{DEVICE} can't be opened ({error}): is this user in the group kvm?")
        }
        _ => format!("{DEVICE} can't be opened ({error})"),
    }
}

fn open() -> io::Result<File> {
    File::options().read(true).write(true).open(DEVICE)
}

/// The circumstances on which the answer depends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Question {
    boot_id: String,
    kernel: String,
    processor: String,
    qemu: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    #[serde(flatten)]
    asked: Question,
    /// None if KVM works.
    why_not: Option<String>,
}

impl Question {
    fn here(qemu: &str) -> Self {
        let line = |path| -> String {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().to_owned()
        };
        let processor = line("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, name)| name.trim().to_owned());
        Self {
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            kernel: line("/proc/sys/kernel/osrelease"),
            processor: processor.unwrap_or_default(),
            qemu: qemu.to_owned(),
        }
    }
}

/// Boot the hello image under KVM. Return why it does not work; None if it does not.
fn boot(qemu: &Qemu, hello: &MeasuredFile, guard: &Guard) -> Result<Option<String>, TargetError> {
    let boot = Boot::Kernel {
        path: hello.path()?,
        command_line: "",
    };
    let guest = Guest::new(Machine::Microvm, Accelerator::Kvm, Size::mib(16), boot);
    let launch = Launch {
        judge: Box::new(|ended| match ended.status.code() {
            Some(33) => Ok(()),
            _ => Err(ended.described()),
        }),
        ..qemu.launch("QEMU", &guest, &[])?
    };
    let instance = match Instance::start(launch, guard) {
        Ok(instance) => instance,
        Err(TargetError::Failed(why)) => return Ok(Some(why)),
        Err(error) => return Err(error),
    };
    let mut is_heard = false;
    let mut watcher = |event: OutputEvent<'_>| {
        is_heard |= matches!(event, OutputEvent::Line(line, _) if line.starts_with(HELLO));
    };
    let ended = instance.watch(LIMIT, &Interrupt::detached()?, &mut watcher)?;
    Ok(why_not(ended.how, is_heard))
}

/// Returns why KVM does not work, by the end of the guest, and whether its line came.
fn why_not(ending: Ending, is_heard: bool) -> Option<String> {
    match ending {
        Ending::Done if is_heard => None,
        Ending::Done => {
            Some("a guest that only says hello ended well, but its console said nothing".to_owned())
        }
        Ending::Failed { why } => Some(format!("a guest that does nothing failed: {why}")),
        Ending::TimedOut { doing } => {
            let limit = LIMIT.as_secs();
            let doing = doing.map(|doing| format!(": {doing}")).unwrap_or_default();
            Some(format!(
                "a guest that does nothing was not done within {limit} s{doing}"
            ))
        }
        Ending::Stopped => Some("the trial was stopped".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_expected_again_in_the_same_circumstances_only() {
        let state = tempfile::tempdir().unwrap();
        let path = state.path().join(FILE);
        let without_device = open().is_err().then_some(Accelerator::Tcg);
        assert_eq!(expected(state.path()), without_device);
        for (why_not, accelerator) in [
            (Some("it hangs".to_owned()), Accelerator::Tcg),
            (None, Accelerator::Kvm),
        ] {
            let asked = Question::here("7.2");
            let answer = Answer { asked, why_not };
            remembered::write(&path, &answer).unwrap();
            let expected = expected(state.path());
            assert_eq!(expected, without_device.or(Some(accelerator)));
        }
        let mut asked = Question::here("7.2");
        asked.boot_id.push('x');
        let of_another_boot = Answer {
            asked,
            why_not: None,
        };
        remembered::write(&path, &of_another_boot).unwrap();
        assert_eq!(expected(state.path()), without_device);
    }

    #[test]
    fn each_refusal_names_what_to_do() {
        for (errno, text) in [
            (Errno::NOENT, "there is no /dev/kvm"),
            (Errno::NODEV, "modprobe kvm-amd"),
            (Errno::ACCESS, "in the group kvm?"),
        ] {
            let refusal = refusal(&errno.into());
            assert!(refusal.contains(text), "{refusal}");
        }
    }

    #[test]
    fn a_guest_that_is_not_heard_was_not_seen_to_run() {
        assert_eq!(why_not(Ending::Done, true), None);
        let why = why_not(Ending::Done, false).unwrap();
        assert!(why.contains("its console said nothing"), "{why}");
    }

    #[test]
    fn the_circumstances_can_be_read_here() {
        let here = Question::here("7.2");
        assert_eq!(here.boot_id.len(), 36);
        assert!(!here.kernel.is_empty());
    }
}

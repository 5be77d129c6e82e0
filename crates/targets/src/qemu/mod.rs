//! QEMU: where it is, how a guest is described to it, and how one is started.
//!
//! A guest is started stopped (`-S`): its vCPU threads exist then, and can be pinned, before the
//! first instruction executes. QEMU is spoken to over [`qmp`], its standard input being one end of
//! a socket pair: there is no path that could be too long, be left behind, or be opened by others,
//! and QEMU need not be waited for to make one. What the guest writes to its serial port comes out
//! of QEMU's standard output.
//!
//! The detour by `-S`, the dialogue and `cont` lies between the stamps `started` and `ready` of an
//! instance: whoever compares starting times must know of it. From the call to the first line of
//! the hello image it added 3 ms to 25 ms (QEMU 7.2, TCG, microvm, two shared CPUs, minima of 30
//! starts in alternation with a plain one), of which asking for the threads and `cont` took about
//! one.

pub(crate) mod accelerator;
mod pin;
pub(crate) mod qmp;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_guard::{Guard, OwnedChild};

use self::accelerator::Accelerator;
use self::qmp::Qmp;
use crate::error::TargetError;
use crate::instance::{describe_exit, now_ns};
use crate::options::{Size, Word};

const PROGRAM: &str = "qemu-system-x86_64";

/// Is how long QEMU may take until it answers: a guest has not started by then.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Is how long QEMU may take for an answer later.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Is the QEMU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qemu {
    path: PathBuf,
    /// Its version: `7.2.22`.
    pub(crate) version: String,
    start_limit: Duration,
}

impl Qemu {
    /// Looks for QEMU in the folders of `PATH`, and asks for its version.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::NoQemu`] if there is none, [`TargetError::Qemu`] if it does not run.
    pub(crate) fn find(guard: &Guard) -> Result<Self, TargetError> {
        Self::find_in(&env::var_os("PATH").unwrap_or_default(), guard)
    }

    fn find_in(folders: &OsStr, guard: &Guard) -> Result<Self, TargetError> {
        let path = env::split_paths(folders)
            .map(|folder| folder.join(PROGRAM))
            .find(|path| path.is_file())
            .ok_or(TargetError::NoQemu { program: PROGRAM })?;
        let text = first_output(Command::new(&path).arg("--version"), guard)?;
        let version = version(&text).ok_or_else(|| TargetError::Qemu {
            why: format!("does not tell its version, but says: {}", text.trim()),
        })?;
        Ok(Self {
            path,
            version,
            start_limit: START_LIMIT,
        })
    }

    /// Starts a guest, in a process that is left stopped until [`Started::go`].
    ///
    /// # Errors
    ///
    /// Returns [`TargetError`] if QEMU can't be executed, ends at once, or does not answer.
    pub(crate) fn start(&self, guest: &Guest<'_>, guard: &Guard) -> Result<Started, TargetError> {
        let (ours, theirs) =
            UnixStream::pair().map_err(|error| broken(format!("can't be spoken to: {error}")))?;
        let mut command = Command::new(&self.path);
        command
            .args(guest.arguments())
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started_ns = now_ns();
        let mut child = guard.spawn(&mut command)?;
        // The command holds QEMU's end of the socket open: its end could not be seen.
        drop(command);
        match Qmp::greet(ours, self.start_limit) {
            Ok(qmp) => Ok(Started {
                started_ns,
                child,
                qmp,
            }),
            Err(error) => Err(broken(format!(
                "did not start a guest ({error}): {}",
                end(&mut child)?
            ))),
        }
    }
}

/// Is a QEMU whose guest waits for [`Started::go`].
#[derive(Debug)]
pub(crate) struct Started {
    /// CLOCK_MONOTONIC just before the call that started QEMU.
    pub(crate) started_ns: u64,
    pub(crate) child: OwnedChild,
    pub(crate) qmp: Qmp,
}

impl Started {
    /// Pins the thread of one of the guest's CPUs to a CPU of the host, and keeps QEMU's other
    /// threads off it.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Qemu`] if that is not possible.
    pub(crate) fn pin(&mut self, guest_cpu: u32, cpu: u32) -> Result<(), TargetError> {
        let answer = self
            .qmp
            .ask("query-cpus-fast", START_LIMIT)
            .map_err(|error| broken(error.to_string()))?;
        let thread = thread_of(&answer, guest_cpu).ok_or_else(|| {
            broken(format!(
                "tells of no thread for the guest's CPU {guest_cpu}"
            ))
        })?;
        pin::pin(self.child.pid(), thread, cpu).map_err(|error| {
            broken(format!(
                "runs, but its guest can't be pinned to CPU {cpu}: {error}; is that CPU in the \
                 cpuset of this process?"
            ))
        })
    }

    /// Lets the guest run.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Qemu`] if QEMU does not do it.
    pub(crate) fn go(&mut self) -> Result<(), TargetError> {
        match self.qmp.ask("cont", START_LIMIT) {
            Ok(_) => Ok(()),
            // A guest may be done before the answer is read. How it ended is told by its status.
            Err(qmp::QmpError::Closed { .. }) => Ok(()),
            Err(error) => Err(broken(error.to_string())),
        }
    }
}

/// Lets QEMU end, as far as it still listens, and says what the guest was doing.
pub(crate) fn end_early(qmp: &mut Qmp, child: &mut OwnedChild) -> String {
    let doing = match qmp.ask("query-status", ANSWER_LIMIT) {
        Err(error) => format!("QEMU itself does not answer ({error})"),
        Ok(status) => match status["status"].as_str().unwrap_or("unknown") {
            "running" => "the guest was still running".to_owned(),
            "internal-error" => "the guest stood still after an error inside of KVM".to_owned(),
            other => format!("the guest stood still ({other})"),
        },
    };
    if qmp.ask("quit", ANSWER_LIMIT).is_ok() {
        // Who does not end now is killed.
        let _ = child.wait_with_deadline(Instant::now() + ANSWER_LIMIT);
    }
    doing
}

/// Is a type of machine that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// The one with the fewest devices.
    Microvm,
    /// A PC of 2009, with PCI Express.
    Q35,
    /// A PC of 1996, with PCI.
    Pc,
}

impl Word for Machine {
    const ALL: &'static [Self] = &[Self::Microvm, Self::Q35, Self::Pc];

    fn word(self) -> &'static str {
        match self {
            Self::Microvm => "microvm",
            Self::Q35 => "q35",
            Self::Pc => "pc",
        }
    }
}

/// Describes a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest<'a> {
    pub(crate) machine: Machine,
    pub(crate) accelerator: Accelerator,
    pub(crate) cpus: u32,
    pub(crate) memory: Size,
    /// Whether the guest's time is a count of its instructions.
    pub(crate) counts_instructions: bool,
    pub(crate) kernel: &'a Path,
    pub(crate) command_line: &'a str,
}

impl Guest<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let (machine, accelerator) = (self.machine.word(), self.accelerator.word());
        let (cpus, memory) = (self.cpus.to_string(), self.memory.to_string());
        let machine = format!("{machine},accel={accelerator}");
        let mut words = vec![
            // Nothing that is not asked for, neither devices nor a user's settings.
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            // A guest that resets itself, or faults for the third time, ends instead of starting
            // anew.
            "-no-reboot",
            "-S",
            "-chardev",
            "socket,id=qmp,fd=0",
            "-mon",
            "chardev=qmp,mode=control",
            "-chardev",
            "file,id=console,path=/dev/stdout",
            "-serial",
            "chardev:console",
            // The image's way to end, with a status: twice the number that it writes, plus one.
            "-device",
            "isa-debug-exit,iobase=0xf4,iosize=0x04",
            "-machine",
            &machine,
            "-cpu",
            match self.accelerator {
                Accelerator::Tcg => "max",
                // A guest that can't be migrated may see that the TSC does not change its rate.
                Accelerator::Kvm => "host,migratable=off",
            },
            "-smp",
            &cpus,
            "-m",
            &memory,
        ];
        if self.machine == Machine::Microvm {
            // It starts a kernel sooner than SeaBIOS.
            words.extend(["-bios", "qboot.rom"]);
        }
        if self.counts_instructions {
            words.extend(["-icount", "shift=1,sleep=off"]);
            words.extend(["-rtc", "base=2020-01-01,clock=vm"]);
        }
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        words.extend(["-kernel".into(), self.kernel.into()]);
        words.extend(["-append".into(), self.command_line.into()]);
        words
    }
}

fn thread_of(cpus: &Value, index: u32) -> Option<u32> {
    let cpu = cpus
        .as_array()?
        .iter()
        .find(|cpu| cpu["cpu-index"].as_u64() == Some(index.into()))?;
    u32::try_from(cpu["thread-id"].as_u64()?).ok()
}

/// Finds `7.2.22` in `QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)`.
fn version(text: &str) -> Option<String> {
    let rest = text.lines().next()?.split_once("version ")?.1;
    Some(rest.split_whitespace().next()?.to_owned())
}

/// Runs a command that ends soon, and returns what it wrote.
fn first_output(command: &mut Command, guard: &Guard) -> Result<String, TargetError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = guard.spawn(command)?;
    if child
        .wait_with_deadline(Instant::now() + START_LIMIT)?
        .is_none()
    {
        child.kill_group()?;
    }
    Ok(child.take_stdout().map(read_to_end).unwrap_or_default())
}

/// Ends a QEMU that did not start a guest, and says how it went.
fn end(child: &mut OwnedChild) -> Result<String, TargetError> {
    // One that has just closed the socket may still be ending, with a status that tells more.
    let status = child.wait_with_deadline(Instant::now() + ANSWER_LIMIT)?;
    if status.is_none() {
        child.kill_group()?;
    }
    let said = child.take_stderr().map(read_to_end).unwrap_or_default();
    Ok(match (status, said.trim()) {
        (Some(status), said) => describe_exit(status, said),
        (None, "") => "it said nothing and was ended".to_owned(),
        (None, said) => format!("it was ended; it said: {said}"),
    })
}

/// Reads what a process that has ended left in a pipe.
fn read_to_end(pipe: impl Read) -> String {
    const MOST: u64 = 4_000;
    let mut bytes = Vec::new();
    // What was read before an error is better than nothing.
    let _ = pipe.take(MOST).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn broken(why: String) -> TargetError {
    TargetError::Qemu { why }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn line(guest: &Guest<'_>) -> String {
        let words: Vec<String> = guest
            .arguments()
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ").replace(" -", "\n-")
    }

    fn guest() -> Guest<'static> {
        Guest {
            machine: Machine::Microvm,
            accelerator: Accelerator::Tcg,
            cpus: 1,
            memory: Size::mib(64),
            counts_instructions: false,
            kernel: Path::new("/images/bench"),
            command_line: "service=bench irq=off",
        }
    }

    #[test]
    fn a_guest_is_described_to_qemu() {
        insta::assert_snapshot!(line(&guest()));
    }

    #[test]
    fn other_guests_differ_where_they_should() {
        let common = line(&guest());
        let other = line(&Guest {
            machine: Machine::Q35,
            accelerator: Accelerator::Kvm,
            cpus: 3,
            counts_instructions: true,
            ..guest()
        });
        let new: Vec<&str> = other
            .lines()
            .filter(|word| !common.lines().any(|known| known == *word))
            .collect();
        assert_eq!(
            new,
            [
                "-machine q35,accel=kvm",
                "-cpu host,migratable=off",
                "-smp 3",
                "-icount shift=1,sleep=off",
                "-rtc base=2020-01-01,clock=vm",
            ]
        );
        assert!(!other.contains("-bios"));
    }

    /// Makes a folder with a program that is to be QEMU.
    fn fake(script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PROGRAM);
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo {VERSION}\n{script}\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        folder
    }

    const VERSION: &str = "QEMU emulator version 1.2.3 && exit";

    #[test]
    fn a_qemu_that_does_not_start_a_guest_is_told_and_ended() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        for (script, message) in [
            (
                "sleep 1000",
                "QEMU did not start a guest (it did not answer the call within 100 ms): it said \
                 nothing and was ended",
            ),
            (
                "echo hello >&0; exec sleep 1000",
                "QEMU did not start a guest (the answer to the call makes no sense: hello): \
                 it said nothing and was ended",
            ),
            (
                "echo no memory >&2; exit 1",
                "QEMU did not start a guest (it closed the connection instead of answering the \
                 call): it ended with status 1; it said: no memory",
            ),
        ] {
            let folder = fake(script);
            let qemu = Qemu {
                start_limit: Duration::from_millis(100),
                ..Qemu::find_in(folder.path().as_os_str(), &guard).unwrap()
            };
            assert_eq!(qemu.version, "1.2.3");
            let error = qemu.start(&guest(), &guard).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
        let undone = guard.close();
        assert!(undone.problems.is_empty(), "{undone:?}");
    }

    #[test]
    fn a_machine_without_qemu_is_told() {
        let state = tempfile::tempdir().unwrap();
        let guard = Guard::open(state.path()).unwrap();
        let error = Qemu::find_in(state.path().as_os_str(), &guard).unwrap_err();
        assert_eq!(
            error.to_string(),
            "qemu-system-x86_64 is in no folder of PATH"
        );
    }

    #[test]
    fn the_version_is_found_in_what_qemu_says() {
        let text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright\n";
        assert_eq!(version(text).as_deref(), Some("7.2.22"));
        assert_eq!(
            version("QEMU emulator version 9.0.1").as_deref(),
            Some("9.0.1")
        );
        assert_eq!(version("command not found"), None);
    }

    #[test]
    fn the_thread_of_a_cpu_is_found_by_its_index() {
        let cpus = json!([
            { "cpu-index": 1, "thread-id": 77 },
            { "cpu-index": 0, "thread-id": 76 },
        ]);
        assert_eq!(thread_of(&cpus, 0), Some(76));
        assert_eq!(thread_of(&cpus, 2), None);
        assert_eq!(thread_of(&json!({}), 0), None);
    }
}

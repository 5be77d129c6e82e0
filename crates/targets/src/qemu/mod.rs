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
pub(crate) mod host;
mod pin;
pub(crate) mod qmp;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_guard::{Guard, OwnedChild};
use tare_results::target::Clock;

use self::accelerator::Accelerator;
use self::qmp::Qmp;
use crate::error::TargetError;
use crate::instance::{describe_exit, now_ns};
use crate::options::{Size, Word};

const PROGRAM: &str = "qemu-system-x86_64";

/// Makes time a count of instructions, 2 ns for each, that jumps to the next timer while the guest is idle.
///
/// QEMU's main loop makes time jump as soon as the vCPU is halted. If it looks just when the vCPU's thread has executed `hlt`
/// but has not yet added up what it executed since its last access to a device, these instructions come on top of
/// the jump: 5 of 30 runs of 2,000 wake-ups on the unikernel had one that was 6 ns later, beside other work on
/// two CPUs. While QEMU records for a replay, main loop and vCPU exclude each other, and 30 of 30 were identical. Nobody wants
/// the recording. It cost 11 % more CPU time (four Linux guests under loads).
const COUNT_INSTRUCTIONS: &str = "shift=1,sleep=off,rr=record,rrfile=/dev/null";

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
        if let Boot::Drive { changes, .. } = guest.boot {
            // QEMU keeps what the guest writes in a file without a name, which has one for a moment.
            command.env("TMPDIR", changes);
        }
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

/// Says where the thread of one of the guest's CPUs is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// CPU of the guest.
    pub(crate) guest_cpu: u32,
    /// CPU of the host.
    pub(crate) cpu: u32,
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
    pub(crate) fn pin(&mut self, pin: &Pin) -> Result<(), TargetError> {
        let Pin { guest_cpu, cpu } = *pin;
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
    /// By a count of executed instructions a run can be repeated exactly.
    pub(crate) clock: Clock,
    pub(crate) boot: Boot<'a>,
    /// Whether QEMU locks all of its memory, the guest's included.
    pub(crate) locks_memory: bool,
    /// Port on 127.0.0.1 where QEMU listens for gdb.
    pub(crate) gdb_port: Option<u16>,
    /// What else a guest with a Linux kernel is given.
    pub(crate) linux: Option<Linux<'a>>,
}

/// Is what a guest boots.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Boot<'a> {
    /// A kernel that QEMU loads.
    Kernel {
        path: &'a Path,
        command_line: &'a str,
    },
    /// What firmware finds on a disk or CD, which is not changed.
    Drive {
        path: &'a Path,
        /// `raw` or `qcow2`.
        format: &'static str,
        /// QEMU's name of the device: `virtio-blk-pci`.
        device: &'static str,
        /// The folder where QEMU keeps what the guest writes.
        changes: &'a Path,
    },
}

/// Is what a guest with a Linux kernel is given besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux<'a> {
    /// Its first file system.
    pub(crate) initrd: Option<&'a Path>,
    /// The name of the virtio port that is QEMU's standard output. What the guest writes to its
    /// serial port then comes out of QEMU's standard error.
    pub(crate) port: &'a str,
    pub(crate) disks: &'a [Disk],
}

/// Is a disk of a guest: a raw image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    /// Whether what the guest writes is lost when it ends.
    pub(crate) is_kept_as_it_is: bool,
    /// By which the guest finds it.
    pub(crate) serial: &'static str,
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
            match self.linux {
                None => "file,id=console,path=/dev/stdout",
                Some(_) => "file,id=console,path=/dev/stderr",
            },
            "-serial",
            "chardev:console",
        ];
        if self.linux.is_none() {
            // The image's way to end, with a status: twice the number that it writes, plus one.
            words.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        }
        words.extend([
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
        ]);
        if self.machine == Machine::Microvm {
            // It starts a kernel sooner than SeaBIOS.
            words.extend(["-bios", "qboot.rom"]);
        }
        if self.clock == Clock::Instructions {
            words.extend(["-icount", COUNT_INSTRUCTIONS]);
            words.extend(["-rtc", "base=2020-01-01,clock=vm"]);
        }
        if self.clock == Clock::Instructions && self.linux.is_some() {
            // Linux asks for random numbers, and places things by them.
            words.extend(["-seed", "1"]);
        }
        let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        if self.locks_memory {
            words.extend(["-overcommit".into(), "mem-lock=on".into()]);
        }
        if let Some(port) = self.gdb_port {
            words.extend(["-gdb".into(), format!("tcp:127.0.0.1:{port}").into()]);
        }
        words.extend(self.boot.arguments());
        words.extend(self.linux.iter().flat_map(Linux::arguments));
        words
    }
}

impl Boot<'_> {
    fn arguments(&self) -> Vec<OsString> {
        match *self {
            Self::Kernel { path, command_line } => vec![
                "-kernel".into(),
                path.into(),
                "-append".into(),
                command_line.into(),
            ],
            Self::Drive {
                path,
                format,
                device,
                changes: _,
            } => {
                let mut drive =
                    OsString::from(format!("if=none,id=boot,format={format},snapshot=on,file="));
                drive.push(doubled_commas(path));
                let device = format!("{device},drive=boot,bootindex=0");
                vec!["-drive".into(), drive, "-device".into(), device.into()]
            }
        }
    }
}

impl Linux<'_> {
    fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut two = |option: &str, value: OsString| words.extend([option.into(), value]);
        if let Some(initrd) = self.initrd {
            two("-initrd", initrd.into());
        }
        two("-chardev", "file,id=records,path=/dev/stdout".into());
        // What the guest writes is taken by the thread of the CPU that wrote it, at once. Another thread
        // would do it some time later, which the guest can see: nothing could be repeated exactly.
        two("-device", "virtio-serial-pci,ioeventfd=off".into());
        two(
            "-device",
            format!("virtserialport,chardev=records,name={}", self.port).into(),
        );
        for (number, disk) in self.disks.iter().enumerate() {
            let snapshot = if disk.is_kept_as_it_is { "on" } else { "off" };
            let mut drive = OsString::from(format!(
                "if=none,id=disk{number},format=raw,snapshot={snapshot},cache=unsafe,file="
            ));
            drive.push(doubled_commas(&disk.path));
            two("-drive", drive);
            let device = format!("virtio-blk-pci,drive=disk{number},serial={}", disk.serial);
            two("-device", device.into());
        }
        words
    }
}

/// Writes a path as part of an option of QEMU, where a comma would end it.
fn doubled_commas(path: &Path) -> OsString {
    let mut bytes = Vec::new();
    for byte in path.as_os_str().as_bytes() {
        bytes.extend(std::iter::repeat_n(
            *byte,
            if *byte == b',' { 2 } else { 1 },
        ));
    }
    OsString::from_vec(bytes)
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
    Ok(read_to_end(child.take_stdout()))
}

/// Ends a QEMU that did not start a guest, and says how it went.
fn end(child: &mut OwnedChild) -> Result<String, TargetError> {
    // One that has just closed the socket may still be ending, with a status that tells more.
    let status = child.wait_with_deadline(Instant::now() + ANSWER_LIMIT)?;
    if status.is_none() {
        child.kill_group()?;
    }
    let said = read_to_end(child.take_stderr());
    Ok(match (status, said.trim()) {
        (Some(status), said) => describe_exit(status, said),
        (None, "") => "it said nothing and was ended".to_owned(),
        (None, said) => format!("it was ended; it said: {said}"),
    })
}

/// Reads what a process that has ended left in a pipe.
pub(crate) fn read_to_end(pipe: Option<impl Read>) -> String {
    const MOST: u64 = 4_000;
    let mut bytes = Vec::new();
    // What was read before an error is better than nothing.
    let _ = pipe.map(|pipe| pipe.take(MOST).read_to_end(&mut bytes));
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
            clock: Clock::Host,
            boot: Boot::Kernel {
                path: Path::new("/images/bench"),
                command_line: "service=bench irq=off",
            },
            locks_memory: false,
            gdb_port: None,
            linux: None,
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
            clock: Clock::Instructions,
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
                "-icount shift=1,sleep=off,rr=record,rrfile=/dev/null",
                "-rtc base=2020-01-01,clock=vm",
            ]
        );
        assert!(!other.contains("-bios"));
    }

    #[test]
    fn a_linux_guest_gets_a_port_and_disks() {
        let common = line(&guest());
        let disks = [Disk {
            path: "/tmp/a,b/disk".into(),
            is_kept_as_it_is: false,
            serial: "scratch",
        }];
        let other = line(&Guest {
            clock: Clock::Instructions,
            linux: Some(Linux {
                initrd: Some(Path::new("/tmp/initramfs")),
                port: "tare",
                disks: &disks,
            }),
            ..guest()
        });
        let new: Vec<&str> = other
            .lines()
            .filter(|word| !common.lines().any(|known| known == *word))
            .collect();
        insta::assert_snapshot!(new.join("\n"));
        assert!(!other.contains("isa-debug-exit"));
    }

    #[test]
    fn a_guest_may_boot_from_a_disk_that_is_not_changed() {
        let other = line(&Guest {
            boot: Boot::Drive {
                path: Path::new("/a,b"),
                format: "qcow2",
                device: "ide-hd",
                changes: Path::new("/changes"),
            },
            ..guest()
        });
        assert!(
            other.ends_with(
                "-drive if=none,id=boot,format=qcow2,snapshot=on,file=/a,,b\n\
                 -device ide-hd,drive=boot,bootindex=0"
            ),
            "{other}"
        );
        assert!(!other.contains("-kernel") && !other.contains("-append"));
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

//! QEMU: where it is, the command line of a guest, and its start.
//!
//! A guest is started stopped (`-S`), so that its vCPU threads exist and can be pinned before the
//! first instruction executes. [`qmp`] runs over QEMU's standard input, one end of a socket pair:
//! there is no path that could be too long, be left behind, or be opened by others, and no wait for
//! QEMU to create one. The guest's serial port is QEMU's standard output. A Linux guest's virtio
//! port is a socket pair as standard output, since bytes go both ways. When many guests are
//! started, they start at once, without a dialogue.
//!
//! `-S`, the dialogue and `cont` lie between the stamps `started` and `ready` of an instance, which
//! matters for comparisons of start times. From the call to the first line of
//! the hello image it added 3 ms to 25 ms (QEMU 7.2, TCG, microvm, two shared CPUs, minima of 30
//! starts in alternation with a plain one), of which asking for the threads and `cont` took about
//! one.

pub(crate) mod accelerator;
mod guest_cpus;
pub(crate) mod host;
pub(crate) mod pin;
pub(crate) mod qmp;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tare_guard::{Guard, OwnedChild};
use tare_networks::Network;
use tare_results::target::Clock;
use tare_wire::guest::Message;

use self::accelerator::{Accelerator, Choice};
pub(crate) use self::guest_cpus::GuestCpus;
use self::pin::PinnedThread;
use self::qmp::Qmp;
use crate::Job;
use crate::error::TargetError;
use crate::instance::describe_exit;
use crate::launch::{self, Channels, Dialogue, Launch, Program};
use crate::memory::Locking;
use crate::options::{Opt, Size, Word};
use crate::programs;
use crate::server::ANSWERING;

const PROGRAM: &str = "qemu-system-x86_64";

/// Makes time a count of instructions, 2 ns for each, that jumps to the next timer while the guest
/// is idle.
///
/// QEMU's main loop makes time jump as soon as the vCPU is halted. If it looks just when the vCPU's
/// thread has executed `hlt` but has not yet added up what it executed since its last access to a
/// device, these instructions come on top of the jump: 5 of 30 runs of 2,000 timers on the
/// unikernel had one that was 6 ns later, with other work on two CPUs. While QEMU records for a
/// replay, main loop and vCPU exclude each other, and 30 of 30 were identical. Nobody wants the
/// recording. It cost 11 % more CPU time (four Linux guests under loads).
const COUNT_INSTRUCTIONS: &str = "shift=1,sleep=off,rr=record,rrfile=/dev/null";

/// How long QEMU may take until it answers: a guest has not started by then.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long QEMU may take for an answer later.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Interval between checks that pinned threads are on their CPUs.
const LOOK: Duration = Duration::from_secs(1);

/// The QEMU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qemu {
    path: PathBuf,
    /// Its version: `7.2.22`.
    pub(crate) version: String,
    start_limit: Duration,
}

impl Qemu {
    /// Looks for QEMU in the folders of `PATH`.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if there is none.
    pub(crate) fn program() -> Result<PathBuf, TargetError> {
        program_in(&env::var_os("PATH").unwrap_or_default())
    }

    /// Looks for QEMU in the folders of `PATH`, and asks for its version.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if there is none, [`TargetError::Failed`] if it does not
    /// run.
    pub(crate) fn find(guard: &Guard) -> Result<Self, TargetError> {
        Self::find_in(&env::var_os("PATH").unwrap_or_default(), guard)
    }

    fn find_in(folders: &OsStr, guard: &Guard) -> Result<Self, TargetError> {
        let path = program_in(folders)?;
        let mut command = Command::new(&path);
        command.arg("--version").stdin(Stdio::null());
        let text = programs::run(&mut command, START_LIMIT, guard)?.stdout;
        let version = version(&text)
            .ok_or_else(|| broken(format!("does not report its version, but: {text}")))?;
        Ok(Self {
            path,
            version,
            start_limit: START_LIMIT,
        })
    }

    /// Prepares to start guests of one kind. One that is started for a dialogue waits until its
    /// threads are pinned; `pins` is for these.
    ///
    /// # Errors
    ///
    /// Returns [`TargetError::Unusable`] if a program is missing by which QEMU enters a network.
    pub(crate) fn launch(
        &self,
        name: &'static str,
        guest: &Guest<'_>,
        pins: &[Pin],
    ) -> Result<Launch, TargetError> {
        let namespace = guest.network.and_then(Network::hypervisor);
        let (path, arguments) = match namespace {
            Some(namespace) => launch::within(namespace, None, &self.path, guest.arguments())?,
            None => (self.path.clone(), guest.arguments()),
        };
        let (control, has_port) = (guest.control, guest.has_dialogue_by_port());
        let changes = guest.changes().map(Path::to_owned);
        let start = move |_| {
            let mut exec = launch::exec(&path, &arguments)?;
            if let Some(changes) = &changes {
                // QEMU keeps what the guest writes in files without a name, which have one for a
                // moment.
                exec.variable("TMPDIR", changes.as_os_str())?;
            }
            let mut channels = Channels::default();
            if control != Control::None {
                let (mut ours, theirs) = UnixStream::pair()?;
                if control == Control::Events {
                    // QEMU sends events to a client that has answered its greeting, even in
                    // advance.
                    ours.write_all(b"{\"execute\": \"qmp_capabilities\"}\n")?;
                }
                exec.stdin(OwnedFd::from(theirs));
                channels.input = Some(ours);
            }
            if has_port {
                let (ours, theirs) = UnixStream::pair()?;
                exec.stdout(OwnedFd::from(theirs));
                channels.output = Some(ours);
            }
            Ok(Program { exec, channels })
        };
        let mut launch = Launch {
            memory_bytes: guest.memory.mib << 20,
            shares_clock: false,
            image: guest.files().map(Path::to_owned).collect(),
            ..Launch::of_program(name, start)
        };
        if control == Control::Dialogue {
            let (pins, limit) = (pins.to_vec(), self.start_limit);
            // With a port, gdb lets the guest run.
            let goes = guest.gdb_port.is_none();
            launch.dialogue = Some(Box::new(move |child, channels| {
                let mut dialogue = QemuDialogue::begin(child, channels, limit)?;
                dialogue.pin(child.pid(), &pins)?;
                if goes {
                    dialogue.go()?;
                }
                Ok(Box::new(dialogue))
            }));
        }
        Ok(match guest.network {
            Some(_) => launch.serving(Some(ANSWERING), None),
            None => launch,
        })
    }
}

fn program_in(folders: &OsStr) -> Result<PathBuf, TargetError> {
    env::split_paths(folders)
        .map(|folder| folder.join(PROGRAM))
        .find(|path| path.is_file())
        .ok_or_else(|| programs::missing(PROGRAM, "qemu-system-x86"))
}

/// Where the thread of a CPU of the guest is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// CPU of the guest.
    pub(crate) guest_cpu: u32,
    /// CPU of the host.
    pub(crate) cpu: u32,
}

/// The dialogue with a QEMU that was started for it.
#[derive(Debug)]
struct QemuDialogue {
    qmp: Qmp,
    /// Our end of the port of a guest with a Linux kernel, whose init reads there.
    port: Option<UnixStream>,
    pinned: Vec<PinnedThread>,
}

impl QemuDialogue {
    fn begin(
        child: &mut OwnedChild,
        channels: Channels,
        limit: Duration,
    ) -> Result<Self, TargetError> {
        let Channels { input, output } = channels;
        let stream = input.ok_or_else(|| broken("can't be spoken to"))?;
        match Qmp::greet(stream, limit) {
            Ok(qmp) => Ok(Self {
                qmp,
                port: output,
                pinned: Vec::new(),
            }),
            Err(error) => Err(broken(format!(
                "did not start a guest ({error}): {}",
                end(child)?
            ))),
        }
    }

    /// Pins the threads of CPUs of the guest to CPUs of the host, and keeps QEMU's other threads
    /// off these.
    fn pin(&mut self, process: u32, pins: &[Pin]) -> Result<(), TargetError> {
        for Pin { guest_cpu, cpu } in pins {
            let threads = self
                .qmp
                .ask("query-cpus-fast", START_LIMIT)
                .map_err(broken)?;
            let thread = thread_of(&threads, *guest_cpu).ok_or_else(|| {
                broken(format!("reports no thread for the guest's CPU {guest_cpu}"))
            })?;
            pin::pin(process, thread, *cpu).map_err(|error| {
                broken(format!(
                    "runs, but its guest can't be pinned to CPU {cpu}: {error}; is that CPU in the \
                     cpuset of this process?"
                ))
            })?;
            // One thread may execute several of the guest's CPUs.
            self.pinned.retain(|pinned| pinned.thread != thread);
            self.pinned.push(PinnedThread::new(process, thread, *cpu));
        }
        Ok(())
    }

    /// Lets the guest run.
    fn go(&mut self) -> Result<(), TargetError> {
        match self.qmp.ask("cont", START_LIMIT) {
            // A guest may be done before the answer is read. Its status shows how it ended.
            Ok(_) | Err(qmp::QmpError::Closed { .. }) => Ok(()),
            Err(error) => Err(broken(error)),
        }
    }
}

impl Dialogue for QemuDialogue {
    /// Ends a guest with a Linux kernel whose init says that it is done.
    fn on_line(&mut self, line: &[u8]) {
        if self.port.is_some() && Message::parse(&String::from_utf8_lossy(line)).is_some() {
            // If QEMU does not listen, the guest powers itself off after a while.
            let _ = self.qmp.ask("quit", ANSWER_LIMIT);
        }
    }

    fn check_every(&self) -> Option<Duration> {
        (!self.pinned.is_empty()).then_some(LOOK)
    }

    fn check(&mut self) -> Result<(), String> {
        self.pinned.iter_mut().try_for_each(PinnedThread::stayed)
    }

    fn ask_to_end(&mut self) -> Result<(), TargetError> {
        match &mut self.port {
            Some(port) => {
                let asked = port.write_all(b"\n");
                asked.map_err(|source| TargetError::Output { source })
            }
            None => {
                let asked = self.qmp.ask("inject-nmi", ANSWER_LIMIT);
                asked.map(drop).map_err(broken)
            }
        }
    }

    fn end(&mut self, child: &mut OwnedChild) -> String {
        let doing = match self.qmp.ask("query-status", ANSWER_LIMIT) {
            Err(error) => format!("QEMU itself does not answer ({error})"),
            Ok(status) => match status["status"].as_str().unwrap_or("unknown") {
                "running" => "the guest was still running".to_owned(),
                "internal-error" => "the guest stood still after an error inside of KVM".to_owned(),
                other => format!("the guest stood still ({other})"),
            },
        };
        if self.qmp.ask("quit", ANSWER_LIMIT).is_ok() {
            // A QEMU that does not end now is killed.
            let _ = child.wait_with_deadline(Instant::now() + ANSWER_LIMIT);
        }
        doing
    }

    fn reason(&mut self) -> Option<String> {
        self.qmp.shutdown_reason().map(str::to_owned)
    }
}

/// Returns why QEMU ended with status 0, by the reason of its last event. The meanings of a reset
/// and a power-off depend on the guest; of many guests no events are requested.
pub(crate) fn why_ended(reason: Option<&str>, reset: &str, power_off: &str) -> String {
    match reason {
        Some("guest-reset") => reset.to_owned(),
        Some("guest-shutdown") => power_off.to_owned(),
        Some("host-signal") => "QEMU was ended by a signal from somebody".to_owned(),
        Some(other) => format!("QEMU ended for the reason '{other}'"),
        None => "the guest reset itself or powered itself off without reporting that it is done"
            .to_owned(),
    }
}

/// A type of machine that QEMU emulates.
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
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::Microvm, "microvm"),
        (Self::Q35, "q35"),
        (Self::Pc, "pc"),
    ];
}

/// The option for what executes a guest.
pub(crate) const ACCEL: Opt = Opt::word::<Choice>("accel")
    .default("auto")
    .means("`kvm`, `tcg`, or `auto`: KVM where a guest really boots in it, else TCG");

/// The option for a guest's clock.
pub(crate) const CLOCK: Opt = Opt::word::<Clock>("clock")
    .default("host")
    .means("`instructions`: counted instead of time; repeatable, one CPU, TCG only");

/// The option for the type of machine.
pub(crate) const MACHINE: Opt =
    Opt::word::<Machine>("machine").means("`microvm` (kernels only), `q35` or `pc`");

/// Rejects what QEMU cannot do while it counts instructions.
///
/// # Errors
///
/// Returns [`TargetError::Usage`] for KVM or several CPUs.
pub(crate) fn check_counting(target: &str, choice: Choice, cpus: u32) -> Result<(), TargetError> {
    let refused = |what: &str, why| {
        let what = format!("clock=instructions with {what}");
        Err(TargetError::contradiction(target, what, why))
    };
    if choice == Choice::Kvm {
        return refused("accel=kvm", "only TCG counts instructions; use accel=tcg");
    }
    if cpus > 1 {
        let why = "QEMU counts the instructions of one CPU; use cpus=1";
        return refused("several CPUs", why);
    }
    Ok(())
}

/// The description of a guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest<'a> {
    pub(crate) machine: Machine,
    pub(crate) accelerator: Accelerator,
    pub(crate) cpus: u32,
    pub(crate) memory: Size,
    /// By a count of executed instructions a run can be repeated exactly.
    pub(crate) clock: Clock,
    pub(crate) boot: Boot<'a>,
    /// How QEMU locks its memory, the guest's included, where there is a dialogue with it.
    pub(crate) locking: Locking,
    /// How it is watched over.
    pub(crate) control: Control,
    /// Port on 127.0.0.1 where QEMU listens for gdb.
    pub(crate) gdb_port: Option<u16>,
    /// The network to which its card belongs, if it has one.
    pub(crate) network: Option<&'a Network>,
    /// What else a guest with a Linux kernel is given.
    pub(crate) linux: Option<Linux<'a>>,
}

/// How tare watches over a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// It is started stopped, and QEMU is asked and told things.
    Dialogue,
    /// It starts at once, and QEMU says why it ended.
    Events,
    /// It starts at once.
    None,
}

impl Control {
    /// Returns how guests of a job are watched over whose status tells why they ended.
    pub(crate) fn of(job: &Job<'_>) -> Self {
        match job.is_alone {
            true => Self::Dialogue,
            false => Self::None,
        }
    }
}

/// The boot source of a guest.
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

/// Further devices of a guest with a Linux kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux<'a> {
    /// Its first file system.
    pub(crate) initrd: Option<&'a Path>,
    /// The name of the virtio port that is QEMU's standard output. The guest's serial port is then
    /// QEMU's standard error.
    pub(crate) port: Option<&'a str>,
    pub(crate) disks: &'a [Disk],
    /// The folder where QEMU keeps what guests write to disks that are kept as they are.
    pub(crate) changes: Option<&'a Path>,
}

/// A disk of a guest: a raw image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) path: PathBuf,
    /// Whether what the guest writes is lost when it ends.
    pub(crate) is_kept_as_it_is: bool,
    /// By which the guest finds it.
    pub(crate) serial: &'static str,
}

impl<'a> Guest<'a> {
    /// Describes a guest with one CPU, and nothing but a serial port.
    pub(crate) fn new(
        machine: Machine,
        accelerator: Accelerator,
        memory: Size,
        boot: Boot<'a>,
    ) -> Self {
        Self {
            machine,
            accelerator,
            cpus: 1,
            memory,
            clock: Clock::Host,
            boot,
            locking: Locking::Not,
            control: Control::Dialogue,
            gdb_port: None,
            network: None,
            linux: None,
        }
    }

    /// Returns whether it has a port by which bytes go both ways.
    fn has_dialogue_by_port(&self) -> bool {
        self.control == Control::Dialogue && self.linux.is_some()
    }

    /// Returns the files from which it boots.
    fn files(&self) -> impl Iterator<Item = &'a Path> {
        let (Boot::Kernel { path, .. } | Boot::Drive { path, .. }) = self.boot;
        let initrd = self.linux.and_then(|linux| linux.initrd);
        [path].into_iter().chain(initrd)
    }

    /// Returns the folder where QEMU keeps what the guest writes to its disks.
    fn changes(&self) -> Option<&'a Path> {
        match (self.boot, self.linux) {
            (Boot::Drive { changes, .. }, _) => Some(changes),
            (Boot::Kernel { .. }, Some(linux)) => linux.changes,
            (Boot::Kernel { .. }, None) => None,
        }
    }

    pub(crate) fn arguments(&self) -> Vec<OsString> {
        // No default devices and no settings of the user.
        let plain = ["-nodefaults", "-no-user-config", "-display", "none"];
        // A guest that resets itself, or faults for the third time, ends instead of starting anew.
        let plain = plain.iter().chain(&["-no-reboot"]);
        let mut words = Words(plain.map(OsString::from).collect());
        if self.control == Control::Dialogue {
            words.0.push("-S".into());
        }
        if self.control != Control::None {
            words.add("-chardev", "socket,id=qmp,fd=0");
            words.add("-mon", "chardev=qmp,mode=control");
        }
        let has_port = self.linux.is_some_and(|linux| linux.port.is_some());
        // Where a machine lacks /dev/stdout, QEMU as root would make a file of that name.
        let console = match has_port {
            false => "file,id=console,path=/proc/self/fd/1",
            true => "file,id=console,path=/proc/self/fd/2",
        };
        words.add("-chardev", console);
        words.add("-serial", "chardev:console");
        if self.linux.is_none() {
            // The image's way to end, with a status: twice the number that it writes, plus one.
            words.add("-device", "isa-debug-exit,iobase=0xf4,iosize=0x04");
        }
        let (machine, accelerator) = (self.machine.word(), self.accelerator.word());
        let (machine, card) = match (self.network, self.machine) {
            // Without ACPI the guest is told by its command line where its card is.
            (Some(_), Machine::Microvm) => ("microvm,acpi=off", "virtio-net-device"),
            _ => (machine, "virtio-net-pci,romfile="),
        };
        words.add("-machine", format!("{machine},accel={accelerator}"));
        if let Some(network) = self.network {
            // The threads of its CPUs are known by their names.
            words.add("-name", "tare,debug-threads=on");
            words.add("-global", "virtio-mmio.force-legacy=false");
            words.add("-netdev", network.netdev("net"));
            words.add("-device", format!("{card},netdev=net"));
        }
        let processor = match self.accelerator {
            Accelerator::Tcg => "max",
            // A guest that can't be migrated may see that the TSC does not change its rate.
            Accelerator::Kvm => "host,migratable=off",
        };
        words.add("-cpu", processor);
        words.add("-smp", self.cpus.to_string());
        words.add("-m", self.memory.to_string());
        if self.machine == Machine::Microvm {
            // It starts a kernel sooner than SeaBIOS.
            words.add("-bios", "qboot.rom");
        }
        if self.clock == Clock::Instructions {
            words.add("-icount", COUNT_INSTRUCTIONS);
            words.add("-rtc", "base=2020-01-01,clock=vm");
            if self.linux.is_some() {
                // Linux asks for random numbers, and places things by them.
                words.add("-seed", "1");
            }
        }
        // Guests of which many are started measure nothing in their memory.
        let locking = self.locking.word();
        if let Some(word) = locking.filter(|_| self.control == Control::Dialogue) {
            words.add("-overcommit", format!("mem-lock={word}"));
        }
        if let Some(port) = self.gdb_port {
            words.add("-gdb", format!("tcp:127.0.0.1:{port}"));
        }
        self.boot.describe(&mut words);
        if let Some(linux) = &self.linux {
            linux.describe(&mut words);
        }
        words.0
    }
}

/// The words of a command line.
struct Words(Vec<OsString>);

impl Words {
    fn add(&mut self, option: &str, value: impl Into<OsString>) {
        self.0.extend([option.into(), value.into()]);
    }

    /// Adds a disk, in whose path a comma would end the option.
    fn add_drive(&mut self, options: &str, path: &Path, device: &str) {
        let mut drive = format!("if=none,{options},file=").into_bytes();
        for byte in path.as_os_str().as_bytes() {
            drive.extend_from_slice(if *byte == b',' {
                b",,"
            } else {
                std::slice::from_ref(byte)
            });
        }
        self.add("-drive", OsString::from_vec(drive));
        self.add("-device", device);
    }
}

impl Boot<'_> {
    fn describe(&self, words: &mut Words) {
        match *self {
            Self::Kernel { path, command_line } => {
                words.add("-kernel", path);
                words.add("-append", command_line);
            }
            Self::Drive {
                path,
                format,
                device,
                changes: _,
            } => words.add_drive(
                &format!("id=boot,format={format},snapshot=on"),
                path,
                &format!("{device},drive=boot,bootindex=0"),
            ),
        }
    }
}

impl Linux<'_> {
    fn describe(&self, words: &mut Words) {
        if let Some(initrd) = self.initrd {
            words.add("-initrd", initrd);
        }
        if let Some(name) = self.port {
            words.add("-chardev", "socket,id=records,fd=1");
            // The vCPU thread handles writes of the guest at once. An I/O thread would do it later,
            // which the guest can see: no run could be repeated exactly.
            words.add("-device", "virtio-serial-pci,ioeventfd=off");
            let port = format!("virtserialport,chardev=records,name={name}");
            words.add("-device", port);
        }
        for (number, disk) in self.disks.iter().enumerate() {
            let snapshot = if disk.is_kept_as_it_is { "on" } else { "off" };
            let serial = disk.serial;
            words.add_drive(
                &format!("id=disk{number},format=raw,snapshot={snapshot},cache=unsafe"),
                &disk.path,
                &format!("virtio-blk-pci,drive=disk{number},serial={serial}"),
            );
        }
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

/// Ends a QEMU that did not start a guest, and says how it went.
fn end(child: &mut OwnedChild) -> Result<String, TargetError> {
    // One that has just closed the socket may still be ending, with a status that tells more.
    let output = programs::finish(child, ANSWER_LIMIT)?;
    Ok(match (output.status, &*output.stderr) {
        (Some(status), said) => describe_exit(status, said),
        (None, "") => "it said nothing and was ended".to_owned(),
        (None, said) => format!("it was ended; it said: {said}"),
    })
}

fn broken(why: impl Display) -> TargetError {
    TargetError::Failed(format!("QEMU {why}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;
    use crate::Instance;

    fn line(guest: &Guest<'_>) -> String {
        let words: Vec<String> = guest
            .arguments()
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        words.join(" ").replace(" -", "\n-")
    }

    fn guest() -> Guest<'static> {
        let boot = Boot::Kernel {
            path: Path::new("/images/bench"),
            command_line: "service=bench irq=off",
        };
        Guest::new(Machine::Microvm, Accelerator::Tcg, Size::mib(64), boot)
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
                port: Some("tare"),
                disks: &disks,
                changes: None,
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
                "QEMU did not start a guest (unexpected answer to the call: hello): \
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
            let launch = qemu.launch("guest", &guest(), &[]).unwrap();
            let error = Instance::start(launch, &guard).unwrap_err();
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

//! The agent as the first process of a Linux guest.
//!
//! The guest is nothing but a kernel and an initramfs in which this program is `/init`. It mounts
//! the file systems that every Linux program expects, loads the given modules, opens the port, and
//! executes the plan in a separate process, so that init's changes to its own address space do not
//! affect the measurement. While the plan runs, init sleeps in `wait`, and another thread in `read`
//! on the port: by a byte the host requests an early end, which the measured process receives as
//! SIGTERM.
//!
//! Its last line reports how the plan's process ended ([`Message`]), and the host then ends the
//! guest from outside. That loses nothing and costs least: once the host has read that line, it has
//! read all earlier ones. An exit status by a port (`isa-debug-exit`) would overtake data in a
//! queue, since Linux does not wait for its virtio ports to be read; powering off, which calls
//! every driver, loses it as well, and takes longer.
//!
//! With a whole distribution on a disk, it only loads modules and switches to that root ([`root`]);
//! a unit of the distribution then starts this program again, to do the rest ([`run_in_system`]).
//!
//! * [`file_systems`], [`modules`], [`port`], [`disk`]: preparation;
//! * [`direct`]: the shortest way to a plan that only starts;
//! * [`idle`]: waiting until the kernel has booted;
//! * [`order`]: the order on the kernel command line;
//! * [`load`]: a load in the same guest;
//! * [`children`]: waiting for processes;
//! * `error`: possible failures.

mod children;
mod direct;
mod disk;
mod error;
mod file_systems;
mod idle;
mod load;
mod modules;
mod order;
mod port;
mod root;

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus, kill_process};
use rustix::system::{RebootCommand, reboot};
use tare_load_driver::device;
use tare_measured::platform::StartTimes;
use tare_wire::guest::{BEGIN_FD, COMPUTES, IN_SYSTEM, Message, SERVICES};

use self::error::InitError;
use self::load::Load;
use self::order::Order;

/// The variable with the measured process's environment.
pub const ENVIRONMENT: &str = "TARE_ENVIRONMENT";

/// The variable with how long it took until the guest was idle, in ms.
pub const WAITED_MS: &str = "TARE_WAITED_MS";

/// The variable that is set if a load runs in the guest.
pub const HAS_LOAD: &str = "TARE_HAS_LOAD";

/// This program's path in the guest, and the name by which it is called.
const PROGRAM: &str = "/init";

/// This program, wherever it is.
const OURSELVES: &str = "/proc/self/exe";

/// The name of the card of a guest that serves, and how long it may take to appear.
const CARD: &str = "eth0";
const CARD_LIMIT: Duration = Duration::from_secs(10);

/// How long to wait for the host to end the guest. A guest that was booted manually powers off
/// then.
const GRACE: Duration = Duration::from_secs(10);

/// The additional wait of a guest with a port. Records that the laboratory has not yet read would
/// be lost with the guest, and an overloaded machine may be late.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns whether this process is the first one of a guest. In a container it may have the same
/// process ID, but not that name.
pub fn is_asked_for() -> bool {
    std::process::id() == 1
        && std::env::args_os()
            .next()
            .is_some_and(|name| name == PROGRAM)
}

/// Returns whether a distribution's init has started this program to execute the plan of the kernel
/// command line.
pub fn is_asked_for_in_system(words: &[String]) -> bool {
    words == [IN_SYSTEM]
}

/// Runs as the first process of a guest.
pub fn run(began: StartTimes) -> ! {
    if let Some(order) = direct::order() {
        direct::run(&order, "initramfs", began);
    }
    let mut out = Out { port: None };
    let said = guest(&mut out);
    end(said, &mut out)
}

/// Does the rest in a distribution that has booted.
pub fn run_in_system(began: StartTimes) -> ! {
    if let Some(order) = Order::read().ok().filter(|order| order.direct) {
        direct::run(&order, "debian", began);
    }
    let mut out = Out { port: port::open() };
    let said = disk::mount_scratch_if_any()
        .and_then(|()| Order::read())
        .and_then(|order| obey(&order, "debian", &mut out));
    end(said, &mut out)
}

/// Reports the outcome, and waits for the end of the guest.
fn end(said: Result<u8, InitError>, out: &mut Out) -> ! {
    let line = match &said {
        Ok(status) => Message::Ended(*status).to_string(),
        Err(error) => Message::Failed(&error.to_string()).to_string(),
    };
    out.say(&line);
    thread::sleep(GRACE);
    if out.port.is_some() {
        stay_awake(PATIENCE);
    }
    loop {
        // The kernel panics if its first process ends.
        let _ = reboot(RebootCommand::PowerOff);
        thread::sleep(GRACE);
    }
}

/// Waits without sleeping: where QEMU counts instructions instead of time, an hour of sleep takes
/// the host no time at all.
fn stay_awake(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        thread::yield_now();
    }
}

/// Prepares everything and executes the plan. Returns the status of its process.
fn guest(out: &mut Out) -> Result<u8, InitError> {
    file_systems::first()?;
    modules::load()?;
    let order = Order::read()?;
    if order.root {
        return Err(root::go_on());
    }
    out.port = port::open();
    file_systems::rest();
    disk::mount_scratch(order.ram.as_deref())?;
    obey(&order, "initramfs", out)
}

/// Executes the plan once the guest is idle, with the load if there is one.
fn obey(order: &Order, environment: &str, out: &mut Out) -> Result<u8, InitError> {
    let waited = idle::wait(order.idle_limit)?;
    let mut load = match &order.load {
        Some(spec) => {
            // A load that needs it reports the failure.
            let _ = device::raise(device::LOOPBACK, None);
            Some(Load::start(spec, order.cpu(), out)?)
        }
        None => None,
    };
    let begin = match load.as_mut().map_or(Ok(None), Load::take_begin) {
        Ok(begin) => begin,
        Err(source) => return Err(InitError::Output(source)),
    };
    let ended = match &order.address {
        Some(address) => serve(order, address, out),
        None => {
            let mut agent = without_environment(OURSELVES);
            agent
                .args(&order.plan)
                .env(ENVIRONMENT, environment)
                .env(WAITED_MS, waited.as_millis().to_string())
                .envs(load.as_ref().map(|_| (HAS_LOAD, "")));
            execute(&mut agent, begin, out)
        }
    };
    // Also after a failure: the records of the load help to explain it.
    let stopped = load.map_or(Ok(()), |load| load.stop(out));
    let status = ended?;
    stopped?;
    status_of(status)
}

/// Gives the card its address, and runs the service of the plan.
fn serve(order: &Order, address: &str, out: &Out) -> Result<WaitStatus, InitError> {
    let raised = appears(CARD_LIMIT, || match device::raise(CARD, Some(address)) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => None,
        raised => Some(raised),
    });
    raised
        .unwrap_or(Err(io::ErrorKind::NotFound.into()))
        .map_err(InitError::Card)?;
    let service = order.word("workload=").unwrap_or_default();
    let words = order.plan.iter().filter(|word| word.starts_with(COMPUTES));
    let mut command = without_environment(SERVICES);
    execute(command.arg(service).args(words), None, out)
}

/// Prepares a program without the variables of init, which are unknown kernel parameters.
fn without_environment(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

/// Executes the plan in a separate process, and waits for it. The process writes its beginning to
/// `begin`.
fn execute(
    command: &mut Command,
    begin: Option<PipeWriter>,
    out: &Out,
) -> Result<WaitStatus, InitError> {
    let named = begin
        .as_ref()
        .map(|pipe| (BEGIN_FD, pipe.as_raw_fd().to_string()));
    let child = command
        .envs(named)
        .stdin(Stdio::null())
        .stdout(out.to_child().map_err(InitError::Output)?)
        .spawn()
        .map_err(|source| InitError::NotStarted {
            what: "the measured process",
            source,
        })?;
    // Otherwise the load would not notice if that process ends without writing to it.
    drop(begin);
    let measured = children::pid(&child);
    let runs = Arc::new(Mutex::new(true));
    if let Some(port) = out.port.as_ref().and_then(|port| port.try_clone().ok()) {
        let runs = Arc::clone(&runs);
        thread::spawn(move || pass_on_requests(port, measured, &runs));
    }
    let ended = children::wait_for(measured).map_err(InitError::Wait);
    *lock(&runs) = false;
    ended
}

/// Sleeps until the host writes to the port, which requests that the measured process end and
/// report.
fn pass_on_requests(mut port: File, measured: Pid, runs: &Mutex<bool>) {
    let mut byte = [0];
    while port.read_exact(&mut byte).is_ok() {
        let runs = lock(runs);
        // After it was reaped, its number may belong to another process.
        if *runs {
            let _ = kill_process(measured, Signal::TERM);
        }
    }
}

fn lock(runs: &Mutex<bool>) -> MutexGuard<'_, bool> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status_of(ended: WaitStatus) -> Result<u8, InitError> {
    match (ended.exit_status(), ended.terminating_signal()) {
        (Some(status), _) => Ok(u8::try_from(status).unwrap_or(u8::MAX)),
        (None, Some(libc::SIGKILL)) => Err(InitError::Killed),
        (None, signal) => Err(InitError::Ended(signal.unwrap_or_default())),
    }
}

/// The output of the guest: its port, or its console if it has none.
struct Out {
    port: Option<File>,
}

impl Out {
    /// Writes a line and a newline.
    fn say(&mut self, line: &str) {
        self.pass_on(format!("{line}\n").as_bytes());
    }

    /// Writes bytes. A failure can't be reported.
    fn pass_on(&mut self, bytes: &[u8]) {
        let _ = match &mut self.port {
            Some(port) => port.write_all(bytes),
            None => io::stderr().write_all(bytes),
        };
    }

    /// Returns a copy for a child to write to.
    fn to_child(&self) -> io::Result<Stdio> {
        let fd = match &self.port {
            Some(port) => port.as_fd().try_clone_to_owned(),
            None => io::stderr().as_fd().try_clone_to_owned(),
        };
        Ok(Stdio::from(fd?))
    }
}

/// Waits for something that the kernel does asynchronously, such as adding a device.
fn appears<T>(limit: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

//! The agent as the first process of a Linux guest.
//!
//! The guest is nothing but a kernel and an initramfs in which this program is `/init`. It makes the
//! file systems visible that every Linux program expects, loads the modules that it was given,
//! opens the way out, and executes the plan in a process of its own: what init has done to its
//! address space must not be in the measured one. Meanwhile it sleeps in `wait`, and beside that in `read` on its
//! port: by a byte the host asks for an early end, which the measured process gets as SIGTERM.
//!
//! Its last line says how the plan's process ended ([`Message`]), and the host then ends the guest from
//! outside. That loses nothing and costs least: once the host has read that line, it has read all
//! that was written before. A status by a port (`isa-debug-exit`) would come before what a queue
//! still holds, since Linux does not wait for its virtio ports to be read; and the kernel's way of
//! powering off, which asks every driver, loses it as well, and takes longer.
//!
//! With a whole distribution on a disk, it only loads modules and goes on into that ([`root`]); a unit
//! of the distribution then starts this program again, to do the rest ([`run_in_system`]).
//!
//! * [`file_systems`], [`modules`], [`port`], [`disk`]: what is made ready;
//! * [`direct`]: the shortest way to a plan that only starts;
//! * [`order`]: what the kernel command line asks for;
//! * [`load`]: a load beside the plan;
//! * [`children`]: waiting for them;
//! * `error`: what can go wrong.

mod children;
mod direct;
mod disk;
mod error;
mod file_systems;
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
use tare_load_driver::loopback;
use tare_measured::platform::Began;
use tare_wire::guest::{BEGIN_FD, IN_SYSTEM, Message};

use self::error::InitError;
use self::load::Load;
use self::order::Order;

/// The variable that tells the measured process what it runs in.
pub const ENVIRONMENT: &str = "TARE_ENVIRONMENT";

/// This program's path in the guest, by which it is also called.
const PROGRAM: &str = "/init";

/// This program, wherever it lies.
const OURSELVES: &str = "/proc/self/exe";

/// How long the host is given to end the guest. One that was booted by hand powers off then.
const GRACE: Duration = Duration::from_secs(10);

/// How long a guest with a port waits besides. What the laboratory has not read yet would be lost with the guest, and
/// on a machine with too much to do it may come to that late.
const PATIENCE: Duration = Duration::from_secs(600);

/// Tells whether this process is the first one of a guest. In a container it may have the first
/// number as well, but not that name.
pub fn is_asked_for() -> bool {
    std::process::id() == 1
        && std::env::args_os()
            .next()
            .is_some_and(|name| name == PROGRAM)
}

/// Tells whether a distribution's init has started this program to execute the plan of the kernel
/// command line.
pub fn is_asked_for_in_system(words: &[String]) -> bool {
    words == [IN_SYSTEM]
}

/// Does what the first process of a guest has to do.
pub fn run(began: Began) -> ! {
    if let Some(order) = direct::order() {
        direct::run(&order, "initramfs", began);
    }
    let mut out = Out { port: None };
    let said = guest(&mut out);
    end(said, &mut out)
}

/// Does the rest in a system that has booted by itself.
pub fn run_in_system(began: Began) -> ! {
    if let Some(order) = Order::read().ok().filter(|order| order.direct) {
        direct::run(&order, "debian", began);
    }
    let mut out = Out { port: port::open() };
    let said = disk::mount_scratch_if_any()
        .and_then(|()| Order::read())
        .and_then(|order| obey(&order, "debian", &mut out));
    end(said, &mut out)
}

/// Message what came of it, and waits to be ended.
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

/// Lets time pass without sleeping: where QEMU counts instructions instead of time, an hour of sleep takes the host no
/// time at all.
fn stay_awake(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        thread::yield_now();
    }
}

/// Makes everything ready and executes the plan. Returns the status of its process.
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

/// Executes the plan, beside the load if there is one.
fn obey(order: &Order, environment: &str, out: &mut Out) -> Result<u8, InitError> {
    let mut load = match &order.load {
        Some(spec) => {
            // A load that needs it and does not find it says so.
            let _ = loopback::raise();
            Some(Load::start(spec, order.cpu(), out)?)
        }
        None => None,
    };
    let begin = match load.as_mut().map_or(Ok(None), Load::take_begin) {
        Ok(begin) => begin,
        Err(source) => return Err(InitError::Output(source)),
    };
    let ended = execute(&order.plan, environment, begin, out);
    // Also after a failure: what the load did tells more.
    let stopped = load.map_or(Ok(()), |load| load.stop(out));
    let status = ended?;
    stopped?;
    status_of(status)
}

/// Executes the plan in a process of its own, and waits for it. By `begin` the process tells when it begins.
fn execute(
    plan: &[String],
    environment: &str,
    begin: Option<PipeWriter>,
    out: &Out,
) -> Result<WaitStatus, InitError> {
    let named = begin
        .as_ref()
        .map(|pipe| (BEGIN_FD, pipe.as_raw_fd().to_string()));
    let child = Command::new(OURSELVES)
        .args(plan)
        .env_clear()
        .env(ENVIRONMENT, environment)
        .envs(named)
        .stdin(Stdio::null())
        .stdout(out.to_child().map_err(InitError::Output)?)
        .spawn()
        .map_err(|source| InitError::NotStarted {
            what: "the measured process",
            source,
        })?;
    // Else the load would not see it if that process ends without a word.
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

/// Sleeps until the host writes to the port, which asks the measured process to end and to report.
fn pass_on_requests(mut port: File, measured: Pid, runs: &Mutex<bool>) {
    let mut byte = [0];
    while port.read_exact(&mut byte).is_ok() {
        let runs = lock(runs);
        // Its number may be another's once it was waited for.
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

/// The way out of the guest: its port, or its console if it has none.
struct Out {
    port: Option<File>,
}

impl Out {
    /// Writes a line and a newline.
    fn say(&mut self, line: &str) {
        self.pass_on(format!("{line}\n").as_bytes());
    }

    /// Writes bytes. Nobody can be told if that fails.
    fn pass_on(&mut self, bytes: &[u8]) {
        let _ = match &mut self.port {
            Some(port) => port.write_all(bytes),
            None => io::stderr().write_all(bytes),
        };
    }

    /// Returns the same for a child to write to.
    fn to_child(&self) -> io::Result<Stdio> {
        let fd = match &self.port {
            Some(port) => port.as_fd().try_clone_to_owned(),
            None => io::stderr().as_fd().try_clone_to_owned(),
        };
        Ok(Stdio::from(fd?))
    }
}

/// Waits for something that the kernel brings about by itself, such as a device that appears.
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

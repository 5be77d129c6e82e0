//! Boots images in QEMU, under emulation, each with a time limit.

#![allow(dead_code, reason = "each test program uses its part")]

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use object::{Object, ObjectSection, ObjectSymbol};

const QEMU: &str = "qemu-system-x86_64";

/// The machine types on which an image must run.
pub const MACHINES: [&str; 3] = ["microvm", "q35", "pc"];

/// QEMU's exit status for success.
pub const DONE: Option<i32> = Some(33);
/// QEMU's exit status for failure.
pub const FAILED: Option<i32> = Some(35);
/// QEMU's exit status for an invalid command line.
pub const MISUSED: Option<i32> = Some(37);
/// QEMU's exit status after a panic or fault.
pub const CRASHED: Option<i32> = Some(39);

/// A guest to boot.
#[derive(Clone)]
pub struct Guest {
    pub image: &'static str,
    pub machine: &'static str,
    pub words: String,
    pub memory_mib: u32,
    pub cpus: u32,
    pub cpu: &'static str,
    /// The time per instruction as a shift, 2^shift ns, if the guest's time counts instructions.
    pub shift: Option<u32>,
    /// Whether the machine has the device for an image's exit status.
    pub debug_exit: bool,
    /// Further arguments for QEMU.
    pub arguments: Vec<String>,
    pub limit: Duration,
}

/// The result of a guest.
pub struct Ended {
    pub text: String,
    /// QEMU's exit status; None after the time limit.
    pub status: Option<i32>,
}

impl Guest {
    /// Returns a guest with a small machine.
    pub fn new(image: &'static str, words: &str) -> Self {
        Self {
            image,
            machine: "microvm",
            words: words.to_owned(),
            memory_mib: 64,
            cpus: 1,
            cpu: "max",
            shift: None,
            debug_exit: true,
            arguments: Vec::new(),
            limit: Duration::from_secs(240),
        }
    }

    /// Boots it and waits for its end. None, with a message, if there is no QEMU.
    pub fn boot(&self) -> Option<Ended> {
        Some(self.start()?.end(self.limit))
    }

    /// Boots it. None, with a message, if there is no QEMU.
    pub fn start(&self) -> Option<Running> {
        let mut command = Command::new(QEMU);
        command
            .args(["-machine", &format!("{},accel=tcg", self.machine)])
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-no-reboot", "-serial", "stdio"])
            .args(["-m", &self.memory_mib.to_string()])
            .args(["-smp", &self.cpus.to_string()])
            .args(["-cpu", self.cpu])
            .args(["-kernel", self.image, "-append", &self.words])
            .args(&self.arguments);
        if self.machine.starts_with("microvm") {
            command.args(["-bios", "qboot.rom"]);
        }
        if self.debug_exit {
            command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        }
        if let Some(shift) = self.shift {
            // Recording keeps QEMU's main loop from advancing time while the vCPU still executes.
            let count = format!("shift={shift},sleep=off,rr=record,rrfile=/dev/null");
            command.args(["-icount", &count]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        match command.spawn() {
            Ok(child) => Some(Running(child)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                tare_testkit::skip("unikernel", &format!("there is no {QEMU}"));
                None
            }
            Err(error) => panic!("{QEMU} does not start: {error}"),
        }
    }
}

/// A running QEMU, killed if a test ends early.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Returns QEMU's process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns the guest's console output.
    pub fn console(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }

    fn end(mut self, limit: Duration) -> Ended {
        let mut output = self.0.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut bytes = Vec::new();
            output.read_to_end(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let status = self.wait(limit);
        drop(self);
        Ended {
            text: reader.join().unwrap(),
            status: status.and_then(|status| status.code()),
        }
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }
}

/// Returns the names of the functions in the image at the addresses of a report, innermost first.
pub fn backtrace(image: &str, text: &str) -> Vec<String> {
    let bytes = fs::read(image).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let address = |digits| u64::from_str_radix(digits, 16).unwrap();
    let places = text.lines().filter_map(|line| {
        let line = line.trim();
        let fault = line.strip_prefix("unikernel: at 0x").map(address);
        // After the call, which may be the last instruction of its function.
        let call = || {
            line.strip_prefix("unikernel: backtrace 0x")
                .map(|d| address(d) - 1)
        };
        fault.or_else(call)
    });
    let name = |place| {
        let at = |symbol: &object::Symbol<'_, '_>| {
            (symbol.address()..symbol.address() + symbol.size()).contains(&place)
        };
        let found = file.symbols().find(at);
        found.map_or_else(|| "?".to_owned(), |s| s.name().unwrap().to_owned())
    };
    places.map(name).collect()
}

/// Returns the bytes of a function in a linked program.
pub fn symbol(program: &Path, name: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section
        .data_range(symbol.address(), symbol.size())
        .ok()??
        .to_vec();
    (!bytes.is_empty()).then_some(bytes)
}

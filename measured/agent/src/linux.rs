//! Linux as the platform of the measured code.

use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MlockAllFlags, ProtFlags};
use rustix::thread::sched_setaffinity;
use rustix::time::ClockId;
use tare_load_driver::cpus::mask;
use tare_measured::linux::Fact;
use tare_measured::linux::clock::read_ns;
use tare_measured::linux::pinned::Pinned;
use tare_measured::moved::Moved;
use tare_measured::platform::{
    Memory, MemoryError, Platform, Prepared, ResourceUsage, StartTimes, WriteError,
};
use tare_measured::wakeup::linux::ThreadsError;
use tare_wire::cpus::Cpus;
use tare_wire::guest::{OTHER_TASK, WATCHED};
use tare_wire::record::{CPU_TIME, TIME};
use tare_workloads::timing::bare_rdtsc;

use crate::facts::{clock_source, facts};
use crate::init;
use crate::tasks::Tasks;

/// The environment of a process on a machine, not in a guest of the laboratory.
const HOST: &str = "linux";

/// The Linux process that runs the measured code.
#[derive(Debug)]
pub struct Linux {
    out: BufWriter<Stdout>,
    began: StartTimes,
    /// The clock source, looked up on demand.
    clock_source: OnceCell<String>,
    environment: &'static str,
    /// The facts, collected on demand, after the batch.
    facts: Vec<Fact>,
    /// The tasks of a guest before the measurement, and when it was.
    tasks: Option<(u64, Tasks)>,
    /// The file that disables deep C-states as long as it is open.
    _latency: Option<File>,
    /// The pinned thread, if any.
    pinned: Option<Pinned>,
}

impl Linux {
    /// Changes nothing yet. `began` is the start of `main`.
    pub(crate) fn new(began: StartTimes) -> Self {
        Self::within(environment(), began)
    }

    /// Like [`Linux::new`], for a known environment.
    pub(crate) fn within(environment: &'static str, began: StartTimes) -> Self {
        Self {
            out: BufWriter::new(io::stdout()),
            began,
            clock_source: OnceCell::new(),
            environment,
            facts: Vec::new(),
            tasks: None,
            _latency: None,
            pinned: None,
        }
    }
}

impl Platform for Linux {
    type Error = ThreadsError;

    fn version(&self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    fn environment(&self) -> &'static str {
        self.environment
    }

    fn prepare(&mut self, cpu: Option<u32>) -> Result<Prepared, &'static str> {
        if let Some(cpu) = cpu {
            pin(cpu)?;
            self.pinned = Some(Pinned::to(cpu));
        }
        let (latency, notice) = match hold_latency() {
            Ok(file) => (Some(file), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(_) => (
                None,
                Some(
                    "deep C-states are not kept off: /dev/cpu_dma_latency can't be opened; \
                     run as root",
                ),
            ),
        };
        self._latency = latency;
        if self.environment != HOST {
            self.tasks = Some((read_ns(ClockId::Monotonic), guest_tasks()));
        }
        Ok(Prepared {
            latency_held: self._latency.is_some(),
            notice,
        })
    }

    fn memory(&mut self, bytes: usize) -> Result<Memory, MemoryError> {
        let refused = |reason| MemoryError {
            wanted_bytes: bytes,
            reason,
        };
        // With MAP_POPULATE the kernel would start the OOM killer rather than refuse.
        if available_bytes().is_some_and(|available| bytes as u64 > available) {
            return Err(refused("not enough is available"));
        }
        // Code, stack and future mappings: a page of the agent that is read in again during the
        // batch would show in its samples.
        let all_locked = rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
        let mut locked = all_locked.is_ok();
        let mut mapped = map(bytes);
        if locked && mapped.is_err() {
            // RLIMIT_MEMLOCK is too low for the buffers: better unlocked than not at all.
            let _ = rustix::mm::munlockall();
            locked = false;
            mapped = map(bytes);
        }
        let start = mapped.map_err(|_| refused("the kernel does not give them"))?;
        // SAFETY: the mapping is of `bytes` bytes, readable, writable, zeroed, private, and never
        // unmapped.
        let bytes = unsafe { core::slice::from_raw_parts_mut(start, bytes) };
        Ok(Memory { bytes, locked })
    }

    fn room(&mut self, bytes: usize) -> Result<&'static mut [u8], MemoryError> {
        Ok(vec![0; bytes].leak())
    }

    fn began(&self) -> StartTimes {
        self.began
    }

    fn spent(&self) -> ResourceUsage {
        ResourceUsage {
            cpu_ns: Some(read_ns(ClockId::ProcessCPUTime)),
            peak_bytes: peak_bytes(),
        }
    }

    fn monotonic_ns(&self) -> Option<u64> {
        Some(read_ns(ClockId::Monotonic))
    }

    fn reference_ns(&self) -> Option<u64> {
        Some(read_ns(ClockId::MonotonicRaw))
    }

    fn reference_detail(&self) -> &str {
        self.clock_source.get_or_init(|| {
            let name = clock_source();
            format!("clocksource={}", name.as_deref().unwrap_or("unknown"))
        })
    }

    fn steering_ppm(&self) -> Option<f64> {
        // SAFETY: zeroed is a valid `timex`, whose `modes` then changes nothing.
        let mut time: libc::timex = unsafe { core::mem::zeroed() };
        // SAFETY: a live value.
        let state = unsafe { libc::adjtimex(&raw mut time) };
        let synchronised =
            state >= 0 && state != libc::TIME_ERROR && time.status & libc::STA_UNSYNC == 0;
        // `freq` is in ppm with a 16-bit fraction; `tick` is the length of 1/100 s in µs, so that
        // one above its nominal 10,000 is 100 ppm more (adjtimex(2)).
        let fine_ppm = time.freq as f64 / 65_536.0;
        let coarse_ppm = (time.tick - 10_000) as f64 * 100.0;
        synchronised.then_some(fine_ppm + coarse_ppm)
    }

    fn fact(&mut self, number: usize) -> Option<(&'static str, &str)> {
        if self.facts.is_empty() {
            self.facts = facts();
            if let Some((from_ns, before)) = self.tasks.take() {
                let watched_ns = read_ns(ClockId::Monotonic).saturating_sub(from_ns);
                self.facts.extend(other_work(watched_ns, &before));
            }
        }
        let (name, value) = self.facts.get(number)?;
        Some((name, value))
    }

    fn counters(&self) -> [Option<(&'static str, u64)>; 4] {
        // SAFETY: zeroed is a valid `rusage`.
        let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
        // SAFETY: a live value.
        let told = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) } == 0;
        let counted = |name, count: i64| told.then_some((name, count.cast_unsigned()));
        [
            counted("involuntary context switches", usage.ru_nivcsw),
            counted("voluntary context switches", usage.ru_nvcsw),
            // The times of `rusage` are as old as the last tick.
            told.then(|| (CPU_TIME, read_ns(ClockId::ThreadCPUTime))),
            told.then(|| (TIME, read_ns(ClockId::Monotonic))),
        ]
    }

    fn stayed(&self) -> Result<(), Moved> {
        self.pinned.as_ref().map_or(Ok(()), Pinned::stayed)
    }

    fn pause(&self, ns: u64) {
        thread::sleep(Duration::from_nanos(ns));
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.out.write_all(bytes).map_err(|_| WriteError)
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.out.flush().map_err(|_| WriteError)
    }
}

/// Reads the clocks at the start of `main`.
pub(crate) fn now() -> StartTimes {
    StartTimes {
        entry_tsc: None,
        main_tsc: Some(bare_rdtsc()),
        main_ns: Some(read_ns(ClockId::Monotonic)),
    }
}

/// Returns the peak resident memory of this process. getrusage would include that of the process
/// before exec.
fn peak_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Returns the kind of environment, which a guest's init passes to its children.
fn environment() -> &'static str {
    match std::env::var(init::ENVIRONMENT).as_deref() {
        Ok("initramfs") => "initramfs",
        Ok("debian") => "debian",
        _ => HOST,
    }
}

/// Reads the tasks of a guest whose CPU time may be reported as other work: with a load, the
/// laboratory uses the kernel's threads only.
fn guest_tasks() -> Tasks {
    match std::env::var_os(init::HAS_LOAD) {
        Some(_) => Tasks::read_kernel(),
        None => Tasks::read(),
    }
}

/// Lists what else ran in a guest since an earlier reading, for the laboratory: how long was
/// watched in ns, and `CPU PID KERNEL NS NAME` of the tasks with the most CPU time.
fn other_work(watched_ns: u64, before: &Tasks) -> impl Iterator<Item = Fact> {
    /// How many tasks are listed.
    const MOST: usize = 20;
    let tasks = guest_tasks().since(before).into_iter().take(MOST);
    let tasks = tasks.map(|task| {
        let (cpu, pid, kernel) = (task.cpu, task.pid, u8::from(task.is_kernel));
        (
            OTHER_TASK,
            format!("{cpu} {pid} {kernel} {} {}", task.ns, task.name),
        )
    });
    [(WATCHED, watched_ns.to_string())].into_iter().chain(tasks)
}

/// Pins this thread, the only one, to `cpu`.
fn pin(cpu: u32) -> Result<(), &'static str> {
    let mask = Cpus::checked([cpu])
        .ok_or(Errno::INVAL)
        .and_then(|set| mask(&set));
    let pinned = mask.and_then(|mask| sched_setaffinity(None, &mask));
    pinned.map_err(|error| match error {
        Errno::INVAL => {
            "the CPU asked for is offline or outside of this process's cpuset: choose one of \
             Cpus_allowed_list in /proc/self/status"
        }
        _ => "the kernel refuses to pin the agent to the CPU asked for",
    })
}

/// Requests a wake-up latency of 0 µs, which keeps the CPUs out of deep C-states until the file is
/// closed.
fn hold_latency() -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .open("/dev/cpu_dma_latency")?;
    file.write_all(&0_i32.to_ne_bytes())?;
    Ok(file)
}

/// Maps zeroed memory and faults all of it in.
fn map(bytes: usize) -> Result<*mut u8, Errno> {
    // SAFETY: a new anonymous mapping, at an address of the kernel's choice.
    unsafe {
        rustix::mm::mmap_anonymous(
            core::ptr::null_mut(),
            bytes.max(1),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::POPULATE,
        )
    }
    .map(<*mut core::ffi::c_void>::cast)
}

/// Returns how much memory can be used without swapping or reclaiming from others.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

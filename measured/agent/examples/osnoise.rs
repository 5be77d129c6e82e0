//! The agent with the kernel's tracer osnoise, for `tare-acceptance osnoise`.
//!
//! In a guest, osnoise reports each interruption of the measured CPU, without its own workload
//! (Documentation/trace/osnoise-tracer.rst, OSNOISE_WORKLOAD), while the agent measures there. A
//! thread takes the CPU at times, and is woken from another one. When the agent is done, the lines
//! of osnoise are printed between its records, with times by the TSC.

use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use rustix::thread::{CpuSet, sched_setaffinity};

/// In debugfs, which init has mounted.
const TRACEFS: &str = "/sys/kernel/debug/tracing";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let cpu = words.iter().find_map(|word| word.strip_prefix("cpu="));
    let Some(cpu) = cpu.filter(|_| std::process::id() != 1) else {
        return tare_agent::main(&[]);
    };
    if let Err(error) = begin(cpu) {
        println!("osnoise: {error}");
        return ExitCode::FAILURE;
    }
    let code = tare_agent::main(&[]);
    let lines = write("tracing_on", "0")
        .and_then(|()| fs::read_to_string(format!("{TRACEFS}/per_cpu/cpu{cpu}/trace")));
    match lines {
        Ok(lines) => println!("osnoise: of {}\n{lines}", std::process::id()),
        Err(error) => println!("osnoise: {error}"),
    }
    code
}

/// Starts the tracer and the disturber.
fn begin(cpu: &str) -> io::Result<()> {
    write("buffer_size_kb", "16384")?;
    write("trace_clock", "x86-tsc")?;
    write("osnoise/cpus", cpu)?;
    write("osnoise/options", "NO_OSNOISE_WORKLOAD")?;
    for class in ["nmi", "irq", "softirq", "thread"] {
        write(&format!("events/osnoise/{class}_noise/enable"), "1")?;
    }
    write("current_tracer", "osnoise")?;
    let mut on = CpuSet::new();
    on.set(cpu.parse().map_err(io::Error::other)?);
    thread::spawn(move || disturb(&on));
    thread::spawn(|| {
        // Each makes every other CPU report what it does, by an NMI.
        while fs::write("/proc/sysrq-trigger", "l").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    Ok(())
}

/// Takes a CPU for a moment, again and again, until the process ends.
fn disturb(on: &CpuSet) -> io::Result<()> {
    sched_setaffinity(None, on)?;
    let priority = libc::sched_param { sched_priority: 98 };
    // SAFETY: a live value, for this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) };
    loop {
        thread::sleep(Duration::from_millis(5));
        let ends = Instant::now() + Duration::from_micros(200);
        while Instant::now() < ends {}
    }
}

/// Writes a setting with a NUL behind it, up to which kernels read lists of CPUs.
fn write(path: &str, value: &str) -> io::Result<()> {
    fs::write(format!("{TRACEFS}/{path}"), format!("{value}\0"))
        .map_err(|error| io::Error::other(format!("{path}: {error}")))
}

//! Which CPU which thread of QEMU runs on.
//!
//! The thread that executes the measured code gets the measured CPU. All others, which serve the
//! guest's devices and answer over QMP, are kept off it: they would disturb the guest as nothing of its own does.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Pins `thread` of a process to `cpu`, and takes `cpu` from the process's other threads, as far as
/// they have another one.
///
/// A thread that QEMU starts later inherits from one of those others.
pub(super) fn pin(process: u32, thread: u32, cpu: u32) -> io::Result<()> {
    let index = usize::try_from(cpu)
        .ok()
        .filter(|index| *index < CpuSet::MAX_CPU)
        .ok_or(io::ErrorKind::InvalidInput)?;
    for entry in fs::read_dir(format!("/proc/{process}/task"))? {
        let name = entry?.file_name();
        let Some(other) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if other != thread {
            match keep_off(pid(other)?, index) {
                // It has ended meanwhile.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    let mut only = CpuSet::new();
    only.set(index);
    Ok(sched_setaffinity(Some(pid(thread)?), &only)?)
}

fn keep_off(thread: Pid, cpu: usize) -> Result<(), Errno> {
    let mut cpus = sched_getaffinity(Some(thread))?;
    cpus.unset(cpu);
    if cpus.count() > 0 {
        sched_setaffinity(Some(thread), &cpus)?;
    }
    Ok(())
}

fn pid(number: u32) -> io::Result<Pid> {
    i32::try_from(number)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

//! Which CPU which thread of QEMU runs on.
//!
//! The thread that executes the measured code gets the measured CPU. All others, which serve the
//! guest's devices and answer over QMP, are kept off it, because they would disturb the guest.
//!
//! The guest can't see that its thread was moved to another CPU of the host. So the thread is
//! looked at whenever the guest has said something, before that is passed on: after the measurement
//! at the latest.

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
                // It has ended.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    let mut only = CpuSet::new();
    only.set(index);
    Ok(sched_setaffinity(Some(pid(thread)?), &only)?)
}

/// A thread that executes a guest, on the CPU that it was pinned to.
#[derive(Debug)]
pub(crate) struct PinnedThread {
    process: u32,
    pub(super) thread: u32,
    cpu: u32,
    /// The kernel's count of its migrations since it has come to that CPU, where the kernel counts
    /// them.
    migrations: Option<u64>,
}

impl PinnedThread {
    pub(super) fn new(process: u32, thread: u32, cpu: u32) -> Self {
        Self {
            process,
            thread,
            cpu,
            migrations: None,
        }
    }

    /// Checks that it is still pinned there and has not left the CPU since it came there. One that
    /// has ended has stayed.
    ///
    /// # Errors
    ///
    /// Returns what happened and what to do.
    pub(crate) fn stayed(&mut self) -> Result<(), String> {
        // Until it first runs, it is where it was when it was pinned.
        let has_come = self.migrations.is_some() || self.current() == Some(self.cpu);
        let migrations = self.migrations().filter(|_| has_come);
        let pinned = pid(self.thread).map(|thread| sched_getaffinity(Some(thread)));
        let moved = match pinned {
            Ok(Ok(cpus)) if cpus.count() == 1 && cpus.is_set(self.cpu as usize) => {
                let before = self.migrations.or(migrations);
                self.migrations = before;
                migrations.is_some() && migrations != before
            }
            Ok(Ok(_)) => true,
            Ok(Err(_)) | Err(_) => false,
        };
        match moved {
            false => Ok(()),
            true => Err(format!(
                "the thread of QEMU that executes the guest was moved from CPU {} while it ran: its affinity or its cpuset \
                 was changed (taskset, cpuset), or the CPU was taken offline. Leave both as they are until the run has \
                 ended, and measure again",
                self.cpu
            )),
        }
    }

    fn migrations(&self) -> Option<u64> {
        let text = self.read("sched")?;
        let mut lines = text.lines();
        let line = lines.find(|line| line.starts_with("se.nr_migrations"))?;
        line.rsplit(':').next()?.trim().parse().ok()
    }

    /// Returns the CPU on which it ran last.
    fn current(&self) -> Option<u32> {
        let text = self.read("stat")?;
        let (_, after_name) = text.rsplit_once(')')?;
        after_name.split_ascii_whitespace().nth(36)?.parse().ok()
    }

    fn read(&self, file: &str) -> Option<String> {
        let Self {
            process, thread, ..
        } = self;
        fs::read_to_string(format!("/proc/{process}/task/{thread}/{file}")).ok()
    }
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    fn own_cpus() -> Vec<u32> {
        let set = sched_getaffinity(None).unwrap();
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
        cpus.map(|cpu| cpu as u32).collect()
    }

    #[test]
    fn a_thread_that_was_moved_is_found_out_even_if_it_is_back() {
        let [here, there, ..] = own_cpus()[..] else {
            return tare_testkit::skip("moving a thread", "there is but one CPU");
        };
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let spinning = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_pid() as u32)
                .unwrap();
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                thread::yield_now();
            }
        });
        let thread = told.recv().unwrap();
        let move_to = |cpus: &[u32]| {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            sched_setaffinity(Some(pid(thread).unwrap()), &set).unwrap();
        };
        move_to(&[here]);
        let mut pinned = PinnedThread::new(std::process::id(), thread, here);
        assert_eq!(pinned.stayed(), Ok(()));
        assert_eq!(pinned.stayed(), Ok(()));
        let counts = pinned.migrations.is_some();
        move_to(&[there]);
        let why = pinned.stayed().unwrap_err();
        assert!(why.contains(&format!("moved from CPU {here}")), "{why}");
        move_to(&[here]);
        assert_eq!(pinned.stayed().is_err(), counts);
        move_to(&[here, there]);
        assert!(pinned.stayed().is_err());
        drop(end);
        spinning.join().unwrap();
        assert_eq!(pinned.stayed(), Ok(()));
    }
}

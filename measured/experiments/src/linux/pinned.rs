//! Checks whether a thread has stayed on the CPU that it was pinned to.
//!
//! The kernel moves a pinned thread when its affinity or cpuset changes or its CPU goes offline,
//! and notifies nobody. So the thread checks its CPU when the measurement ends, and compares the
//! kernel's count of its migrations, which also covers a move there and back. A thread that sleeps
//! also checks at each wake-up, and ends at once.
//!
//! The count is in `/proc/thread-self/sched`; kernels built without CONFIG_SCHED_DEBUG before Linux
//! 6.15 or so lack the file. There only both ends are checked, and a fact records that.

use std::fs;

use crate::moved::Moved;
use rustix::thread::sched_getaffinity;

/// A pinned thread.
#[derive(Clone, Copy, Debug)]
pub struct Pinned {
    cpu: u32,
    /// Its number of migrations when it was pinned, where the kernel counts them.
    migrations: Option<u64>,
}

impl Pinned {
    /// Records that the calling thread has just been pinned.
    pub fn to(cpu: u32) -> Self {
        let migrations = migrations();
        Self { cpu, migrations }
    }

    /// Returns whether the calling thread runs on its CPU now. Costs one read of shared memory.
    #[inline]
    pub fn is_there(&self) -> bool {
        current() == self.cpu
    }

    /// Checks that the calling thread has been on its CPU ever since.
    ///
    /// # Errors
    ///
    /// Returns [`Moved`] if it has not, or if that is unknown.
    pub fn stayed(&self) -> Result<(), Moved> {
        let (from, to) = (self.cpu, current());
        if to != from {
            return Err(Moved::Away { from, to });
        }
        match self.migrations.zip(migrations()) {
            Some((before, now)) if now == before => Ok(()),
            Some((before, now)) => Err(Moved::AndBack {
                from,
                migrations: now.wrapping_sub(before),
            }),
            // A new affinity or cpuset usually persists after the thread has come back.
            None => match sched_getaffinity(None) {
                Ok(set) if set.count() == 1 => Ok(()),
                _ => Err(Moved::Unpinned { from }),
            },
        }
    }
}

/// Returns whether the kernel counts migrations of threads.
pub fn is_counted() -> bool {
    migrations().is_some()
}

fn current() -> u32 {
    // SAFETY: no pointers are passed.
    let cpu = unsafe { libc::sched_getcpu() };
    cpu.cast_unsigned()
}

/// Returns how often the kernel has moved the calling thread.
fn migrations() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.nr_migrations"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustix::thread::sched_setaffinity;
    use tare_load_driver::cpus::{current as allowed, mask};
    use tare_wire::cpus::Cpus;

    use super::*;

    /// Changes this thread's affinity, as any other program could.
    fn pin(cpus: Cpus) {
        sched_setaffinity(None, &mask(&cpus).unwrap()).unwrap();
    }

    #[test]
    fn a_thread_that_was_moved_is_found_out_even_if_it_is_back() {
        let all = allowed().unwrap();
        let cpus: Vec<u32> = all.iter().take(2).collect();
        let [here, there] = cpus[..] else {
            return tare_testkit::skip("moving a thread", "there is but one CPU");
        };
        let thread = thread::spawn(move || {
            pin(Cpus::one(here));
            let pinned = Pinned::to(here);
            assert_eq!((pinned.stayed(), pinned.is_there()), (Ok(()), true));

            pin(Cpus::one(there));
            assert!(!pinned.is_there());
            let away = Moved::Away {
                from: here,
                to: there,
            };
            assert_eq!(pinned.stayed(), Err(away));

            pin(Cpus::one(here));
            assert!(pinned.is_there());
            match pinned.stayed() {
                Err(Moved::AndBack { from, migrations }) => {
                    assert_eq!((from, migrations), (here, 2));
                }
                Ok(()) if !is_counted() => {}
                other => panic!("{other:?}"),
            }

            // Without the count, a thread that may have moved is rejected.
            let uncounted = Pinned {
                migrations: None,
                ..pinned
            };
            assert_eq!(uncounted.stayed(), Ok(()));
            pin(all);
            assert!(uncounted.stayed().is_err());
        });
        thread.join().unwrap();
    }
}

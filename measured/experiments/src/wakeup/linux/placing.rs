//! The CPUs of threads.
//!
//! The watching thread is idle during a measurement without events, but it starts the others, and
//! writes their reports. A real-time thread on its only CPU always takes precedence over it.

use std::fs;

use crate::wakeup::Plan;
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use tare_load_driver::cpus::{current, mask};
use tare_wire::cpus::Cpus;
use tare_wire::scheduling::Policy;

use super::error::ThreadsError;

/// The share in percent that real-time threads may use of every CPU of the watching thread. Where
/// there is no other CPU, little suffices: work that it can't do during the measurement is done
/// afterwards.
const MOST_PERCENT: u64 = 75;

/// The CPUs of the watching thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The CPUs.
    pub cpus: Cpus,
    /// Whether threads with precedence are pinned to each of them.
    pub shares: bool,
}

/// Chooses the CPUs of the watching thread: those of the plan, else allowed ones that are not
/// measured, else all allowed ones.
///
/// # Errors
///
/// Returns [`ThreadsError::OnMeasuredCpus`] if the plan restricts it to CPUs of real-time threads
/// although there are others.
pub fn of_main(plan: &Plan, allowed: &Cpus) -> Result<Place, ThreadsError> {
    let measured = measured(plan);
    let free = allowed.without(&measured);
    let is_real_time = plan.policy != Policy::Other;
    let within = |cpus: &Cpus| is_real_time && cpus.iter().all(|cpu| measured.contains(cpu));
    let cpus = match plan.main {
        Some(main) if within(&main) && free.count() > 0 => {
            let (main, free) = (Box::new(main), Box::new(free));
            return Err(ThreadsError::OnMeasuredCpus { main, free });
        }
        Some(main) => main,
        None if free.count() > 0 => free,
        None => *allowed,
    };
    let shares = within(&cpus);
    Ok(Place { cpus, shares })
}

/// Checks that real-time threads leave some time on the watching thread's CPUs, when each sample
/// takes at least `taken_ns(thread)`.
///
/// # Errors
///
/// Returns [`ThreadsError::Starved`] if they use more than three quarters of every one.
pub fn leaves_room(
    plan: &Plan,
    place: &Place,
    taken_ns: impl Fn(u32) -> u64,
) -> Result<(), ThreadsError> {
    if !place.shares {
        return Ok(());
    }
    let percent_of = |cpu| {
        let there = (0..plan.threads).filter(|thread| plan.cpu_of(*thread) == Some(cpu));
        there
            .map(|thread| taken_ns(thread) * 100 / plan.interval_of(thread))
            .sum::<u64>()
    };
    let percent = place.cpus.iter().map(percent_of).min().unwrap_or(0);
    let main = Box::new(place.cpus);
    if percent > MOST_PERCENT {
        return Err(ThreadsError::Starved { main, percent });
    }
    Ok(())
}

/// Returns the CPUs to which threads of the plan are pinned.
fn measured(plan: &Plan) -> Cpus {
    let threads = plan.cpu.map_or(0, |cpus| cpus.count().min(plan.threads));
    (0..threads)
        .filter_map(|thread| plan.cpu_of(thread))
        .collect()
}

/// Returns the CPUs that this thread may run on at present.
///
/// # Errors
///
/// Returns [`ThreadsError::System`] if the system call fails.
pub fn allowed() -> Result<Cpus, ThreadsError> {
    current().map_err(|errno| ThreadsError::System {
        what: "list of this process's CPUs",
        source: errno.into(),
    })
}

/// Pins this thread.
///
/// # Errors
///
/// Returns [`ThreadsError::Pin`] if none of the CPUs is available.
pub fn pin(cpus: Cpus) -> Result<(), ThreadsError> {
    let pinned = mask(&cpus).and_then(|mask| sched_setaffinity(None, &mask));
    pinned.map_err(|errno: Errno| ThreadsError::Pin {
        cpus: Box::new(cpus),
        errno,
    })
}

/// Allows this thread every CPU of its cpuset, regardless of the affinity it inherited.
///
/// # Errors
///
/// Returns [`ThreadsError::System`] if the kernel refuses that.
pub fn unpin() -> Result<(), ThreadsError> {
    let mut set = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    sched_setaffinity(None, &set).map_err(|errno| ThreadsError::System {
        what: "CPUs of a thread",
        source: errno.into(),
    })
}

/// Moves all other threads of this process to CPUs where they get to run. A process ends only when
/// each of its threads has run once more, and one may be waiting for a foreign thread of higher
/// priority.
pub fn move_others(cpus: &Cpus) {
    let own = gettid();
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let tids = tasks.flatten().filter_map(|task| {
        let tid = task.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(tid)
    });
    for tid in tids.filter(|tid| *tid != own) {
        // It may have ended; and a SCHED_DEADLINE thread is never pinned.
        let _ = mask(cpus).and_then(|mask| sched_setaffinity(Some(tid), &mask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(more: &str) -> Plan {
        let words = format!("workload=wakeup interval=100us duration=1s {more}");
        Plan::parse(words.split_whitespace()).unwrap()
    }

    fn cpus(list: &str) -> Cpus {
        Cpus::parse(list).unwrap()
    }

    #[test]
    fn the_watching_thread_goes_where_nobody_measures() {
        for (words, allowed, expected, shares) in [
            ("cpu=1", "0-3", "0,2-3", false),
            ("cpu=1 main=3", "0-3", "3", false),
            ("", "0-3", "0-3", false),
            // Two threads leave the other two CPUs of the list free.
            ("cpu=0-3 threads=2", "0-3", "2-3", false),
            ("cpu=0-1 threads=2", "0-1", "0-1", true),
            ("cpu=0", "0", "0", true),
            ("cpu=0 main=0", "0", "0", true),
            ("cpu=0 main=0 policy=other", "0-1", "0", false),
        ] {
            let place = of_main(&plan(words), &cpus(allowed)).unwrap();
            let expected = Place {
                cpus: cpus(expected),
                shares,
            };
            assert_eq!(place, expected, "{words}");
        }
    }

    #[test]
    fn it_is_not_put_under_a_real_time_thread_without_need() {
        for words in [
            "cpu=1 main=1",
            "cpu=0-1 threads=2 main=0-1",
            "cpu=1 main=1 policy=rr",
        ] {
            let error = of_main(&plan(words), &cpus("0-2")).unwrap_err();
            let ThreadsError::OnMeasuredCpus { free, .. } = error else {
                panic!("{error}");
            };
            assert!(free.contains(2));
        }
    }

    #[test]
    fn a_quarter_of_a_cpu_is_left_to_it() {
        let plan = plan("cpu=0-1 threads=3");
        let place = of_main(&plan, &cpus("0-1")).unwrap();
        let taken = |ns| leaves_room(&plan, &place, |_| ns);
        // Two threads on CPU 0, one on CPU 1.
        assert!(taken(75_000).is_ok());
        assert!(matches!(
            taken(76_000),
            Err(ThreadsError::Starved { percent: 76, .. })
        ));
        let free = Place {
            shares: false,
            ..place
        };
        assert!(leaves_room(&plan, &free, |_| 90_000).is_ok());
    }
}

//! What happens on the machine during a fifth of a second.
//!
//! One pair of readings of `/proc/stat`, `/proc/interrupts` and `/proc/*/stat`
//! answers, for the CPU that is going to be measured: is it busy, with what, do
//! device interrupts arrive, does the hypervisor take time. The processes are read
//! outside the pair of `/proc/stat`, because reading thousands of files is itself work.

mod interrupts;
mod processes;
mod stat;
mod tasks;
mod threads;

use std::thread;
use std::time::{Duration, Instant};

pub use interrupts::Interrupt;
pub use processes::{BusyProcess, is_kernel_thread};
pub use stat::{CpuTimes, Stat};
pub use tasks::{Own, TaskTime, TaskWatch};
pub use threads::{ThreadTime, ThreadTimes, guest_resident, vm_exits};

use crate::fact::Fact;
use crate::source::Source;

/// The kernel's counts at a moment.
#[derive(Clone, Debug)]
pub struct Reading {
    at: Instant,
    stat: Fact<String>,
    interrupts: Fact<String>,
    softirqs: Fact<String>,
}

impl Reading {
    /// Reads them.
    pub fn take(source: &Source) -> Self {
        Self {
            interrupts: source.text("/proc/interrupts"),
            softirqs: source.text("/proc/softirqs"),
            at: Instant::now(),
            stat: source.text("/proc/stat"),
        }
    }

    /// Returns what was added until a later reading, without the processes.
    pub fn until(self, later: Self) -> Sample {
        let arrived = |before, after| {
            both(before, after, |before: String, after: String| {
                interrupts::difference(&before, &after)
            })
        };
        Sample {
            interval: later.at - self.at,
            since_boot: later.stat.clone().map(|text| Stat::parse(&text)),
            stat: both(self.stat, later.stat, |before, after| {
                Stat::parse(&before).until(&Stat::parse(&after))
            }),
            interrupts: arrived(self.interrupts, later.interrupts),
            softirqs: arrived(self.softirqs, later.softirqs),
            processes: Fact::unknown("processes are not counted"),
            names: Fact::unknown("processes are not counted"),
        }
    }
}

/// The difference between two readings of the system.
#[derive(Clone, Debug)]
pub struct Sample {
    /// How far apart the two readings of `/proc/stat` were.
    pub interval: Duration,
    /// Where each CPU's time went.
    pub stat: Fact<Stat>,
    /// The totals since boot, at the second reading.
    pub since_boot: Fact<Stat>,
    /// The interrupts that arrived, one entry per line of `/proc/interrupts`.
    pub interrupts: Fact<Vec<Interrupt>>,
    /// The softirqs, likewise of `/proc/softirqs`.
    pub softirqs: Fact<Vec<Interrupt>>,
    /// The processes that used CPU time, busiest first, without this one.
    pub processes: Fact<Vec<BusyProcess>>,
    /// The names of all processes, as far as they can be seen.
    pub names: Fact<Vec<String>>,
}

impl Sample {
    /// Reads twice, with the source's interval in between.
    pub fn take(source: &Source) -> Self {
        let later = source.later();
        let processes_before = processes::read(source);
        let before = Reading::take(source);
        thread::sleep(source.interval());
        let after = Reading::take(&later);
        let processes_after = processes::read(&later);

        let sample = before.until(after);
        let cpu_ticks = sample.stat.known().map_or(0, Stat::ticks_per_cpu);
        let names = processes_after
            .as_ref()
            .map(|all| all.iter().map(|process| process.name.clone()).collect());
        let processes = both(processes_before, processes_after, |before, after| {
            processes::busiest(&before, &after, cpu_ticks)
        });
        Self {
            processes,
            names,
            ..sample
        }
    }

    /// Returns the share of the sample during which a CPU was busy, 0 to 1; steal counts as busy.
    /// `None` when the kernel did not account any time to it.
    pub fn busy(&self, cpu: u32) -> Option<f64> {
        self.stat.known()?.cpu(cpu)?.busy_share()
    }
}

fn both<T, U>(before: Fact<T>, after: Fact<T>, f: impl FnOnce(T, T) -> U) -> Fact<U> {
    before.and_then(|before| after.map(|after| f(before, after)))
}

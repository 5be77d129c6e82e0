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
pub use processes::BusyProcess;
pub use stat::{CpuTimes, Stat};
pub use tasks::{Own, TaskTime, TaskWatch};
pub use threads::{ThreadTime, ThreadTimes, guest_resident, vm_exits};

use crate::fact::Fact;
use crate::source::Source;

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
        let interrupts_before = source.text("/proc/interrupts");
        let stat_before = source.text("/proc/stat");
        let start = Instant::now();
        thread::sleep(source.interval());
        let interval = start.elapsed();
        let stat_after = later.text("/proc/stat");
        let interrupts_after = later.text("/proc/interrupts");
        let processes_after = processes::read(&later);

        let since_boot = stat_after.clone().map(|text| Stat::parse(&text));
        let stat = both(stat_before, stat_after, |before, after| {
            Stat::parse(&before).until(&Stat::parse(&after))
        });
        let interrupts = both(interrupts_before, interrupts_after, |before, after| {
            interrupts::difference(&before, &after)
        });
        let cpu_ticks = stat.known().map_or(0, Stat::ticks_per_cpu);
        let names = processes_after
            .as_ref()
            .map(|all| all.iter().map(|process| process.name.clone()).collect());
        let processes = both(processes_before, processes_after, |before, after| {
            processes::busiest(&before, &after, cpu_ticks)
        });
        Self {
            interval,
            stat,
            since_boot,
            interrupts,
            processes,
            names,
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

//! `/proc/stat`: where the time of each CPU went.
//!
//! The kernel accounts in units of 1/100 s whatever its tick frequency, so a short
//! sample is coarse: over 200 ms one unit is 5 %. Idle and I/O wait can step back
//! by a unit between two readings (proc(5)); such a difference counts as zero.

use std::collections::BTreeMap;

/// The time of all CPUs, since boot or between two readings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    cpus: BTreeMap<u32, CpuTimes>,
}

/// The time of one CPU in the kernel's units of 1/100 s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Ordinary and niced processes, guests that this machine runs included.
    pub user: u64,
    /// The kernel on behalf of processes, and kernel threads.
    pub system: u64,
    /// Hard and soft interrupts.
    pub interrupts: u64,
    /// Idle, waiting for I/O or not.
    pub idle: u64,
    /// Ready to run, but the hypervisor ran something else.
    pub steal: u64,
}

impl CpuTimes {
    /// Returns the sum of all kinds.
    pub fn total(&self) -> u64 {
        let busy = [self.user, self.system, self.interrupts, self.steal];
        busy.into_iter().fold(self.idle, u64::saturating_add)
    }

    /// Returns the share of time that was not idle, 0 to 1; `None` when no time was accounted.
    pub fn busy_share(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| total.saturating_sub(self.idle) as f64 / total as f64)
    }

    /// Returns the share of time that the hypervisor took, 0 to 1; `None` when no time was
    /// accounted.
    pub fn steal_share(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.steal as f64 / total as f64)
    }

    fn combine(&self, other: &Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            user: f(self.user, other.user),
            system: f(self.system, other.system),
            interrupts: f(self.interrupts, other.interrupts),
            idle: f(self.idle, other.idle),
            steal: f(self.steal, other.steal),
        }
    }
}

impl Stat {
    /// Parses the `cpuN` lines; invalid lines are skipped.
    pub fn parse(text: &str) -> Self {
        Self {
            cpus: text.lines().filter_map(cpu_line).collect(),
        }
    }

    /// Returns the times of one CPU.
    pub fn cpu(&self, cpu: u32) -> Option<&CpuTimes> {
        self.cpus.get(&cpu)
    }

    /// Returns the numbers of all CPUs that have a line: those that are online.
    pub fn cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.cpus.keys().copied()
    }

    /// Returns what was added until a later reading; CPUs that are missing in either are left out.
    #[must_use]
    pub fn until(&self, later: &Self) -> Self {
        let cpus = later
            .cpus
            .iter()
            .filter_map(|(cpu, after)| {
                let before = self.cpus.get(cpu)?;
                Some((*cpu, after.combine(before, u64::saturating_sub)))
            })
            .collect();
        Self { cpus }
    }

    /// Returns the sum over all CPUs.
    pub fn sum(&self) -> CpuTimes {
        self.cpus.values().fold(CpuTimes::default(), |sum, cpu| {
            sum.combine(cpu, u64::saturating_add)
        })
    }

    /// Returns how many units of time one CPU was accounted: the largest total of all.
    pub fn ticks_per_cpu(&self) -> u64 {
        self.cpus.values().map(CpuTimes::total).max().unwrap_or(0)
    }
}

/// Parses `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`.
///
/// Old kernels have fewer columns. The two guest columns are already part of user
/// and nice.
fn cpu_line(line: &str) -> Option<(u32, CpuTimes)> {
    let mut fields = line.split_ascii_whitespace();
    let cpu = fields.next()?.strip_prefix("cpu")?.parse().ok()?;
    let numbers = fields.map_while(|field| field.parse::<u64>().ok());
    let mut times = numbers.fuse();
    let (user, nice, system, idle) = (times.next()?, times.next()?, times.next()?, times.next()?);
    let mut more = || times.next().unwrap_or(0);
    let times = CpuTimes {
        user: user.saturating_add(nice),
        system,
        idle: idle.saturating_add(more()),
        interrupts: more().saturating_add(more()),
        steal: more(),
    };
    Some((cpu, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_everything_but_idle_and_io_wait() {
        let before = Stat::parse("cpu  9 9 9 9\ncpu1 100 0 50 1000 10 0 0 0 0 0\nintr 5\n");
        let after = Stat::parse("cpu1 103 1 52 1010 12 1 0 1 2 0\n");
        let times = *before.until(&after).cpu(1).unwrap();
        assert_eq!(times.total(), 20);
        assert_eq!(times.busy_share(), Some(0.4));
        assert_eq!(times.steal_share(), Some(0.05));
    }

    #[test]
    fn a_counter_that_steps_back_counts_as_zero() {
        let before = Stat::parse("cpu0 10 0 0 1000 5\n");
        let after = Stat::parse("cpu0 12 0 0 999 4\n");
        let times = *before.until(&after).cpu(0).unwrap();
        assert_eq!((times.user, times.idle), (2, 0));
    }

    #[test]
    fn a_cpu_without_accounted_time_has_no_share() {
        let stat = Stat::parse("cpu0 10 0 0 1000\n");
        assert_eq!(stat.until(&stat).cpu(0).unwrap().busy_share(), None);
    }

    #[test]
    fn a_cpu_that_came_online_in_between_is_left_out() {
        let before = Stat::parse("cpu0 1 1 1 1\n");
        let after = Stat::parse("cpu0 1 1 1 9\ncpu1 1 1 1 9\n");
        assert_eq!(before.until(&after).cpus().collect::<Vec<_>>(), [0]);
    }
}

//! The clock, the sleep, and what they cost.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

const SECOND_NS: u64 = 1_000_000_000;

/// Reads CLOCK_MONOTONIC in ns, without a system call where the kernel's vDSO knows the time.
#[inline]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Reads a clock in ns.
#[inline]
pub fn read_ns(clock: ClockId) -> u64 {
    nanoseconds(clock_gettime(clock))
}

#[inline]
fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec.cast_unsigned() * SECOND_NS + time.tv_nsec.cast_unsigned()
}

/// Sleeps until a time of CLOCK_MONOTONIC, or until a signal comes: false then.
#[inline]
pub fn sleep_until(ns: u64) -> bool {
    let time = Timespec {
        tv_sec: (ns / SECOND_NS).cast_signed(),
        tv_nsec: (ns % SECOND_NS).cast_signed(),
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &time) != Err(Errno::INTR)
}

/// Returns the step in which timers expire: 1 ns with high-resolution timers, else a tick.
pub fn timer_step_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::Monotonic))
}

/// Returns the length of the kernel's tick, in which its coarse clock proceeds.
pub fn tick_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::MonotonicCoarse))
}

/// What it costs to sleep and to be woken up at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepCost {
    /// The least of all.
    pub least_ns: u64,
    /// The median.
    pub median_ns: u64,
}

impl SleepCost {
    /// Measures it, with sleeps until a time that is just over: the kernel sets its timer all the same, is
    /// interrupted as soon as the timer can, and wakes the thread up. So this is the least that one
    /// period takes of the CPU, apart from recording.
    pub fn measure() -> Self {
        /// The number of sleeps: together less than 10 ms as a rule.
        const SLEEPS: usize = 501;
        /// How long it may take where a sleep lasts until the next tick.
        const MOST_NS: u64 = 200_000_000;
        let mut costs = [0; SLEEPS];
        let mut taken = 0;
        let begin_ns = now_ns();
        while taken < SLEEPS && now_ns() - begin_ns < MOST_NS {
            let start_ns = now_ns();
            sleep_until(start_ns);
            costs[taken] = now_ns() - start_ns;
            taken += 1;
        }
        let costs = &mut costs[..taken.max(1)];
        costs.sort_unstable();
        Self {
            least_ns: costs[0],
            median_ns: costs[costs.len() / 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_at_their_time_or_after_it() {
        let until = now_ns() + 1_000_000;
        assert!(sleep_until(until));
        assert!(now_ns() >= until);
        let cost = SleepCost::measure();
        assert!(cost.least_ns > 0 && cost.least_ns <= cost.median_ns);
    }

    #[test]
    fn the_tick_is_one_that_kernels_are_built_with() {
        // 24 Hz on alpha to 1,200 Hz: 100, 250, 300 and 1000 here.
        assert!((500_000..=50_000_000).contains(&tick_ns()), "{}", tick_ns());
        assert!(timer_step_ns() <= tick_ns());
    }
}

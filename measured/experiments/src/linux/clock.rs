//! CLOCK_MONOTONIC, sleeping until a time of it, and the cost of both.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

const SECOND_NS: u64 = 1_000_000_000;

/// Reads CLOCK_MONOTONIC in ns, through the vDSO where possible.
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

/// Sleeps until a time of CLOCK_MONOTONIC. Returns false if a signal came first.
#[inline]
pub fn sleep_until(ns: u64) -> bool {
    let time = Timespec {
        tv_sec: (ns / SECOND_NS).cast_signed(),
        tv_nsec: (ns % SECOND_NS).cast_signed(),
    };
    clock_nanosleep_absolute(ClockId::Monotonic, &time) != Err(Errno::INTR)
}

/// Returns the resolution of timers: 1 ns with high-resolution timers, else a tick.
pub fn timer_step_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::Monotonic))
}

/// Returns the length of the kernel's tick, the resolution of its coarse clock.
pub fn tick_ns() -> u64 {
    nanoseconds(clock_getres(ClockId::MonotonicCoarse))
}

/// The cost of a sleep that ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepCost {
    /// The minimum.
    pub least_ns: u64,
    /// The median.
    pub median_ns: u64,
}

impl SleepCost {
    /// Measures sleeps until a time that has just passed: the kernel still arms its timer, takes
    /// the interrupt as soon as possible, and wakes the thread. So this is the least CPU time of a
    /// period, apart from recording.
    pub fn measure() -> Self {
        /// The number of sleeps; together they usually take less than 10 ms.
        const SLEEPS: usize = 501;
        /// The time limit, for kernels on which a sleep lasts until the next tick.
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
        // From 24 Hz on alpha to 1,200 Hz; 100, 250, 300 or 1000 on x86.
        assert!((500_000..=50_000_000).contains(&tick_ns()), "{}", tick_ns());
        assert!(timer_step_ns() <= tick_ns());
    }
}

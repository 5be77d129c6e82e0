//! The schedule of activations: the next one, and those that were missed.

use super::plan::Plan;

/// An activation that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its number, from 0.
    pub index: u64,
    /// Its planned time in ns, from the origin.
    pub at_ns: u64,
}

/// The activations of one thread.
///
/// After a late wake-up the next planned time is the first one that is not in the past, as in
/// cyclictest; the activations in between are missed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    interval_ns: u64,
    /// Activations up to the end of the plan's duration.
    activations: u64,
    /// Number of remaining wake-ups.
    wanted: u64,
    next: u64,
}

impl Pace {
    /// Starts at activation 0 of a thread.
    pub fn new(plan: &Plan, thread: u32) -> Self {
        let interval_ns = plan.interval_of(thread).max(1);
        let by_time = |duration: u64| duration.div_ceil(interval_ns);
        Self {
            interval_ns,
            activations: plan.duration_ns.map_or(u64::MAX, by_time),
            wanted: plan.loops.unwrap_or(u64::MAX),
            next: 0,
        }
    }

    /// Returns the next activation; None at the end of the thread's measurement.
    pub fn due(&self) -> Option<Due> {
        let goes_on = self.next < self.activations && self.wanted > 0;
        goes_on.then(|| Due {
            index: self.next,
            at_ns: self.next.saturating_mul(self.interval_ns),
        })
    }

    /// Records that the thread ran `now_ns` after the origin for the activation that was due.
    /// Returns the number of activations missed by that: those planned before now, up to the end of
    /// the duration.
    pub fn woke(&mut self, now_ns: u64) -> u64 {
        let following = self.next + 1;
        // Usually the next one is still to come, and no division is needed.
        let first_to_come = if now_ns <= following.saturating_mul(self.interval_ns) {
            following
        } else {
            now_ns.div_ceil(self.interval_ns)
        };
        self.next = first_to_come.min(self.activations).max(following);
        self.wanted -= 1;
        self.next - following
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL: u64 = 100_000;

    fn plan(duration_ns: Option<u64>, loops: Option<u64>) -> Plan {
        Plan {
            duration_ns,
            loops,
            ..Plan::new(INTERVAL, 0)
        }
    }

    /// Runs a plan whose wake-ups are late by `latency`, and returns (woken, missed).
    fn walk(plan: &Plan, latency: impl Fn(u64) -> u64) -> (u64, u64) {
        let (mut woken, mut missed) = (0, 0);
        let mut pace = Pace::new(plan, 0);
        while let Some(due) = pace.due() {
            assert_eq!(due.at_ns, due.index * INTERVAL);
            assert_eq!(due.index, woken + missed);
            woken += 1;
            missed += pace.woke(due.at_ns + latency(due.index));
        }
        (woken, missed)
    }

    #[test]
    fn in_time_nothing_is_missed() {
        let second = plan(Some(1_000_000_000), None);
        for latency in [0, 1, INTERVAL - 1, INTERVAL] {
            assert_eq!(walk(&second, |_| latency), (10_000, 0), "{latency}");
        }
    }

    #[test]
    fn a_stall_misses_those_that_were_due_in_it() {
        let second = plan(Some(1_000_000_000), None);
        let stalled = |latency: u64| walk(&second, move |n| if n == 50 { latency } else { 10 });
        assert_eq!(stalled(INTERVAL + 1), (9_999, 1));
        assert_eq!(stalled(10_000_000), (9_901, 99));
        assert_eq!(stalled(10_000_001), (9_900, 100));
    }

    #[test]
    fn what_is_due_after_the_end_is_not_missed() {
        let second = plan(Some(1_000_000_000), None);
        let late = |n| if n == 9_990 { 50_000_000 } else { 0 };
        assert_eq!(walk(&second, late), (9_991, 9));
        assert_eq!(walk(&second, |_| u64::MAX / 2), (1, 9_999));
    }

    #[test]
    fn loops_are_wakeups_and_a_duration_bounds_them() {
        let late = |n: u64| if n == 2 { 3 * INTERVAL } else { 0 };
        assert_eq!(walk(&plan(None, Some(10)), late), (10, 2));
        assert_eq!(walk(&plan(Some(5 * INTERVAL), Some(10)), late), (3, 2));
        assert_eq!(walk(&plan(Some(5 * INTERVAL - 1), None), |_| 0), (5, 0));
    }

    proptest! {
        #[test]
        fn it_is_what_cyclictest_does(next in 0_u64..1_000, late in 0_u64..100_000_000) {
            let mut pace = Pace { next, ..Pace::new(&plan(None, Some(1_000_000)), 0) };
            let now = next * INTERVAL + late;
            let missed = pace.woke(now);
            let (mut planned, mut expected) = ((next + 1) * INTERVAL, 0);
            while now > planned {
                planned += INTERVAL;
                expected += 1;
            }
            prop_assert_eq!(missed, expected);
            prop_assert_eq!(pace.due().unwrap().at_ns, planned);
        }
    }
}

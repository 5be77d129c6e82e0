//! The limit on the CPU time of real-time threads.
//!
//! Together they may use `sched_rt_runtime_us` of every `sched_rt_period_us` on a CPU. When it is
//! used up, by whichever thread, all of them wait for the rest of the period: a latency of 50 ms
//! that is neither the hardware's nor a driver's. With RT_GROUP_SCHED each control group has a
//! budget in addition.

use std::fmt;
use std::fs;

use super::group::Group;

/// The share of the limit above which there is a warning: other work of the threads, and wake-ups
/// that take longer than usual, add to the undisturbed measurement.
const CONCERNED: f64 = 0.5;

/// A limit on real-time threads below 100 %.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttling {
    runtime_us: u64,
    period_us: u64,
    /// The limited control group; None for the global limit.
    group: Option<String>,
}

impl Throttling {
    /// Finds the tightest limit. None if real-time threads may use all of a CPU.
    pub fn find() -> Option<Self> {
        let number = |name: &str| -> Option<i64> {
            let path = format!("/proc/sys/kernel/{name}");
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        let of_all = limit(
            number("sched_rt_runtime_us").unwrap_or(-1),
            number("sched_rt_period_us").unwrap_or(0).cast_unsigned(),
            None,
        );
        let own = Group::own();
        let of_group = own.and_then(|group| {
            let budget = group.budget()?;
            limit(budget.runtime_us, budget.period_us, Some(group.path))
        });
        tightest(of_all, of_group)
    }

    /// Formats it as a fact.
    pub fn in_short(&self) -> String {
        format!("{} of {} µs", self.runtime_us, self.period_us)
    }

    /// Returns a warning if real-time threads that use the share `used` of a CPU (from 0 to 1) come
    /// near the limit. None for threads that sleep most of the time, which are only affected if
    /// others use it up.
    pub fn warning(&self, used: f64) -> Option<Warning<'_>> {
        let share = self.runtime_us as f64 / self.period_us.max(1) as f64;
        (used > share * CONCERNED).then_some(Warning { limit: self, used })
    }
}

/// A warning: the effect of the limit, and the remedy.
#[derive(Clone, Copy, Debug)]
pub struct Warning<'a> {
    limit: &'a Throttling,
    used: f64,
}

impl fmt::Display for Warning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Throttling {
            runtime_us,
            period_us,
            group,
        } = self.limit;
        let share = runtime_us * 100 / period_us.max(&1);
        let rest_ms = (period_us - runtime_us) / 1_000;
        write!(f, "RT throttling is on: all real-time threads ")?;
        if let Some(group) = group {
            write!(f, "of the control group {group} ")?;
        }
        write!(
            f,
            "together get {share} % of a CPU ({runtime_us} of {period_us} µs), and setting a timer, being woken up and recording \
             took about {:.0} % of the interval before the measurement. When it is used up, all of them wait for up to {rest_ms} ms. ",
            self.used * 100.0
        )?;
        match group {
            Some(_) => f.write_str("More is given by cpu.rt_runtime_us of the group"),
            None => f.write_str("`sysctl -w kernel.sched_rt_runtime_us=-1` turns it off"),
        }
    }
}

fn limit(runtime_us: i64, period_us: u64, group: Option<String>) -> Option<Throttling> {
    let runtime_us = u64::try_from(runtime_us).ok()?;
    (runtime_us < period_us).then_some(Throttling {
        runtime_us,
        period_us,
        group,
    })
}

/// Returns the limit with the smaller share; the global one if they are equal.
fn tightest(of_all: Option<Throttling>, of_group: Option<Throttling>) -> Option<Throttling> {
    match (of_all, of_group) {
        (Some(all), Some(group)) => {
            let is_tighter = group.runtime_us * all.period_us < all.runtime_us * group.period_us;
            Some(if is_tighter { group } else { all })
        }
        (all, group) => all.or(group),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts_and_none_is_none() {
        let all = limit(950_000, 1_000_000, None);
        let group = |runtime| limit(runtime, 1_000_000, Some("/a".to_owned()));
        assert_eq!(limit(-1, 1_000_000, None), None);
        assert_eq!(limit(1_000_000, 1_000_000, None), None);
        assert_eq!(tightest(all.clone(), group(950_000)), all);
        assert_eq!(tightest(all.clone(), None), all);
        assert_eq!(tightest(all, group(10_000)), group(10_000));
    }

    #[test]
    fn only_who_comes_near_the_limit_is_warned() {
        let of_all = limit(950_000, 1_000_000, None).unwrap();
        assert!(of_all.warning(0.05).is_none());
        let text = of_all.warning(0.62).unwrap().to_string();
        assert!(
            text.contains("get 95 % of a CPU (950000 of 1000000 µs)")
                && text.contains("62 % of the interval"),
            "{text}"
        );
        assert!(
            text.contains("for up to 50 ms") && text.contains("sysctl"),
            "{text}"
        );
        let group = limit(10_000, 1_000_000, Some("/a".to_owned())).unwrap();
        let text = group.warning(0.05).unwrap().to_string();
        assert!(
            text.contains("of the control group /a together get 1 %"),
            "{text}"
        );
    }
}

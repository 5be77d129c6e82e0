//! Whether a target kept up, and whether arrivals came as planned.
//!
//! A cell is **saturated** if, among the arrivals that count,
//!
//! * more than 1 % failed, were rejected, or had not ended when the cell did;
//! * or more than 1 % were started or rejected later than one interval after their time;
//! * or the number of live instances grew over the measured window by more than 10 % of the
//!   arrivals, and by 3 at least, to more than 3 beyond one and a half times as many as are alive
//!   if each takes as long as the first that did its work: latency then grows as long as arrivals
//!   go on (Little's law). The window begins when twice that time has passed, so that a target that
//!   keeps up has its number of live instances by then.
//!
//! Where instances are started one by one, there is no rate to keep up: only if none ended as it
//! should, the target is not tried at any.
//!
//! It is **not an open loop** if more than 1 % of the arrivals were started or rejected later than
//! one interval after their time, for then they came at other times than planned. A pacer that
//! stands still, and then hurries into a limit, is late. Latencies count from the planned time all
//! the same.

use tare_results::model::{Arrivals, Failure, Instance, InstanceOutcome};

use crate::units::counted;

/// The share of arrivals that may be lost.
const LOST: f64 = 0.01;

/// The share of arrivals by which live instances may grow, and the number by which they always may.
const GROWTH: (f64, u32) = (0.1, 3);

/// The facts about a cell other than its instances.
pub(super) struct Loads<'a> {
    pub(super) arrivals: &'a Arrivals,
    /// Live instances at the beginning and at the end of the measured window.
    pub(super) live_at: [u32; 2],
    /// How long the first one took that did its work.
    pub(super) first_ns: u64,
}

/// Returns why the target did not keep up, and why arrivals were no open loop, if that is so.
pub(super) fn judge(loads: &Loads<'_>, instances: &[Instance]) -> (Option<String>, Option<String>) {
    let counted: Vec<&Instance> = instances.iter().filter(|one| one.counts > 0).collect();
    let n = counted.len();
    if n == 0 {
        let (_, before) = lost(&instances.iter().collect::<Vec<_>>());
        return (
            Some(format!("no arrival was measured; before, {before}")),
            None,
        );
    }
    let share = |number: usize| number as f64 / n as f64;
    let mut reasons: Vec<String> = Vec::new();
    let most_lost = match loads.arrivals.interval_ns {
        Some(_) => LOST,
        None => 1.0 - f64::EPSILON,
    };
    let (lost, told) = lost(&counted);
    if share(lost) > most_lost {
        reasons.push(told);
    }
    let Some(interval_ns) = loads.arrivals.interval_ns else {
        return ((!reasons.is_empty()).then(|| reasons.join("; ")), None);
    };
    let is_late = |one: &&&Instance| one.lag_ns().is_some_and(|lag| lag > interval_ns);
    let late = counted.iter().filter(is_late).count();
    let not_open_loop = (share(late) > LOST)
        .then(|| format!("{late} of {n} arrivals came more than one interval after their time"));
    reasons.extend(not_open_loop.clone());
    let [from, until] = loads.live_at;
    let growth = until.saturating_sub(from);
    let steady = loads.first_ns as f64 / interval_ns as f64;
    // While a slow target fills up, live instances grow although it keeps up.
    let is_beyond = f64::from(until) > 1.5 * steady + f64::from(GROWTH.1);
    if growth >= GROWTH.1 && f64::from(growth) > GROWTH.0 * n as f64 && is_beyond {
        reasons.push(format!(
            "live instances grew from {from} to {until} during {n} arrivals"
        ));
    }
    (
        (!reasons.is_empty()).then(|| reasons.join("; ")),
        not_open_loop,
    )
}

/// The beginning of the reason of a cell none of whose instances did its work.
pub(crate) const NOTHING: &str = "no instance did its work";

/// Returns why none of those that count did its work; None if one did. Without any that counts, the
/// reasons are those of the warm-up.
pub(super) fn why_none(instances: &[Instance], failures: &[Failure]) -> Option<String> {
    let is_warmup = instances.iter().all(|one| one.counts == 0);
    let own = instances.iter().filter(|one| one.counts > 0 || is_warmup);
    let own: Vec<&Instance> = own.collect();
    let is = |one: &&&Instance, outcome| one.outcome() == outcome;
    if !is_warmup && own.iter().any(|one| is(&one, InstanceOutcome::Done)) {
        return None;
    }
    let (_, told) = lost(&own);
    let told = match is_warmup {
        true => told.replacen(':', " in the warm-up:", 1),
        false => told,
    };
    let has_unended = own.iter().any(|one| is(&one, InstanceOutcome::Unfinished));
    let until_end = match has_unended {
        true => "; an instance is measured until it ends",
        false => "",
    };
    let failed = || own.iter().filter(|one| is(one, InstanceOutcome::Failed));
    let counted = (0..).zip(failures).map(|(place, failure)| Failure {
        count: failed().filter(|one| one.failure == place).count() as u64,
        reason: failure.reason.clone(),
    });
    let reasons = match Failure::list(counted.filter(|failure| failure.count > 0).collect()) {
        reasons if reasons.is_empty() => reasons,
        reasons => format!(" ({reasons})"),
    };
    Some(format!("{NOTHING}; {told}{reasons}{until_end}"))
}

/// Returns how many did not end as they should, and what became of them.
fn lost(all: &[&Instance]) -> (usize, String) {
    let outcomes = [
        (InstanceOutcome::Failed, None, "failed"),
        (
            InstanceOutcome::Rejected,
            Some(0),
            "rejected at the limit of live instances",
        ),
        (
            InstanceOutcome::Rejected,
            Some(1),
            "rejected at the limit of memory",
        ),
        (InstanceOutcome::Unfinished, None, "not ended"),
    ];
    let lost = outcomes.map(|(outcome, limit, what)| {
        let is_of_limit = |one: &Instance| limit.is_none_or(|limit| one.failure == limit);
        let is = |one: &&&Instance| one.outcome() == outcome && is_of_limit(one);
        (all.iter().filter(is).count(), what)
    });
    let told = lost.iter().filter(|(number, _)| *number > 0);
    let told: Vec<String> = told.map(|(n, what)| format!("{n} {what}")).collect();
    let arrivals = counted(all.len() as u64, "arrival", "arrivals");
    (
        lost.iter().map(|(number, _)| number).sum(),
        format!("of {arrivals}: {}", told.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(interval_ns: Option<u64>) -> Arrivals {
        Arrivals {
            interval_ns,
            warmup_ns: 0,
            measure_ns: 1_000_000_000,
            most_live: 256,
            most_bytes: None,
            report: None,
            command: None,
        }
    }

    /// Makes 100 arrivals at 10 ms each, changed by their number.
    fn instances(change: impl Fn(u64, &mut Instance)) -> Vec<Instance> {
        let one = |number: u64| {
            let planned_ns = 1_000_000_000 + number * 10_000_000;
            let mut instance = Instance {
                planned_ns,
                started_ns: planned_ns + 1_000,
                ready_ns: planned_ns + 1_000_000,
                exited_ns: planned_ns + 2_000_000,
                counts: 1,
                ..Instance::default()
            };
            change(number, &mut instance);
            instance
        };
        (0..100).map(one).collect()
    }

    fn judged(live_at: [u32; 2], instances: &[Instance]) -> (Option<String>, Option<String>) {
        let loads = Loads {
            arrivals: &arrivals(Some(10_000_000)),
            live_at,
            first_ns: 2_000_000,
        };
        judge(&loads, instances)
    }

    #[test]
    fn one_in_a_hundred_may_be_lost() {
        let failed = |number: u64| {
            move |at: u64, one: &mut Instance| {
                if at < number {
                    one.fate = InstanceOutcome::Failed.number();
                }
            }
        };
        assert_eq!(judged([1, 1], &instances(failed(1))), (None, None));
        let (saturated, _) = judged([1, 1], &instances(failed(2)));
        assert_eq!(saturated.as_deref(), Some("of 100 arrivals: 2 failed"));
        let mixed = instances(|at, one| match at {
            0..3 => {
                one.fate = InstanceOutcome::Rejected.number();
                one.failure = u32::from(at == 2);
            }
            3 => one.fate = InstanceOutcome::Unfinished.number(),
            _ => {}
        });
        let (saturated, _) = judged([1, 1], &mixed);
        let told = "of 100 arrivals: 2 rejected at the limit of live instances, \
                    1 rejected at the limit of memory, 1 not ended";
        assert_eq!(saturated.as_deref(), Some(told));
    }

    #[test]
    fn arrivals_that_come_late_are_no_open_loop() {
        let late = instances(|at, one| {
            if at % 10 == 0 {
                one.started_ns = one.planned_ns + 10_000_001;
            }
        });
        let (saturated, not_open_loop) = judged([1, 1], &late);
        let told = "10 of 100 arrivals came more than one interval after their time";
        assert_eq!(saturated.as_deref(), Some(told));
        assert_eq!(not_open_loop, saturated);
    }

    #[test]
    fn arrivals_that_are_rejected_late_are_no_open_loop() {
        let rejected = |lag_ns: u64| {
            instances(|at, one| {
                if at % 10 == 0 {
                    one.started_ns = 0;
                    one.exited_ns = one.planned_ns + lag_ns;
                    one.fate = InstanceOutcome::Rejected.number();
                }
            })
        };
        let lost = "of 100 arrivals: 10 rejected at the limit of live instances";
        let (saturated, not_open_loop) = judged([1, 1], &rejected(10_000_000));
        assert_eq!((saturated.as_deref(), not_open_loop), (Some(lost), None));
        let (saturated, not_open_loop) = judged([1, 1], &rejected(10_000_001));
        let late = not_open_loop.unwrap();
        assert!(late.starts_with("10 of 100 arrivals"), "{late}");
        assert_eq!(saturated, Some(format!("{lost}; {late}")));
    }

    #[test]
    fn a_backlog_that_grows_is_saturation_and_one_that_was_there_is_not() {
        let all = instances(|_, _| {});
        assert_eq!(judged([4, 13], &all).0, None);
        let told = "live instances grew from 4 to 15 during 100 arrivals";
        assert_eq!(judged([4, 15], &all).0.as_deref(), Some(told));
        assert_eq!(judged([90, 91], &all).0, None);
    }

    #[test]
    fn one_at_a_time_is_saturated_only_if_none_ends_as_it_should() {
        let loads = Loads {
            arrivals: &arrivals(None),
            live_at: [0, 0],
            first_ns: 0,
        };
        for (done, told) in [(1, None), (0, Some("of 100 arrivals: 100 failed"))] {
            let failed = instances(|at, one| {
                if at >= done {
                    one.fate = InstanceOutcome::Failed.number();
                }
            });
            assert_eq!(judge(&loads, &failed).0.as_deref(), told);
        }
    }

    #[test]
    fn why_nothing_was_measured_is_of_arrivals_that_count_if_there_are_any() {
        let failures = ["it ended with status 7", "it printed nothing"].map(|reason| Failure {
            reason: reason.to_owned(),
            count: 50,
        });
        let why = |counts: u32| {
            let all = instances(|at, one| {
                one.fate = InstanceOutcome::Failed.number();
                (one.counts, one.failure) = if at < 90 { (0, 0) } else { (counts, 1) };
            });
            why_none(&all, &failures).unwrap()
        };
        assert_eq!(
            why(1),
            "no instance did its work; of 10 arrivals: 10 failed (10 × it printed nothing)"
        );
        assert_eq!(
            why(0),
            "no instance did its work; of 100 arrivals in the warm-up: 100 failed \
             (90 × it ended with status 7; 10 × it printed nothing)"
        );
    }

    #[test]
    fn one_at_a_time_is_never_late() {
        let loads = Loads {
            arrivals: &arrivals(None),
            live_at: [0, 0],
            first_ns: 0,
        };
        let late = instances(|_, one| one.started_ns += 1_000_000_000);
        assert_eq!(judge(&loads, &late), (None, None));
        let hangs = Instance {
            fate: InstanceOutcome::Unfinished.number(),
            ..Instance::default()
        };
        let told = "no arrival was measured; before, of 1 arrival: 1 not ended";
        assert_eq!(judge(&loads, &[hangs]).0.as_deref(), Some(told));
    }
}

//! The pacer: it waits for the time of each arrival.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::ClockId;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::Timespec;
use tare_targets::instance::now_ns;

use super::shared::Shared;

/// How long before an arrival it stops sleeping and spins: a sleep ends some µs late.
const SPIN_NS: u64 = 50_000;

/// The longest that it sleeps without looking whether it is to end. When more is left it waits in a
/// way that can be interrupted, but ends later.
const LONGEST_NS: u64 = 100_000_000;

/// How long before the first arrival it begins.
const LEAD_NS: u64 = 20_000_000;

/// How long the first instance that does its work is waited for at most, beyond the warm-up.
const PATIENCE_NS: u64 = 120_000_000_000;

/// How many may fail before the first one that does its work is no longer waited for.
const MOST_FAILED: u32 = 10;

/// Lets all arrive, but no more than `most`.
pub(super) fn pace(shared: &Shared<'_>, most: u64) {
    shared.raise_priority(2);
    match shared.arrivals.interval_ns {
        Some(interval_ns) => at_times(shared, interval_ns.max(1), most),
        None => one_by_one(shared, most),
    }
    shared.all_have_arrived();
}

/// Lets one arrive at each multiple of an interval, until the measured window is over.
fn at_times(shared: &Shared<'_>, interval_ns: u64, most: u64) {
    let begin = now_ns() + LEAD_NS;
    let warm = Warm::new(shared, begin);
    let mut until = u64::MAX;
    for number in 0.. {
        let planned = begin.saturating_add(interval_ns.saturating_mul(number));
        if until == u64::MAX && warm.is_over(shared, planned) {
            until = warm.measures_from(shared, planned);
        }
        if planned >= until || !wait_until(shared, planned) || is_last(shared, number, most) {
            break;
        }
        shared.arrive(planned, until < u64::MAX);
    }
    if until < u64::MAX {
        wait_until(shared, until);
        finish(shared, until);
    }
}

/// Lets one arrive when the one before has ended.
fn one_by_one(shared: &Shared<'_>, most: u64) {
    let warm = Warm::new(shared, now_ns());
    let mut until = u64::MAX;
    for number in 0.. {
        if is_last(shared, number, most) {
            break;
        }
        let planned = now_ns();
        // One at least was there before, and one at least is measured.
        if until == u64::MAX && number > 0 && planned >= warm.earliest {
            until = warm.measures_from(shared, planned);
        } else if planned >= until {
            break;
        }
        shared.arrive(planned, until < u64::MAX);
        shared.wait_for_none();
        if shared.stops.load(Ordering::Relaxed) {
            break;
        }
    }
    if until < u64::MAX {
        finish(shared, now_ns().max(until));
    }
}

/// Ends all if as many have arrived as a cell may have. Returns whether it did.
fn is_last(shared: &Shared<'_>, number: u64, most: u64) -> bool {
    let is_last = number >= most;
    if is_last {
        shared.start_no_more();
        shared.notice(format!(
            "a cell has at most {most} instances: its window ended with them, before its time. Measure for a shorter time, \
             in more runs"
        ));
    }
    is_last
}

/// When the warm-up ends.
struct Warm {
    begin: u64,
    earliest: u64,
}

impl Warm {
    fn new(shared: &Shared<'_>, begin: u64) -> Self {
        Self {
            begin,
            earliest: begin.saturating_add(shared.arrivals.warmup_ns),
        }
    }

    /// Returns whether arrivals planned then are measured: the warm-up is over, and as many are
    /// alive as there will be, since twice the time has passed that the first one took that did its
    /// work, or a cap was met, or none does its work.
    fn is_over(&self, shared: &Shared<'_>, planned: u64) -> bool {
        if planned < self.earliest {
            return false;
        }
        if shared.has_rejected.load(Ordering::Relaxed) {
            return true;
        }
        match shared.first_ns.load(Ordering::Relaxed) {
            0 if shared.failed.load(Ordering::Relaxed) >= MOST_FAILED => true,
            0 => planned >= self.earliest.saturating_add(PATIENCE_NS),
            first => planned >= self.begin.saturating_add(first.saturating_mul(2)),
        }
    }

    /// Begins the measured window. Returns its end.
    fn measures_from(&self, shared: &Shared<'_>, planned: u64) -> u64 {
        let until = planned.saturating_add(shared.arrivals.whole_ns(shared.arrivals.measure_ns));
        shared.live_at[0].store(shared.live(), Ordering::Relaxed);
        shared.until_ns.store(until, Ordering::Release);
        shared.from_ns.store(planned, Ordering::Release);
        until
    }
}

fn finish(shared: &Shared<'_>, until: u64) {
    shared.live_at[1].store(shared.live(), Ordering::Relaxed);
    let stops = shared.stops.load(Ordering::Relaxed);
    let until = if stops { now_ns().min(until) } else { until };
    shared.until_ns.store(until, Ordering::Release);
}

/// Waits for a moment, as precisely as can be. Returns whether it came before all is to end.
fn wait_until(shared: &Shared<'_>, planned: u64) -> bool {
    loop {
        if shared.stops.load(Ordering::Relaxed) {
            return false;
        }
        let now = now_ns();
        let Some(left) = planned.checked_sub(now).filter(|left| *left > 0) else {
            return true;
        };
        match left.checked_sub(SPIN_NS) {
            Some(sleep) if sleep > LONGEST_NS => {
                shared.wait_long(Duration::from_nanos(sleep - LONGEST_NS));
            }
            Some(sleep) => sleep_until(now + sleep),
            None => std::hint::spin_loop(),
        }
    }
}

fn sleep_until(ns: u64) {
    let time = Duration::from_nanos(ns);
    if let Ok(time) = Timespec::try_from(time) {
        // A signal only makes it look earlier.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
    }
}

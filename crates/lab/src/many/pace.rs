//! The pacer: it waits for the time of each arrival.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::thread::ClockId;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::Timespec;
use tare_targets::instance::now_ns;

use super::field::Field;

/// How long before an arrival it stops sleeping and spins: a sleep ends some µs late.
const SPIN_NS: u64 = 50_000;

/// The longest that it sleeps without looking whether it is to end.
const LONGEST_NS: u64 = 100_000_000;

/// How long before the first arrival it begins.
const LEAD_NS: u64 = 20_000_000;

/// How long the end of the first instance is waited for at most, beyond the warm-up.
const PATIENCE_NS: u64 = 120_000_000_000;

/// Lets all arrive, but no more than `most`.
pub(super) fn pace(field: &Field<'_>, most: u64) {
    field.hurry(2);
    match field.arrivals.interval_ns {
        Some(interval_ns) => at_times(field, interval_ns.max(1), most),
        None => one_by_one(field, most),
    }
    field.is_paced.store(true, Ordering::Release);
}

/// Lets one arrive at each multiple of an interval, until the measured window is over.
fn at_times(field: &Field<'_>, interval_ns: u64, most: u64) {
    let begin = now_ns() + LEAD_NS;
    let warm = Warm::new(field, begin);
    let mut until = u64::MAX;
    for number in 0.. {
        let planned = begin.saturating_add(interval_ns.saturating_mul(number));
        if until == u64::MAX && warm.is_it(field, planned) {
            until = warm.measures_from(field, planned);
        }
        if planned >= until || !wait_until(field, planned) || is_last(field, number, most) {
            break;
        }
        field.arrive(planned, until < u64::MAX);
    }
    if until < u64::MAX {
        wait_until(field, until);
        finish(field, until);
    }
}

/// Lets one arrive when the one before has ended.
fn one_by_one(field: &Field<'_>, most: u64) {
    let warm = Warm::new(field, now_ns());
    let mut until = u64::MAX;
    for number in 0.. {
        if is_last(field, number, most) {
            break;
        }
        let planned = now_ns();
        // One at least was there before, and one at least is measured.
        if until == u64::MAX && number > 0 && planned >= warm.earliest {
            until = warm.measures_from(field, planned);
        } else if planned >= until {
            break;
        }
        field.arrive(planned, until < u64::MAX);
        field.wait_for_none();
        if field.is_enough.load(Ordering::Relaxed) {
            break;
        }
    }
    if until < u64::MAX {
        finish(field, now_ns().max(until));
    }
}

/// Ends all if as many have arrived as a cell may have. Returns whether it did.
fn is_last(field: &Field<'_>, number: u64, most: u64) -> bool {
    let is_last = number >= most;
    if is_last {
        field.is_enough.store(true, Ordering::Relaxed);
        field.remark(format!(
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
    fn new(field: &Field<'_>, begin: u64) -> Self {
        Self {
            begin,
            earliest: begin.saturating_add(field.arrivals.warmup_ns),
        }
    }

    /// Says whether what is planned then is measured: the warm-up is over, and as many are alive as there will be, since
    /// twice the time has passed that the first one took, or a cap was met.
    fn is_it(&self, field: &Field<'_>, planned: u64) -> bool {
        if planned < self.earliest {
            return false;
        }
        if field.has_refused.load(Ordering::Relaxed) {
            return true;
        }
        match field.first_ns.load(Ordering::Relaxed) {
            0 => planned >= self.earliest.saturating_add(PATIENCE_NS),
            first => planned >= self.begin.saturating_add(first.saturating_mul(2)),
        }
    }

    /// Begins the measured window. Returns its end.
    fn measures_from(&self, field: &Field<'_>, planned: u64) -> u64 {
        let until = planned.saturating_add(field.arrivals.whole_ns(field.arrivals.measure_ns));
        field.live_at[0].store(field.live(), Ordering::Relaxed);
        field.until_ns.store(until, Ordering::Release);
        field.from_ns.store(planned, Ordering::Release);
        until
    }
}

fn finish(field: &Field<'_>, until: u64) {
    field.live_at[1].store(field.live(), Ordering::Relaxed);
    let asked = field.is_enough.load(Ordering::Relaxed);
    let until = if asked { now_ns().min(until) } else { until };
    field.until_ns.store(until, Ordering::Release);
}

/// Waits for a moment, as precisely as can be. Returns whether it came before all is to end.
fn wait_until(field: &Field<'_>, planned: u64) -> bool {
    loop {
        if field.is_enough.load(Ordering::Relaxed) {
            return false;
        }
        let now = now_ns();
        let Some(left) = planned.checked_sub(now).filter(|left| *left > 0) else {
            return true;
        };
        match left.checked_sub(SPIN_NS) {
            Some(sleep) => sleep_until(now + sleep.min(LONGEST_NS)),
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

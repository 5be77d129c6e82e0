//! Facts about the system that matter for wake-ups, in addition to those of every measurement.

use std::fs;

use super::scheduling::{self, Scheduling};
use super::thread::Thread;
use super::throttling::Throttling;
use crate::linux::Fact;
use crate::linux::clock::{tick_ns, timer_step_ns};

/// Collects the facts; unknown ones are skipped.
pub fn facts(threads: &[Thread]) -> Vec<Fact> {
    let system = |name: &str| {
        let text = fs::read_to_string(format!("/sys/devices/system/{name}")).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let all = [
        ("scheduling", scheduled(threads)),
        ("timer slack", slack(threads)),
        ("timer step", Some(step())),
        (
            "tick",
            Some(format!("{} Hz", 1_000_000_000 / tick_ns().max(1))),
        ),
        (
            "clock event device",
            system("clockevents/clockevent0/current_device"),
        ),
        ("cpuidle driver", system("cpu/cpuidle/current_driver")),
        ("cpuidle governor", system("cpu/cpuidle/current_governor")),
        (
            "RT throttling",
            Some(Throttling::find().map_or_else(|| "off".to_owned(), |t| t.in_short())),
        ),
        ("cost of a wake-up", sleep(threads)),
    ];
    all.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// Returns how the first thread is actually scheduled.
fn scheduled(threads: &[Thread]) -> Option<String> {
    let scheduling = threads.first()?.scheduling;
    let name = scheduling::name(scheduling.policy());
    Some(match scheduling {
        Scheduling::Deadline {
            runtime_ns,
            period_ns,
        } => format!("{name}, {runtime_ns} of {period_ns} ns"),
        Scheduling::Priority { priority: 0, .. } => name.to_owned(),
        Scheduling::Priority { priority, .. } => format!("{name}, priority {priority}"),
    })
}

/// Returns the timer slack: how long the kernel may delay the end of a sleep.
fn slack(threads: &[Thread]) -> Option<String> {
    let scheduling = threads.first()?.scheduling;
    if scheduling.is_real_time() {
        return Some("none for real-time threads".to_owned());
    }
    // SAFETY: no pointers are passed. The threads inherited the slack of the calling thread.
    let ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    (ns >= 0).then(|| format!("{ns} ns, as it was given to this process"))
}

fn step() -> String {
    match timer_step_ns() {
        1 => "1 ns (high-resolution timers)".to_owned(),
        step => format!("{step} ns (no high-resolution timers)"),
    }
}

fn sleep(threads: &[Thread]) -> Option<String> {
    let cost = threads.first()?.sleep;
    let (least, median) = (cost.least_ns, cost.median_ns);
    Some(format!("{least} ns at least, {median} ns median"))
}

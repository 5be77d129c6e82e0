//! Phrases about wake-ups that terminal, page and summary share.

use tare_results::target::Clock;

use super::combine::{WakeupCombination, WakeupPhase};
use super::latency::LatencyQuantileSpread;
use crate::analysis::Spread;
use crate::format::Numbers;

pub(crate) use crate::words::NONE;

/// Writes a duration in µs, as everybody does who speaks of wake-ups: three significant digits, no more than
/// ns: `4.03`, `183`, `12,345`.
pub(crate) fn us(numbers: Numbers, ns: f64) -> String {
    let us = ns / 1e3;
    let decimals = match us {
        us if us < 9.9995 => 3,
        us if us < 99.995 => 2,
        us if us < 999.95 => 1,
        _ => 0,
    };
    numbers.fixed(us, decimals)
}

/// Writes a duration with its unit: `183 µs`.
pub(crate) fn time(numbers: Numbers, ns: f64) -> String {
    numbers.ns(ns, Some(1.0))
}

/// Writes a figure over the runs in µs.
pub(crate) fn median(numbers: Numbers, spread: Option<Spread<f64>>) -> String {
    spread.map_or_else(|| NONE.to_owned(), |spread| us(numbers, spread.figure))
}

/// Writes a quantile in µs; one that was refused is a dash.
pub(crate) fn quantile(numbers: Numbers, quantile: Option<LatencyQuantileSpread>) -> String {
    median(numbers, quantile.and_then(|quantile| quantile.ns))
}

/// Writes how many activations a phase missed.
pub(crate) fn missed(numbers: Numbers, phase: &WakeupPhase) -> String {
    numbers.count(phase.missed)
}

/// Writes which share of the activations that is, of all runs together as the number is.
pub(crate) fn missed_share(numbers: Numbers, phase: &WakeupPhase) -> String {
    match phase.woken + phase.missed {
        0 => NONE.to_owned(),
        all => numbers.percent(phase.missed as f64 / all as f64),
    }
}

/// Returns a target's name, marked if an emulator executed it.
pub(crate) fn target(combination: &WakeupCombination) -> String {
    match (combination.emulated, combination.clock) {
        (_, Clock::Instructions) => format!("{} (instructions)", combination.target),
        (true, Clock::Host) => format!("{} (emulated)", combination.target),
        (false, Clock::Host) => combination.target.clone(),
    }
}

/// Names a place as a reader knows it: the kernel's preemption model behind the target, where it is told and the
/// target does not say it itself.
pub(crate) fn place(combination: &WakeupCombination) -> String {
    let target = target(combination);
    let spec = &combination.spec;
    let is_rt = || {
        spec.option("kernel")
            .is_some_and(|kernel| kernel.contains("-rt"))
    };
    match combination.preemption.as_deref() {
        Some(model) if spec.option("preempt") != Some(model) && !is_rt() => {
            format!("{target} · {model}")
        }
        _ => target,
    }
}

/// Names a place in short, for legends of pictures in which several are overlaid.
pub(crate) fn place_in_short(combination: &WakeupCombination) -> String {
    let kind = match combination.group.is_linux_guest() {
        true => "guest",
        false => &combination.spec.kind,
    };
    let mark = match (combination.emulated, combination.clock) {
        (_, Clock::Instructions) => " (instructions)",
        (true, Clock::Host) => " (emulated)",
        (false, Clock::Host) => "",
    };
    match &combination.preemption {
        Some(model) => format!("{kind} with preemption {model}{mark}"),
        None => target(combination),
    }
}

/// Names a place in a sentence: in short, unless another one has the same short name.
pub(crate) fn name_among(combination: &WakeupCombination, all: &[&WakeupCombination]) -> String {
    let short = place_in_short(combination);
    let is_unique = all
        .iter()
        .filter(|other| place_in_short(other) == short)
        .all(|other| other.target == combination.target);
    if is_unique { short } else { place(combination) }
}

/// Says how its threads are woken: `fifo 95 every 100 µs`.
pub(crate) fn schedule(numbers: Numbers, combination: &WakeupCombination) -> String {
    let policy = match (combination.policy.as_str(), combination.priority) {
        ("fifo", priority) => format!("SCHED_FIFO {priority}"),
        ("rr", priority) => format!("SCHED_RR {priority}"),
        ("deadline", _) => "SCHED_DEADLINE".to_owned(),
        ("other", _) => "SCHED_OTHER".to_owned(),
        ("interrupt", _) => "a timer interrupt".to_owned(),
        (other, _) => other.to_owned(),
    };
    let first = combination.intervals_ns.first().copied().unwrap_or(0);
    let last = combination.intervals_ns.last().copied().unwrap_or(0);
    let interval = |ns: u64| numbers.ns_tick(ns as f64);
    let every = if first == last {
        interval(first)
    } else {
        format!("{} to {}", interval(first), interval(last))
    };
    match combination.intervals_ns.len() {
        0 | 1 => format!("{policy} every {every}"),
        threads => format!("{threads} threads, {policy} every {every}"),
    }
}

/// Says under which load something was, as the end of a sentence: ` under dd`, ` when idle`.
pub(crate) fn under(load: &str) -> String {
    match load {
        "idle" => " when idle".to_owned(),
        load => format!(" under {load}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_three_or_four_digits_and_none_below_a_nanosecond() {
        const N: Numbers = Numbers::PLAIN;
        for (ns, text) in [
            (4_031.0, "4.031"),
            (40_314.0, "40.31"),
            (183_449.0, "183.4"),
            (12_345_678.0, "12,346"),
            (0.0, "0.000"),
            (9_999.9, "10.00"),
        ] {
            assert_eq!(us(N, ns), text);
        }
    }
}

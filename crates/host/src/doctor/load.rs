//! Other work on the machine while nothing is being measured yet.

use super::{Examination, Finding, Severity, percent};
use crate::choose::BUSY_SHARE;
use crate::sample::BusyProcess;

/// A busy share of the measured CPU from which on its figures say more about that work than about
/// noise.
const SWAMPED: f64 = 0.30;
/// A mean busy share of the other CPUs from which on shared caches, memory and power are contended.
const OTHERS_BUSY: f64 = 0.50;
/// A mean busy share of the other CPUs worth mentioning.
const OTHERS_ACTIVE: f64 = 0.10;
/// How many processes are named.
const NAMED: usize = 3;

/// Check whether the measured CPU and the rest of the machine are idle.
pub(super) fn load(e: &Examination<'_>) -> Finding {
    let finding = Finding::new(
        "load",
        "Other load",
        "Work on the measured CPU takes turns with what is measured. Work on other CPUs shares \
         the last-level cache, the memory bandwidth and the power budget with it, and sends \
         interrupts.",
    );
    let Some(stat) = e.sample.stat.known() else {
        return finding.unknown(e.sample.stat.because().unwrap_or_default());
    };
    let own = e.cpu.and_then(|cpu| e.sample.busy(cpu));
    let others: Vec<f64> = stat
        .cpus()
        .filter(|cpu| Some(*cpu) != e.cpu)
        .filter_map(|cpu| e.sample.busy(cpu))
        .collect();
    let others = (!others.is_empty()).then(|| others.iter().sum::<f64>() / others.len() as f64);
    if own.is_none() && others.is_none() {
        return finding.unknown("the kernel accounted no time to any CPU during the sample");
    }
    let severity = match (own.unwrap_or(0.0), others.unwrap_or(0.0)) {
        (own, _) if own > SWAMPED => Severity::Problem,
        (own, others) if own > BUSY_SHARE || others > OTHERS_BUSY => Severity::Warning,
        (_, others) if others > OTHERS_ACTIVE => Severity::Note,
        _ => Severity::Good,
    };
    let finding = finding.with(severity, state(e, own, others));
    if severity == Severity::Good {
        return finding;
    }
    finding.remedy(remedy(e, own))
}

fn state(e: &Examination<'_>, own: Option<f64>, others: Option<f64>) -> String {
    let mut parts = Vec::new();
    if let Some(share) = own {
        parts.push(format!("{} is {} busy", e.cpu_name(), percent(share)));
    }
    if let Some(share) = others {
        parts.push(format!("the other CPUs {} on average", percent(share)));
    }
    if let Some(average) = e.machine.load.average.known() {
        parts.push(format!("load average {:.2}", average.one_minute));
    }
    let busiest = busiest(e)
        .map(|process| {
            format!(
                "{} (pid {}) {} of a CPU, last on CPU {}",
                process.name,
                process.pid,
                percent(process.share),
                process.cpu
            )
        })
        .collect::<Vec<_>>();
    if !busiest.is_empty() {
        parts.push(format!("busiest: {}", busiest.join("; ")));
    }
    parts.join(", ")
}

fn busiest<'a>(e: &'a Examination<'_>) -> impl Iterator<Item = &'a BusyProcess> {
    e.sample
        .processes
        .known()
        .into_iter()
        .flatten()
        .filter(|process| process.share > BUSY_SHARE)
        .take(NAMED)
}

fn remedy(e: &Examination<'_>, own: Option<f64>) -> String {
    let intruder = busiest(e).find(|process| Some(process.cpu) == e.cpu);
    let others = e.other_cpus();
    match intruder {
        Some(process) if own.is_some_and(|share| share > BUSY_SHARE) && !others.is_empty() => {
            format!(
                "move it away: `sudo taskset -acp {others} {}`, stop it, or measure on another \
                 CPU with --cpu",
                process.pid
            )
        }
        _ if own.is_some_and(|share| share > BUSY_SHARE) => {
            "stop what runs there, or measure on another CPU with --cpu".to_owned()
        }
        _ => "stop other work while measuring, unless it is the load that is meant to be there"
            .to_owned(),
    }
}

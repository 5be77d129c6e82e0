//! Other work on the machine while nothing is being measured yet.

use super::{Examination, Judgement, Severity::*, advise, good, percent, unknown};
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

/// Checks whether the measured CPU and the rest of the machine are idle.
pub(super) fn load(e: &Examination<'_>) -> Judgement {
    let stat = e.sample.stat.get()?;
    let measured = e.cpu.filter(|_| e.is_pinned);
    let own = measured.and_then(|cpu| e.sample.busy(cpu));
    let others = stat.cpus().filter(|cpu| Some(*cpu) != measured);
    let others: Vec<f64> = others.filter_map(|cpu| e.sample.busy(cpu)).collect();
    let others = (!others.is_empty()).then(|| others.iter().sum::<f64>() / others.len() as f64);
    if own.is_none() && others.is_none() {
        return unknown("the kernel accounted no time to any CPU during the sample");
    }
    let severity = match (own.unwrap_or(0.0), others.unwrap_or(0.0)) {
        (own, _) if own > SWAMPED => Problem,
        (own, others) if own > BUSY_SHARE || others > OTHERS_BUSY => Warning,
        (_, others) if others > OTHERS_ACTIVE => Note,
        _ => return good(state(e, own, others)),
    };
    advise(severity, state(e, own, others), remedy(e, own))
}

fn state(e: &Examination<'_>, own: Option<f64>, others: Option<f64>) -> String {
    let mut parts = Vec::new();
    let own = own.map(|share| {
        (
            share,
            format!("{} is {} busy", e.cpu_name(), percent(share)),
        )
    });
    let others = others.map(|share| {
        let which = if e.is_pinned { "other CPUs" } else { "CPUs" };
        let text = format!("the {which} are {} busy on average", percent(share));
        (share, text)
    });
    let mut busy: Vec<(f64, String)> = own.into_iter().chain(others).collect();
    // A measured CPU that is idle is no part of what the others do.
    if busy.len() == 2 && busy[0].0 <= BUSY_SHARE && busy[1].0 > OTHERS_ACTIVE {
        busy.remove(0);
    }
    parts.extend(busy.into_iter().map(|(_, text)| text));
    if let Some(average) = e.machine.load.average.known() {
        parts.push(format!(
            "load average of the last minute {:.2}",
            average.one_minute
        ));
    }
    let describe = |process: &BusyProcess| {
        let (name, pid, cpu) = (&process.name, process.pid, process.cpu);
        let share = percent(process.share);
        format!("{name} (pid {pid}) {share} of a CPU, last on CPU {cpu}")
    };
    let busiest: Vec<String> = busiest(e).map(describe).collect();
    if !busiest.is_empty() {
        parts.push(format!("busiest: {}", busiest.join("; ")));
    }
    parts.join(", ")
}

fn busiest<'a>(e: &'a Examination<'_>) -> impl Iterator<Item = &'a BusyProcess> {
    let processes = e.sample.processes.known().into_iter().flatten();
    let busy = processes.filter(|process| process.share > BUSY_SHARE);
    busy.take(NAMED)
}

fn remedy(e: &Examination<'_>, own: Option<f64>) -> String {
    // Threads of the kernel can't be stopped, and those that are not bound to a CPU not be moved.
    let mut programs = busiest(e).filter(|process| !process.name.starts_with("kworker/"));
    if own.is_none_or(|share| share <= BUSY_SHARE) {
        let command = match programs.next().map(|process| process.pid) {
            Some(pid) => format!("`sudo kill -STOP {pid}`, and `sudo kill -CONT {pid}` afterwards"),
            None => "`top` shows it".to_owned(),
        };
        return format!(
            "stop other work while measuring, unless it is the load that is meant to be there: \
             {command}"
        );
    }
    let others = e.other_cpus();
    match programs.find(|process| Some(process.cpu) == e.cpu) {
        Some(process) if !others.is_empty() => format!(
            "move it away: `sudo taskset -acp {others} {}`, stop it, or measure on another CPU \
             (`--cpu`, where the experiment has it)",
            process.pid
        ),
        _ => {
            "stop what runs there (`ps -eLo psr,pid,pcpu,comm --sort=-pcpu` lists it), or measure \
              on another CPU (`--cpu`, where the experiment has it)"
                .to_owned()
        }
    }
}

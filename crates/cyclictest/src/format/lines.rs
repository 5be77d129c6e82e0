//! The lines that cyclictest writes while it runs, and at its end.

use std::fmt::Write as _;

use super::{Unit, mean};
use crate::latencies::Latencies;

/// The least latency that cyclictest shows before the first wake-up, in its unit.
const NOTHING_YET: u64 = 1_000_000;

/// The figures of a status line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Number of the thread, from 0.
    pub number: u32,
    /// Its id in the kernel; 0 before it is known.
    pub tid: u32,
    /// Its real-time priority, or 0.
    pub priority: u32,
    /// Time between two activations in ns.
    pub interval_ns: u64,
    /// Wake-ups so far.
    pub woken: u64,
    /// Least latency in ns.
    pub min_ns: u64,
    /// Latency of the last wake-up in ns.
    pub last_ns: u64,
    /// Mean latency in ns.
    pub mean_ns: u64,
    /// Greatest latency in ns.
    pub max_ns: u64,
}

/// Returns cyclictest's first line.
pub fn first_lines() -> &'static str {
    "# /dev/cpu_dma_latency set to 0us\n"
}

/// Returns the lines of `-v` before it: how many CPUs there are, and how many of them are online.
pub fn cpus(present: u32, online: u32) -> String {
    format!("Max CPUs = {present}\nOnline CPUs = {online}\n")
}

/// Returns the lines of `-v` after it. cyclictest shows the interval of the next thread there;
/// these are the threads' own.
pub fn intervals(threads: &[State]) -> String {
    let lines = threads.iter().map(|thread| {
        let interval = thread.interval_ns / 1_000;
        format!("Thread {} Interval: {interval}\n", thread.number)
    });
    lines.collect()
}

/// Returns the line above the status lines; `loadavg` is the text of /proc/loadavg.
pub fn policy(name: &str, loadavg: &str) -> String {
    // cyclictest's name of SCHED_OTHER.
    let name = if name == "other" { "other/other" } else { name };
    format!(
        "policy: {name}: loadavg: {}          \n\n",
        loadavg.trim_end()
    )
}

/// Returns how many lines the policy and the status of the threads take.
pub const fn height(threads: usize) -> usize {
    threads + 2
}

/// Returns the status line of a thread.
pub fn status(state: &State, unit: Unit) -> String {
    line(state, unit.of(state.mean_ns), unit)
}

/// Returns the status lines of threads that have ended; `last_ns` gives each one's last latency.
pub fn status_lines(
    threads: &[Latencies],
    last_ns: impl Fn(&Latencies) -> u64,
    unit: Unit,
) -> String {
    let lines = threads.iter().map(|latencies| {
        let thread = &latencies.thread;
        let state = State {
            number: thread.number,
            tid: thread.tid,
            priority: thread.priority,
            interval_ns: thread.interval_ns,
            woken: thread.woken,
            min_ns: thread.min_ns,
            last_ns: last_ns(latencies),
            max_ns: thread.max_ns,
            ..State::default()
        };
        line(&state, mean(latencies, unit), unit)
    });
    lines.collect()
}

/// Returns the lines of `-b` at the end: the threads, and the one that was late, if any.
pub fn breaks(threads: &[Latencies], broke: Option<(u32, u64)>, unit: Unit) -> String {
    let mut text = "# Thread Ids:".to_owned();
    let mut all = threads.iter().map(|latencies| &latencies.thread);
    for thread in all.clone() {
        let _ = write!(text, " {:05}", thread.tid);
    }
    text.push('\n');
    if let Some((thread, latency_ns)) = broke {
        let tid = all.find(|t| t.number == thread).map_or(0, |t| t.tid);
        let value = unit.of(latency_ns);
        let _ = writeln!(text, "# Break thread: {tid}\n# Break value: {value}");
    }
    text
}

/// Returns the lines of `--spike` at the end: every wake-up later than `trigger`, with the time at
/// which it ran in µs of CLOCK_MONOTONIC; at most `nodes` of them.
pub fn spikes(threads: &[Latencies], trigger: u64, nodes: usize, unit: Unit) -> String {
    let mut spikes: Vec<(u64, u32, u64)> = Vec::new();
    for latencies in threads {
        for event in &latencies.events {
            let value = unit.of(event.value);
            if value > trigger {
                let ran_ns = event.at.saturating_add(event.value);
                spikes.push((ran_ns / 1_000, latencies.thread.number, value));
            }
        }
    }
    spikes.sort_unstable();
    spikes.truncate(nodes);
    let mut text = "\n".to_owned();
    for (at, thread, value) in &spikes {
        let _ = writeln!(text, "T:{thread:2} Spike:{value:8}: TS: {at:12}");
    }
    let _ = writeln!(text, "spikes = {}\n", spikes.len());
    text
}

/// Returns the lines of `-v`: every latency, or with `-o` the greatest of every `reduction`.
pub fn values(thread: u32, latencies_ns: &[u64], reduction: usize, unit: Unit) -> String {
    let mut text = String::new();
    let reduction = reduction.max(1);
    for (chunk, start) in latencies_ns
        .chunks_exact(reduction)
        .zip((0..).step_by(reduction))
    {
        let mut greatest = (0, 0);
        for (offset, ns) in (0_u64..).zip(chunk) {
            if offset == 0 || *ns > greatest.1 {
                greatest = (start as u64 + offset, *ns);
            }
        }
        let (cycle, ns) = greatest;
        let _ = writeln!(text, "{thread:8}:{cycle:8}:{:8}", unit.of(ns));
    }
    text
}

/// Writes a status line; the mean is in the unit.
fn line(state: &State, mean: u64, unit: Unit) -> String {
    let width = match unit {
        Unit::Micros => 5,
        Unit::Nanos => 8,
    };
    let State {
        number,
        tid,
        priority,
        woken,
        ..
    } = *state;
    let interval = state.interval_ns / 1_000;
    let min = least(woken, state.min_ns, unit);
    let (last, max) = (unit.of(state.last_ns), unit.of(state.max_ns));
    format!(
        "T:{number:2} ({tid:5}) P:{priority:2} I:{interval} C:{woken:7} Min:{min:7} Act:{last:width$} \
         Avg:{mean:width$} Max:{max:8}\n"
    )
}

/// Returns the least latency of a thread, as cyclictest shows it.
pub(super) fn least(woken: u64, min_ns: u64, unit: Unit) -> u64 {
    match woken {
        0 => NOTHING_YET,
        _ => unit.of(min_ns),
    }
}

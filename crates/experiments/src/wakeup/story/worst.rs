//! The worst wake-ups: when each was, under which load, how late, and what it missed.
//!
//! Wake-ups at or above the threshold are listed with their activation, and the first ones are kept as they
//! were. Where neither has a bin's maximum, the envelope still tells it, to the width of a bin.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{CellPlan, Load, Trace};
use tare_stats::missed_by;
use tare_trace::blame::{Blame, blame};

use super::late::ending;
use super::run::{loads, phase_ns};
use super::threads::Thread;

/// Is how many of the worst wake-ups are named.
pub const WORST: usize = 10;

/// Is one of the worst wake-ups.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WorstFigure {
    /// The cell in which it was.
    pub cell: u32,
    /// The block (run).
    pub block: u32,
    /// Number of the thread, from 0.
    pub thread: u32,
    /// Number of the activation; null if only its bin of time is known.
    pub activation: Option<u64>,
    /// Planned time after the start of the measurement.
    pub at_ns: u64,
    /// Uncertainty of that: it was planned so much later at most. 0 if the activation is known.
    pub within_ns: u64,
    /// Number of the phase, from 0.
    pub phase: u32,
    /// The load; if it was planned before that began, the one that still had to end.
    pub load: String,
    /// How late it was.
    pub latency_ns: u64,
    /// Activations that it missed.
    pub missed: u64,
    /// What it is made of and who is to blame; null if the kernel was not traced around it.
    pub blame: Option<Blame>,
}

/// Finds the worst wake-ups of a cell, worst first; where a limit was set, those above it.
pub(super) fn find(
    plan: &CellPlan,
    threads: &[Thread<'_>],
    traces: &[Trace],
    load: Option<&Load>,
) -> Vec<WorstFigure> {
    let loads = loads(plan);
    let phase_ns = phase_ns(plan);
    let mut found: Vec<WorstFigure> = Vec::new();
    for thread in threads {
        let own = |trace: &&Trace| thread.sets.iter().any(|set| set.place == trace.set);
        let traced = || traces.iter().filter(own);
        let trace_of =
            |activation: Option<u64>| traced().find(|trace| Some(trace.index) == activation);
        let figure = |activation: Option<u64>, at_ns: u64, within_ns: u64, latency_ns: u64| {
            let phase = phase_ns.map_or(0, |length| (at_ns as f64 / length) as usize);
            let phase = phase.min(loads.len().saturating_sub(1));
            WorstFigure {
                cell: plan.id,
                block: plan.block,
                thread: thread.number,
                activation,
                at_ns,
                within_ns,
                phase: phase as u32,
                load: load
                    .filter(|load| load.is_between(plan, at_ns))
                    .map(|load| ending(load, phase as u32))
                    .or_else(|| loads.get(phase).cloned())
                    .unwrap_or_default(),
                latency_ns,
                missed: missed_by(latency_ns, thread.interval_ns),
                blame: trace_of(activation).map(|trace| blame(trace, thread.number)),
            }
        };
        let sets = thread.sets.iter().map(|set| set.samples);
        let listed = sets.flat_map(|set| set.events.iter().chain(&set.raw));
        let listed = listed.map(|event| (event.value, event.index));
        let known = listed.chain(traced().map(|trace| (trace.value, trace.index)));
        let mut known: Vec<(u64, u64)> = known.collect();
        known.sort_unstable_by_key(|&(latency_ns, activation)| {
            (std::cmp::Reverse(latency_ns), activation)
        });
        known.dedup();
        known.truncate(WORST);
        let exact = known.into_iter().map(|(latency_ns, activation)| {
            let at_ns = activation.saturating_mul(thread.interval_ns);
            figure(Some(activation), at_ns, 0, latency_ns)
        });
        let mut exact: Vec<WorstFigure> = exact.collect();
        for set in &thread.sets {
            let width = set.head.bin;
            for bin in &set.samples.envelope {
                let from = u64::from(bin.bin).saturating_mul(width);
                let is_it = |w: &WorstFigure| {
                    w.latency_ns == bin.max && (from..from.saturating_add(width)).contains(&w.at_ns)
                };
                if !exact.iter().any(is_it) {
                    exact.push(figure(None, from, width, bin.max));
                }
            }
        }
        found.append(&mut exact);
    }
    found.retain(|worst| plan.work.above.is_none_or(|above| worst.latency_ns > above));
    keep_worst(&mut found);
    found
}

/// Keeps the worst of several, worst first; each wake-up once.
pub(super) fn keep_worst(found: &mut Vec<WorstFigure>) {
    found.sort_by_key(|w| {
        let worst_first = std::cmp::Reverse(w.latency_ns);
        (worst_first, w.cell, w.thread, w.at_ns, w.within_ns)
    });
    found.dedup_by_key(|w| (w.latency_ns, w.cell, w.thread, w.at_ns));
    found.truncate(WORST);
}

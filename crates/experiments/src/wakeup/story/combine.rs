//! Puts the runs of one combination together: one target, one load or schedule of loads, one plan.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::target::{Clock, Group, TargetSpec};

use super::latency::{LatencySpread, refusal};
use super::run::{PhaseRun, WakeupRun};
use super::worst::WorstFigure;
use crate::analysis::{CounterFigure, Placement, Spread};

/// Holds the figures of wake-up cells that differ only in their run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeupCombination {
    /// Its name: `process wakeup under dd`.
    pub label: String,
    /// Target as it is written on the command line.
    pub target: String,
    /// The group that the target belongs to.
    pub group: Group,
    /// The target with its options.
    #[serde(skip)]
    pub spec: TargetSpec,
    /// CPUs that it was measured on: one, unless the runs were placed differently.
    pub placements: Vec<Placement>,
    /// Load, or the schedule of loads, as it is written on the command line.
    pub load: String,
    /// How long each phase was; null if there was but one.
    pub phase_seconds: Option<f64>,
    /// Policy of the threads: `fifo`, `rr`, `deadline`, `other`, or `interrupt` in the unikernel.
    pub policy: String,
    /// Real-time priority of the first thread, or 0.
    pub priority: u32,
    /// Time between two activations, of each thread.
    pub intervals_ns: Vec<u64>,
    /// Whether the kernel's events were recorded meanwhile, which costs time.
    pub traced: bool,
    /// Whether an emulator executed the measured code.
    pub emulated: bool,
    /// What its nanoseconds are.
    pub clock: Clock,
    /// Release of the kernel that it was measured under; null where none was told.
    pub kernel: Option<String>,
    /// The kernel's preemption model: `none`, `voluntary`, `full`, `lazy` or `rt`; null where none was told.
    pub preemption: Option<String>,
    /// Runs planned.
    pub planned_runs: u64,
    /// Runs whose figures are in it.
    pub runs: u64,
    /// Their cells.
    pub cells: Vec<u32>,
    /// Why figures have no interval; null if all have.
    pub intervals_refused: Option<String>,
    /// Wake-ups of all runs and threads.
    pub woken: u64,
    /// Missed activations of all runs and threads, as the threads counted them.
    pub missed: u64,
    /// Wake-ups whose latencies are in no distribution, since there was no room for them.
    pub uncounted: u64,
    /// Time that recording one wake-up took in the slowest run and thread.
    pub recording_ns: u64,
    /// The same as a share of that thread's interval.
    pub recording_share: f64,
    /// Figures of each phase over the runs, all threads together.
    pub phases: Vec<WakeupPhase>,
    /// Figures of each thread; empty if there is one only, whose figures are `phases`.
    pub threads: Vec<ThreadPhases>,
    /// The maximum, averaged over the phases of each run, as landolfi-2018 gives it; null if no run has figures of every phase.
    pub average_max: Option<Spread<f64>>,
    /// The worst wake-ups of all runs, worst first.
    pub worst: Vec<WorstFigure>,
    /// What was counted on the measured CPU: interrupts of the unikernel. Empty elsewhere.
    pub counters: Vec<CounterFigure>,
    /// Each run's figures.
    pub each: Vec<WakeupRun>,
}

/// Holds the figures of one phase over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeupPhase {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load.
    pub load: String,
    /// Wake-ups of all runs that were planned in it, after its load began.
    pub woken: u64,
    /// Activations that these wake-ups missed.
    pub missed: u64,
    /// Wake-ups of all runs that were planned in it before its load began. They are in no figure.
    pub between_woken: u64,
    /// Activations that these wake-ups missed.
    pub between_missed: u64,
    /// Why it has no figure; null if a run has some.
    pub absent: Option<String>,
    /// Share of the activations that were missed; null if there were none.
    pub missed_share: Option<Spread<f64>>,
    /// Latencies of the wake-ups, as cyclictest defines them, of the runs that have some in this phase; null if none has.
    pub service: Option<LatencySpread>,
    /// Latencies of all activations, each missed one with what it waited; null likewise.
    pub response: Option<LatencySpread>,
}

/// Holds the figures of one thread over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ThreadPhases {
    /// Number of the thread, from 0.
    pub number: u32,
    /// CPU that it was pinned to in the first run.
    pub cpu: Option<u32>,
    /// Its figures of each phase.
    pub phases: Vec<WakeupPhase>,
}

impl WakeupCombination {
    /// Returns the phase in which an activation had to wait longest, with how long.
    #[must_use]
    pub fn worst_phase(&self) -> Option<(&WakeupPhase, f64)> {
        let phases = self.phases.iter();
        let longest = phases.filter_map(|phase| Some((phase, phase.service?.longest_ns())));
        longest.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Returns the longest wait of all, in ns; `None` without a wake-up.
    #[must_use]
    pub fn longest_ns(&self) -> Option<f64> {
        let threads = self.each.iter().flat_map(|run| &run.threads);
        threads
            .map(|thread| thread.max_ns as f64)
            .max_by(f64::total_cmp)
    }

    /// Returns all activations: wake-ups and missed ones.
    #[must_use]
    pub fn activations(&self) -> u64 {
        self.woken + self.missed
    }

    /// Says whether its latencies are those of a machine, or exactly repeatable: not whatever an emulator
    /// happened to do meanwhile.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        !self.emulated || self.clock == Clock::Instructions
    }
}

/// Puts the phases of runs together, by their places.
pub(super) fn phases(runs: &[&[PhaseRun]]) -> Vec<WakeupPhase> {
    let first = runs.first().copied().unwrap_or_default();
    let number = first.len();
    (0..number)
        .map(|place| {
            let of: Vec<&PhaseRun> = runs.iter().filter_map(|run| run.get(place)).collect();
            phase(&first[place], &of)
        })
        .collect()
}

fn phase(first: &PhaseRun, runs: &[&PhaseRun]) -> WakeupPhase {
    let shares: Vec<(f64, f64)> = runs
        .iter()
        .filter_map(|run| {
            let all = run.woken + run.missed;
            (all > 0).then_some((run.missed as f64, all as f64))
        })
        .collect();
    let all = |of: fn(&PhaseRun) -> Option<super::Latencies>| {
        let found: Vec<_> = runs.iter().filter_map(|run| of(run)).collect();
        LatencySpread::of(&found)
    };
    WakeupPhase {
        number: first.number,
        load: first.load.clone(),
        woken: runs.iter().map(|run| run.woken).sum(),
        missed: runs.iter().map(|run| run.missed).sum(),
        between_woken: runs.iter().map(|run| run.between_woken).sum(),
        between_missed: runs.iter().map(|run| run.between_missed).sum(),
        absent: first
            .absent
            .clone()
            .filter(|_| runs.iter().all(|run| run.absent.is_some())),
        missed_share: Spread::share(&shares),
        service: all(|run| run.service),
        response: all(|run| run.response),
    }
}

/// Puts the figures of each thread together, if there are several.
pub(super) fn threads(runs: &[WakeupRun]) -> Vec<ThreadPhases> {
    let Some(first) = runs.first().filter(|run| run.threads.len() > 1) else {
        return Vec::new();
    };
    let threads = first.threads.iter().enumerate();
    threads
        .map(|(place, thread)| {
            let own: Vec<&[PhaseRun]> = runs
                .iter()
                .filter_map(|run| Some(run.threads.get(place)?.phases.as_slice()))
                .collect();
            ThreadPhases {
                number: thread.number,
                cpu: thread.cpu,
                phases: phases(&own),
            }
        })
        .collect()
}

/// Says why figures over so many runs have no interval.
pub(super) fn refused(runs: usize) -> Option<String> {
    refusal(runs as u64)
}

//! What one cell says: per phase, of all threads together and of each.

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::model::{CellPlan, Load};
use tare_stats::{Counts, Response, StatsError};

use super::late;
use super::latency::Latencies;
use super::threads::Thread;

/// Holds the figures of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeupRun {
    /// Number of the cell.
    pub id: u32,
    /// Number of the block (run) that it belongs to.
    pub block: u32,
    /// Figures of each phase, all threads together.
    pub phases: Vec<PhaseRun>,
    /// The maximum, averaged over the phases, as landolfi-2018 gives it; null if a phase has no wake-up.
    pub average_max_ns: Option<f64>,
    /// The threads.
    pub threads: Vec<ThreadRun>,
}

/// Holds what one phase of one run says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PhaseRun {
    /// Number of the phase, from 0.
    pub number: u32,
    /// The load.
    pub load: String,
    /// Wake-ups that were planned in it, after its load began.
    pub woken: u64,
    /// Activations that these wake-ups missed.
    pub missed: u64,
    /// Wake-ups that were planned in it before its load began, while the one before had to end. They are in no figure.
    pub between_woken: u64,
    /// Activations that these wake-ups missed.
    pub between_missed: u64,
    /// Why it has no figure; null if it has.
    pub absent: Option<String>,
    /// Latencies of the wake-ups; null without any.
    pub service: Option<Latencies>,
    /// Latencies of all activations, each missed one with what it waited; null without any.
    pub response: Option<Latencies>,
}

/// Holds what one thread of one run says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ThreadRun {
    /// Number of the thread, from 0.
    pub number: u32,
    /// CPU that it was pinned to.
    pub cpu: Option<u32>,
    /// Time between two activations.
    pub interval_ns: u64,
    /// Wake-ups.
    pub woken: u64,
    /// Missed activations, as the thread counted them.
    pub missed: u64,
    /// Wake-ups that are in no figure but `woken`, since there was no room for their latencies.
    pub uncounted: u64,
    /// Longest latency, counted or not.
    pub max_ns: u64,
    /// Median time that recording one wake-up took.
    pub recording_ns: u64,
    /// Figures of each phase; empty if there is one thread only, whose figures are the cell's.
    pub phases: Vec<PhaseRun>,
}

/// Is what one cell adds to its combination.
#[derive(Debug)]
pub(crate) struct Contribution {
    pub run: WakeupRun,
    /// For each phase the counts of each thread with its interval.
    pub counts: Vec<Vec<(u64, Counts)>>,
}

/// Returns the loads of a cell, one for each phase.
pub(crate) fn loads(plan: &CellPlan) -> Vec<String> {
    if plan.phases.is_empty() {
        return vec![plan.load.clone()];
    }
    plan.phases.clone()
}

/// Returns how long each phase of a cell is; `None` if there is but one.
pub(crate) fn phase_ns(plan: &CellPlan) -> Option<f64> {
    plan.phase_seconds
        .filter(|_| plan.phases.len() > 1)
        .map(|seconds| seconds * 1e9)
}

/// Derives the figures of one cell.
///
/// Says what is wrong if its records contradict each other.
pub(crate) fn analyse(
    plan: &CellPlan,
    all: &[Thread<'_>],
    load: Option<&Load>,
) -> Result<Contribution, String> {
    let loads = loads(plan);
    let told = |error: StatsError| error.to_string();
    // For each phase the counts of each thread. What was woken before the load of its phase had begun is in no
    // phase's figures.
    let blank: Vec<(u64, Counts)> = all
        .iter()
        .map(|thread| (thread.interval_ns, Counts::default()))
        .collect();
    let mut counts = vec![blank; loads.len()];
    let mut between = counts.clone();
    for (place, thread) in all.iter().enumerate() {
        for set in &thread.sets {
            let Some(phase) = set.phase else { continue };
            let phases = if set.between {
                &mut between
            } else {
                &mut counts
            };
            let Some(of_phase) = phases.get_mut(phase as usize) else {
                return Err(format!(
                    "it has latencies of phase {phase}, counted from 0, but only {} phases; measure it again",
                    loads.len()
                ));
            };
            let rows = set.samples.counts.iter();
            let own = Counts::from_pairs(rows.map(|row| (row.value, row.count)));
            of_phase[place].1 = own.map_err(told)?;
        }
    }
    // Of all threads or of one.
    let figures = |threads: std::ops::Range<usize>| -> Result<Vec<PhaseRun>, StatsError> {
        let phases = (0..).zip(&loads).zip(counts.iter().zip(&between));
        phases
            .map(|((number, name), (own, between))| {
                let figures = phase(
                    number,
                    name,
                    &own[threads.clone()],
                    &between[threads.clone()],
                )?;
                Ok(PhaseRun {
                    absent: (figures.woken == 0).then(|| late::absent(plan, load, number)),
                    ..figures
                })
            })
            .collect()
    };
    let phases = figures(0..all.len()).map_err(told)?;
    let longest: Option<Vec<f64>> = phases
        .iter()
        .map(|phase| Some(phase.service?.max_ns as f64))
        .collect();
    let mut threads = Vec::new();
    for (place, thread) in all.iter().enumerate() {
        let own = figures(place..place + 1).map_err(told)?;
        let derived: u64 = own
            .iter()
            .map(|phase| phase.missed + phase.between_missed)
            .sum();
        if derived < thread.missed() && thread.uncounted() == 0 {
            return Err(format!(
                "its thread {} missed {} activations, but its latencies account for {derived} only; \
                 measure it again",
                thread.number,
                thread.missed()
            ));
        }
        threads.push(ThreadRun {
            number: thread.number,
            cpu: thread.cpu(),
            interval_ns: thread.interval_ns,
            woken: thread.woken(),
            missed: thread.missed(),
            uncounted: thread.uncounted(),
            max_ns: thread.max_ns(),
            recording_ns: thread.recording_ns(),
            phases: if all.len() > 1 { own } else { Vec::new() },
        });
    }
    Ok(Contribution {
        run: WakeupRun {
            id: plan.id,
            block: plan.block,
            average_max_ns: longest.map(|all| all.iter().sum::<f64>() / all.len() as f64),
            phases,
            threads,
        },
        counts,
    })
}

fn missed(counts: &[(u64, Counts)]) -> Result<u64, StatsError> {
    Ok(response(counts)?.missed())
}

fn response(counts: &[(u64, Counts)]) -> Result<Response<'_>, StatsError> {
    Response::of(counts.iter().map(|(interval, counts)| (counts, *interval)))
}

fn phase(
    number: u32,
    load: &str,
    counts: &[(u64, Counts)],
    between: &[(u64, Counts)],
) -> Result<PhaseRun, StatsError> {
    let response = response(counts)?;
    let service = Counts::merge_all(counts.iter().map(|(_, counts)| counts))?;
    Ok(PhaseRun {
        number,
        load: load.to_owned(),
        woken: service.total(),
        missed: response.missed(),
        between_woken: between.iter().map(|(_, counts)| counts.total()).sum(),
        between_missed: missed(between)?,
        absent: None,
        service: Latencies::service(&service),
        response: Latencies::response(&response),
    })
}

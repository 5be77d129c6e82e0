//! The figures of a comparison, and what they say together.

use tare_results::target::Clock;
use tare_stats::{Level, StatsError, rank_sum_p_value, shift};

use super::pair::Pair;
use super::{Comparison, Figure, ShiftRow};
use crate::analysis::{Interval, Spread};
use crate::format::Numbers;
use crate::wakeup::words::{time, under};
use crate::wakeup::{LatencyQuantile, PhaseRun, WakeupCombination};

const N: Numbers = Numbers::PLAIN;

/// Compares all figures of all phases of a pair.
pub(super) fn of(pair: &Pair<'_>) -> Vec<ShiftRow> {
    let phases = pair.first.phases.iter().enumerate();
    phases
        .flat_map(|(place, phase)| {
            Figure::ALL.map(|figure| {
                let values = |of: &WakeupCombination| values(of, place, figure);
                ShiftRow {
                    first_target: pair.first.target.clone(),
                    second_target: pair.second.target.clone(),
                    load: pair.first.load.clone(),
                    phase: phase.number,
                    phase_load: phase.load.clone(),
                    ..row(pair, figure, values(pair.first), values(pair.second))
                }
            })
        })
        .collect()
}

/// Returns a figure of each run; says what a run needs that does not carry it.
fn values(
    combination: &WakeupCombination,
    phase: usize,
    figure: Figure,
) -> Result<Vec<f64>, String> {
    let runs = combination.each.iter();
    runs.map(|run| {
        let phase = run.phases.get(phase);
        phase.map_or_else(
            || Err("a run lacks the phase".to_owned()),
            |phase| value(phase, figure),
        )
    })
    .collect()
}

fn value(phase: &PhaseRun, figure: Figure) -> Result<f64, String> {
    let response = phase.response.ok_or("a run has no wake-up in this phase")?;
    let quantile = |quantile: LatencyQuantile| match (quantile.ns, quantile.samples_needed) {
        (Some(ns), _) => Ok(ns as f64),
        (None, Some(needed)) => Err(format!(
            "{} needs {} activations in each run, a run has {}",
            figure.name(),
            N.count(needed),
            N.count(response.count)
        )),
        (None, None) => Err("a run lacks the figure".to_owned()),
    };
    match figure {
        Figure::Median => Ok(response.median_ns as f64),
        Figure::P99 => quantile(response.p99),
        Figure::P999 => quantile(response.p99_9),
        Figure::Max => Ok(response.max_ns as f64),
        Figure::MissedShare => Ok(phase.missed as f64 / (phase.woken + phase.missed).max(1) as f64),
    }
}

fn row(
    pair: &Pair<'_>,
    figure: Figure,
    first: Result<Vec<f64>, String>,
    second: Result<Vec<f64>, String>,
) -> ShiftRow {
    let median = |values: &Result<Vec<f64>, String>| -> Option<f64> {
        Some(Spread::of(values.as_ref().ok()?)?.median)
    };
    let mut row = ShiftRow {
        first_target: String::new(),
        second_target: String::new(),
        load: String::new(),
        phase: 0,
        phase_load: String::new(),
        figure,
        first: median(&first),
        second: median(&second),
        blocks: [pair.first.runs, pair.second.runs],
        shift: None,
        interval: None,
        p_value: None,
        adjusted_p_value: None,
        exact: false,
        differs: false,
        is_worse: false,
        refused: None,
    };
    let (first, second) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(why), _) | (_, Err(why)) => {
            row.refused = Some(why);
            return row;
        }
    };
    if pair.first.clock == Clock::Instructions && repeats(&first) && repeats(&second) {
        let by = second.first().zip(first.first()).map(|(b, a)| b - a);
        row.shift = by;
        row.exact = true;
        row.differs = by.is_some_and(|by| by != 0.0);
        return row;
    }
    match shift(&first, &second, Level::P95) {
        Ok(interval) => {
            row.shift = Some(interval.estimate);
            row.interval = Some(Interval::of(&interval));
        }
        Err(error) => {
            // The estimate needs no more than one run of each.
            let differences = second.iter().flat_map(|b| first.iter().map(move |a| b - a));
            row.shift = Spread::of(&differences.collect::<Vec<_>>()).map(|spread| spread.median);
            row.refused = Some(match error {
                StatsError::TooFew { needed, .. } => {
                    format!("an interval at 95 % needs {needed} runs of each")
                }
                other => other.to_string(),
            });
        }
    }
    row.p_value = rank_sum_p_value(&first, &second).ok();
    row
}

fn repeats(values: &[f64]) -> bool {
    values.windows(2).all(|two| two[0] == two[1])
}

/// Says in words what a comparison says.
pub(super) fn verdict(comparison: &Comparison) -> Vec<String> {
    let (worse, better): (Vec<&ShiftRow>, Vec<&ShiftRow>) = comparison
        .rows
        .iter()
        .filter(|row| row.differs)
        .partition(|row| row.is_worse);
    let exact = comparison.rows.iter().any(|row| row.exact);
    let mut said = Vec::new();
    let all = comparison.rows.len();
    if worse.is_empty() && better.is_empty() {
        if !comparison.can_tell {
            let there = comparison
                .rows
                .iter()
                .map(|row| row.blocks)
                .min()
                .unwrap_or_default();
            let needed = comparison
                .runs_needed
                .map_or_else(|| "more than 60".to_owned(), |needed| N.count(needed));
            return vec![format!(
                "Whether the runs differ cannot be told: of {} figures, one can be said to differ from {needed} runs of each \
                 on, and there are {} and {} (--runs).",
                comparison.tests, there[0], there[1]
            )];
        }
        let of = if exact {
            "is the same"
        } else {
            "is said to differ"
        };
        let none = if exact {
            format!("Each of {all} figures {of}.")
        } else {
            format!(
                "None of {all} figures {of}: differences are within what chance does, which does not prove that there are \
                 none; the intervals say how large they may be."
            )
        };
        said.push(none);
        return said;
    }
    for (rows, what) in [(&worse, "worse"), (&better, "better")] {
        let largest = rows.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let Some(largest) = largest else { continue };
        said.push(format!(
            "The second run is {what} in {} of {all} figures; most in {}{}: {} instead of {}.",
            rows.len(),
            largest.figure.name(),
            under(&largest.phase_load),
            written(largest.figure, largest.second),
            written(largest.figure, largest.first),
        ));
    }
    said
}

/// Returns by which factor a figure grew or shrank, whichever is more than 1.
fn ratio(row: &ShiftRow) -> f64 {
    let (Some(a), Some(b)) = (row.first, row.second) else {
        return 1.0;
    };
    // One activation in a million, or a ns, stands for nothing.
    let least = if row.figure == Figure::MissedShare {
        1e-6
    } else {
        1.0
    };
    let (a, b) = (a.max(least), b.max(least));
    (b / a).max(a / b)
}

/// Writes a figure with its unit.
pub(crate) fn written(figure: Figure, value: Option<f64>) -> String {
    match (figure, value) {
        (_, None) => crate::wakeup::words::NONE.to_owned(),
        (Figure::MissedShare, Some(share)) => N.percent(share),
        (_, Some(ns)) => time(N, ns),
    }
}

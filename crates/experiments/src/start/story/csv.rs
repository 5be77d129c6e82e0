//! `start.csv`: one row for each target, interval and run, with the columns of calder-2020 and
//! ours.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::Figure;
use tare_pages::kit::study_csv::{Field, OfCell, study_csv};
use tare_results::model::Arrived;

use super::super::exits::{ALL, EXITS, PART, REASON};
use super::ladder::{self, interval_ns};
use super::{calder_2020, work};

/// The name of the file.
pub(super) const FILE: &str = "start.csv";

/// Returns the columns.
const fn fields<'a>() -> [Field<OfCell<'a>>; 27] {
    [
        ("interval_s", |of| {
            Some((interval_ns(of.case)? as f64 / 1e9).to_string())
        }),
        ("kind", |of| Some(kind(of.case).to_owned())),
        ("latency_s", |of| {
            seconds(of, calder_2020::latency(of.case), Figure::Mean)
        }),
        ("throughput_per_s", |of| number(of, "rate", Figure::Rate)),
        ("target", |of| Some(of.plan().target.text.clone())),
        ("load", |of| Some(of.plan().load.to_string())),
        ("work", |of| Some(work(of.plan()).to_owned())),
        ("beside_engine", |of| {
            Some(of.plan().beside_engine.to_string())
        }),
        ("emulated", |of| Some(of.case.is_emulated().to_string())),
        ("run", |of| Some(of.plan().block.to_string())),
        ("ready_mean_s", |of| seconds(of, "ready", Figure::Mean)),
        ("ready_p50_s", |of| seconds(of, "ready", Figure::MEDIAN)),
        ("ready_p99_s", |of| seconds(of, "ready", Figure::P99)),
        ("ready_max_s", |of| seconds(of, "ready", Figure::Max)),
        ("exit_mean_s", |of| seconds(of, "exit", Figure::Mean)),
        ("lag_p99_s", |of| seconds(of, "lag", Figure::P99)),
        ("lag_max_s", |of| seconds(of, "lag", Figure::Max)),
        ("planned", |of| number(of, "offered", Figure::Total)),
        ("failed", |of| number(of, "failed", Figure::Total)),
        ("rejected", |of| number(of, "rejected", Figure::Total)),
        ("unfinished", |of| number(of, "unfinished", Figure::Total)),
        ("most_alive", |of| number(of, "live", Figure::Max)),
        ("exits_mean", |of| {
            let labels = [(PART, ALL), (REASON, ALL)];
            Some(of.value(EXITS, Figure::Mean, &labels)?.to_string())
        }),
        ("cpu_mean_s", |of| seconds(of, "cpu", Figure::Mean)),
        ("memory_p50_bytes", |of| {
            number(of, "memory", Figure::MEDIAN)
        }),
        ("saturated", |of| {
            at_a_rate(of).map(|arrived| arrived.saturated.is_some().to_string())
        }),
        ("open_loop", |of| {
            at_a_rate(of).map(|arrived| arrived.not_open_loop.is_none().to_string())
        }),
    ]
}

/// Returns the file; `None` if no starts were measured.
pub(super) fn file(run: &Run) -> Option<String> {
    let ladders = ladder::all(run).into_iter();
    let cases: Vec<Case<'_>> = ladders.flat_map(|ladder| ladder.cases).collect();
    study_csv(&fields(), OfCell::all(&cases))
}

fn kind<'a>(case: &Case<'a>) -> &'a str {
    calder_2020::kind(case).unwrap_or(&case.plan.target.kind)
}

fn number(of: &OfCell<'_>, measure: &str, figure: Figure) -> Option<String> {
    Some(of.value(measure, figure, &[])?.to_string())
}

fn seconds(of: &OfCell<'_>, measure: &str, figure: Figure) -> Option<String> {
    Some((of.value(measure, figure, &[])? / 1e9).to_string())
}

/// Returns the arrivals of a cell that were planned at a rate: started one after the other, there is
/// none to sustain.
fn at_a_rate<'a>(of: &OfCell<'a>) -> Option<&'a Arrived> {
    of.cell.plan.arrivals.as_ref()?.interval_ns?;
    of.cell.outcome.record()?.arrived.as_ref()
}

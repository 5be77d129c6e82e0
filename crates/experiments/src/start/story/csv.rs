//! `start.csv`: one row for each target, interval and run, with the columns of calder-2020 and ours.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::Figure;
use tare_pages::kit::series::Series;
use tare_results::csv::table;
use tare_results::model::{Arrived, Cell};

use super::ladder::{self, interval_ns};
use super::{calder_2020, work};

/// The name of the file.
pub(super) const FILE: &str = "start.csv";

/// The first line.
const HEADER: &str = "interval_s,kind,latency_s,throughput_per_s,target,load,work,beside_engine,emulated,run,ready_mean_s,ready_p50_s,\
ready_p99_s,ready_max_s,exit_mean_s,lag_p99_s,lag_max_s,planned,failed,refused,unfinished,most_alive,cpu_mean_s,memory_p50_bytes,saturated,\
open_loop";

/// Returns the file; `None` if no starts were measured. A figure that there is not is an empty field.
pub(super) fn file(run: &Run) -> Option<String> {
    let mut rows = Vec::new();
    for ladder in ladder::all(run) {
        for case in &ladder.cases {
            rows.extend(case.cells.iter().map(|cell| row(&ladder, case, cell)));
        }
    }
    (!rows.is_empty()).then(|| table(HEADER, rows))
}

fn row(ladder: &Series<'_>, case: &Case<'_>, cell: &Cell) -> Vec<String> {
    let plan = case.plan;
    let value = |measure: &str, figure| case.row(measure, figure, &[])?.of_cell(cell.plan.id);
    let written = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let seconds = |measure: &str, figure| written(value(measure, figure).map(|ns| ns / 1e9));
    let number = |measure: &str, figure| written(value(measure, figure));
    let arrived = cell
        .outcome
        .record()
        .and_then(|record| record.arrived.as_ref());
    let is = |of: fn(&Arrived) -> bool| arrived.map_or_else(String::new, |all| of(all).to_string());
    let kind = calder_2020::kind(ladder).unwrap_or(&plan.target.kind);
    vec![
        written(interval_ns(case).map(|ns| ns as f64 / 1e9)),
        kind.to_owned(),
        seconds(calder_2020::latency(case), Figure::Mean),
        number("rate", Figure::Rate),
        plan.target.text.clone(),
        plan.load.clone(),
        work(plan).to_owned(),
        plan.beside_engine.to_string(),
        case.is_emulated().to_string(),
        cell.plan.block.to_string(),
        seconds("ready", Figure::Mean),
        seconds("ready", Figure::MEDIAN),
        seconds("ready", Figure::P99),
        seconds("ready", Figure::Max),
        seconds("exit", Figure::Mean),
        seconds("lag", Figure::P99),
        seconds("lag", Figure::Max),
        number("offered", Figure::Total),
        number("failed", Figure::Total),
        number("refused", Figure::Total),
        number("unfinished", Figure::Total),
        number("live", Figure::Value),
        seconds("cpu", Figure::Mean),
        number("memory", Figure::MEDIAN),
        is(|all| all.saturated.is_some()),
        is(|all| all.not_open_loop.is_none()),
    ]
}

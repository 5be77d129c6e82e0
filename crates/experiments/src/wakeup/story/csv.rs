//! `wakeup-phases.csv`: one row for each target, phase and run, with the columns of landolfi-2018 and ours.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::Figure;
use tare_results::csv::table;
use tare_results::model::Cell;

use super::late;
use super::words::{Phase, cases};

/// The name of the file.
pub(super) const FILE: &str = "wakeup-phases.csv";

/// The first line.
const HEADER: &str = "target,load,traced,emulated,run,phase,phase_load,max_us,mean_us,sd_us,min_us,p50_us,\
p99_us,p99_9_us,p99_99_us,response_mean_us,response_sd_us,response_p50_us,response_p99_us,response_p99_9_us,\
response_p99_99_us,woken,missed,between_woken,between_missed,absent";

const SERVICE: [Figure; 8] = [
    Figure::Max,
    Figure::Mean,
    Figure::Sd,
    Figure::Min,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
];
const RESPONSE: [Figure; 6] = [
    Figure::Mean,
    Figure::Sd,
    Figure::MEDIAN,
    Figure::P99,
    Figure::P99_9,
    Figure::P99_99,
];
const COUNTED: [&str; 4] = ["wake-ups", "missed", "between", "missed between"];

/// Returns the file; `None` if no wake-ups were measured.
///
/// A figure that there is not, such as a quantile of too few latencies, is an empty field.
pub(super) fn file(run: &Run) -> Option<String> {
    let cases = cases(run);
    let rows: Vec<Vec<String>> = cases
        .iter()
        .flat_map(|case| case.cells.iter().map(move |cell| (case, *cell)))
        .flat_map(|(case, cell)| Phase::all(case.plan).map(move |phase| row(case, cell, phase)))
        .collect();
    (!rows.is_empty()).then(|| table(HEADER, rows))
}

fn row(case: &Case<'_>, cell: &Cell, phase: Phase<'_>) -> Vec<String> {
    let plan = case.plan;
    let value = |measure: &str, figure| phase.value(case, cell, measure, figure);
    let us = |measure: &str, figure| {
        let ns = value(measure, figure);
        ns.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e3))
    };
    let mut fields = vec![
        plan.target.text.clone(),
        plan.load.clone(),
        plan.is_traced().to_string(),
        case.is_emulated().to_string(),
        cell.plan.block.to_string(),
        phase.number.to_string(),
        phase.load.to_owned(),
    ];
    fields.extend(SERVICE.map(|figure| us("latency", figure)));
    fields.extend(RESPONSE.map(|figure| us("response", figure)));
    let counted = COUNTED.map(|measure| value(measure, Figure::Total).unwrap_or(0.0));
    fields.extend(counted.map(|count| count.to_string()));
    fields.push(match value("absent", Figure::Total) {
        Some(_) => late::absent(plan, cell.load.as_ref(), phase.number),
        None => String::new(),
    });
    fields
}

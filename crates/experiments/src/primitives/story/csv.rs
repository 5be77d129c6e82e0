//! `primitives.csv`: one row for each figure, with the columns of cse221-2022 and ours.

use tare_figures::Run;
use tare_figures::rows::{Figure, Row};
use tare_results::csv::table;

use super::tables::named;
use super::{estimate, known};

/// The name of the file.
pub(super) const FILE: &str = "primitives.csv";

/// The first line.
const HEADER: &str = "primitive,unit,predicted,measured,trials,target,load,emulated,ratio";

/// Returns the file; `None` if nothing was measured. What there is not is an empty field.
pub(super) fn file(run: &Run) -> Option<String> {
    let costs = known(run, "cost", Figure::Min).map(|row| (row, "expected"));
    let bandwidths = known(run, "bandwidth", Figure::Max).map(|row| (row, "expected-bandwidth"));
    let rows = costs.chain(bandwidths).map(|((row, value), expected)| {
        let beside = |measure: &str| {
            let mut all = run.rows.of(super::NAME, measure);
            let is_same = |other: &&Row| {
                other.labels == row.labels && other.target == row.target && other.load == row.load
            };
            let found = all.find(is_same).and_then(estimate);
            found.map_or_else(String::new, |value| value.to_string())
        };
        let trials: Vec<String> = row
            .each
            .iter()
            .filter_map(|each| Some(each.figure.value()?.to_string()))
            .collect();
        vec![
            named(&row.labels),
            row.unit.to_owned(),
            beside(expected),
            value.to_string(),
            trials.join(";"),
            row.target.clone(),
            row.load.clone(),
            row.emulated.to_string(),
            beside("ratio"),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| table(HEADER, rows))
}

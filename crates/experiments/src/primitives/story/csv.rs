//! `primitives.csv`: one row for each figure, with the columns of cse221-2022 and ours.

use tare_figures::Run;
use tare_figures::rows::{Figure, Row};
use tare_pages::kit::study_csv::{Field, study_csv};

use super::tables::named;
use super::{known, other};

/// The name of the file.
pub(super) const FILE: &str = "primitives.csv";

/// A figure with the measure of what was expected of it.
struct Line<'a> {
    run: &'a Run,
    row: &'a Row,
    expected: &'static str,
}

/// Returns the columns.
const fn fields<'a>() -> [Field<Line<'a>>; 9] {
    [
        ("primitive", |it| Some(named(&it.row.labels))),
        ("unit", |it| Some(it.row.unit.to_owned())),
        ("predicted", |it| it.other(it.expected)),
        ("measured", |it| Some(it.row.estimate()?.to_string())),
        ("trials", |it| Some(it.trials())),
        ("target", |it| Some(it.row.target.clone())),
        ("load", |it| Some(it.row.load.to_string())),
        ("emulated", |it| Some(it.row.emulated.to_string())),
        ("ratio", |it| it.other("ratio")),
    ]
}

/// Returns the file; `None` if nothing was measured.
pub(super) fn file(run: &Run) -> Option<String> {
    let costs = known(run, "cost", Figure::Best).map(|(row, _)| (row, "expected"));
    let bandwidths = known(run, "bandwidth", Figure::Best);
    let bandwidths = bandwidths.map(|(row, _)| (row, "expected-bandwidth"));
    let lines = costs.chain(bandwidths);
    study_csv(
        &fields(),
        lines.map(|(row, expected)| Line { run, row, expected }),
    )
}

impl Line<'_> {
    /// Returns a figure of another measure of the same primitive.
    fn other(&self, measure: &str) -> Option<String> {
        Some(other(self.run, self.row, measure)?.to_string())
    }

    fn trials(&self) -> String {
        let each = self.row.each.iter().filter_map(|each| each.figure.value());
        each.map(|value| value.to_string())
            .collect::<Vec<_>>()
            .join(";")
    }
}

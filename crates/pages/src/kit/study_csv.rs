//! CSV files with the columns of a published study, so that a script made for its data reads ours.

use tare_results::csv::table;
use tare_results::model::{Cell, CellPlan};

use tare_figures::cases::Case;
use tare_figures::rows::Figure;

/// A column of a file: its name, and how its field is made of what a line is of; `None` is an empty
/// field.
pub type Field<T> = (&'static str, fn(&T) -> Option<String>);

/// A line of a file that is of one cell.
#[derive(Clone, Copy, Debug)]
pub struct OfCell<'a> {
    /// The case.
    pub case: &'a Case<'a>,
    /// One of its cells.
    pub cell: &'a Cell,
}

/// Writes a file with a line for each of `lines`; `None` if there are none.
#[must_use]
pub fn study_csv<T>(fields: &[Field<T>], lines: impl IntoIterator<Item = T>) -> Option<String> {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let line = |of: T| {
        fields
            .iter()
            .map(move |(_, write)| write(&of).unwrap_or_default())
    };
    let lines: Vec<Vec<String>> = lines.into_iter().map(|of| line(of).collect()).collect();
    (!lines.is_empty()).then(|| table(&names.join(","), lines))
}

impl<'a> OfCell<'a> {
    /// Returns the cells of cases, case by case.
    pub fn all(cases: &'a [Case<'a>]) -> impl Iterator<Item = Self> {
        let cells = |case: &'a Case<'a>| case.cells.iter().map(move |cell| Self { case, cell });
        cases.iter().flat_map(cells)
    }

    /// Returns the plan of the cell.
    #[must_use]
    pub fn plan(&self) -> &'a CellPlan {
        &self.cell.plan
    }

    /// Returns a figure of the cell that has these labels besides the plan's; `None` if it has
    /// none.
    #[must_use]
    pub fn value(&self, measure: &str, figure: Figure, labels: &[(&str, &str)]) -> Option<f64> {
        let row = self.case.row(measure, figure, labels)?;
        let own = row
            .each
            .iter()
            .find(|each| each.cell == self.cell.plan.id)?;
        own.figure.value()
    }
}

//! Published figures next to those of a run: as a table, and drawn.

use crate::words::typeset;
use tare_figures::claims::{Comparison, Drawn, PublishedTable};
use tare_figures::format::Numbers;
use tare_figures::mark::Mark;
use tare_figures::rows::Row;

/// What stands in place of a figure that the run lacks.
pub const NOT_MEASURED: &str = "not measured in this run";

/// A figure that a study publishes.
#[derive(Clone, Copy)]
pub struct Quantity {
    /// Writes the published figure.
    pub published: fn(PublishedRow<'_>) -> String,
    /// Writes the run's figure, given its row and what stands for all runs.
    pub write: fn(&Row, f64) -> String,
    /// How both are drawn, if they are.
    pub drawn: Option<Drawing>,
}

/// How a published figure is drawn next to that of the run.
#[derive(Clone, Copy)]
pub struct Drawing {
    /// The title of the picture: `Mean duration`.
    pub picture: &'static str,
    /// The title of its axis, with the unit: `duration, µs`.
    pub across: &'static str,
    /// The unit behind figures that are written without one.
    pub unit: &'static str,
    /// Returns the published figure in the unit of the axis.
    pub published: fn(PublishedRow<'_>) -> Option<f64>,
    /// Brings a figure of a row to the unit of the axis.
    pub here: fn(&Row, f64) -> f64,
}

/// A published row, its fields by the names of the columns.
#[derive(Clone, Copy, Debug)]
pub struct PublishedRow<'t> {
    table: &'t PublishedTable,
    row: &'t [String],
}

/// The measured side of a published row.
pub struct Compared<'a> {
    /// The subject of the row's figure.
    pub what: String,
    /// The figures that are compared, as they are published.
    pub quantities: &'static [Quantity],
    /// The targets of the run that have such figures.
    pub subjects: Vec<Subject<'a>>,
}

/// A target of the run that a published row is compared with.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The target as it is written on the command line.
    pub target: String,
    /// The attributes that its rows in a picture share; empty if there are none.
    pub group: String,
    /// The name of its row in a picture.
    pub name: String,
    /// The caution behind its figures: `emulated`; empty without one.
    pub marks: String,
    /// The run's row of each quantity, as far as there is one.
    pub rows: Vec<Option<&'a Row>>,
}

impl<'t> PublishedRow<'t> {
    /// Returns a field; an empty one if there is none.
    #[must_use]
    pub fn field(&self, column: &str) -> &'t str {
        self.table.field(self.row, column)
    }

    /// Returns a field that is a number.
    #[must_use]
    pub fn number(&self, column: &str) -> Option<f64> {
        self.field(column).parse().ok()
    }
}

impl Quantity {
    fn drawn(&self, row: PublishedRow<'_>, own: &Row, subject: &Subject<'_>) -> Option<Drawn> {
        let drawing = self.drawn?;
        let to_axis = |value: f64| (drawing.here)(own, value);
        let with_unit = |text: String| match drawing.unit {
            "" => typeset(&text),
            unit => typeset(&Numbers::PLAIN.with_unit(&text, unit)),
        };
        let write = |value: f64| with_unit((self.write)(own, value));
        let here = Mark::of(own, 0, to_axis, write)?;
        Some(Drawn {
            picture: drawing.picture,
            across: drawing.across,
            group: subject.group.clone(),
            name: subject.name.clone(),
            published: ((drawing.published)(row)?, with_unit((self.published)(row))),
            here,
        })
    }
}

/// Returns the rows of published tables.
pub fn rows(tables: &[PublishedTable]) -> impl Iterator<Item = PublishedRow<'_>> {
    tables.iter().flat_map(|table| {
        let rows = table.rows.iter();
        rows.map(move |row| PublishedRow { table, row })
    })
}

/// Compares the rows of published tables with a run. `of` says what a row is compared with; `None`
/// if it is not compared. A subject that lacks one of the figures is not shown.
#[must_use]
pub fn compare<'a>(
    tables: &[PublishedTable],
    of: impl Fn(PublishedRow<'_>) -> Option<Compared<'a>>,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for (row, compared) in rows(tables).filter_map(|row| Some((row, of(row)?))) {
        let quantities = compared.quantities;
        let published = quantities.iter().map(|quantity| (quantity.published)(row));
        let published = published.collect::<Vec<_>>().join(" / ");
        let mut add = |target: Option<&str>, here: String, drawn: Vec<Drawn>| {
            comparisons.push(Comparison {
                what: compared.what.clone(),
                published: published.clone(),
                target: target.map(str::to_owned),
                here,
                drawn,
            });
        };
        let mut is_missing = true;
        for subject in &compared.subjects {
            let rows: Option<Vec<&Row>> = subject.rows.iter().copied().collect();
            let both = || quantities.iter().zip(rows.iter().flatten().copied());
            let here = both().map(|(quantity, own)| Some((quantity.write)(own, own.estimate()?)));
            let here: Option<Vec<String>> = here.collect();
            if let Some(here) = here.filter(|here| !here.is_empty()) {
                let drawn = both().filter_map(|(quantity, own)| quantity.drawn(row, own, subject));
                let mut here = here.join(" / ");
                if !subject.marks.is_empty() {
                    here.push_str(&format!(" ({})", subject.marks));
                }
                add(Some(&subject.target), here, drawn.collect());
                is_missing = false;
            }
        }
        if is_missing {
            add(None, NOT_MEASURED.to_owned(), Vec::new());
        }
    }
    comparisons
}

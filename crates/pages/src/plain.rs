//! The story of an experiment that brings no other: everything is made of rows.

use maud::Markup;

use crate::html::overview::overview;
use crate::html::{Detail, Section};
use crate::kit::sentence::{few_or_ends, figure_or_modes};
use crate::kit::series::native_first;
use crate::tables::{Column, Tabled};
use crate::view::Story;
use tare_figures::Run;
use tare_figures::rows::{Measure, Row, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;

/// The story, and the way to it: nothing is collected.
#[derive(Clone, Copy, Debug)]
pub struct Plain {
    experiment: &'static str,
    measures: &'static [Measure],
    picture: fn(&Run) -> Option<Section>,
}

impl Plain {
    /// Makes the story of an experiment that has these measures.
    #[must_use]
    pub const fn new(experiment: &'static str, measures: &'static [Measure]) -> Self {
        Self {
            experiment,
            measures,
            picture: |_| None,
        }
    }

    /// Adds a picture of the experiment's own, as a section of the page.
    #[must_use]
    pub const fn with_picture(self, picture: fn(&Run) -> Option<Section>) -> Self {
        Self { picture, ..self }
    }

    /// Returns the rows of the figure that stands for the experiment: the first of its first
    /// measure.
    fn main<'a>(&self, run: &'a Run) -> Vec<&'a Row> {
        let Some(measure) = self.measures.first() else {
            return Vec::new();
        };
        let rows = run.rows.of(self.experiment, measure.id);
        let rows = rows.filter(|row| Some(&row.figure) == measure.figures.first());
        rows.collect()
    }
}

impl Story for Plain {
    fn experiment(&self) -> &'static str {
        self.experiment
    }

    fn tables(&self, _run: &Run) -> Vec<Tabled> {
        let tables = self.measures.iter().map(|measure| {
            let mut columns: Vec<Column> = Vec::new();
            for figure in measure.figures {
                columns.push(Column::new("", measure.id, *figure));
                if columns.len() == 1 {
                    columns.push(Column::new("95 % interval", measure.id, *figure).interval());
                }
            }
            Tabled {
                title: words::capital(measure.title),
                read: String::new(),
                columns,
            }
        });
        tables.collect()
    }

    fn verdict(&self, run: &Run) -> Option<Verdict> {
        let (rows, _) = native_first(self.main(run), |row| row.emulated);
        let each = rows.iter().filter_map(|row| {
            let value = row.estimate()?;
            let written = figure_or_modes(row, written(value, row.unit), false);
            Some((value, format!("{written} on {}", row.place())))
        });
        let each: Vec<(f64, String)> = each.collect();
        let first = rows.iter().find(|row| row.over.is_ok())?;
        let title = words::capital(first.measure.title);
        Some(Verdict {
            headline: format!("{title}, {}: {}.", first.figure, few_or_ends(&each)),
            ..Verdict::default()
        })
    }

    fn first_picture(&self, run: &Run, _detail: &Detail) -> Option<Markup> {
        let rows = self.main(run);
        let first = rows.first()?;
        overview(
            &rows,
            words::capital(first.measure.title),
            first.measure.title,
        )
    }

    fn sections(&self, run: &Run, _detail: &Detail) -> Vec<Section> {
        (self.picture)(run).into_iter().collect()
    }
}

//! The story of an experiment that brings no other: everything is made of rows.

use maud::Markup;
use tare_stats::Level;

use crate::html::overview::overview;
use crate::html::{Detail, Section};
use crate::tables::{Column, Tabled};
use crate::view::Story;
use tare_figures::Run;
use tare_figures::format::Numbers;
use tare_figures::rows::{Measure, Row, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;

/// The number of targets up to which a sentence names each.
pub const MANY: usize = 4;

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

    /// Returns the rows of the figure that stands for the experiment: the first of its first measure.
    fn main<'a>(&self, run: &'a Run) -> Vec<&'a Row> {
        let first = self
            .measures
            .first()
            .and_then(|measure| Some((measure, measure.figures.first()?)));
        let rows = run.rows.0.iter().filter(|row| {
            row.experiment == self.experiment
                && first.is_some_and(|(measure, figure)| {
                    row.measure == measure && row.figure == *figure
                })
        });
        rows.collect()
    }

    /// Returns those among them that a sentence tells: of emulated targets only if there are no others.
    fn told<'a>(&self, run: &'a Run) -> Vec<&'a Row> {
        let mut rows = self.main(run);
        if rows.iter().any(|row| !row.emulated) {
            rows.retain(|row| !row.emulated);
        }
        rows
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
        let rows = self.told(run);
        let told: Vec<(&Row, f64)> = rows
            .iter()
            .filter_map(|row| Some((*row, row.over.as_ref().ok()?.estimate)))
            .collect();
        let (first, _) = told.first()?;
        let one = |(row, value): &(&Row, f64)| {
            format!("{} on {}", written(*value, row.unit), row.place())
        };
        let figures = match told.len() {
            ..=MANY => words::list(&told.iter().map(one).collect::<Vec<_>>()),
            many => {
                let by_value = |a: &&(&Row, f64), b: &&(&Row, f64)| a.1.total_cmp(&b.1);
                let ends = told
                    .iter()
                    .min_by(by_value)
                    .zip(told.iter().max_by(by_value));
                let ends = ends.map_or_else(String::new, |(low, high)| {
                    format!("{} to {}", one(low), one(high))
                });
                format!("{ends}, {many} in all")
            }
        };
        let title = words::capital(first.measure.title);
        let certainty = told
            .iter()
            .take(MANY)
            .map(|(row, _)| sure(&row.name(), row));
        let mut sure: Vec<String> = certainty.collect();
        sure.dedup();
        Some(Verdict {
            headline: format!("{title}, {}: {figures}.", first.figure),
            certainty: sure,
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

/// Says how sure a figure is: `Mean time lost: 1.5–2.2 % (95 % CI, 5 runs).`
#[must_use]
pub fn sure(what: &str, row: &Row) -> String {
    let over = match &row.over {
        Ok(over) => over,
        Err(refused) => return format!("{what}: {refused}."),
    };
    let range = |low: f64, high: f64| match row.unit {
        "1" => words::percent_range(Numbers::PLAIN, low, high),
        unit => format!("{} to {}", written(low, unit), written(high, unit)),
    };
    let one = written(over.lowest, row.unit);
    let text = match (&over.interval, over.runs) {
        (Ok(interval), _) => {
            let range = range(interval.low, interval.high);
            let runs = Numbers::PLAIN.count(over.runs);
            format!("{range} (95 % CI, {runs} runs)")
        }
        (Err(_), 1) => format!("{one} in a single run; measure several (--runs)"),
        (Err(_), runs) if over.lowest == over.highest => format!("{one} in each of {runs} runs"),
        (Err(_), runs) => {
            let needed = row.figure.kind().runs_needed(Level::P95);
            let range = range(over.lowest, over.highest);
            format!("{range} in {runs} runs; an interval needs {needed} (--runs)")
        }
    };
    format!("{what}: {text}.")
}

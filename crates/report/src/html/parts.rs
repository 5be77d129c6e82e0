//! Parts that all sections are made of: figures, legends, tables.

use maud::{Markup, PreEscaped, html};

use crate::analysis::{Combination, Time};
use crate::format::Numbers;
use crate::panels::{Panel, target_name};
use crate::svg::{Plot, colour};
use crate::words;

/// Is how the page writes numbers.
pub(super) const N: Numbers = Numbers::TYPESET;

/// Is what stands where there is no figure.
pub(super) const NONE: &str = "–";

/// Is a picture with what is needed to read it.
pub(super) struct Figure<'a> {
    pub title: String,
    /// What it shows and how to read it.
    pub read: String,
    pub legend: Markup,
    pub plot: &'a Plot,
    /// What stands behind it.
    pub table: Option<Table>,
}

/// Is a table: the first cell of each row names it. A line feed within a cell starts a new line.
#[derive(Default)]
pub(super) struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Figure<'_> {
    /// Renders the figure below a heading of the third level.
    pub fn render(self) -> Markup {
        html! {
            figure {
                h3 { (self.title) }
                p.read { (self.read) }
                (self.legend)
                div.plot tabindex="0" { (PreEscaped(self.plot.markup())) }
                @if let Some(table) = self.table {
                    details {
                        summary { "Figures" }
                        (table.render())
                    }
                }
            }
        }
    }
}

impl Table {
    /// Starts a table.
    pub fn new<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Self {
        Self {
            head: head.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.to_vec());
    }

    /// Renders the table within a part of the page that scrolls by itself.
    pub fn render(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table {
                    thead { tr { @for cell in &self.head { th scope="col" { (cell) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (place, cell) in row.iter().enumerate() {
                                    @if place == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a text in which commands stand between backticks.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Renders names and values one below the other.
pub(super) fn facts(rows: &[(&str, String)]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.facts {
                tbody {
                    @for (name, value) in rows {
                        tr { th scope="row" { (name) } td { (value) } }
                    }
                }
            }
        }
    }
}

/// Renders the targets of a panel with their colours.
pub(super) fn legend(panel: &Panel<'_>) -> Markup {
    let names = panel.members.iter().map(|(_, c)| target_name(c));
    legend_of(
        names
            .enumerate()
            .map(|(series, name)| (colour(series), name)),
    )
}

/// Renders names with the classes of their marks.
pub(super) fn legend_of(entries: impl IntoIterator<Item = (String, String)>) -> Markup {
    html! {
        ul.legend {
            @for (classes, name) in entries {
                li class=(classes) { (name) }
            }
        }
    }
}

/// Writes a duration in its own unit; a dash if the frequency is not known.
pub(super) fn time(figure: Option<Time>, combination: &Combination) -> String {
    figure
        .filter(|time| time.ns.is_some())
        .map_or_else(none, |time| {
            words::time(N, time, Some(combination.timer_step))
        })
}

/// Writes a duration in cycles, without the unit.
pub(super) fn cycles(figure: Option<Time>) -> String {
    figure.map_or_else(none, |time| words::cycles_figure(N, time.cycles))
}

/// Writes a duration both ways.
pub(super) fn both(figure: Option<Time>, combination: &Combination) -> String {
    figure.map_or_else(none, |time| {
        words::both(N, time, Some(combination.timer_step))
    })
}

pub(super) fn none() -> String {
    NONE.to_owned()
}

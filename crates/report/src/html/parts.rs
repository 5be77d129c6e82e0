//! Parts that all sections are made of: figures, legends, tables.

use maud::{Markup, PreEscaped, html};

use crate::analysis::{Combination, Time};
use crate::format::Numbers;
use crate::panels::{MANY, Panel, target_name};
use crate::svg::{Plot, colour};
use crate::words;

pub(super) use crate::words::NONE;

/// Is how the page writes numbers.
pub(super) const N: Numbers = Numbers::TYPESET;

/// Is how many outlines that lie over each other are filled.
const FILLED: usize = 3;

/// Is what a picture shows: some targets of a panel, on axes that fit all of them.
pub(super) struct View<'a> {
    pub whole: &'a Panel<'a>,
    pub part: Panel<'a>,
}

impl<'a> View<'a> {
    /// Divides a panel into what can be overlaid in one picture each.
    pub fn all(whole: &'a Panel<'a>) -> Vec<Self> {
        let parts = whole.parts().into_iter();
        parts.map(|part| Self { whole, part }).collect()
    }

    /// Completes the title of a picture.
    pub fn title(&self, title: &str) -> String {
        entitle(title, self.part.name_in(self.whole))
    }

    /// Completes how to read a picture: the first of several says it for all.
    pub fn read(&self, read: String) -> String {
        match (self.is_first(), self.part.name_in(self.whole)) {
            (true, None) => read,
            (true, Some(_)) => read + " The pictures of the other targets have the same axes.",
            (false, _) => String::new(),
        }
    }

    /// Returns the class of the outline of a series: filled as long as few lie over each other.
    pub fn outline(&self, series: usize) -> String {
        let kind = if self.is_filled() {
            "area"
        } else {
            "line thin dashed"
        };
        format!("{kind} {}", colour(series))
    }

    /// Renders the legend of outlines.
    pub fn outline_legend(&self) -> Markup {
        if self.is_filled() {
            legend(&self.part)
        } else {
            line_legend(&self.part)
        }
    }

    fn is_filled(&self) -> bool {
        self.part.members.len() <= FILLED
    }

    fn is_first(&self) -> bool {
        let first = |panel: &Panel<'_>| panel.members.first().map(|(place, _)| *place);
        first(&self.part) == first(self.whole)
    }
}

/// Adds the groups that a picture shows to its title.
pub(super) fn entitle(title: &str, part: Option<String>) -> String {
    part.map_or_else(|| title.to_owned(), |part| format!("{title}: {part}"))
}

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

/// Is a table: the first cell of each row names it, and a row of one cell is a heading. A line feed within a
/// cell starts a new line.
#[derive(Default)]
pub(super) struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Whether the last column holds sentences, not figures.
    pub ends_in_prose: bool,
}

impl Figure<'_> {
    /// Renders the figure below a heading of the third level.
    pub fn render(self) -> Markup {
        html! {
            figure {
                h3 { (self.title) }
                @if !self.read.is_empty() { p.read { (self.read) } }
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
            ..Self::default()
        }
    }

    /// Adds a row.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.to_vec());
    }

    /// Adds a heading for the rows below it.
    pub fn heading(&mut self, heading: &str) {
        self.rows.push(vec![heading.to_owned()]);
    }

    /// Renders the table within a part of the page that scrolls by itself.
    pub fn render(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table.prose[self.ends_in_prose] {
                    thead { tr { @for cell in &self.head { th scope="col" { (cell) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @if let ([heading], 2..) = (row.as_slice(), self.head.len()) {
                                    th.group colspan=(self.head.len()) scope="rowgroup" { span { (heading) } }
                                } @else {
                                    @for (place, cell) in row.iter().enumerate() {
                                        @if place == 0 { th scope="row" { (breakable(cell)) } } @else { td { (cell) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders a name that may be broken behind its commas.
fn breakable(name: &str) -> Markup {
    html! {
        @for (place, piece) in name.split_inclusive(',').enumerate() {
            @if place > 0 { wbr; }
            (piece)
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

/// Renders the targets of a panel with their colours, below the names of their groups if there are several
/// of a group.
pub(super) fn legend(panel: &Panel<'_>) -> Markup {
    keyed(panel, "")
}

/// Renders the targets of a panel with the lines by which they are drawn.
pub(super) fn line_legend(panel: &Panel<'_>) -> Markup {
    keyed(panel, " lines")
}

fn keyed(panel: &Panel<'_>, kind: &str) -> Markup {
    let groups = panel.groups();
    let is_grouped = groups.len() > 1 && panel.members.len() > MANY;
    html! {
        ul class={ "legend" (kind) } {
            @for (series, (_, combination)) in panel.members.iter().enumerate() {
                @let is_first = panel.members[..series].iter().all(|(_, c)| c.group != combination.group);
                @if is_grouped && is_first { li.group { (combination.group.name()) ":" } }
                li class=(colour(series)) {
                    @if !kind.is_empty() { (line_key(series)) }
                    (target_name(combination))
                }
            }
        }
    }
}

/// Draws a piece of the line of a series.
fn line_key(series: usize) -> Markup {
    html! {
        svg width="26" height="8" aria-hidden="true" {
            path class={ "line dashed " (colour(series)) } d="M0 4h26" {}
        }
    }
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

//! Parts that all sections are made of: figures, legends, tables.

use maud::{Markup, PreEscaped, html};

use crate::svg::Plot;
pub use crate::table::Table;
use crate::words::{pieces, typeset};
use tare_figures::format::Numbers;
use tare_figures::group::distinct;
use tare_figures::words::list;

/// How the page writes numbers.
pub const N: Numbers = Numbers::TYPESET;

/// A picture with what is needed to read it.
pub struct Figure<'a> {
    /// Its heading.
    pub title: String,
    /// The content, and how to read it.
    pub read: String,
    /// The meaning of its colours.
    pub legend: Markup,
    /// The picture.
    pub plot: &'a Plot,
    /// What stands behind it.
    pub table: Option<Table>,
}

impl Figure<'_> {
    /// Renders the figure below a heading of the third level.
    pub fn render(self) -> Markup {
        html! {
            figure {
                h3 { (self.title) }
                @if !self.read.is_empty() { p.read { (sentence(&self.read)) } }
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
    /// Renders the table within a part of the page that scrolls by itself.
    pub fn render(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table.prose[self.ends_in_prose] {
                    thead { tr { @for cell in &self.head { th scope="col" { (breakable(&typeset(cell))) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @if let ([heading], 2..) = (row.as_slice(), self.head.len()) {
                                    th.group colspan=(self.head.len()) scope="rowgroup" { span { (typeset(heading)) } }
                                } @else {
                                    @for (place, cell) in row.iter().enumerate() {
                                        @if place == 0 { th scope="row" { (breakable(&typeset(cell))) } } @else { td { (sentence(cell)) } }
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

/// Renders a name with its pieces.
fn breakable(name: &str) -> Markup {
    html! {
        @for (place, piece) in pieces(name).enumerate() {
            @if place > 0 { wbr; }
            (piece)
        }
    }
}

/// Renders a sentence for reading: typeset, with its commands and options.
pub(crate) fn sentence(text: &str) -> Markup {
    with_code(&typeset(text))
}

/// Renders a text in which commands stand between backticks. No line ends within an option.
pub(crate) fn with_code(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (place, part) in parts.iter().enumerate() {
            @match place % 2 {
                0 => { (options(part)) }
                _ if place + 1 < parts.len() => { code { (options(part)) } }
                // One without an end is another program's quotation mark.
                _ => { "`" (options(part)) }
            }
        }
    }
}

/// Renders words, each option as a whole: browsers end lines behind hyphens.
fn options(text: &str) -> Markup {
    html! {
        @for (place, word) in text.split(' ').enumerate() {
            @if place > 0 { " " }
            @if word.trim_start_matches('(').starts_with("--") { kbd { (word) } } @else { (word) }
        }
    }
}

/// Renders names and values one below the other.
pub fn facts(rows: &[(&str, String)]) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.facts {
                tbody {
                    @for (name, value) in rows {
                        tr { th scope="row" { (name) } td { (with_code(value)) } }
                    }
                }
            }
        }
    }
}

/// Says what a picture does not show; nothing if it shows all.
pub(crate) fn lacking_of(names: Vec<String>) -> String {
    match names.is_empty() {
        true => String::new(),
        false => format!(
            "Not drawn, because the figure is 0 or unknown: {}.",
            list(&distinct(names))
        ),
    }
}

/// Renders names with the classes of their marks.
pub fn legend_of(entries: impl IntoIterator<Item = (String, String)>) -> Markup {
    legend(entries, Vec::new())
}

/// Renders names with the classes of their marks, and in the same line what the symbols mean, each
/// as it is drawn.
pub fn legend(
    entries: impl IntoIterator<Item = (String, String)>,
    symbols: Vec<(Markup, String)>,
) -> Markup {
    let mut entries = entries.into_iter().peekable();
    html! {
        @if entries.peek().is_some() || !symbols.is_empty() {
            ul.legend {
                @for (classes, name) in entries {
                    li class=(classes) { (typeset(&name)) }
                }
                @for (drawing, meaning) in symbols {
                    li.symbol {
                        svg width="26" height="12" aria-hidden="true" { (drawing) }
                        (meaning)
                    }
                }
            }
        }
    }
}

/// Renders names with the lines of series, which differ in more than their colour.
pub fn line_legend(entries: impl IntoIterator<Item = (String, String)>) -> Markup {
    html! {
        ul class="legend lines" {
            @for (classes, name) in entries {
                li class=(classes) {
                    svg width="26" height="8" aria-hidden="true" {
                        path class={ "line dashed " (classes) } d="M0 4h26" {}
                    }
                    (name)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_whole_words() {
        let text = "keep `tare noise --cpu 1` off it (--load-cpus), well-known or not";
        let shown = "keep <code>tare noise <kbd>--cpu</kbd> 1</code> off it \
                     <kbd>(--load-cpus),</kbd> well-known or not";
        assert_eq!(sentence(text).into_string(), shown);
    }
}

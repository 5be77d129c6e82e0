//! The result on a terminal: the tables of each story, then what was not measured, then the verdict.
//!
//! The verdict comes last, where the eye is when a command has ended.

mod claims;
mod compare;
mod table;

use anstyle::{AnsiColor, Style};

use crate::analysis::{Analysis, LoadFigure, State, Summary};
use crate::format::Numbers;
use crate::tables;
use crate::words;

pub use claims::study;
pub use compare::{compare, compare_markdown};
pub use table::{BREAK, Table};

const N: Numbers = Numbers::PLAIN;

/// The narrowest terminal that tables are made for.
const LEAST_WIDTH: usize = 60;

/// Writes tables and verdict for a terminal of `width` columns, coloured if `colour`.
///
/// Ends with a line feed. Text is broken between words, table cells only if they must be.
#[must_use]
pub fn render(analysis: &Analysis, width: usize, colour: bool) -> String {
    let summary = analysis.summary();
    let mut page = Page::new(width, colour);
    for story in analysis.stories() {
        tables::terminal(story, analysis.run(), &mut page);
        story.terminal(analysis.run(), &mut page);
    }
    page.loads(&summary.loads);
    page.not_measured(summary);
    if let Some(reproduction) = &summary.reproduction {
        page.reproduction(reproduction);
    }
    page.remarks(analysis);
    page.verdict(summary);
    page.text
        .split_off(page.text.len() - page.text.trim_start().len())
}

/// A page of text that grows line by line.
#[derive(Debug)]
pub struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    fn new(width: usize, colour: bool) -> Self {
        Self {
            text: String::new(),
            width: width.max(LEAST_WIDTH),
            colour,
        }
    }

    /// Writes the cautions first, so that the sentence which sums it all up stands nearest the end.
    fn verdict(&mut self, summary: &Summary) {
        let verdict = &summary.verdict;
        let plain = Style::new();
        if !verdict.cautions.is_empty() {
            self.text.push('\n');
        }
        for caution in &verdict.cautions {
            self.paragraph(caution, AnsiColor::Yellow.on_default(), "! ");
        }
        self.text.push('\n');
        self.paragraph(&verdict.headline, Style::new().bold(), "");
        for detail in &verdict.details {
            self.paragraph(detail, plain, "");
        }
        for certainty in &verdict.certainty {
            self.paragraph(certainty, plain.dimmed(), "");
        }
    }

    /// Writes what the agents remarked: what they could not do, and what would let them.
    fn remarks(&mut self, analysis: &Analysis) {
        let summary = analysis.summary();
        let guests = words::guests(analysis.run());
        let daemons = (!summary.daemons.is_empty()).then(|| {
            format!(
                "daemons running meanwhile: {}; each may disturb what is measured beside it",
                words::daemons(&summary.daemons)
            )
        });
        let notices = summary.notices.iter().map(|notice| notice.text.clone());
        let remarks: Vec<String> = guests.into_iter().chain(daemons).chain(notices).collect();
        if !remarks.is_empty() {
            self.heading("Remarks");
        }
        for remark in remarks {
            self.paragraph(&remark, Style::new(), "- ");
        }
    }

    /// Writes a heading.
    pub fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.paragraph(text, Style::new().bold(), "");
    }

    /// Writes what the loads did: medians over the blocks with the range.
    fn loads(&mut self, loads: &[LoadFigure]) {
        let mut rows = Table::new(&["load", "what", "median", "range"]).left(&[1]);
        for (place, loads) in words::loads_by_place(loads) {
            if loads.iter().all(|load| load.rates.is_empty()) {
                continue;
            }
            rows.heading(place);
            for load in loads {
                for (number, rate) in load.rates.iter().enumerate() {
                    rows.row(words::load_row(N, load, rate, number == 0));
                }
            }
        }
        if !rows.is_empty() {
            self.heading("Loads, as achieved");
            self.table(&rows);
        }
    }

    /// Returns how many columns it has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes a table.
    pub fn table(&mut self, table: &Table) {
        table.write(self);
    }

    /// Writes a remark on what stands before it.
    pub fn note(&mut self, text: &str) {
        self.paragraph(text, Style::new().dimmed(), "");
    }

    fn not_measured(&mut self, summary: &Summary) {
        const SHOWN: usize = 5;
        if summary.not_measured.is_empty() {
            return;
        }
        self.heading("Not measured");
        for cell in summary.not_measured.iter().take(SHOWN) {
            let left_out = match cell.state {
                State::LeftOut => "left out: ",
                _ => "",
            };
            let text = format!(
                "cell {}, {}: {left_out}{}",
                cell.id, cell.label, cell.reason
            );
            self.paragraph(&text, Style::new(), "- ");
        }
        let more = summary.not_measured.len().saturating_sub(SHOWN);
        if more > 0 {
            let text = format!("{more} more; the report lists all of them");
            self.paragraph(&text, Style::new(), "- ");
        }
    }

    /// Writes text broken between words, the first line after `mark`, the others below it.
    fn paragraph(&mut self, text: &str, style: Style, mark: &str) {
        let indent = mark.chars().count();
        let mut line = String::new();
        let mut lines = Vec::new();
        for word in text.split_whitespace() {
            let length = line.chars().count() + word.chars().count();
            if !line.is_empty() && length + 1 + indent > self.width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
        for (number, line) in lines.iter().enumerate() {
            let before = if number == 0 {
                mark.to_owned()
            } else {
                " ".repeat(indent)
            };
            if self.colour {
                self.text
                    .push_str(&format!("{before}{style}{line}{style:#}\n"));
            } else {
                self.text.push_str(&format!("{before}{line}\n"));
            }
        }
    }
}

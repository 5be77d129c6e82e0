//! The result on a terminal: the tables of each story, then what was not measured, then the verdict.
//!
//! The verdict comes last, where the eye is when a command has ended.

mod claims;
mod compare;
mod table;
mod text;

use anstyle::{AnsiColor, Style};
use tare_host::visible;

use crate::Report;
use crate::tables;
use tare_figures::analysis::{LoadFigure, Summary};
use tare_figures::findings::{NotMeasured, State};
use tare_figures::format::Numbers;
use tare_figures::words::counted;

use crate::words;

pub use claims::study;
pub use compare::{compare, compare_markdown};
pub use table::{BREAK, Table};
pub use text::Text;

const N: Numbers = Numbers::PLAIN;

/// The narrowest terminal that tables are made for.
const LEAST_WIDTH: usize = 60;

/// The column up to which the last part of a line may begin.
const MOST_INDENT: usize = 30;

/// Writes tables and verdict for `width` columns; those of a study that is reproduced come after its claims.
///
/// Ends with a line feed. Text is broken between words.
#[must_use]
pub fn text(report: &Report, width: usize) -> Text {
    let summary = report.summary();
    let mut page = Page::new(width);
    if let Some(reproduction) = &summary.reproduction {
        page.reproduction(reproduction);
    }
    for story in report.stories() {
        tables::terminal(story, report.run(), &mut page);
        story.terminal(report.run(), &mut page);
    }
    page.loads(&summary.loads);
    page.not_measured(summary);
    page.remarks(report);
    page.verdict(summary);
    page.text
}

/// Writes the verdict only.
#[must_use]
pub fn verdict(report: &Report, width: usize) -> Text {
    let mut page = Page::new(width);
    page.verdict(report.summary());
    page.text
}

/// Writes [`text`] as it reaches a terminal, coloured if `colour`.
#[must_use]
pub fn render(report: &Report, width: usize, colour: bool) -> String {
    text(report, width).render(colour)
}

/// A page of text that grows line by line.
#[derive(Debug)]
pub struct Page {
    text: Text,
    width: usize,
}

impl Page {
    /// Starts a page of so many columns.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self {
            text: Text::default(),
            width: width.max(LEAST_WIDTH),
        }
    }

    /// Returns what was written.
    #[must_use]
    pub fn finish(self) -> Text {
        self.text
    }

    /// Sets what follows apart, if something stands before it.
    pub fn blank(&mut self) {
        if !self.text.is_empty() {
            self.text.push("\n");
        }
    }

    /// Writes the cautions first, so that the sentence which sums it all up stands nearest the end.
    fn verdict(&mut self, summary: &Summary) {
        let verdict = &summary.verdict;
        let plain = Style::new();
        if !verdict.cautions.is_empty() {
            self.blank();
        }
        for caution in &verdict.cautions {
            self.paragraph(caution, AnsiColor::Yellow.on_default(), "! ");
        }
        self.blank();
        self.paragraph(&verdict.headline, Style::new().bold(), "");
        for detail in &verdict.details {
            self.paragraph(detail, plain, "");
        }
        for certainty in &verdict.certainty {
            self.paragraph(certainty, plain.dimmed(), "");
        }
    }

    /// Writes what the agents remarked: what they could not do, and what would let them.
    fn remarks(&mut self, report: &Report) {
        let summary = report.summary();
        let guests = words::guests(report.run());
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
        self.blank();
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
        // What one cause left out is told once.
        let mut causes: Vec<(&NotMeasured, u64)> = Vec::new();
        for cell in &summary.not_measured {
            let is_same = |known: &NotMeasured| {
                known.state == State::LeftOut
                    && (known.state, &known.reason) == (cell.state, &cell.reason)
            };
            match causes.iter_mut().find(|(known, _)| is_same(known)) {
                Some((_, more)) => *more += 1,
                None => causes.push((cell, 0)),
            }
        }
        for (cell, others) in causes.iter().take(SHOWN) {
            let left_out = match cell.state {
                State::LeftOut => "left out: ",
                _ => "",
            };
            let others = match others {
                0 => String::new(),
                others => format!(" and {}", counted(N, *others, "more cell", "more cells")),
            };
            let text = format!(
                "cell {}, {}{others}: {left_out}{}",
                cell.id, cell.label, cell.reason
            );
            self.paragraph(&text, Style::new(), "- ");
        }
        let more = causes.len().saturating_sub(SHOWN);
        if more > 0 {
            let text = format!("{more} more; the report lists all of them");
            self.paragraph(&text, Style::new(), "- ");
        }
    }

    /// Writes text broken between words, the first line after `mark`, the others below it. A word that is longer than a line
    /// is broken behind a comma or a slash, as targets and paths have them.
    pub fn paragraph(&mut self, text: &str, style: Style, mark: &str) {
        self.broken(text, style, (mark, Style::new()));
    }

    /// Writes lines, what is broken below the column in which a line's last part begins: behind its last two blanks.
    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            let room = line.char_indices().nth(MOST_INDENT);
            let before = room.map_or(line, |(at, _)| &line[..at]);
            let begin = before.rfind("  ").map_or(0, |at| at + 2);
            let begin = line.len() - line[begin..].trim_start().len();
            self.paragraph(&line[begin..], Style::new(), &line[..begin]);
        }
    }

    /// Writes text broken between words behind a mark that has a style.
    pub fn marked(&mut self, text: &str, mark: (&str, Style)) {
        self.broken(text, Style::new(), mark);
    }

    fn broken(&mut self, text: &str, style: Style, (mark, of_mark): (&str, Style)) {
        let indent = mark.chars().count();
        let lines = broken(text, self.width.saturating_sub(indent).max(1));
        for (number, line) in lines.iter().enumerate() {
            match number {
                0 => self.text.styled(of_mark, mark),
                _ => self.text.push(&" ".repeat(indent)),
            }
            self.text.styled(style, line);
            self.text.push("\n");
        }
    }
}

/// Breaks text between words into lines of `width` columns, no number from its unit; there is at least one.
#[must_use]
pub fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words::with_units(visible(text).split_whitespace(), " ") {
        let long = word.chars().count() > width;
        let pieces = word.split_inclusive(|c| long && matches!(c, ',' | '/'));
        for (number, piece) in pieces.enumerate() {
            let line = lines.last().map_or("", String::as_str);
            let between = if number == 0 && !line.is_empty() {
                " "
            } else {
                ""
            };
            let with = format!("{line}{between}{piece}");
            match lines.last_mut() {
                Some(line) if line.is_empty() || with.chars().count() <= width => *line = with,
                _ => lines.push(piece.to_owned()),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_never_within_a_figure() {
        assert_eq!(
            broken("94 were missed (2.35 %), the last by 12 µs", 20),
            ["94 were missed", "(2.35 %), the last", "by 12 µs"]
        );
        // A target has no blanks, and is broken behind a comma only if it is longer than a line.
        assert_eq!(
            broken("on linux,kernel=debian-rt,cpus=2 and more", 25),
            ["on linux,", "kernel=debian-rt,cpus=2", "and more"]
        );
        assert_eq!(broken("", 20), [""]);
    }
}

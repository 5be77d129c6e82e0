//! Text for a terminal: pieces with their styles, lines, tables.

mod styled;
mod table;

use anstyle::Style;
use tare_host::visible;

use crate::table::Table;
use crate::words;

pub use styled::Text;

/// The narrowest terminal that tables are made for.
const LEAST_WIDTH: usize = 40;

/// The column up to which the last part of a line may begin.
const MOST_INDENT: usize = 30;

/// A page of text that grows line by line.
#[derive(Debug)]
pub struct Page {
    text: Text,
    width: usize,
}

impl Page {
    /// Starts a page of a width in columns.
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

    /// Writes a heading.
    pub fn heading(&mut self, text: &str) {
        self.blank();
        self.paragraph(text, Style::new().bold(), "");
    }

    /// Returns how many columns it has.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes a table.
    pub fn table(&mut self, table: &Table) {
        table::write(table, self);
    }

    /// Returns the places of a table's columns that it has room for.
    pub(crate) fn shown(&self, table: &Table) -> Vec<usize> {
        table::shown(table, self.width)
    }

    /// Writes a remark on what stands before it.
    pub fn note(&mut self, text: &str) {
        self.paragraph(text, Style::new().dimmed(), "");
    }

    /// Writes text broken between words, the first line after `mark`, the others below it. A word
    /// that is longer than a line is broken behind a comma or a slash, as targets and paths have
    /// them.
    pub fn paragraph(&mut self, text: &str, style: Style, mark: &str) {
        self.broken(text, style, (mark, Style::new()));
    }

    /// Writes lines, what is broken below the column in which a line's last part begins: behind its
    /// last two blanks.
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

/// Breaks text between words into lines of `width` columns, no number from its unit; there is at
/// least one.
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

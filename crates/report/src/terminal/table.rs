//! Tables on a terminal, some of whose rows are texts across all columns.
//!
//! Columns are as wide as their widest cell as long as all fit. If they don't, the widest give way first: at blanks, at
//! [`BREAK`], and only then within words.

use anstyle::Style;

use super::Page;

/// A place where a name without blanks may be broken: a blank of no width.
pub const BREAK: char = '\u{200b}';

/// Stands between two columns.
const BETWEEN: usize = 2;

/// Stands before a text that says more of the row above it.
const INDENT: &str = "    ";

/// A table: the first column is aligned to the left, the others to the right unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    left: Vec<usize>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    /// Names what the rows below it have in common.
    Heading(String),
    /// Says more of the row above it.
    Below(String),
}

impl Table {
    /// Starts a table. A head may have several lines.
    #[must_use]
    pub fn new(head: &[impl AsRef<str>]) -> Self {
        Self {
            head: head.iter().map(|name| name.as_ref().to_owned()).collect(),
            left: vec![0],
            rows: Vec::new(),
        }
    }

    /// Aligns columns to the left that hold words.
    #[must_use]
    pub fn left(mut self, columns: &[usize]) -> Self {
        self.left.extend(columns);
        self
    }

    /// Returns whether it has no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row of cells, the first of which names it.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(Row::Cells(cells.into_iter().collect()));
    }

    /// Adds a text that names what the rows below it have in common.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Heading(text.into()));
    }

    /// Adds a text that says more of the row above it.
    pub fn below(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Below(text.into()));
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) | Row::Below(_) => None,
        });
        let (mut widths, mut least) = (vec![0; self.head.len()], vec![1; self.head.len()]);
        for row in std::iter::once(&self.head).chain(cells) {
            for ((cell, width), least) in row.iter().zip(&mut widths).zip(&mut least) {
                *width = cell.lines().map(length).max().unwrap_or(0).max(*width);
                *least = pieces(cell).map(length).max().unwrap_or(0).max(*least);
            }
        }
        let between = BETWEEN * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + between > width {
            let by_blanks = (0..widths.len()).filter(|&at| widths[at] > least[at]);
            let in_words = (0..widths.len()).filter(|&at| widths[at] > 1);
            let widest = by_blanks.max_by_key(|&at| widths[at]);
            let Some(at) = widest.or_else(|| in_words.max_by_key(|&at| widths[at])) else {
                break;
            };
            widths[at] -= 1;
        }
        widths
    }

    /// Returns it as text without colour, without a line feed at its end.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut page = Page::new(width, false);
        self.write(&mut page);
        page.text.trim_end().to_owned()
    }

    /// Writes it onto a page.
    pub(super) fn write(&self, page: &mut Page) {
        let widths = self.widths(page.width);
        self.cells(&self.head, &widths, page);
        for (place, row) in self.rows.iter().enumerate() {
            match row {
                Row::Cells(cells) => self.cells(cells, &widths, page),
                Row::Heading(text) => {
                    // A blank line sets groups apart, but not the first from the head of the table.
                    if place > 0 {
                        page.text.push('\n');
                    }
                    page.paragraph(text, Style::new().dimmed(), "");
                }
                Row::Below(text) => page.paragraph(text, Style::new(), INDENT),
            }
        }
    }

    fn cells(&self, cells: &[String], widths: &[usize], page: &mut Page) {
        let broken: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| wrapped(cell, *width))
            .collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            for (column, (lines, width)) in broken.iter().zip(widths).enumerate() {
                let text = lines.get(at).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(length(text)));
                if column > 0 {
                    line.push_str(&" ".repeat(BETWEEN));
                }
                match self.left.contains(&column) {
                    true => line.push_str(&format!("{text}{blanks}")),
                    false => line.push_str(&format!("{blanks}{text}")),
                }
            }
            page.text.push_str(line.trim_end());
            page.text.push('\n');
        }
    }
}

/// Returns how many columns a text takes.
fn length(text: &str) -> usize {
    text.chars().filter(|c| *c != BREAK).count()
}

/// Divides a cell where it may be broken; each piece but those before a line feed keeps what ends it.
fn pieces(cell: &str) -> impl Iterator<Item = &str> {
    cell.lines()
        .flat_map(|line| line.split_inclusive([' ', BREAK]))
        .map(|piece| piece.trim_end_matches(' '))
}

/// Breaks a cell into lines that are no longer than `width`.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in cell.lines() {
        let mut current = String::new();
        for piece in line.split_inclusive([' ', BREAK]) {
            let with = length(&current) + length(piece.trim_end_matches(' '));
            if !current.is_empty() && with > width {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
            }
            for c in piece.chars().filter(|c| *c != BREAK) {
                if c != ' ' && length(&current) >= width {
                    lines.push(std::mem::take(&mut current));
                }
                current.push(c);
            }
        }
        lines.push(current.trim_end().to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, width: usize) -> String {
        let mut page = Page::new(60, false);
        page.width = width;
        table.write(&mut page);
        page.text
    }

    #[test]
    fn columns_are_aligned_and_texts_stand_across() {
        let mut table = Table::new(&["name", "count", "why"]).left(&[2]);
        table.heading("the first");
        table.row(["a", "1", "one"].map(String::from));
        table.below("said of a");
        table.heading("the second");
        table.row(["bcd", "1,000", "-"].map(String::from));
        assert_eq!(
            written(&table, 60),
            "name  count  why\nthe first\na         1  one\n    said of a\n\nthe second\nbcd   1,000  -\n"
        );
    }

    #[test]
    fn the_widest_column_gives_way_first_and_words_are_broken_last() {
        let mut table = Table::new(&["name", "n"]);
        table.row([format!("linux,{BREAK}a=1,{BREAK}b=2 x"), "123".to_owned()]);
        assert_eq!(
            written(&table, 16),
            "name           n\nlinux,a=1,   123\nb=2 x\n"
        );
        assert_eq!(
            written(&table, 8),
            "nam    n\ne\nlin  123\nux,\na=1\n,\nb=2\nx\n"
        );
    }
}

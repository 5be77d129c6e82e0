//! Tables on a terminal, some of whose rows are texts across all columns.
//!
//! Columns are as wide as their widest cell. If not all of them fit, long names stand on lines of their own, and columns that
//! can be spared go, one after the other. What is still too wide gives way at blanks, at [`BREAK`], and only then within
//! words.

use anstyle::Style;
use tare_host::{visible, visible_in_line};

use super::Page;

/// A place where a name without blanks may be broken: a blank of no width.
pub const BREAK: char = '\u{200b}';

/// Stands between two columns.
const BETWEEN: usize = 2;

/// Stands before a text that says more of the row above it.
const INDENT: &str = "    ";

/// Stands before the figures of a row whose name has a line of its own.
const APART: &str = "  ";

/// The length from which names may stand on lines of their own.
const LONG: usize = 17;

/// A table: the first column is aligned to the left, the others to the right unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    left: Vec<usize>,
    spared: Vec<usize>,
    names_are_prose: bool,
    rows: Vec<Row>,
}

/// What of a table is shown, and how wide.
struct Layout {
    /// The columns, with their widths.
    columns: Vec<(usize, usize)>,
    /// Whether names have lines of their own.
    is_apart: bool,
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
            ..Self::default()
        }
    }

    /// Lets columns go where there is no room for all of them, the first of these first.
    #[must_use]
    pub fn sparing(mut self, columns: &[usize]) -> Self {
        self.spared.extend(columns);
        self
    }

    /// Breaks its names between words rather than giving them lines of their own.
    #[must_use]
    pub fn of_prose(mut self) -> Self {
        self.names_are_prose = true;
        self
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

    /// Adds a row of cells, the first of which names it. Only what is aligned to the right, figures, may have several lines:
    /// words may come from anywhere, and must not end the line that they stand in.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let shown = cells.into_iter().enumerate().map(|(at, cell)| {
            let shown = match self.left.contains(&at) {
                true => visible_in_line(&cell),
                false => visible(&cell),
            };
            shown.into_owned()
        });
        self.rows.push(Row::Cells(shown.collect()));
    }

    /// Adds a text that names what the rows below it have in common.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Heading(text.into()));
    }

    /// Adds a text that says more of the row above it.
    pub fn below(&mut self, text: impl Into<String>) {
        self.rows.push(Row::Below(text.into()));
    }

    fn layout(&self, width: usize) -> Layout {
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
        let of = |columns: &[usize]| columns.iter().map(|&at| (at, widths[at])).collect();
        let taken = |widths: &[usize], columns: &[usize]| {
            let all: usize = columns.iter().map(|&at| widths[at]).sum();
            all + BETWEEN * columns.len().saturating_sub(1)
        };
        let is_long = !self.names_are_prose && widths.first().is_some_and(|name| *name >= LONG);
        let mut shown: Vec<usize> = (0..widths.len()).collect();
        for gone in self.spared.iter().map(Some).chain([None]) {
            if taken(&widths, &shown) <= width {
                let columns = of(&shown);
                let is_apart = false;
                return Layout { columns, is_apart };
            }
            if is_long && APART.len() + taken(&widths, &shown[1..]) <= width {
                let columns = of(&shown[1..]);
                let is_apart = true;
                return Layout { columns, is_apart };
            }
            shown.retain(|at| Some(at) != gone);
        }
        while taken(&widths, &shown) > width {
            let by_blanks = shown.iter().filter(|&&at| widths[at] > least[at]);
            let in_words = shown.iter().filter(|&&at| widths[at] > 1);
            let widest = by_blanks.max_by_key(|&&at| widths[at]);
            let Some(&at) = widest.or_else(|| in_words.max_by_key(|&&at| widths[at])) else {
                break;
            };
            widths[at] -= 1;
        }
        Layout {
            columns: shown.iter().map(|&at| (at, widths[at])).collect(),
            is_apart: false,
        }
    }

    /// Returns it as text without colour, without a line feed at its end.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut page = Page::new(width);
        self.write(&mut page);
        page.text.to_string().trim_end().to_owned()
    }

    /// Writes it onto a page.
    pub(super) fn write(&self, page: &mut Page) {
        let layout = self.layout(page.width);
        self.cells(&self.head, &layout, page);
        for (place, row) in self.rows.iter().enumerate() {
            match row {
                Row::Cells(cells) => self.cells(cells, &layout, page),
                Row::Heading(text) => {
                    // A blank line sets groups apart, but not the first from the head of the table.
                    if place > 0 {
                        page.blank();
                    }
                    page.paragraph(text, Style::new().dimmed(), "");
                }
                Row::Below(text) => page.paragraph(text, Style::new(), INDENT),
            }
        }
    }

    fn cells(&self, cells: &[String], layout: &Layout, page: &mut Page) {
        let name = cells
            .first()
            .filter(|name| layout.is_apart && !name.is_empty());
        if let Some(name) = name {
            page.paragraph(&name.replace(BREAK, ""), Style::new(), "");
        }
        let columns = layout.columns.iter();
        let broken: Vec<(usize, usize, Vec<String>)> = columns
            .filter_map(|&(at, width)| Some((at, width, wrapped(cells.get(at)?, width))))
            .collect();
        let height = broken.iter().map(|(.., lines)| lines.len()).max();
        for line_at in 0..height.unwrap_or(0) {
            let mut line = String::new();
            if layout.is_apart {
                line.push_str(APART);
            }
            for (place, (at, width, lines)) in broken.iter().enumerate() {
                let text = lines.get(line_at).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(length(text)));
                if place > 0 {
                    line.push_str(&" ".repeat(BETWEEN));
                }
                match self.left.contains(at) {
                    true => line.push_str(&format!("{text}{blanks}")),
                    false => line.push_str(&format!("{blanks}{text}")),
                }
            }
            page.text.push(line.trim_end());
            page.text.push("\n");
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
        let mut page = Page::new(60);
        page.width = width;
        table.write(&mut page);
        page.text.to_string()
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
    fn long_names_get_lines_of_their_own_before_columns_go() {
        let mut table = Table::new(&["", "first", "second", "third"]).sparing(&[3, 1]);
        table.heading("a group");
        table.row(["linux,kernel=debian", "1.5 ms", "2.5 ms", "1,234,567"].map(String::from));
        table.row(["process", "1 ns", "2 ns", "3 ns"].map(String::from));
        table.below("said of it");
        assert_eq!(
            written(&table, 30),
            "   first  second      third\na group\nlinux,kernel=debian\n  1.5 ms  2.5 ms  1,234,567\nprocess\n    1 ns    \
             2 ns       3 ns\n    said of it\n"
        );
        assert_eq!(
            written(&table, 20),
            "   first  second\na group\nlinux,kernel=debian\n  1.5 ms  2.5 ms\nprocess\n    1 ns    2 ns\n    said of it\n"
        );
        // Short names stay beside their figures.
        let mut table = Table::new(&["", "first", "second"]).sparing(&[1]);
        table.row(["process", "1.5 ms", "2.5 ms"].map(String::from));
        assert_eq!(written(&table, 20), "         second\nprocess  2.5 ms\n");
    }

    #[test]
    fn a_name_ends_no_line() {
        let mut table = Table::new(&["name", "n"]);
        table.row(["dd\nCPU 1 lost 0 %\u{1b}[2J".to_owned(), "1\n2".to_owned()]);
        assert_eq!(
            written(&table, 60),
            "name                         n\ndd\\nCPU 1 lost 0 %\\u001b[2J  1\n                             2\n"
        );
    }

    #[test]
    fn the_widest_column_gives_way_first_and_words_are_broken_last() {
        let mut table = Table::new(&["name", "n"]).of_prose();
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

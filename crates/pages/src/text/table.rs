//! Tables on a terminal.
//!
//! Columns are as wide as their widest cell. If not all of them fit, long names get lines apart,
//! and columns that can be spared go, one after the other. A column that is still too wide is
//! broken at blanks, then at [`BREAK`], and only then within words.

use anstyle::Style;
use tare_figures::format::Numbers;
use tare_figures::words::{NONE, counted};
use tare_host::{visible, visible_in_line};

use super::Page;
use crate::table::Table;
use crate::words::pieces as pieces_of;

/// A place where a name without blanks may be broken: a blank of no width.
const BREAK: char = '\u{200b}';

/// Stands between two columns.
const BETWEEN: usize = 2;

/// Stands before a text that says more of the row above it.
const INDENT: &str = "    ";

/// Stands before the figures of a row whose name has a separate line.
const APART: &str = "  ";

/// The length from which names may stand on separate lines.
const LONG: usize = 17;

/// The width from which a terminal has room for a column of sentences.
const WIDE: usize = 130;

/// A table as a terminal shows it.
struct Sheet<'a> {
    table: &'a Table,
    head: &'a [String],
    rows: Vec<Row>,
    left: Vec<usize>,
}

/// What of a table is shown, and how wide.
struct Layout {
    /// The columns, with their widths.
    columns: Vec<(usize, usize)>,
    /// Whether names stand on separate lines.
    is_apart: bool,
    /// The number of columns of figures that there is no room for.
    hidden: u64,
}

enum Row {
    Cells(Vec<String>),
    /// Names what the rows below it have in common.
    Heading(String),
    /// Says more of the row above it.
    Below(String),
}

impl Table {
    /// Returns it as text without colour, without a line feed at its end.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut page = Page::new(width);
        page.table(self);
        page.text.to_string().trim_end().to_owned()
    }
}

impl<'a> Sheet<'a> {
    /// Takes what a terminal of this width shows. Sentences in the last column stand below their
    /// rows where there is no room for them. Only what is aligned to the right, figures, may have
    /// several lines: words may come from anywhere, and must not end the line that they stand in.
    fn of(table: &'a Table, width: usize) -> Self {
        let last = table.head.len().saturating_sub(1);
        let is_below = table.ends_in_prose && width < WIDE;
        let columns = table.head.len() - usize::from(is_below);
        let mut left = vec![0];
        left.extend(&table.left);
        left.extend(table.ends_in_prose.then_some(last));
        let mut rows = Vec::new();
        for row in &table.rows {
            if let ([heading], 1..) = (row.as_slice(), last) {
                rows.push(Row::Heading(heading.clone()));
                continue;
            }
            let cells = row.iter().take(columns).enumerate();
            let cells = cells.map(|(at, cell)| match left.contains(&at) {
                true if at == 0 => breakable(&visible_in_line(cell)),
                true => visible_in_line(cell).into_owned(),
                false => visible(cell).into_owned(),
            });
            rows.push(Row::Cells(cells.collect()));
            let more = row.get(columns).filter(|text| *text != NONE);
            rows.extend(more.map(|text| Row::Below(text.clone())));
        }
        Self {
            table,
            head: &table.head[..columns],
            rows,
            left,
        }
    }

    fn layout(&self, width: usize) -> Layout {
        let cells = self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) | Row::Below(_) => None,
        });
        let (mut widths, mut least) = (vec![0; self.head.len()], vec![1; self.head.len()]);
        for row in std::iter::once(self.head).chain(cells.map(Vec::as_slice)) {
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
        let is_long =
            !self.table.names_are_prose && widths.first().is_some_and(|name| *name >= LONG);
        let mut shown: Vec<usize> = (0..widths.len()).collect();
        for gone in self.table.spared.iter().map(Some).chain([None]) {
            if taken(&widths, &shown) <= width {
                let columns = of(&shown);
                return Layout {
                    columns,
                    is_apart: false,
                    hidden: 0,
                };
            }
            if is_long && APART.len() + taken(&widths, &shown[1..]) <= width {
                let columns = of(&shown[1..]);
                return Layout {
                    columns,
                    is_apart: true,
                    hidden: 0,
                };
            }
            shown.retain(|at| Some(at) != gone);
        }
        let mut hidden = 0;
        while taken(&widths, &shown) > width {
            let by_blanks = shown.iter().filter(|&&at| widths[at] > least[at]);
            let in_words = shown.iter().filter(|&&at| widths[at] > 1);
            let widest = by_blanks.max_by_key(|&&at| widths[at]);
            // A figure that is broken is read as two.
            let is_figure = |at: &usize| !self.left.contains(at);
            if widest.is_none() && shown.len() > 2 && shown.last().is_some_and(is_figure) {
                shown.pop();
                hidden += 1;
                continue;
            }
            let Some(&at) = widest.or_else(|| in_words.max_by_key(|&&at| widths[at])) else {
                break;
            };
            widths[at] -= 1;
        }
        Layout {
            columns: shown.iter().map(|&at| (at, widths[at])).collect(),
            is_apart: false,
            hidden,
        }
    }

    fn write(&self, page: &mut Page) {
        let layout = self.layout(page.width);
        self.cells(self.head, &layout, page);
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
        if layout.hidden > 0 {
            let columns = counted(Numbers::PLAIN, layout.hidden, "column", "columns");
            let text = format!("({columns} more on a wider terminal)");
            page.paragraph(&text, Style::new().dimmed(), "");
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

/// Writes a table onto a page.
pub(super) fn write(table: &Table, page: &mut Page) {
    Sheet::of(table, page.width).write(page);
}

/// Returns the places of the columns that a terminal of this width shows.
pub(super) fn shown(table: &Table, width: usize) -> Vec<usize> {
    let columns = Sheet::of(table, width).layout(width).columns.into_iter();
    columns.map(|(place, _)| place).collect()
}

/// Marks where a name may be broken.
fn breakable(name: &str) -> String {
    let pieces: Vec<&str> = pieces_of(name).collect();
    pieces.join(&BREAK.to_string())
}

/// Returns how many columns a text takes.
fn length(text: &str) -> usize {
    text.chars().filter(|c| *c != BREAK).count()
}

/// Divides a cell where it may be broken; each piece but those before a line feed keeps what ends
/// it.
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
        page.table(table);
        page.text.to_string()
    }

    #[test]
    fn columns_are_aligned_and_texts_stand_across() {
        let mut table = Table::new(["name", "count", "why", "more"]).left(&[2]);
        table.ends_in_prose = true;
        table.heading("the first");
        table.row(["a", "1", "one", "said of a"].map(String::from));
        table.heading("the second");
        table.row(["bcd", "1,000", "-", NONE].map(String::from));
        assert_eq!(
            written(&table, 60),
            "name  count  why\nthe first\na         1  one\n    said of a\n\nthe second\nbcd   1,000  -\n"
        );
    }

    #[test]
    fn long_names_get_lines_of_their_own_before_columns_go() {
        let mut table = Table::new(["", "first", "second", "third"]).sparing(&[3, 1]);
        table.heading("a group");
        table.row(["linux,kernel=debian", "1.5 ms", "2.5 ms", "1,234,567"].map(String::from));
        table.row(["process", "1 ns", "2 ns", "3 ns"].map(String::from));
        assert_eq!(
            written(&table, 30),
            "   first  second      third\na group\nlinux,kernel=debian\n  1.5 ms  2.5 ms  1,234,567\nprocess\n    1 ns    \
             2 ns       3 ns\n"
        );
        assert_eq!(
            written(&table, 20),
            "   first  second\na group\nlinux,kernel=debian\n  1.5 ms  2.5 ms\nprocess\n    1 ns    2 ns\n"
        );
        // Short names stay next to their figures.
        let mut table = Table::new(["", "first", "second"]).sparing(&[1]);
        table.row(["process", "1.5 ms", "2.5 ms"].map(String::from));
        assert_eq!(written(&table, 20), "         second\nprocess  2.5 ms\n");
    }

    #[test]
    fn a_name_ends_no_line() {
        let mut table = Table::new(["name", "n"]);
        table.row(["dd\nCPU 1 lost 0 %\u{1b}[2J".to_owned(), "1\n2".to_owned()]);
        assert_eq!(
            written(&table, 60),
            "name                         n\ndd\\nCPU 1 lost 0 %\\u001b[2J  1\n                             2\n"
        );
    }

    #[test]
    fn the_widest_column_gives_way_first_and_words_are_broken_last() {
        let mut table = Table::new(["name", "n"]).of_prose();
        table.row(["linux,a=1,b=2 x".to_owned(), "123".to_owned()]);
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

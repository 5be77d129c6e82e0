//! A table as data: text for a terminal ([`crate::text`]), markup for a page ([`crate::html`]).

use tare_figures::format::Numbers;
use tare_figures::group::distinct;

/// A table. The first cell of each row names it, and a row of one cell is a heading of those
/// below. A line feed within a cell starts a new line.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// Whether the last column holds sentences, not figures.
    pub ends_in_prose: bool,
    /// Why it is folded away on a page, if it says nothing: `all 0`.
    pub nothing: Option<&'static str>,
    /// The columns that a terminal aligns to the left, in addition to the first.
    pub(crate) left: Vec<usize>,
    /// The columns that go where a terminal has no room for all of them, first to last.
    pub(crate) spared: Vec<usize>,
    /// Whether a terminal breaks its names between words rather than giving them their own lines.
    pub(crate) names_are_prose: bool,
    /// How to read it: sentences, each with the column without which it is not written.
    pub(crate) reads: Vec<(Option<usize>, &'static str)>,
}

/// The medium of a table: numbers are written differently, and a page has room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A terminal.
    Terminal,
    /// A page.
    Page,
}

/// A table below its title.
#[derive(Clone, Debug)]
pub struct Titled {
    /// The title.
    pub title: String,
    /// How to read it; empty if that is plain.
    pub read: String,
    /// The table.
    pub table: Table,
}

impl Titled {
    /// Returns how to read it where some of its columns are shown.
    pub(crate) fn caption(&self, is_shown: impl Fn(usize) -> bool) -> String {
        let of_columns = self.table.reads.iter();
        let of_columns = of_columns.filter(|(column, _)| column.is_none_or(&is_shown));
        let all = of_columns.map(|(_, sentence)| *sentence);
        let mut all = distinct([self.read.as_str()].into_iter().chain(all));
        all.retain(|sentence| !sentence.is_empty());
        all.join(" ")
    }
}

impl Medium {
    /// Returns how it writes numbers.
    #[must_use]
    pub(crate) const fn numbers(self) -> Numbers {
        match self {
            Self::Terminal => Numbers::PLAIN,
            Self::Page => Numbers::TYPESET,
        }
    }
}

impl Table {
    /// Starts a table. A name of a column may have several lines.
    #[must_use]
    pub fn new(head: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let head = head.into_iter().map(|name| name.as_ref().to_owned());
        Self {
            head: head.collect(),
            ..Self::default()
        }
    }

    /// Drops columns on a terminal that has no room for all of them, the first of these first.
    #[must_use]
    pub fn sparing(mut self, columns: &[usize]) -> Self {
        self.spared.extend(columns);
        self
    }

    /// Breaks its names between words on a terminal rather than giving them their own lines.
    #[must_use]
    pub fn of_prose(mut self) -> Self {
        self.names_are_prose = true;
        self
    }

    /// Aligns columns that hold words to the left on a terminal.
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

    /// Returns the number of its rows, without headings.
    #[must_use]
    pub(crate) fn lines(&self) -> usize {
        self.rows.iter().filter(|row| row.len() > 1).count()
    }

    /// Adds a row of cells, the first of which names it.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a heading for the rows below it.
    pub fn heading(&mut self, heading: impl Into<String>) {
        self.rows.push(vec![heading.into()]);
    }
}

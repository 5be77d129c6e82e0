//! The tables of a story, made of its columns and the rows of the run.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::mark::MARKED;
use tare_figures::rows::{Row, RunFigure};
use tare_figures::words::NONE;
use tare_results::model::Cell;

use crate::table::{Medium, Table, Titled};
use crate::tables::{Column, Line, Tabled, lines};
use crate::view::Story;

/// The meaning of a number of runs such as 2 or 1/2.
const LACKING: &str = "Runs are those with the figure; behind a slash, those planned.";

/// The lines of a table below the headings that a story gives them.
struct Grouped<'a> {
    columns: Vec<Column>,
    /// The heading and the name of each line, and why its case is doubtful.
    lines: Vec<(Option<String>, String, Option<String>, Line<'a>)>,
    /// The number of runs of each line, if they differ.
    runs: Option<Vec<String>>,
}

impl<'a> Grouped<'a> {
    /// Takes the columns that are shown; without any there are no lines.
    fn of(
        story: &dyn Story,
        run: &'a Run,
        tabled: &Tabled,
        is_shown: impl Fn(&Column) -> bool,
    ) -> Self {
        let mut lines = lines(run, story.experiment(), &tabled.columns);
        story.arrange(run, tabled, &mut lines);
        let shown: Vec<bool> = tabled.columns.iter().map(is_shown).collect();
        let mut columns = tabled.columns.clone();
        keep(&mut columns, &shown);
        if columns.is_empty() {
            lines.clear();
        }
        let cases = Case::all(run, story.experiment());
        let each = |line: &Line<'_>| {
            let case = cases.iter().find(|case| case.has(line.of));
            let (runs, planned) = (line.runs(), case.map_or(0, |case| case.planned));
            match runs == planned {
                true => runs.to_string(),
                false => format!("{runs}/{planned}"),
            }
        };
        let runs: Vec<String> = lines.iter().map(each).collect();
        let differ = runs.windows(2).any(|two| two[0] != two[1])
            || runs.first().is_some_and(|first| first.contains('/'));
        let named = lines.into_iter().map(|mut line| {
            keep(&mut line.rows, &shown);
            let (heading, name) = story.name(run, &line);
            let case = cases.iter().find(|case| case.has(line.of));
            (heading, name, case.and_then(Case::doubt), line)
        });
        Self {
            columns,
            lines: named.collect(),
            runs: differ.then_some(runs),
        }
    }

    /// Leaves out the columns that have no figure in any line, unless that is so of all.
    fn without_dashes(mut self) -> Self {
        let numbers = Numbers::PLAIN;
        let has_figure = |place: usize, column: &Column| {
            let lines = self.lines.iter();
            let mut rows = lines.filter_map(|(.., line)| Some((line.rows[place]?, line)));
            rows.any(|(row, line)| column.marked(row, line, numbers, false) != NONE)
        };
        let columns = self.columns.iter().enumerate();
        let mut shown: Vec<bool> = columns
            .map(|(place, column)| has_figure(place, column))
            .collect();
        // What stands below another one needs that.
        for place in (1..shown.len()).rev() {
            shown[place - 1] |= shown[place] && self.columns[place].below;
        }
        if shown.contains(&true) {
            keep(&mut self.columns, &shown);
            for (.., line) in &mut self.lines {
                keep(&mut line.rows, &shown);
            }
        }
        self
    }

    /// Adds the heading of a line to a table, unless it is that of the line before.
    fn heading(&self, place: usize, table: &mut Table) {
        let heading = |place: usize| self.lines[place].0.as_ref();
        let before = place.checked_sub(1).and_then(heading);
        if let Some(new) = heading(place).filter(|new| Some(*new) != before) {
            table.heading(new);
        }
    }

    /// Returns why it has no information: no figure in any run, or none but 0.
    fn nothing(&self) -> Option<&'static str> {
        let rows = self.lines.iter().flat_map(|(.., line)| &line.rows);
        let each = rows.flatten().flat_map(|row| &row.each);
        let mut values = each.filter_map(|each| each.figure.value()).peekable();
        let is_empty = values.peek().is_none();
        values
            .all(|value| value == 0.0)
            .then_some(if is_empty { "no figures" } else { "all 0" })
    }

    /// Returns whether a line has no figure of some of its runs.
    fn lacks_runs(&self) -> bool {
        let mut runs = self.runs.iter().flatten();
        runs.any(|runs| runs.contains('/'))
    }

    /// Returns whether a figure of a column is marked.
    fn has_marks(&self, at: usize) -> bool {
        let mut rows = self.lines.iter().filter_map(|(.., line)| line.rows[at]);
        rows.any(|row| self.columns[at].is_marked(row))
    }

    /// Returns the names of the columns but of those that stand below others.
    fn names(&self) -> impl Iterator<Item = String> {
        let heads = self.columns.iter().filter(|column| !column.below);
        heads.map(Column::name)
    }

    fn head(&self) -> Vec<String> {
        let runs = self.runs.as_ref().map(|_| "runs".to_owned());
        std::iter::once(String::new())
            .chain(runs)
            .chain(self.names())
            .collect()
    }

    /// Returns the columns with their places in the table; those below others have theirs.
    fn placed(&self) -> impl Iterator<Item = (usize, &Column)> {
        let mut place = usize::from(self.runs.is_some());
        self.columns.iter().map(move |column| {
            place += usize::from(!column.below);
            (place, column)
        })
    }

    /// Returns how to read the columns, the number of runs and marks.
    fn reads(&self) -> Vec<(Option<usize>, &'static str)> {
        let columns = self.placed();
        let columns = columns.map(|(place, column)| (Some(place), column.read));
        let runs = self.lacks_runs().then_some((None, LACKING));
        let marked = self.placed().enumerate();
        let marked = marked.filter(|(at, _)| self.has_marks(*at));
        let marks = marked.map(|(_, (place, _))| (Some(place), MARKED));
        columns.chain(runs).chain(marks).collect()
    }

    /// Returns the places of the columns of the table that can be spared, the first to go first.
    fn spared(&self) -> Vec<usize> {
        let columns = self.placed().filter(|(_, column)| !column.below);
        let mut spared: Vec<(u8, usize)> = columns
            .filter(|(_, column)| column.spared > 0)
            .map(|(place, column)| (column.spared, place))
            .collect();
        spared.sort_unstable_by_key(|&(rank, place)| std::cmp::Reverse((rank, place)));
        spared.into_iter().map(|(_, place)| place).collect()
    }

    /// Writes what the columns show of a line, each by `write`, and below it what belongs there.
    fn cells(
        &self,
        line: &Line<'_>,
        write: impl Fn(&Column, &Row) -> Option<String>,
    ) -> Vec<String> {
        let mut cells: Vec<String> = Vec::new();
        for (column, row) in self.columns.iter().zip(&line.rows) {
            let text = row.and_then(|row| write(column, row));
            match cells.last_mut().filter(|_| column.below) {
                Some(above) => {
                    // The unit belongs to the figure, not to a note below it.
                    above.extend(text.map(|text| match text.split_once('\n') {
                        Some((figure, note)) => format!("\n{figure} {}\n{note}", column.head),
                        None => format!("\n{text} {}", column.head),
                    }));
                }
                None => cells.push(text.unwrap_or_else(|| NONE.to_owned())),
            }
        }
        cells
    }
}

/// Adds to a name why the figures are doubtful: `32/s, saturated`.
fn doubted<'a>(name: &str, doubts: impl IntoIterator<Item = &'a str>) -> String {
    let doubts = doubts.into_iter();
    doubts.fold(name.to_owned(), |name, doubt| format!("{name}, {doubt}"))
}

fn keep<T>(all: &mut Vec<T>, shown: &[bool]) {
    let mut shown = shown.iter();
    all.retain(|_| shown.next().is_some_and(|shown| *shown));
}

/// Returns the tables of a story that have lines.
pub(crate) fn all(story: &dyn Story, run: &Run, medium: Medium) -> Vec<Titled> {
    let (is_shown, is_page): (fn(&Column) -> bool, _) = match medium {
        Medium::Terminal => (Column::is_on_terminal, false),
        Medium::Page => (Column::is_on_page, true),
    };
    let tables = story.tables(run).into_iter().map(|tabled| {
        let grouped = Grouped::of(story, run, &tabled, is_shown).without_dashes();
        let mut table = Table::new(grouped.head()).sparing(&grouped.spared());
        table.nothing = grouped.nothing();
        for (place, (_, name, doubt, line)) in grouped.lines.iter().enumerate() {
            grouped.heading(place, &mut table);
            let runs = grouped.runs.as_ref().map(|runs| runs[place].clone());
            let name = std::iter::once(doubted(name, doubt.as_deref())).chain(runs);
            let figures = grouped.cells(line, |column, row| {
                Some(column.marked(row, line, medium.numbers(), is_page))
            });
            table.row(name.chain(figures));
        }
        table.reads = grouped.reads();
        Titled {
            title: tabled.title,
            read: tabled.read,
            table,
        }
    });
    tables.filter(|titled| !titled.table.is_empty()).collect()
}

/// Returns the tables of a story with the figures of every run.
pub(crate) fn every_run(story: &dyn Story, run: &Run) -> Vec<Titled> {
    let tables = story.tables(run).into_iter().map(|tabled| {
        let grouped = Grouped::of(story, run, &tabled, Column::is_of_every_run).without_dashes();
        let head = ["", "run", "cell"].map(str::to_owned).into_iter();
        let mut table = Table::new(head.chain(grouped.names()));
        table.nothing = grouped.nothing();
        for (place, (_, name, _, line)) in grouped.lines.iter().enumerate() {
            grouped.heading(place, &mut table);
            let any = line.rows.iter().flatten().max_by_key(|row| row.each.len());
            for each in any.map_or(&[][..], |row| &row.each) {
                let figures = grouped.cells(line, |column, row| {
                    let mut all = row.each.iter();
                    let own = all.find(|own| own.cell == each.cell)?;
                    let value = column.value(row, own.figure.at_least()?, Numbers::TYPESET);
                    Some(match own.figure {
                        RunFigure::AtLeast(_) => format!("≥ {value}"),
                        _ => value,
                    })
                });
                let mut cells = run.cells.iter();
                let cell = cells.find(|cell| cell.plan.id == each.cell);
                let name = doubted(name, cell.into_iter().flat_map(Cell::doubts));
                let place = [name, each.block.to_string(), each.cell.to_string()];
                table.row(place.into_iter().chain(figures));
            }
        }
        Titled {
            title: tabled.title,
            read: String::new(),
            table,
        }
    });
    tables.filter(|titled| !titled.table.is_empty()).collect()
}

//! Tables of figures as a story describes them: columns over rows.
//!
//! A line is a target under a load with labels; a column is one figure of one measure. A story
//! lists the columns ([`Tabled`]); the rest is the same for all experiments.

use tare_results::model::Labels;
use tare_stats::Interval;

use tare_figures::Run;
use tare_figures::format::Numbers;
use tare_figures::mark::AT_LEAST;
use tare_figures::rows::{Figure, Places, Row};
use tare_figures::words::{self, NONE};

/// A table of figures.
#[derive(Clone, Debug)]
pub struct Tabled {
    /// What stands above it.
    pub title: String,
    /// How to read all of it; empty if that is plain. Sentences about single columns are theirs
    /// ([`Column::read`]).
    pub read: String,
    /// The columns.
    pub columns: Vec<Column>,
}

impl Tabled {
    /// Makes a table.
    #[must_use]
    pub fn new(title: &str, read: &str, columns: &[Column]) -> Self {
        Self {
            title: title.to_owned(),
            read: read.to_owned(),
            columns: columns.to_vec(),
        }
    }

    /// Makes the table of what programs counted on the measured CPU
    /// ([`INTERRUPTS`](tare_figures::rows::INTERRUPTS)).
    #[must_use]
    pub fn interrupts(read: &str) -> Self {
        let title = "Counted on the measured CPU by the measured system itself";
        let columns = [
            Column::new("count", "interrupts", Figure::Total).counted(),
            Column::new("per second", "interrupts", Figure::Rate),
        ];
        Self::new(title, read, &columns)
    }

    /// Makes the table of what the kernel did with the measured thread
    /// ([`CONTEXT_SWITCHES`](tare_figures::rows::CONTEXT_SWITCHES)).
    #[must_use]
    pub fn context_switches() -> Self {
        let read = "Involuntary ones: it wanted to go on, and the kernel let another task run. Voluntary ones: it waited for \
                    something.";
        let columns = [
            Column::new("count", "context-switches", Figure::Total).counted(),
            Column::new("per second", "context-switches", Figure::Rate),
        ];
        Self::new("Context switches of the measured thread", read, &columns)
    }
}

/// A column: one figure of one measure.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub(crate) head: &'static str,
    pub(crate) read: &'static str,
    measure: &'static str,
    figure: Figure,
    label: Option<(&'static str, &'static str)>,
    show: Show,
    form: Form,
    shown: Shown,
    pub(crate) spared: u8,
    pub(crate) below: bool,
    beside: bool,
}

/// Where a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Everywhere,
    Page,
    /// In the table of every run on the page.
    EveryRun,
    /// On terminals, and not on the page.
    Terminal,
    Nowhere,
}

/// Which of the figures over runs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Show {
    Figure,
    WithInterval,
    Interval,
    Lowest,
    Highest,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Own,
    Cycles,
    Microseconds,
    PerMillion,
    Count,
    WorkedOut,
}

/// A line of a table, with the row of each column.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its first row: all are of one target under one load.
    pub of: &'a Row,
    /// The labels that all its rows have.
    pub labels: Labels,
    /// The measure whose figure is at least what was measured, if there is one.
    pub at_least: Option<&'static str>,
    pub(crate) rows: Vec<Option<&'a Row>>,
}

impl Column {
    /// Makes a column of a figure; a line feed within the head starts a new line.
    #[must_use]
    pub const fn new(head: &'static str, measure: &'static str, figure: Figure) -> Self {
        Self {
            head,
            read: "",
            measure,
            figure,
            label: None,
            show: Show::Figure,
            form: Form::Own,
            shown: Shown::Everywhere,
            spared: 0,
            below: false,
            beside: false,
        }
    }

    /// Adds how to read it: sentences that are written where it is shown, once for all columns
    /// that have the same.
    #[must_use]
    pub const fn read(mut self, read: &'static str) -> Self {
        self.read = read;
        self
    }

    /// Takes the figure with a label that its line does not have.
    #[must_use]
    pub const fn of(mut self, label: &'static str, value: &'static str) -> Self {
        self.label = Some((label, value));
        self
    }

    /// Shows the figure and below it its interval.
    #[must_use]
    pub const fn with_interval(mut self) -> Self {
        self.show = Show::WithInterval;
        self
    }

    /// Shows the interval only.
    #[must_use]
    pub const fn interval(mut self) -> Self {
        self.show = Show::Interval;
        self
    }

    /// Shows the lowest of the runs.
    #[must_use]
    pub const fn lowest(mut self) -> Self {
        self.show = Show::Lowest;
        self
    }

    /// Shows the highest of the runs.
    #[must_use]
    pub const fn highest(mut self) -> Self {
        self.show = Show::Highest;
        self
    }

    /// Writes a time in ticks of the TSC.
    #[must_use]
    pub const fn in_cycles(mut self) -> Self {
        self.form = Form::Cycles;
        self
    }

    /// Writes a time in µs without the unit.
    #[must_use]
    pub const fn in_microseconds(mut self) -> Self {
        self.form = Form::Microseconds;
        self
    }

    /// Writes a share in parts per million.
    #[must_use]
    pub const fn per_million(mut self) -> Self {
        self.form = Form::PerMillion;
        self
    }

    /// Writes a time that was worked out of many, which is finer than a step of the clock.
    #[must_use]
    pub const fn worked_out(mut self) -> Self {
        self.form = Form::WorkedOut;
        self
    }

    /// Writes a number of things as a whole one.
    #[must_use]
    pub const fn counted(mut self) -> Self {
        self.form = Form::Count;
        self
    }

    /// Leaves it out on a terminal that has no room for all columns; those with the highest number
    /// go first. Which lines there are does not depend on that.
    #[must_use]
    pub const fn spared(mut self, rank: u8) -> Self {
        self.spared = rank;
        self
    }

    /// Shows it on the page only.
    #[must_use]
    pub const fn page_only(mut self) -> Self {
        self.shown = Shown::Page;
        self
    }

    /// Shows it on terminals only.
    #[must_use]
    pub const fn terminal_only(mut self) -> Self {
        self.shown = Shown::Terminal;
        self
    }

    /// Shows it in the table of every run only.
    #[must_use]
    pub const fn every_run_only(mut self) -> Self {
        self.shown = Shown::EveryRun;
        self
    }

    /// Shows it nowhere: what has a figure in it has a line.
    #[must_use]
    pub const fn hidden(mut self) -> Self {
        self.shown = Shown::Nowhere;
        self
    }

    /// Writes it below the column before, on the page: its head stands behind the figure.
    #[must_use]
    pub const fn below(mut self) -> Self {
        self.below = true;
        self.page_only()
    }

    /// Shows it only in lines that have another figure, too.
    #[must_use]
    pub const fn beside(mut self) -> Self {
        self.beside = true;
        self
    }

    pub(crate) const fn is_on_terminal(&self) -> bool {
        matches!(self.shown, Shown::Everywhere | Shown::Terminal)
    }

    pub(crate) const fn is_on_page(&self) -> bool {
        matches!(self.shown, Shown::Everywhere | Shown::Page)
    }

    pub(crate) const fn is_of_every_run(&self) -> bool {
        let is_figure = !matches!(self.show, Show::Interval);
        is_figure && (self.is_on_page() || matches!(self.shown, Shown::EveryRun))
    }

    fn is_of(&self, row: &Row) -> bool {
        row.measure.id == self.measure
            && row.figure == self.figure
            && self
                .label
                .is_none_or(|(key, value)| row.labels.get(key) == Some(value))
    }

    /// Returns the labels of a row without that of the column.
    fn rest(&self, row: &Row) -> Labels {
        let own = self.label.map(|(key, _)| key);
        let rest = row.labels.iter().filter(|(key, _)| Some(*key) != own);
        rest.fold(Labels::default(), |all, (key, value)| all.with(key, value))
    }

    /// Writes the figure over runs, marked if it may mislead; and of how many runs it is,
    /// if not all of its line have it.
    pub(crate) fn marked(&self, row: &Row, of: &Line<'_>, numbers: Numbers, both: bool) -> String {
        let mut figure = self.over(row, numbers, both);
        if of.at_least == Some(self.measure) && figure != NONE {
            figure.insert_str(0, AT_LEAST);
        }
        let (has, all) = (row.each.len(), of.runs());
        if has < all && figure != NONE {
            figure.push_str(&format!("\nfrom {has} of {all} runs"));
        }
        match (figure.as_str(), self.is_marked(row)) {
            (NONE, _) | (_, false) => figure,
            (_, true) => {
                figure.replacen('\n', "*\n", 1) + if figure.contains('\n') { "" } else { "*" }
            }
        }
    }

    pub(crate) fn is_marked(&self, row: &Row) -> bool {
        match self.show {
            Show::Interval => false,
            // One of the runs has it.
            Show::Lowest | Show::Highest => row.is_between_modes(),
            _ => row.is_marked(),
        }
    }

    fn over(&self, row: &Row, numbers: Numbers, both: bool) -> String {
        let over = match (&row.over, row.at_least()) {
            (Ok(over), _) => over,
            (Err(_), Some(least)) if self.show != Show::Interval => {
                return format!("≥ {}", self.value(row, least, numbers));
            }
            (Err(_), _) => return NONE.to_owned(),
        };
        let value = match self.show {
            Show::Lowest => over.lowest,
            Show::Highest => over.highest,
            _ => over.estimate,
        };
        let interval = over.interval.as_ref().ok();
        let range = interval.map(|interval| self.range(row, interval, numbers));
        match (self.show, range) {
            (Show::Interval, range) => range.unwrap_or_else(|| NONE.to_owned()),
            (Show::WithInterval, Some(range)) => {
                format!("{}\n{range}", self.value(row, value, numbers))
            }
            _ if both && self.form == Form::Own && row.tsc_hz.is_some() && row.unit == "ns" => {
                let cycles = Self {
                    form: Form::Cycles,
                    ..*self
                };
                let cycles = cycles.value(row, value, numbers);
                format!("{}\n{cycles}", self.value(row, value, numbers))
            }
            _ => self.value(row, value, numbers),
        }
    }

    pub(crate) fn value(&self, row: &Row, value: f64, numbers: Numbers) -> String {
        match (self.form, row.unit) {
            (Form::Count, _) => numbers.count(value as u64),
            (Form::Microseconds, "ns") => words::microseconds(numbers, value),
            (Form::PerMillion, _) if value == 0.0 => "0".to_owned(),
            (Form::PerMillion, _) => numbers.short(value * 1e6),
            (Form::Cycles, "ns") => match row.tsc_hz {
                Some(_) => words::cycles_figure(numbers, row.time(value).cycles),
                None => NONE.to_owned(),
            },
            (Form::WorkedOut, "ns") => numbers.ns(value, None),
            (_, "ns") => {
                // The mean of many is finer than one of them.
                let is_one = |step: &f64| row.figure != Figure::Mean || value >= *step;
                numbers.ns(value, row.resolution_ns.filter(is_one))
            }
            (_, "1") => numbers.percent(value),
            (_, "bytes") => numbers.bytes(value as u64),
            (_, "bytes/s") => numbers.byte_rate(value),
            (_, "cycles") => words::cycles_figure(numbers, value),
            _ => numbers.short(value),
        }
    }

    fn range(&self, row: &Row, interval: &Interval, numbers: Numbers) -> String {
        if row.unit == "1" && self.form == Form::Own {
            return words::percent_range(numbers, interval.low, interval.high);
        }
        let width = row.time(interval.high - interval.low).cycles;
        let end = |value: f64| match self.form {
            Form::Cycles if row.tsc_hz.is_some() => numbers.within(row.time(value).cycles, width),
            _ => self.value(row, value, numbers),
        };
        // Columns of mere numbers are many and narrow.
        let between = match self.form {
            Form::Microseconds => "to\n",
            _ => "to ",
        };
        format!("{} {between}{}", end(interval.low), end(interval.high))
    }

    /// Returns what stands above it.
    #[must_use]
    pub fn name(&self) -> String {
        match self.head {
            "" => self.figure.to_string(),
            head => head.to_owned(),
        }
    }
}

impl Line<'_> {
    /// Returns how many runs have one of its figures.
    #[must_use]
    pub fn runs(&self) -> usize {
        let rows = self.rows.iter().flatten().copied().chain([self.of]);
        rows.map(|row| row.each.len()).max().unwrap_or(0)
    }

    /// Names its target; an emulated one is marked.
    #[must_use]
    pub fn target(&self) -> String {
        self.of.marked_target()
    }
}

/// Returns the lines of a table that have a figure in one of its columns.
#[must_use]
pub fn lines<'a>(run: &'a Run, experiment: &str, columns: &[Column]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let mut places = Places::default();
    for (row, beside) in [false, true].into_iter().flat_map(|beside| {
        let rows = run.rows.0.iter().filter(|row| row.experiment == experiment);
        rows.map(move |row| (row, beside))
    }) {
        for (place, column) in columns.iter().enumerate() {
            if !column.is_of(row) || column.beside != beside {
                continue;
            }
            let labels = column.rest(row);
            let known = places.find(&labels, |known| {
                let of = lines[known].of;
                of.target == row.target && of.load == row.load
            });
            match known {
                Some(known) => lines[known].rows[place] = Some(row),
                None if beside => {}
                None => {
                    let mut rows = vec![None; columns.len()];
                    rows[place] = Some(row);
                    places.add(labels.clone(), lines.len());
                    lines.push(Line {
                        of: row,
                        labels,
                        at_least: None,
                        rows,
                    });
                }
            }
        }
    }
    lines
}

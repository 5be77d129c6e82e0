//! The result on a terminal: one row per combination, then what was not measured, then the verdict.
//!
//! The verdict comes last, where the eye is when a command has ended.

mod claims;
mod compare;
mod wakeups;

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use crate::analysis::{
    Analysis, Combination, CombinedFigures, CombinedGap, CombinedTimed, LoadFigure, Spread, State,
    Summary, Time,
};
use crate::format::Numbers;
use crate::panels::{Panel, panels};
use crate::table_rows::{Entry, Row, first, rows};
use crate::words;

pub use claims::study;
pub use compare::{compare, compare_markdown};

const N: Numbers = Numbers::PLAIN;

/// Marks a row that stands for a text across all columns; no target begins with it.
const HEADING: char = '§';

/// Stands before a text that says more of the row above it.
const INDENT: &str = "    ";

/// Is where a name without blanks may be broken: a blank of no width.
const BREAK: char = '\u{200b}';

/// Is the narrowest terminal that tables are made for.
const LEAST_WIDTH: usize = 60;

/// Writes tables and verdict for a terminal of `width` columns, coloured if `colour`.
///
/// Ends with a line feed. Text is broken between words, table cells only if they must be.
#[must_use]
pub fn render(analysis: &Analysis, width: usize, colour: bool) -> String {
    let summary = analysis.summary();
    let mut page = Page::new(width, colour);
    let panels = panels(&summary.combinations);
    let gaps = rows(&panels, CombinedFigures::gap);
    let timed = rows(&panels, CombinedFigures::timed);
    if !gaps.is_empty() {
        page.heading("Interruptions");
        page.grouped(gap_table(&gaps), &gaps);
    }
    if !timed.is_empty() {
        page.heading("Durations");
        page.grouped(timed_table(&timed), &timed);
        page.heading("Delays per million repetitions, by cycles above the mean");
        page.grouped(class_table(&timed), &timed);
    }
    page.wakeups(&summary.wakeups);
    let counters = counter_table(&panels);
    if !counters.is_empty() {
        page.heading("Counted on the measured CPU by the unikernel itself");
        page.table(counters);
    }
    page.loads(&summary.loads);
    page.not_measured(summary);
    if let Some(reproduction) = &summary.reproduction {
        page.reproduction(reproduction);
    }
    page.remarks(summary);
    page.verdict(summary);
    page.text
        .split_off(page.text.len() - page.text.trim_start().len())
}

/// Is a table some of whose rows are texts across all columns.
struct Interleaved {
    table: Table,
    /// The texts; a row that begins with [`HEADING`] stands for the one of its number.
    texts: Vec<Across>,
}

/// Is a text across all columns of a table.
enum Across {
    /// Names what the rows below it have in common.
    Heading(String),
    /// Says more of the row above it.
    Below(String),
}

impl Interleaved {
    fn new(table: Table) -> Self {
        Self {
            table,
            texts: Vec::new(),
        }
    }

    fn heading(&mut self, text: String) {
        self.across(Across::Heading(text));
    }

    fn below(&mut self, text: String) {
        self.across(Across::Below(text));
    }

    fn across(&mut self, text: Across) {
        self.table
            .add_row([format!("{HEADING}{}", self.texts.len())]);
        self.texts.push(text);
    }
}

struct Page {
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
        for split in &verdict.attribution {
            self.paragraph(split, plain, "");
        }
        for certainty in &verdict.certainty {
            self.paragraph(certainty, plain.dimmed(), "");
        }
    }

    /// Writes what the agents remarked: what they could not do, and what would let them.
    fn remarks(&mut self, summary: &Summary) {
        let guests = words::guests(&summary.combinations);
        if summary.notices.is_empty() && summary.daemons.is_empty() && guests.is_none() {
            return;
        }
        self.heading("Remarks");
        if let Some(guests) = guests {
            self.paragraph(&guests, Style::new(), "- ");
        }
        if !summary.daemons.is_empty() {
            let text = format!(
                "daemons running meanwhile: {}; each may disturb what is measured beside it",
                words::daemons(&summary.daemons)
            );
            self.paragraph(&text, Style::new(), "- ");
        }
        for notice in &summary.notices {
            self.paragraph(&notice.text, Style::new(), "- ");
        }
    }

    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.paragraph(text, Style::new().bold(), "");
    }

    /// Writes a table of combinations with its headings.
    fn grouped<T>(&mut self, mut table: Table, rows: &[Row<'_, T>]) {
        // Below headings a row is named by its target alone, which has no blanks to break it at.
        let has_headings = rows.iter().any(|row| matches!(row, Row::Heading(_)));
        if let Some(names) = table.column_mut(0).filter(|_| has_headings) {
            names.set_delimiter(BREAK);
        }
        let heading = |line: &str| {
            let place: usize = line.strip_prefix(HEADING)?.parse().ok()?;
            match rows.get(place) {
                Some(Row::Heading(heading)) => Some(heading.clone()),
                _ => None,
            }
        };
        let from = self.text.len();
        self.table(table);
        for line in self.text.split_off(from).lines() {
            match heading(line) {
                Some(heading) => self.paragraph(&heading, Style::new().dimmed(), ""),
                None => self.text.push_str(&format!("{line}\n")),
            }
        }
    }

    /// Writes a table some of whose rows are texts across all columns.
    fn interleaved(&mut self, rows: Interleaved) {
        let from = self.text.len();
        self.table(rows.table);
        let texts = rows.texts;
        for line in self.text.split_off(from).lines() {
            let number = line
                .strip_prefix(HEADING)
                .and_then(|number| number.trim().parse::<usize>().ok());
            match number.and_then(|number| Some((number, texts.get(number)?))) {
                Some((number, Across::Heading(heading))) => {
                    // A blank line sets groups apart, but not the first from the head of the table.
                    if number != 0 {
                        self.text.push('\n');
                    }
                    self.paragraph(heading, Style::new().dimmed(), "");
                }
                Some((_, Across::Below(text))) => self.paragraph(text, Style::new(), INDENT),
                None => self.text.push_str(&format!("{line}\n")),
            }
        }
    }

    /// Writes what the loads did: medians over the blocks with the range.
    fn loads(&mut self, loads: &[LoadFigure]) {
        let mut rows = Interleaved::new(table(&["load", "what", "median", "range"]));
        if let Some(what) = rows.table.column_mut(1) {
            what.set_cell_alignment(CellAlignment::Left);
        }
        for (place, loads) in words::loads_by_place(loads) {
            if loads.iter().all(|load| load.rates.is_empty()) {
                continue;
            }
            rows.heading(place);
            for load in loads {
                for (number, rate) in load.rates.iter().enumerate() {
                    let row = words::load_row(N, load, rate, number == 0);
                    rows.table.add_row(row);
                }
            }
        }
        if !rows.texts.is_empty() {
            self.heading("Loads, as achieved");
            self.interleaved(rows);
        }
    }

    fn table(&mut self, mut table: Table) {
        // Columns are set apart by two blanks; the last one's would only widen the table.
        table.set_width(self.width.min(usize::from(u16::MAX)) as u16);
        for line in table.lines() {
            self.text.push_str(line.replace(BREAK, "").trim_end());
            self.text.push('\n');
        }
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

fn gap_table(rows: &[Row<'_, CombinedGap>]) -> Table {
    let mut table = table(&[
        "workload · target",
        "runs",
        "lost",
        "95 % interval",
        "gaps/s",
        "median",
        "p99",
        "longest",
        "in cycles",
    ]);
    fill(&mut table, rows, |entry| {
        let (combination, gap) = (entry.combination, entry.figures);
        let step = Some(combination.timer_step);
        let spread = |figure: Option<Spread<Time>>| figure.map(|figure| figure.figure);
        let interval = gap.share_lost.interval;
        vec![
            entry.name.clone(),
            runs(combination),
            N.percent(gap.share_lost.figure),
            interval.map_or_else(none, |interval| words::share_range(N, &interval)),
            gap.gaps_per_second
                .map_or_else(none, |rate| N.short(rate.figure)),
            time(spread(gap.median), step),
            time(spread(gap.p99), step),
            time(gap.longest.map(|longest| longest.highest), step),
            cycles(gap.longest.map(|longest| longest.highest)),
        ]
    });
    table
}

fn timed_table(rows: &[Row<'_, CombinedTimed>]) -> Table {
    let mut table = table(&[
        "workload · target",
        "runs",
        "shortest",
        "median",
        "mean, cycles",
        "p99.9",
        "longest",
        "in cycles",
    ]);
    fill(&mut table, rows, |entry| {
        let (combination, timed) = (entry.combination, entry.figures);
        let step = Some(combination.timer_step);
        let raw = &timed.raw;
        let mean = raw.mean.figure.cycles;
        let mean = raw.mean.interval.map_or_else(
            || N.rounded(mean),
            |interval| N.plus_minus(interval.estimate, interval.half_width()),
        );
        vec![
            entry.name.clone(),
            runs(combination),
            time(Some(raw.min.lowest), step),
            time(Some(raw.median.figure), step),
            mean,
            time(raw.p99_9.map(|p| p.figure), step),
            time(Some(raw.max.highest), step),
            cycles(Some(raw.max.highest)),
        ]
    });
    table
}

/// Makes the table of delays by class, which is read from left to right: how many, then how much.
fn class_table(rows: &[Row<'_, CombinedTimed>]) -> Table {
    let first = first(rows);
    let classes = first.map_or(&[][..], |entry| entry.figures.classes.as_slice());
    let shares = first.map_or(&[][..], |entry| entry.figures.shares.as_slice());
    let mut header = vec!["workload · target".to_owned()];
    header.extend(classes.iter().map(|class| {
        let from = N.count(class.above_cycles);
        match class.up_to_cycles {
            Some(to) => format!("{} {from}–{}", class.class, N.count(to)),
            None => format!("{} > {from}", class.class),
        }
    }));
    header.extend(
        shares
            .iter()
            .map(|s| format!("time > {}", N.count(s.above_cycles))),
    );
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = table(&header);
    fill(&mut table, rows, |entry| {
        let timed = entry.figures;
        let mut row = vec![entry.name.clone()];
        row.extend(timed.classes.iter().map(|class| {
            class
                .count
                .map_or_else(none, |count| per_million(count, timed.repetitions))
        }));
        row.extend(timed.shares.iter().map(|share| {
            share
                .share
                .map_or_else(none, |share| N.percent(share.figure))
        }));
        row
    });
    table
}

/// Makes the table of what was counted, beside the number of listed delays; what never happened is left
/// out.
fn counter_table(panels: &[Panel<'_>]) -> Table {
    let mut table = table(&["workload · target", "what", "count", "per second", "delays"]);
    for (_, combination) in panels.iter().flat_map(|panel| &panel.members) {
        for counter in combination.counters.iter().filter(|c| c.count > 0) {
            table.add_row([
                words::name(combination),
                counter.name.clone(),
                N.count(counter.count),
                counter
                    .per_second
                    .map_or_else(none, |rate| N.short(rate.figure)),
                N.count(counter.delays),
            ]);
        }
    }
    table
}

/// Adds the rows, of which `cells` makes those of combinations.
fn fill<T>(table: &mut Table, rows: &[Row<'_, T>], cells: impl Fn(&Entry<'_, T>) -> Vec<String>) {
    for (place, row) in rows.iter().enumerate() {
        table.add_row(match row {
            // The heading itself would be broken to the width of the first column.
            Row::Heading(_) => vec![format!("{HEADING}{place}")],
            Row::Of(entry) => {
                let mut cells = cells(entry);
                if let Some(name) = cells.first_mut().filter(|name| !name.contains(' ')) {
                    *name = name.replace(',', &format!(",{BREAK}"));
                }
                cells
            }
        });
    }
}

fn per_million(count: u64, repetitions: u64) -> String {
    if count == 0 {
        return "0".to_owned();
    }
    N.short(count as f64 / repetitions.max(1) as f64 * 1e6)
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.iter().map(Cell::new));
    for (place, column) in table.column_iter_mut().enumerate() {
        let last = place + 1 == header.len();
        column.set_padding((0, if last { 0 } else { 2 }));
        if place > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn runs(combination: &Combination) -> String {
    if combination.runs == combination.planned_runs {
        return N.count(combination.runs);
    }
    format!("{}/{}", combination.runs, combination.planned_runs)
}

fn time(figure: Option<Time>, step: Option<Time>) -> String {
    figure
        .filter(|time| time.ns.is_some())
        .map_or_else(none, |time| words::time(N, time, step))
}

fn cycles(figure: Option<Time>) -> String {
    figure.map_or_else(none, |time| words::cycles_figure(N, time.cycles))
}

fn none() -> String {
    "-".to_owned()
}

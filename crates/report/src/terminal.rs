//! The result on a terminal: one row per combination, then what was not measured, then the verdict.
//!
//! The verdict comes last, where the eye is when a command has ended.

use anstyle::{AnsiColor, Style};
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, presets};

use crate::analysis::{
    Analysis, Combination, CombinedFigures, CombinedGap, CombinedTimed, Spread, Summary, Time,
};
use crate::format::Numbers;
use crate::panels::{Panel, panels, target_name};
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// Is the narrowest terminal that tables are made for.
const LEAST_WIDTH: usize = 60;

/// Writes tables and verdict for a terminal of `width` columns, coloured if `colour`.
///
/// Ends with a line feed. Text is broken between words, table cells only if they must be.
#[must_use]
pub fn render(analysis: &Analysis, width: usize, colour: bool) -> String {
    let summary = analysis.summary();
    let mut page = Page {
        text: String::new(),
        width: width.max(LEAST_WIDTH),
        colour,
    };
    let panels = panels(&summary.combinations);
    let gaps: Vec<_> = rows(&panels, |figures| match figures {
        CombinedFigures::Gap(gap) => Some(&**gap),
        CombinedFigures::Timed(_) => None,
    });
    let timed: Vec<_> = rows(&panels, |figures| match figures {
        CombinedFigures::Timed(timed) => Some(&**timed),
        CombinedFigures::Gap(_) => None,
    });
    if !gaps.is_empty() {
        page.heading("Interruptions");
        page.table(gap_table(&gaps));
    }
    if !timed.is_empty() {
        page.heading("Durations");
        page.table(timed_table(&timed));
        page.heading("Delays per million repetitions, by cycles above the mean");
        page.table(class_table(&timed));
    }
    page.not_measured(summary);
    page.remarks(summary);
    page.verdict(summary);
    page.text
        .split_off(page.text.len() - page.text.trim_start().len())
}

/// Returns the combinations of one kind with their names, in the order of the report.
fn rows<'a, T>(
    panels: &[Panel<'a>],
    of: impl Fn(&'a CombinedFigures) -> Option<&'a T>,
) -> Vec<(String, &'a Combination, &'a T)> {
    let members = panels.iter().flat_map(|panel| {
        let title = panel.title();
        panel.members.iter().map(move |(_, c)| (title.clone(), *c))
    });
    members
        .filter_map(|(title, c)| {
            Some((format!("{title} · {}", target_name(c)), c, of(&c.figures)?))
        })
        .collect()
}

struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
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
    fn remarks(&mut self, summary: &Summary) {
        if summary.notices.is_empty() {
            return;
        }
        self.heading("Remarks");
        for notice in &summary.notices {
            self.paragraph(&notice.text, Style::new(), "- ");
        }
    }

    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.paragraph(text, Style::new().bold(), "");
    }

    fn table(&mut self, mut table: Table) {
        // Columns are set apart by two blanks; the last one's would only widen the table.
        table.set_width(self.width.min(usize::from(u16::MAX)) as u16);
        for line in table.lines() {
            self.text.push_str(line.trim_end());
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
            let text = format!("cell {}, {}: {}", cell.id, cell.label, cell.reason);
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

fn gap_table(rows: &[(String, &Combination, &CombinedGap)]) -> Table {
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
    for (name, combination, gap) in rows {
        let step = Some(combination.timer_step);
        let spread = |figure: Option<Spread<Time>>| figure.map(|figure| figure.median);
        let interval = gap.share_lost.interval;
        table.add_row([
            name.clone(),
            runs(combination),
            N.percent(gap.share_lost.median),
            interval.map_or_else(none, |interval| words::share_range(N, &interval)),
            gap.gaps_per_second
                .map_or_else(none, |rate| N.short(rate.median)),
            time(spread(gap.median), step),
            time(spread(gap.p99), step),
            time(gap.longest.map(|longest| longest.highest), step),
            cycles(gap.longest.map(|longest| longest.highest)),
        ]);
    }
    table
}

fn timed_table(rows: &[(String, &Combination, &CombinedTimed)]) -> Table {
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
    for (name, combination, timed) in rows {
        let step = Some(combination.timer_step);
        let raw = &timed.raw;
        let mean = raw.mean.median.cycles;
        let mean = raw.mean.interval.map_or_else(
            || N.rounded(mean),
            |interval| N.plus_minus(interval.estimate, interval.half_width()),
        );
        table.add_row([
            name.clone(),
            runs(combination),
            time(Some(raw.min.lowest), step),
            time(Some(raw.median.median), step),
            mean,
            time(raw.p99_9.map(|p| p.median), step),
            time(Some(raw.max.highest), step),
            cycles(Some(raw.max.highest)),
        ]);
    }
    table
}

/// Makes the table of delays by class, which is read from left to right: how many, then how much.
fn class_table(rows: &[(String, &Combination, &CombinedTimed)]) -> Table {
    let first = rows.first();
    let classes = first.map_or(&[][..], |(_, _, timed)| timed.classes.as_slice());
    let shares = first.map_or(&[][..], |(_, _, timed)| timed.shares.as_slice());
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
    for (name, _, timed) in rows {
        let mut row = vec![name.clone()];
        row.extend(timed.classes.iter().map(|class| {
            class
                .count
                .map_or_else(none, |count| per_million(count, timed.repetitions))
        }));
        row.extend(timed.shares.iter().map(|share| {
            share
                .share
                .map_or_else(none, |share| N.percent(share.median))
        }));
        table.add_row(row);
    }
    table
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

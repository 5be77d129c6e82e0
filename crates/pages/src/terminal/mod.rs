//! The result on a terminal: the tables of each story, then what was not measured, then the
//! verdict.
//!
//! The verdict comes last, where the eye is when a command has ended.

mod claims;
mod compare;

use anstyle::{AnsiColor, Style};
use tare_figures::analysis::{LoadFigure, Summary};
use tare_figures::format::Numbers;
use tare_figures::notices::{NotMeasured, State};
use tare_figures::verdict::Verdict;
use tare_figures::words::counted;

use crate::report::Report;
use crate::table::{Medium, Titled};
use crate::text::{Page, Text};
use crate::{grouped, shared, words};

pub use compare::{compare, compare_markdown};

const N: Numbers = Numbers::PLAIN;

/// Writes tables and verdict for `width` columns; those of a study that is reproduced come after
/// its claims.
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
        let tables = grouped::all(story, report.run(), Medium::Terminal);
        for titled in tables.into_iter().chain(story.more(report.run())) {
            page.titled(&titled);
        }
    }
    page.loads(&summary.loads);
    page.not_measured(summary);
    page.remarks(report);
    // The sentence which sums it all up stands nearest the end.
    page.cautions(&summary.verdict);
    page.verdict(&summary.verdict);
    page.finish()
}

/// Writes the verdict only, the sentence which sums it all up first.
#[must_use]
pub fn verdict(report: &Report, width: usize) -> Text {
    let verdict = &report.summary().verdict;
    let mut page = Page::new(width);
    page.verdict(verdict);
    page.cautions(verdict);
    page.finish()
}

/// Writes [`text`] as it reaches a terminal, coloured if `colour`.
#[must_use]
pub fn render(report: &Report, width: usize, colour: bool) -> String {
    text(report, width).render(colour)
}

impl Page {
    fn cautions(&mut self, verdict: &Verdict) {
        if !verdict.cautions.is_empty() {
            self.blank();
        }
        for caution in &verdict.cautions {
            self.paragraph(caution, AnsiColor::Yellow.on_default(), "! ");
        }
    }

    fn verdict(&mut self, verdict: &Verdict) {
        let plain = Style::new();
        self.blank();
        self.paragraph(&verdict.headline, Style::new().bold(), "");
        for detail in &verdict.details {
            self.paragraph(detail, plain, "");
        }
    }

    /// Writes what the agents remarked: what they could not do, and what would let them.
    fn remarks(&mut self, report: &Report) {
        let summary = report.summary();
        let daemons = (!summary.daemons.is_empty()).then(|| {
            format!(
                "daemons that were running: {}; each may disturb the measurement",
                words::daemons(&summary.daemons)
            )
        });
        let notices = words::in_short(&summary.notices);
        let remarks: Vec<String> = daemons.into_iter().chain(notices).collect();
        if !remarks.is_empty() {
            self.heading("Notices");
        }
        for remark in remarks {
            self.paragraph(&remark, Style::new(), "- ");
        }
    }

    /// Writes what the loads did: medians over the blocks with the range.
    fn loads(&mut self, loads: &[LoadFigure]) {
        self.titled(&shared::loads(loads, Medium::Terminal));
    }

    /// Writes a table below its title, unless it is empty.
    fn titled(&mut self, titled: &Titled) {
        if titled.table.is_empty() {
            return;
        }
        self.heading(&titled.title);
        let shown = self.shown(&titled.table);
        let read = titled.caption(|column| shown.contains(&column));
        if !read.is_empty() {
            self.note(&read);
        }
        self.table(&titled.table);
    }

    fn not_measured(&mut self, summary: &Summary) {
        const SHOWN: usize = 5;
        if summary.not_measured.is_empty() {
            return;
        }
        self.heading("Not measured");
        // Cells without figures for the same reason are one entry.
        let mut causes: Vec<(&NotMeasured, u64)> = Vec::new();
        for cell in &summary.not_measured {
            let is_same =
                |known: &NotMeasured| (known.state, &known.reason) == (cell.state, &cell.reason);
            match causes.iter_mut().find(|(known, _)| is_same(known)) {
                Some((_, more)) => *more += 1,
                None => causes.push((cell, 0)),
            }
        }
        for (cell, others) in causes.iter().take(SHOWN) {
            let state = match cell.state {
                State::LeftOut | State::NotTried => format!("{}: ", cell.state.name()),
                _ => String::new(),
            };
            let others = match others {
                0 => String::new(),
                others => format!(" and {}", counted(N, *others, "more cell", "more cells")),
            };
            let text = format!(
                "cell {}, {}{others}: {state}{}",
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
}

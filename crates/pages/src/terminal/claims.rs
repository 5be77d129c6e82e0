//! A published study on a terminal: its claims and figures, with a run or without one.

use anstyle::{AnsiColor, Style};

use super::{Page, Table, Text};
use tare_figures::claims::{Answer, ClaimFigure, PublishedTable, Reproduction};

impl Page {
    /// Writes what the run tells of the study that it reproduces.
    pub(super) fn reproduction(&mut self, reproduction: &Reproduction) {
        let study = &reproduction.study;
        self.claims(study, &reproduction.claims);
        let mut figures = Table::new(&["figure", "published", "here"]).of_prose();
        for (target, comparisons) in reproduction.by_target() {
            figures.heading(target);
            for comparison in comparisons {
                figures.row(
                    [&comparison.what, &comparison.published, &comparison.here].map(String::clone),
                );
            }
        }
        if !figures.is_empty() {
            self.heading(&format!("Published by {study}, and measured here"));
            self.table(&figures);
        }
    }

    fn claims(&mut self, study: &str, claims: &[ClaimFigure]) {
        self.heading(&format!("Claims of {study}"));
        for claim in claims {
            let answer = claim.finding.answer;
            let (mark, style) = match answer {
                Answer::Reproduced => ("+ ", AnsiColor::Green.on_default()),
                Answer::NotReproduced => ("- ", AnsiColor::Red.on_default()),
                Answer::CannotBeTold => ("? ", Style::new().dimmed()),
            };
            self.paragraph(&claim.claim, Style::new(), mark);
            let text = format!("{}: {}", answer.words(), claim.finding.why);
            self.paragraph(&text, style, "  ");
        }
    }

    fn published(&mut self, published: &PublishedTable) {
        self.heading(&published.title);
        self.note(&published.note);
        let mut rows = Table::new(&published.head);
        for row in &published.rows {
            rows.row(row.clone());
        }
        self.table(&rows);
    }
}

/// Writes a published study without a run: its tables and its claims.
#[must_use]
pub fn study(study: &Reproduction, width: usize) -> Text {
    let mut page = Page::new(width);
    let title = format!("{}: {}", study.study, study.question);
    page.paragraph(&title, Style::new().bold(), "");
    for table in &study.tables {
        page.published(table);
    }
    page.claims(&study.study, &study.claims);
    page.text
}

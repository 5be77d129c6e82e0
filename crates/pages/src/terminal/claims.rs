//! A published study on a terminal: its claims and figures, with a run or without one.

use anstyle::{AnsiColor, Style};
use tare_figures::claims::{Answer, ClaimFigure, Reproduction};

use crate::shared;
use crate::table::Titled;
use crate::text::{Page, Text};

impl Page {
    /// Writes the answers to the study that the run reproduces.
    pub(super) fn reproduction(&mut self, reproduction: &Reproduction) {
        let study = &reproduction.study;
        self.claims(study, &reproduction.claims);
        let figures = shared::comparisons(reproduction);
        let title = format!("Published by {study}, and measured here");
        self.titled(&title, "", &figures);
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
}

/// Writes a published study without a run: its tables and its claims.
#[must_use]
pub fn study(study: &Reproduction, width: usize) -> Text {
    let mut page = Page::new(width);
    let title = format!("{}: {}", study.study, study.question);
    page.paragraph(&title, Style::new().bold(), "");
    for table in &study.tables {
        let Titled { title, read, table } = shared::published(table);
        page.titled(&title, &read, &table);
    }
    page.claims(&study.study, &study.claims);
    page.finish()
}

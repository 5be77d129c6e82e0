//! A published study on a terminal: its claims and figures next to those of a run.

use anstyle::{AnsiColor, Style};
use tare_figures::claims::{Answer, ClaimFigure, Reproduction};

use crate::shared;
use crate::table::Titled;
use crate::text::Page;

impl Page {
    /// Writes the answers to the study that the run reproduces.
    pub(super) fn reproduction(&mut self, reproduction: &Reproduction) {
        let study = &reproduction.study;
        self.claims(study, &reproduction.claims);
        self.titled(&Titled {
            title: format!("Published by {study}, and measured here"),
            read: String::new(),
            table: shared::comparisons(reproduction),
        });
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

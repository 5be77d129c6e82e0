//! A published study beside the run: its claims, its figures against those measured, its tables.

use maud::{Markup, html};

use super::parts::Table;
use crate::claims::Reproduction;
use crate::words::typeset;

/// Renders what the run tells of the study that it reproduces.
pub(super) fn claims(reproduction: &Reproduction) -> Markup {
    let mut claims = Table::new(["claim of the study", "here", "why"]);
    for claim in &reproduction.claims {
        claims.row([
            typeset(&claim.claim),
            claim.finding.answer.words().to_owned(),
            typeset(&claim.finding.why),
        ]);
    }
    let mut figures = Table::new(["figure", "published", "here"]);
    for (target, comparisons) in reproduction.by_target() {
        figures.heading(target);
        for comparison in comparisons {
            figures.row([
                typeset(&comparison.what),
                typeset(&comparison.published),
                typeset(&comparison.here),
            ]);
        }
    }
    html! {
        p.read {
            (reproduction.question)
            @if reproduction.quick {
                " This was the shorter variant: fewer and shorter runs than the study's."
            }
        }
        div.findings { (claims.render()) }
        @if !figures.rows.is_empty() {
            h3 { "Published and measured" }
            p.read { (reproduction.note) }
            (figures.render())
        }
        @for table in &reproduction.tables {
            details {
                summary { "As published: " (table.title) }
                p.note { (table.note) }
                (Table { head: table.head.clone(), rows: table.rows.clone(), ..Table::default() }.render())
            }
        }
    }
}

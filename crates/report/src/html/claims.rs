//! A published study beside the run: its claims, its figures against those measured, its tables.

use maud::{Markup, html};

use super::parts::{NONE, Table};
use crate::published::Reproduction;
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
    let mut figures = Table::new(["figure", "published", "target here", "here"]);
    for comparison in &reproduction.comparisons {
        figures.row([
            typeset(&comparison.what),
            typeset(&comparison.published),
            comparison.target.clone().unwrap_or_else(|| NONE.to_owned()),
            typeset(&comparison.here),
        ]);
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
            p.read {
                "Cycles are ticks of each machine's own TSC. The published ± is half of the interval at 90 % over single \
                 samples; the one measured here is half of that over runs at 95 %."
            }
            (figures.render())
        }
        @for table in &reproduction.tables {
            details {
                summary { "As published: " (table.title) }
                p.note { (table.note) }
                (Table { head: table.head.clone(), rows: table.rows.clone() }.render())
            }
        }
    }
}

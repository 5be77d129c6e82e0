//! A published study next to the run: its claims, its figures against those measured, its tables.

use maud::{Markup, html};

use crate::html::dot_plot::{self, Entry};
use crate::html::parts::{Figure, N, Table, legend};
use crate::shared;
use crate::svg::colour;
use crate::table::Titled;
use tare_figures::claims::{Drawn, Reproduction};
use tare_figures::group::grouped;
use tare_figures::mark::Mark;

/// Renders the answers to the claims of the study that the run reproduces.
pub(super) fn answers(reproduction: &Reproduction) -> Markup {
    let mut claims = Table::new(["claim of the study", "here", "why"]);
    for claim in &reproduction.claims {
        let answer = claim.finding.answer.words().to_owned();
        claims.row([claim.claim.clone(), answer, claim.finding.why.clone()]);
    }
    html! {
        p.read {
            (reproduction.question)
            @if reproduction.quick {
                " This was the shorter variant: fewer and shorter runs than the study's."
            }
        }
        div.findings { (claims.render()) }
    }
}

/// Renders the study's figures, next to those measured and as they were published.
pub(super) fn published(reproduction: &Reproduction) -> Markup {
    let figures = shared::comparisons(reproduction);
    html! {
        @if !figures.is_empty() {
            @for picture in pictures(reproduction) { (picture) }
            h3 { "Published and measured" }
            p.read { (reproduction.note) }
            (figures.render())
        }
        @for Titled { title, read, table } in reproduction.tables.iter().map(shared::published) {
            details {
                summary { "As published: " (title) }
                p.note { (read) }
                (table.render())
            }
        }
    }
}

/// Draws published figures next to those of the run, as far as it has any: a picture for each kind
/// of figure.
fn pictures(reproduction: &Reproduction) -> Vec<Markup> {
    let comparisons = reproduction.comparisons.iter();
    let all = comparisons.flat_map(|comparison| {
        let target = comparison.target.as_deref().unwrap_or_default();
        comparison.drawn.iter().map(move |drawn| (target, drawn))
    });
    let pictures = grouped(all.map(|of| (of.1.picture, of))).into_iter();
    pictures.map(|(_, of)| picture(reproduction, of)).collect()
}

fn picture(reproduction: &Reproduction, of: Vec<(&str, &Drawn)>) -> Markup {
    // Colours tell targets apart only where a row has several; else its name does.
    let is_same = |a: &Drawn, b: &Drawn| a.group == b.group && a.name == b.name;
    let several = of.iter().any(|(_, drawn)| {
        let same = of.iter().filter(|(_, other)| is_same(drawn, other));
        same.count() > 1
    });
    let mut targets: Vec<&str> = of.iter().map(|(target, _)| *target).collect();
    targets.retain(|_| several);
    targets.sort_unstable();
    targets.dedup();
    let mut rows: Vec<Entry> = Vec::new();
    for (target, drawn) in &of {
        let series = targets.iter().position(|known| known == target);
        let here = Mark {
            series: series.unwrap_or_default(),
            ..drawn.here.clone()
        };
        let is_of = |row: &&mut Entry| row.group == drawn.group && row.name == drawn.name;
        if let Some(row) = rows.iter_mut().find(is_of) {
            row.marks.push(here);
            continue;
        }
        let (value, label) = &drawn.published;
        rows.push(Entry {
            group: drawn.group.clone(),
            name: drawn.name.clone(),
            marks: vec![Mark::published(*value, label, &reproduction.study), here],
        });
    }
    // Rows of one group stand together, groups in the order in which they come.
    let groups: Vec<String> = rows.iter().map(|row| row.group.clone()).collect();
    rows.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    let first = of[0].1;
    let description = format!("{}, published and measured here", first.picture);
    let plot = dot_plot::draw(&rows, description, (first.across, f64::INFINITY), |v| {
        N.tick(v)
    });
    // The first sentence of the table says where it is from, the others what is in its columns.
    let source = |note: &str| note.split(". ").next().unwrap_or_default().to_owned();
    let sources = reproduction.tables.iter().map(|table| source(&table.note));
    let sources: Vec<String> = sources.collect();
    let names = targets.iter().enumerate();
    let names = names.map(|(series, target)| (colour(series), (*target).to_owned()));
    let diamond = format!("published by {}, on another machine", reproduction.study);
    let symbols = dot_plot::symbols(&rows, &diamond);
    let figure = Figure {
        title: format!("{}: published and here", first.picture),
        read: format!(
            "Published figures are of another machine ({}).",
            sources.join("; ")
        ),
        legend: legend(names, symbols),
        plot: &plot,
        table: None,
    };
    figure.render()
}

//! Loads as they really were, daemons, and the places as they look from inside.

use maud::{Markup, html};

use tare_figures::analysis::Summary;
use tare_figures::group::{distinct, grouped};
use tare_figures::notices::name_cells;
use tare_figures::places::Place;
use tare_figures::words::NONE;

use crate::shared;
use crate::table::Medium;
use crate::words::{self, MOST_TOLD};

use crate::html::parts::{Table, sentence};

/// Renders what the loads did, and which daemons ran; `None` if there was neither.
pub fn loads(summary: &Summary) -> Option<Markup> {
    if summary.loads.is_empty() && summary.daemons.is_empty() {
        return None;
    }
    let titled = shared::loads(&summary.loads, Medium::Page);
    let notices = notices(summary);
    Some(html! {
        @if !titled.table.is_empty() {
            p.read { "From the start of a load to its end, also before and after the measurement: the median over the blocks, and the range. " (titled.read) }
            (titled.table.render())
        }
        @if !notices.is_empty() {
            h3 { "In what they differ from the published loads" }
            ul {
                @for (text, who) in notices.iter().take(MOST_TOLD) { li { (sentence(text)) span.note { " (" (who) ")" } } }
            }
        }
        @if !summary.daemons.is_empty() {
            @if !summary.loads.is_empty() { h3 { "Daemons" } }
            p { "Daemons that were running: " (words::daemons(&summary.daemons)) "." }
        }
    })
}

/// Returns each notice of a load once, with its source. Those of a schedule say themselves of which
/// load they are.
fn notices(summary: &Summary) -> Vec<(String, String)> {
    let notices = summary.loads.iter().flat_map(|load| {
        let name = (!load.is_schedule).then_some(load.load.as_str());
        let notices = load.notices.iter();
        notices.map(move |notice| ((notice.text.as_str(), name), &notice.cells))
    });
    grouped(notices)
        .into_iter()
        .map(|((text, load), cells)| {
            let cells: Vec<u32> = cells.into_iter().flatten().copied().collect();
            let cells = name_cells(&cells);
            let who = load.map_or_else(|| cells.clone(), |load| format!("{load}; {cells}"));
            (text.to_owned(), who)
        })
        .collect()
}

/// The facts of a place that are not measured, so that each change is one of the place.
const LASTING: [&str; 7] = [
    "kernel release",
    "preemption model",
    "isolated CPUs",
    "nohz_full CPUs",
    "kernel command line",
    "CPUs online",
    "clock source",
];

/// Renders the places from inside; `None` if no target tells anything of itself.
pub fn places(places: &[Place]) -> Option<Markup> {
    if places.is_empty() {
        return None;
    }
    let facts = places.iter().flat_map(|place| &place.facts);
    let mut names = distinct(facts.map(|fact| fact.name.as_str()));
    let left_out = names.len().saturating_sub(MOST_TOLD);
    names.truncate(MOST_TOLD);
    // A fact may be as long as a kernel's command line, so there is a column for each target and
    // not for each fact.
    let mut table = Table::new([""]);
    let has_groups = places.windows(2).any(|two| two[0].group != two[1].group);
    let head = places.iter().map(|place| match has_groups {
        true => format!("{}:\n{}", place.group.capabilities().heading, place.target),
        false => place.target.clone(),
    });
    table.head.extend(head);
    let mut changed: Vec<&str> = Vec::new();
    for name in &names {
        let mut row = vec![(*name).to_owned()];
        for place in places {
            let fact = place.facts.iter().find(|fact| fact.name == *name);
            let values = fact.map_or(&[][..], |fact| fact.values.as_slice());
            // What tare tells its agent, such as the load, is no other environment.
            let own = |value: &str| -> Vec<String> {
                let words = value.split(' ').filter(|word| !word.starts_with("tare."));
                words.map(str::to_owned).collect()
            };
            let mut differ = values.windows(2);
            let differ = differ.any(|two| own(&two[0].value) != own(&two[1].value));
            if differ && LASTING.contains(name) && !changed.contains(name) {
                changed.push(name);
            }
            row.push(match values {
                [] => NONE.to_owned(),
                [only] => only.value.clone(),
                several => {
                    let each = several
                        .iter()
                        .map(|value| format!("{} ({})", value.value, name_cells(&value.cells)));
                    format!("changed: {}", each.collect::<Vec<_>>().join("; "))
                }
            });
        }
        table.rows.push(row);
    }
    Some(html! {
        p.read { "What the measured code, or the agent around it, found where it ran." }
        @if !changed.is_empty() {
            p.caution role="note" {
                b { "Caution. " }
                "A target was not the same in all cells: " (changed.join(", ")) ". Figures over cells that differ in that \
                 mix environments; the table says which cells found what."
            }
        }
        div.findings { (table.render()) }
        @if left_out > 0 { p.note { (left_out) " more are in summary.json." } }
    })
}

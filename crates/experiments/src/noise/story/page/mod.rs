//! The pictures of the page.

mod curves;
mod long;
mod sweep;
mod time;
mod window;

use maud::{Markup, html};
use tare_figures::rows::Row;
use tare_pages::html::overview::overview;
use tare_pages::html::parts::N;
use tare_pages::html::{Detail, Section};

pub(super) use long::Moment;

use super::ABOVE_WORDS;
use super::panels::{Panel, series};
use super::quanta;
use super::split::is_reference;

/// Renders the picture that goes with the verdict.
pub(super) fn first(panels: &[Panel<'_>], detail: Detail) -> Option<Markup> {
    match *series(panels).first()? {
        [panel] if panel.members.len() == 1 && alike(panels, panel).count() == 1 => {
            let map = long::over_time(panel).next();
            map.or_else(|| time::over_time(panel, detail.bytes / 3))
        }
        [panel] => at_a_glance(panels, panel),
        sizes => sweep::shares(sizes),
    }
}

/// Renders a section for each workload and load: a single size in full, several sizes as a sweep
/// with some in full.
pub(super) fn sections(panels: &[Panel<'_>], detail: Detail) -> Vec<Section> {
    let all = series(panels);
    let pictures = all
        .iter()
        .map(|sizes| sizes.len().min(detail.pictures.max(1)));
    let bytes = detail.bytes * 2 / 3 / pictures.sum::<usize>().max(1);
    let sections = all.iter().enumerate().map(|(place, sizes)| {
        let plan = sizes[0].plan();
        let (name, content) = match sizes {
            [panel] => {
                let is_shared = panel.members.len() > 1 || alike(panels, panel).count() > 1;
                // That of the first stands beside the verdict, and all loads of a workload have one
                // in common.
                let is_shown = place == 0 && is_shared || !is_first_load(panels, panel);
                let glance = (!is_shown).then(|| at_a_glance(panels, panel)).flatten();
                let content = html! {
                    (in_full(panel, place > 0 || is_shared, detail, bytes))
                    @if let Some(picture) = glance { (picture) }
                };
                (panel.title(), content)
            }
            sizes => {
                let name = format!("{} by size{}", plan.work.id, plan.load.under());
                (name, by_size(sizes, place == 0, detail, bytes))
            }
        };
        Section::new(&format!("workload-{}", place + 1), &name, content)
    });
    sections.collect()
}

/// Returns the panels that differ from one in their load at most.
fn alike<'p, 'a>(
    panels: &'p [Panel<'a>],
    panel: &'p Panel<'a>,
) -> impl Iterator<Item = &'p Panel<'a>> {
    let labels = &panel.plan().labels;
    panels
        .iter()
        .filter(move |other| other.plan().labels == *labels)
}

fn is_first_load(panels: &[Panel<'_>], panel: &Panel<'_>) -> bool {
    let first = alike(panels, panel).next();
    first.is_some_and(|first| first.plan().load == panel.plan().load)
}

/// Renders the shares of all targets under all loads, with those of each run.
fn at_a_glance(panels: &[Panel<'_>], panel: &Panel<'_>) -> Option<Markup> {
    let members = alike(panels, panel).flat_map(|panel| &panel.members);
    let rows: Vec<&Row> = members
        .filter_map(|member| Some(member.share()?.0))
        .collect();
    let plan = panel.plan();
    let size = plan
        .labels
        .number("size")
        .map_or_else(String::new, |size| format!(" {size}"));
    let title = format!("{}{size} by target", plan.work.id);
    let what = match panel.only_reads_clock() {
        true => "time lost".to_owned(),
        false => format!("time in {ABOVE_WORDS}"),
    };
    overview(&rows, title, &what)
}

fn by_size(sizes: &[Panel<'_>], is_first: bool, detail: Detail, bytes: usize) -> Markup {
    let shown = spread_out(sizes.len(), detail.pictures);
    let left_out = sizes.len() - shown.len();
    html! {
        @if !is_first { @if let Some(shares) = sweep::shares(sizes) { (shares) } }
        @for picture in sweep::durations_and_classes(sizes) { (picture) }
        h3 { "Each size" }
        @if left_out > 0 {
            p.note {
                (N.count(left_out as u64)) " of " (N.count(sizes.len() as u64)) " sizes have no separate pictures here, to \
                 keep the page small; their figures are in the tables."
            }
        }
        @for place in shown {
            details.size {
                summary { (sizes[place].title()) }
                (in_full(&sizes[place], true, detail, bytes))
            }
        }
    }
}

/// Chooses `shown` of `all` places, evenly and with both ends.
fn spread_out(all: usize, shown: usize) -> Vec<usize> {
    match shown {
        _ if all <= shown => (0..all).collect(),
        0 => Vec::new(),
        1 => vec![0],
        _ => (0..shown).map(|n| n * (all - 1) / (shown - 1)).collect(),
    }
}

/// Renders all pictures of the cases that differ only in their target, that over time in about so
/// many bytes.
fn in_full(panel: &Panel<'_>, with_time: bool, detail: Detail, bytes: usize) -> Markup {
    let mut pictures = Vec::new();
    let mut maps = long::over_time(panel).peekable();
    let is_long = maps.peek().is_some();
    if with_time {
        pictures.extend(maps);
    }
    let mut runs = panel
        .members
        .iter()
        .flat_map(|member| &member.pictures.runs);
    // A long run lists few of its gaps, if any.
    if with_time && !is_long || is_long && runs.any(|run| run.longest().is_some()) {
        pictures.extend(time::over_time(panel, bytes));
    }
    match panel.only_reads_clock() {
        true => {
            pictures.extend(quanta::heat_maps(panel));
            pictures.extend(quanta::work(panel, bytes));
            pictures.extend(curves::of_gaps(panel, detail.coarseness()));
        }
        false => {
            pictures.extend(window::windows(panel));
            pictures.extend(curves::histograms(panel, detail.coarseness()));
            // Without interrupts, all repetitions take about the same time: next to others that is
            // too narrow to be seen.
            let members = panel.members.iter().filter(|_| panel.members.len() > 1);
            let quiet = members.filter(|member| is_reference(&member.case.plan.target));
            let quiet = quiet.map(|member| Panel {
                members: vec![member.clone()],
            });
            pictures
                .extend(quiet.flat_map(|panel| curves::histograms(&panel, detail.coarseness())));
        }
    }
    let mut members = panel.members.iter();
    let is_empty = members.all(|member| member.pictures.counts.is_empty());
    html! {
        @for picture in pictures { (picture) }
        @if is_empty { p { "There was no gap at all, so there is nothing to draw." } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_many_sizes_are_shown_with_both_ends() {
        assert_eq!(spread_out(3, 12), [0, 1, 2]);
        assert_eq!(spread_out(10, 4), [0, 3, 6, 9]);
        assert_eq!(spread_out(200, 2), [0, 199]);
        assert_eq!(spread_out(200, 0), Vec::<usize>::new());
    }
}

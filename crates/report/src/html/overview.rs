//! Many targets at a glance: one row for each, by group, with a mark for each load.
//!
//! A dozen lines or clouds of dots over each other tell nothing. Here every target has a row with its name, so
//! that no colour has to be looked up; colours are left for the loads.

use maud::Markup;

use crate::analysis::{Combination, CombinedFigures, Spread};
use crate::panels::{MANY, Panel, target_name};
use crate::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};

use super::parts::{Figure, N, Table, legend_of, none};
use super::sweep::zero_scale;

/// Is the height of a line of a target's name, and of a mark beside it, in pixels.
const LINE: f64 = 15.0;
/// Is the room between rows.
const BETWEEN: f64 = 5.0;
/// Is the height of a group's name.
const HEADING: f64 = 22.0;
/// Is the number of characters from which a target's name is broken at its commas.
const NAME: usize = 34;
/// Is about the width of a character, in pixels.
const CHARACTER: f64 = 6.7;

/// Says whether the targets of a workload are too many for one picture, or measured under several loads.
pub(super) fn is_needed(panels: &[Panel<'_>], sizes: &[Panel<'_>]) -> bool {
    let [panel] = sizes else { return false };
    panel.members.len() > MANY || (loads(panels, panel).len() > 1 && panel.members.len() > 1)
}

/// Says whether a panel is the first of those that differ only in their load.
pub(super) fn is_first_load(panels: &[Panel<'_>], panel: &Panel<'_>) -> bool {
    let first = loads(panels, panel).into_iter().next();
    first.is_some_and(|first| first.first().load == panel.first().load)
}

/// Returns the panels that differ from one only in their load, itself included.
fn loads<'p, 'a>(panels: &'p [Panel<'a>], panel: &Panel<'a>) -> Vec<&'p Panel<'a>> {
    let one = panel.first();
    let same = |other: &&Panel<'_>| {
        let other = other.first();
        other.workload == one.workload && other.size == one.size && other.timing == one.timing
    };
    panels.iter().filter(same).collect()
}

/// Renders the time lost by target and load; `None` if there are no figures.
pub(super) fn overview(panels: &[Panel<'_>], panel: &Panel<'_>) -> Option<Markup> {
    let under = loads(panels, panel);
    let whole: Vec<Panel<'_>> = under.iter().map(|panel| (*panel).clone()).collect();
    let targets = Panel::of_targets(&whole);
    let shares: Vec<f64> = whole
        .iter()
        .flat_map(|panel| &panel.members)
        .filter_map(|(_, c)| share(c))
        .flat_map(|share| [share.lowest, share.highest])
        .map(|share| share * 100.0)
        .collect();
    if shares.is_empty() {
        return None;
    }
    let marks = under.len().min(COLOURS);
    let names: Vec<Vec<String>> = targets
        .members
        .iter()
        .map(|(_, target)| broken(&target_name(target)))
        .collect();
    let row = |name: &[String]| LINE * name.len().max(marks) as f64 + BETWEEN;
    let height =
        targets.groups().len() as f64 * HEADING + names.iter().map(|name| row(name)).sum::<f64>();
    let widest = names
        .iter()
        .flatten()
        .map(|line| line.chars().count())
        .max()?;
    let what = what(panel.first());
    let description = format!("{what} of {} by target", panel.first().workload);
    let mut plot = Plot::rows(height, widest as f64 * CHARACTER + 24.0, description);
    let (bottom, top) = plot.upwards();
    let across = zero_scale(&shares, plot.across());
    grid(&mut plot, across, (bottom, top));
    let mut y = top;
    let mut group = None;
    let mut table = Table::new(["target"]);
    table.head.extend(under.iter().map(|p| load_name(p)));
    for ((_, target), name) in targets.members.iter().zip(&names) {
        if group != Some(target.group) {
            group = Some(target.group);
            plot.text("group", (0.0, y + HEADING - 6.0), target.group.name());
            table.heading(target.group.name());
            y += HEADING;
        }
        let mut cells = vec![target_name(target)];
        for (place, line) in name.iter().enumerate() {
            let at = (10.0, y + (place + 1) as f64 * LINE - 4.0);
            plot.text("row", at, line);
        }
        for (series, load) in under.iter().enumerate() {
            let of = load.members.iter().find(|(_, c)| c.target == target.target);
            let found = of.and_then(|(_, c)| Some((*c, share(c)?)));
            cells.push(found.map_or_else(none, |(_, share)| ranged(&share)));
            // Further loads are in the table.
            if let Some((combination, share)) = found.filter(|_| series < COLOURS) {
                let at = y + (series as f64 + 0.5) * LINE;
                draw(&mut plot, series, combination, &share, across, at);
            }
        }
        table.rows.push(cells);
        y += row(name);
    }
    let label = |v: f64| N.with_unit(&N.tick(v), "%");
    let ticks = across.ticks(8);
    plot.axis(Axis::new(Side::Bottom, across, what, ticks, label));
    let loads = under.iter().take(COLOURS).enumerate();
    let legend = loads.map(|(series, panel)| (colour(series), load_name(panel)));
    let mut read = "Each mark is the share in all runs together, the line through it reaches from the lowest run \
                    to the highest. Hollow marks were executed by an emulator: they say nothing of a \
                    machine's speed."
        .to_owned();
    if under.len() > COLOURS {
        read.push_str(" The first six loads are drawn; the table has all.");
    }
    let figure = Figure {
        title: format!("{} by target", title(panel)),
        read,
        legend: if under.len() > 1 {
            legend_of(legend)
        } else {
            legend_of([])
        },
        plot: &plot,
        table: Some(table),
    };
    Some(figure.render())
}

/// Names the workload without its load.
fn title(panel: &Panel<'_>) -> String {
    let first = panel.first();
    match first.size {
        Some(size) => format!("{} {}", first.workload, N.count(size)),
        None => first.workload.clone(),
    }
}

fn load_name(panel: &Panel<'_>) -> String {
    panel.first().load.clone()
}

fn share(combination: &Combination) -> Option<Spread<f64>> {
    match &combination.figures {
        CombinedFigures::Gap(gap) => Some(gap.share_lost),
        CombinedFigures::Timed(timed) => timed.shares.first()?.share,
    }
}

fn what(combination: &Combination) -> String {
    match &combination.figures {
        CombinedFigures::Gap(_) => "share of the time lost".to_owned(),
        CombinedFigures::Timed(timed) => timed.shares.first().map_or_else(String::new, |share| {
            let limit = N.count(share.above_cycles);
            format!("share of the time in delays above {limit} cycles")
        }),
    }
}

fn ranged(share: &Spread<f64>) -> String {
    let percent = |share: f64| N.percent(share);
    if share.lowest == share.highest {
        return percent(share.figure);
    }
    format!(
        "{}\n{} to {}",
        percent(share.figure),
        percent(share.lowest),
        percent(share.highest)
    )
}

/// Breaks a target's name at its commas into lines that are not much longer than [`NAME`].
fn broken(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in name.split_inclusive(',') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + piece.chars().count() <= NAME => {
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

fn grid(plot: &mut Plot, across: Scale, (bottom, top): (f64, f64)) {
    let mut grid = Path::default();
    for tick in across.ticks(8) {
        grid.move_to(across.at(tick), top);
        grid.line_to(across.at(tick), bottom);
    }
    plot.path("grid", &grid);
}

fn draw(
    plot: &mut Plot,
    series: usize,
    combination: &Combination,
    share: &Spread<f64>,
    across: Scale,
    y: f64,
) {
    let x = |share: f64| across.at(share * 100.0);
    let mut line = Path::default();
    line.move_to(x(share.lowest), y);
    line.line_to(x(share.highest), y);
    plot.path(&format!("line {}", colour(series)), &line);
    let hollow = if combination.emulated { " hollow" } else { "" };
    let said = format!(
        "{} under {}: {}",
        target_name(combination),
        combination.load,
        ranged(share).replace('\n', ", ")
    );
    let classes = format!("mark{hollow} {}", colour(series));
    plot.circle(&classes, (x(share.figure), y), 4.5, &said);
    let end = x(share.highest).max(x(share.figure)) + 8.0;
    plot.text("figure", (end, y + 4.0), &N.percent(share.figure));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_broken_at_their_commas() {
        assert_eq!(broken("process"), ["process"]);
        assert_eq!(
            broken("linux,kernel=debian,cpus=2,isolate=1,nohz_full=1"),
            ["linux,kernel=debian,cpus=2,", "isolate=1,nohz_full=1"]
        );
    }
}

//! Many targets at a glance: one row for each, by group, with a mark for each load.
//!
//! A dozen lines or clouds of dots over each other tell nothing. Here every target has a row with its name, so
//! that no colour has to be looked up; colours are left for the loads.

use maud::Markup;

use super::parts::{Figure, N, Table, legend_of};
use crate::rows::{self, Row};
use crate::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};
use crate::words::NONE;

/// The height of a line of a target's name, and of a mark beside it, in pixels.
const LINE: f64 = 15.0;
/// The room between rows.
const BETWEEN: f64 = 5.0;
/// The height of a group's name.
const HEADING: f64 = 22.0;
/// The number of characters from which a target's name is broken at its commas.
const NAME: usize = 34;
/// About the width of a character, in pixels.
const CHARACTER: f64 = 6.7;

/// Renders one figure by target and load; `None` if no row has it. All rows are of one measure and figure.
#[must_use]
pub fn overview(rows: &[&Row], title: String, what: &str) -> Option<Markup> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.over.is_ok())
        .copied()
        .collect();
    let unit = rows.first()?.unit;
    let mut loads: Vec<&str> = Vec::new();
    let mut names: Vec<(&Row, String)> = Vec::new();
    for row in &rows {
        if !loads.contains(&row.load.as_str()) {
            loads.push(&row.load);
        }
        let name = name(row, &rows);
        if names.iter().all(|(_, known)| *known != name) {
            names.push((row, name));
        }
    }
    names.sort_by_key(|(row, _)| row.group);
    let marks = loads.len().min(COLOURS);
    let broken: Vec<Vec<String>> = names.iter().map(|(_, name)| broken(name)).collect();
    let height_of = |name: &[String]| LINE * name.len().max(marks) as f64 + BETWEEN;
    let mut groups: Vec<_> = names.iter().map(|(row, _)| row.group).collect();
    groups.dedup();
    let height =
        groups.len() as f64 * HEADING + broken.iter().map(|name| height_of(name)).sum::<f64>();
    let lines = broken.iter().flatten().map(|line| line.chars().count());
    let widest = lines.max()?;
    let mut plot = Plot::rows(
        height,
        widest as f64 * CHARACTER + 24.0,
        format!("{what} by target"),
    );
    let (bottom, top) = plot.upwards();
    let drawn = |value: f64| if unit == "1" { value * 100.0 } else { value };
    let ends = rows.iter().filter_map(|row| row.over.as_ref().ok());
    let ends: Vec<f64> = ends
        .flat_map(|over| [drawn(over.lowest), drawn(over.highest)])
        .collect();
    let across = Scale::with_a_place_for_zero(&ends, plot.across());
    grid(&mut plot, across, (bottom, top));
    let mut y = top;
    let mut group = None;
    let mut table = Table::new(["target"]);
    table
        .head
        .extend(loads.iter().map(|load| (*load).to_owned()));
    for ((first, name), lines) in names.iter().zip(&broken) {
        if group != Some(first.group) {
            group = Some(first.group);
            plot.text("group", (0.0, y + HEADING - 6.0), first.group.name());
            table.heading(first.group.name());
            y += HEADING;
        }
        for (place, line) in lines.iter().enumerate() {
            let at = (10.0, y + (place + 1) as f64 * LINE - 4.0);
            plot.text("row", at, line);
        }
        let mut cells = vec![name.clone()];
        for (series, load) in loads.iter().enumerate() {
            let found = rows
                .iter()
                .find(|row| row.load == *load && self::name(row, &rows) == *name);
            cells.push(found.map_or_else(|| NONE.to_owned(), |row| ranged(row)));
            // Further loads are in the table.
            if let Some(row) = found.filter(|_| series < COLOURS) {
                let at = y + (series as f64 + 0.5) * LINE;
                draw(&mut plot, series, row, |value| across.at(drawn(value)), at);
            }
        }
        table.rows.push(cells);
        y += height_of(lines);
    }
    let label = |v: f64| match unit {
        "1" => N.with_unit(&N.tick(v), "%"),
        "ns" => N.ns_tick(v),
        _ => N.tick(v),
    };
    let ticks = across.ticks(8);
    plot.axis(Axis::new(Side::Bottom, across, what, ticks, label));
    let shown = loads.iter().take(COLOURS).enumerate();
    let shown = shown.map(|(series, load)| (colour(series), (*load).to_owned()));
    let mut read =
        "Each mark is the figure over all runs, each stroke a run: the spread of these is the \
                    uncertainty of the figure."
            .to_owned();
    if rows.iter().any(|row| row.emulated) {
        read.push_str(
            " Hollow marks were executed by an emulator: they say nothing of a machine's speed.",
        );
    }
    if loads.len() > COLOURS {
        read.push_str(" The first six loads are drawn; the table has all.");
    }
    let legend = shown.filter(|_| loads.len() > 1);
    let figure = Figure {
        title,
        read,
        legend: legend_of(legend),
        plot: &plot,
        table: Some(table),
    };
    Some(figure.render())
}

/// Names a row among others: by its target, and by labels that not all of them have.
fn name(row: &Row, rows: &[&Row]) -> String {
    let is_own = |(key, value): &(&str, &str)| {
        let mut rows = rows.iter();
        rows.any(|other| other.labels.get(key) != Some(value))
    };
    let labels = row.labels.iter().filter(is_own);
    let labels = labels.map(|(key, value)| format!(",{key}={value}"));
    format!("{}{}", row.marked_target(), labels.collect::<String>())
}

/// Writes the figure and the range of its runs.
fn ranged(row: &Row) -> String {
    let Ok(over) = &row.over else {
        return NONE.to_owned();
    };
    let written = |value| rows::written(value, row.unit);
    if over.lowest == over.highest {
        return written(over.estimate);
    }
    let (figure, low, high) = (over.estimate, over.lowest, over.highest);
    format!("{}\n{} to {}", written(figure), written(low), written(high))
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

fn draw(plot: &mut Plot, series: usize, row: &Row, x: impl Fn(f64) -> f64, y: f64) {
    let Ok(over) = &row.over else { return };
    let mut line = Path::default();
    line.move_to(x(over.lowest), y);
    line.line_to(x(over.highest), y);
    plot.path(&format!("line thin {}", colour(series)), &line);
    let mut runs = Path::default();
    for run in row.each.iter().filter_map(|run| run.carried.value()) {
        runs.stroke(x(run), y - 3.0, 6.0);
    }
    plot.path(&format!("line {}", colour(series)), &runs);
    let hollow = if row.emulated { " hollow" } else { "" };
    let said = format!("{}: {}", row.place(), ranged(row).replace('\n', ", "));
    let classes = format!("mark{hollow} {}", colour(series));
    plot.circle(&classes, (x(over.estimate), y), 4.5, &said);
    let end = x(over.highest).max(x(over.estimate)) + 8.0;
    plot.text(
        "figure",
        (end, y + 4.0),
        &rows::written(over.estimate, row.unit),
    );
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

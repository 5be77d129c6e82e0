//! Many targets at a glance: one row for each, by group, with a mark for each load.

use maud::Markup;

use super::dot_plot::{self, Entry};
use super::parts::{Figure, N, lacking_of, legend};
use crate::svg::{COLOURS, colour};
use crate::words::typeset;
use tare_figures::group::{distinct, grouped};
use tare_figures::mark::{MARKED, Mark};
use tare_figures::rows::{self, Row};

/// Renders one figure by target and load; `None` if no row has it. All rows are of one measure and
/// figure.
#[must_use]
pub fn overview(rows: &[&Row], title: String, what: &str) -> Option<Markup> {
    overview_of(rows, |row| name(row, rows), |_| false, (title, what))
}

/// Renders the same with names of the caller's own: what has the same name is in one row. A figure
/// that is the least that it can be is drawn as a ring.
#[must_use]
pub fn overview_of(
    rows: &[&Row],
    name: impl Fn(&Row) -> String,
    is_least: impl Fn(&Row) -> bool,
    (title, what): (String, &str),
) -> Option<Markup> {
    let (rows, lacking): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.over.is_ok());
    let unit = rows.first()?.unit;
    let loads = distinct(rows.iter().map(|row| row.load.as_str()));
    let mut names = grouped(rows.iter().map(|row| (name(row), *row)));
    names.sort_by_key(|(_, own)| own[0].group);
    let most = rows
        .iter()
        .filter_map(|row| Some(row.over.as_ref().ok()?.highest));
    let (binary, bytes) = binary_unit(most.fold(0.0, f64::max));
    let drawn = |value: f64| match unit {
        "1" => value * 100.0,
        "bytes" => value / bytes,
        _ => value,
    };
    let mut entries: Vec<Entry> = Vec::new();
    for (name, own) in &names {
        let first = own[0];
        let mut marks = Vec::new();
        for (series, load) in loads.iter().take(COLOURS).enumerate() {
            if let Some(row) = own.iter().find(|row| row.load.as_str() == *load) {
                let write = |value| typeset(&rows::written(value, row.unit));
                let mark = Mark::of(row, series, drawn, write);
                marks.extend(match is_least(row) {
                    true => mark.map(Mark::at_least),
                    false => mark,
                });
            }
        }
        entries.push(Entry {
            group: first.group.capabilities().heading.to_owned(),
            name: typeset(name),
            marks,
        });
    }
    let label = |v: f64| match unit {
        "1" => N.with_unit(&N.tick(v), "%"),
        "ns" => N.ns_tick(v),
        "bytes/s" => N.byte_rate(v),
        "bytes" => N.with_unit(&N.tick(v), binary),
        _ => N.tick(v),
    };
    let bound = if unit == "1" { 100.0 } else { f64::INFINITY };
    let description = format!("{what} by target");
    let plot = dot_plot::draw(&entries, description, (what, bound), label);
    let mut read = Vec::new();
    if loads.len() > COLOURS {
        read.push("The first six loads are drawn; the tables have all.".to_owned());
    }
    if rows.iter().any(|row| row.is_marked()) {
        read.push(MARKED.to_owned());
    }
    if !lacking.is_empty() {
        let of = |row: &&Row| {
            let (name, under) = (name(row), row.load.under());
            let is_named = name.contains(&under);
            if is_named { name } else { name + &under }
        };
        read.push(lacking_of(lacking.iter().map(of).collect()));
    }
    let shown = loads.iter().take(COLOURS).enumerate();
    let shown = shown.map(|(series, load)| (colour(series), (*load).to_owned()));
    let shown = shown.filter(|_| loads.len() > 1);
    let figure = Figure {
        title,
        read: read.join(" "),
        legend: legend(shown, dot_plot::symbols(&entries, "")),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

/// Returns the unit in which a number of bytes is written, with its size.
fn binary_unit(bytes: f64) -> (&'static str, f64) {
    let units =
        [("GiB", 30), ("MiB", 20), ("KiB", 10)].map(|(name, bits)| (name, f64::from(1 << bits)));
    let found = units.into_iter().find(|(_, size)| bytes >= *size);
    found.unwrap_or(("B", 1.0))
}

/// Names a row among others: by its target, and by labels that not all of them have.
fn name(row: &Row, all: &[&Row]) -> String {
    let is_common = |key: &&str| {
        let mut all = all.iter();
        all.all(|other| other.labels.get(key) == row.labels.get(key))
    };
    let told = row.labels.iter().map(|(key, _)| key).filter(is_common);
    row.marked_target() + &rows::behind(&row.labels, &Vec::from_iter(told))
}

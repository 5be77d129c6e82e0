//! Dot plots: a row for each name and in it a mark for each figure.
//!
//! A dozen lines or clouds of dots over each other are unreadable. Here every row has its name, so
//! that no colour has to be looked up, and every mark has its figure next to it.

use maud::{Markup, PreEscaped};

use tare_figures::mark::{Mark, Shape, Spread};

use crate::svg::{Axis, Path, Plot, Scale, Side, colour, cut, width_of};
use crate::words::{pieces, with_thin_spaces};

/// The room above a row's name, the height of each line of that, and of a mark with its figure
/// above it, in pixels.
const ABOVE: f64 = 8.0;
const LINE: f64 = 15.0;
const MARK: f64 = 26.0;
/// The height of a figure that stands below its mark.
const BELOW: f64 = 13.0;
/// The room between rows.
const BETWEEN: f64 = 3.0;
/// The height of a group's name.
const HEADING: f64 = 22.0;
/// The number of characters from which a name is broken at its commas.
const NAME: usize = 34;
/// The greatest width of the names, in pixels; longer ones are cut.
const NAMES: f64 = 330.0;

/// A row of a dot plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// What stands above this row and all others of its group; empty if nothing does.
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its marks, from the uppermost to the lowest. A diamond shares the line of the first other
    /// mark.
    pub marks: Vec<Mark>,
}

/// Draws a mark with its figure above it, or below.
fn draw_mark(mark: &Mark, plot: &mut Plot, across: Scale, y: f64, is_below: bool) {
    let (colour, x) = (colour(mark.series), |value| across.at(value));
    if let Some(spread) = mark.spread {
        let [low, high] = spread.ends();
        let mut line = Path::default();
        line.move_to(x(low), y);
        line.line_to(x(high), y);
        let class = match spread {
            Spread::Interval(..) => "interval",
            Spread::Range(..) => "range",
        };
        plot.path(&format!("line {class} {colour}"), &line);
    }
    let mut runs = Path::default();
    for run in &mark.runs {
        runs.stroke(x(*run), y - 4.0, 8.0);
    }
    plot.path(&format!("line thin {colour}"), &runs);
    let at = (x(mark.value), y);
    let said = with_thin_spaces(&mark.said);
    match mark.shape {
        Shape::Dot => plot.circle(&format!("mark {colour}"), at, 4.5, &said),
        Shape::Ring | Shape::Least => plot.circle(&format!("mark hollow {colour}"), at, 4.5, &said),
        Shape::Diamond => plot.diamond("published", at, 6.0, &said),
    }
    let class = match mark.shape {
        Shape::Diamond => "published",
        Shape::Dot | Shape::Ring | Shape::Least => "figure",
    };
    let figure = if is_below { y + 18.0 } else { y - 8.0 };
    plot.centred(class, (at.0, figure), &mark.label);
}

impl Entry {
    /// Divides its marks into published ones and others.
    fn parts(&self) -> (Vec<&Mark>, Vec<&Mark>) {
        let is_published = |mark: &&Mark| mark.shape == Shape::Diamond;
        self.marks.iter().partition(is_published)
    }

    /// Returns whether a published figure would meet that of the first other mark, and so stands
    /// below.
    fn is_below(&self, across: Scale) -> bool {
        let (published, own) = self.parts();
        let meets = |a: &Mark, b: &Mark| {
            let room = (width_of(&a.label) + width_of(&b.label)) * 0.55 + 8.0;
            (across.at(a.value) - across.at(b.value)).abs() < room
        };
        let mut published = published.into_iter();
        published.any(|mark| own.first().is_some_and(|own| meets(mark, own)))
    }

    /// Returns its height with a name of this many lines.
    fn height(&self, lines: usize, across: Scale) -> f64 {
        let (_, own) = self.parts();
        let below = if self.is_below(across) { BELOW } else { 0.0 };
        (own.len().max(1) as f64 * MARK + below).max(ABOVE + lines as f64 * LINE) + BETWEEN
    }

    fn draw(&self, plot: &mut Plot, across: Scale, top: f64) {
        let is_below = self.is_below(across);
        let (published, own) = self.parts();
        for (line, mark) in own.into_iter().enumerate() {
            let below = if line > 0 && is_below { BELOW } else { 0.0 };
            let y = top + 19.0 + line as f64 * MARK + below;
            draw_mark(mark, plot, across, y, false);
        }
        // Last, so that the outline is seen around a dot in the same place.
        for mark in published {
            draw_mark(mark, plot, across, top + 19.0, is_below);
        }
    }
}

/// Draws rows, those of a group one after the other, over an axis with this title whose ticks
/// `label` writes. There are none beyond `bound`, the greatest figure that there can be.
#[must_use]
pub fn draw(
    rows: &[Entry],
    description: String,
    (title, bound): (&str, f64),
    label: impl Fn(f64) -> String,
) -> Plot {
    Plot::twice(|is_narrow| drawn(rows, description.clone(), (title, bound), &label, is_narrow))
}

/// Draws rows with their names at the left, or above them.
fn drawn(
    rows: &[Entry],
    description: String,
    (title, bound): (&str, f64),
    label: impl Fn(f64) -> String,
    is_narrow: bool,
) -> Plot {
    let names: Vec<Vec<String>> = rows.iter().map(|row| broken(&row.name)).collect();
    let lines = names.iter().flatten().map(|line| width_of(line));
    let widest = lines.fold(0.0, f64::max).min(NAMES);
    let left = (!is_narrow).then_some(widest + 24.0);
    let sized = |height, description| Plot::rows(height, left, description);
    let across = scale(rows, sized(0.0, String::new()).across());
    // The room for a name above its row, and the lines of it next to the row.
    let around = |lines: usize| match is_narrow {
        true => (ABOVE + lines as f64 * LINE + BETWEEN, 0),
        false => (0.0, lines),
    };
    let mut height = 0.0;
    let mut group = "";
    for (row, name) in rows.iter().zip(&names) {
        if row.group != group {
            height += HEADING;
            group = &row.group;
        }
        let (above, lines) = around(name.len());
        height += above + row.height(lines, across);
    }
    let mut plot = sized(height, description);
    let (bottom, top) = plot.upwards();
    let mut ticks = across.ticks(if is_narrow { 4 } else { 8 });
    ticks.retain(|tick| *tick <= bound);
    let mut grid = Path::default();
    for tick in &ticks {
        grid.move_to(across.at(*tick), top);
        grid.line_to(across.at(*tick), bottom);
    }
    plot.path("grid", &grid);
    let (mut y, mut group) = (top, "");
    for (row, name) in rows.iter().zip(&names) {
        if row.group != group {
            group = &row.group;
            plot.text("group", (0.0, y + HEADING - 6.0), group);
            y += HEADING;
        }
        for (place, line) in name.iter().enumerate() {
            let at = (10.0, y + ABOVE + (place + 1) as f64 * LINE);
            plot.text("row", at, &cut(line, widest));
        }
        let (above, lines) = around(name.len());
        row.draw(&mut plot, across, y + above);
        y += above + row.height(lines, across);
    }
    plot.axis(Axis::new(Side::Bottom, across, title, ticks, label));
    plot
}

/// Returns the axis of all figures of these rows.
fn scale(rows: &[Entry], to: (f64, f64)) -> Scale {
    let marks = rows.iter().flat_map(|row| &row.marks);
    let ends = marks.flat_map(|mark| {
        let spread = mark.spread.into_iter().flat_map(Spread::ends);
        spread.chain(mark.runs.iter().copied()).chain([mark.value])
    });
    let ends: Vec<f64> = ends.collect();
    let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ends.iter().copied().fold(0.0, f64::max);
    // Figures that lie close together are not told apart on an axis that begins at 0.
    match low < high && low > high / 2.0 {
        true => Scale::fitting(low, high, to),
        false => Scale::with_a_place_for_zero(&ends, to),
    }
}

/// Returns what the symbols of these rows mean, each with its drawing; `diamond` says what a
/// diamond is.
#[must_use]
pub fn symbols(rows: &[Entry], diamond: &str) -> Vec<(Markup, String)> {
    let marks = || rows.iter().flat_map(|row| &row.marks);
    let has = |shape| marks().any(|mark| mark.shape == shape);
    let is_spread = |of: fn(&Spread) -> bool| marks().any(|m| m.spread.as_ref().is_some_and(of));
    let dot =
        |class: &str| format!("<circle class=\"mark {class}\" cx=\"13\" cy=\"6\" r=\"4.5\"/>");
    let line = |class: &str, d: &str| format!("<path class=\"line {class}\" d=\"{d}\"/>");
    let drawn = "<path class=\"published\" d=\"M13 0l6 6l-6 6l-6 -6z\"/>".to_owned();
    let own = match marks().any(|mark| mark.runs.len() > 1) {
        true => "all runs",
        false => "the run",
    };
    let symbols = [
        (has(Shape::Dot), dot(""), own.to_owned()),
        (
            has(Shape::Ring),
            dot("hollow"),
            "emulated: not the speed of a machine".to_owned(),
        ),
        (
            has(Shape::Least),
            dot("hollow"),
            "at least: the client was the limit".to_owned(),
        ),
        (
            is_spread(|spread| matches!(spread, Spread::Interval(..))),
            line("interval", "M1 6h24"),
            "95 % interval".to_owned(),
        ),
        (
            is_spread(|spread| matches!(spread, Spread::Range(..))),
            line("range", "M1 6h24"),
            "range; too few runs for an interval".to_owned(),
        ),
        (
            marks().any(|mark| mark.runs.len() > 1),
            line("thin", "M13 2v8"),
            "a run".to_owned(),
        ),
        (has(Shape::Diamond), drawn, diamond.to_owned()),
    ];
    let shown = symbols.into_iter().filter(|(is_there, ..)| *is_there);
    shown
        .map(|(_, drawing, name)| (PreEscaped(drawing), name))
        .collect()
}

/// Breaks a name at its commas into lines that are not much longer than [`NAME`].
fn broken(name: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(name) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + piece.chars().count() <= NAME => {
                line.push_str(piece);
            }
            _ => lines.push(piece.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, marks: Vec<Mark>) -> Entry {
        Entry {
            group: String::new(),
            name: name.to_owned(),
            marks,
        }
    }

    fn mark(value: f64, spread: Spread) -> Mark {
        Mark {
            spread: Some(spread),
            ..mark_of(value, &[value * 0.5, value * 2.0])
        }
    }

    fn mark_of(value: f64, runs: &[f64]) -> Mark {
        Mark {
            shape: Shape::Dot,
            series: 0,
            value,
            spread: None,
            runs: runs.to_vec(),
            label: format!("{value} µs"),
            said: String::new(),
        }
    }

    #[test]
    fn long_names_are_broken_at_their_commas() {
        assert_eq!(broken("process"), ["process"]);
        assert_eq!(
            broken("linux,kernel=debian,cpus=2,isolate=1,nohz_full=1"),
            ["linux,kernel=debian,cpus=2,", "isolate=1,nohz_full=1"]
        );
    }

    #[test]
    fn names_of_several_lines_keep_clear_of_what_follows() {
        let name = "linux,kernel=debian,cpus=2,isolate=1,nohz_full=1";
        let row = |group: &str| Entry {
            group: group.to_owned(),
            ..entry(name, vec![mark_of(2.0, &[])])
        };
        let rows = [row("Linux guest"), row("Unikernel")];
        let drawn = draw(&rows, String::new(), ("latency", f64::INFINITY), |v| {
            v.to_string()
        })
        .markup();
        // On a narrow screen names stand above their rows.
        for (drawn, is_narrow) in drawn.split("</svg>").zip([false, true]) {
            let texts = drawn.split("<text class=\"").skip(1);
            let number = |text: &str, name| -> f64 {
                let (_, rest) = text.split_once(name).unwrap();
                rest.split_once('"').unwrap().0.parse().unwrap()
            };
            let is_name = |text: &&str| ["group", "row"].iter().any(|of| text.starts_with(of));
            let (names, figures): (Vec<_>, Vec<_>) = texts.partition(is_name);
            let names = Vec::from_iter(names.iter().map(|text| number(text, " y=\"")));
            assert_eq!(names.len(), 6, "{drawn}");
            assert!(
                names.windows(2).all(|two| two[1] - two[0] >= LINE),
                "{names:?}"
            );
            let below = number(figures[0], " y=\"") > names[2];
            assert_eq!(below, is_narrow, "{drawn}");
        }
    }

    #[test]
    fn a_figure_stands_at_its_mark_and_not_at_the_end_of_its_spread() {
        let rows = [entry(
            "process",
            vec![mark(2.0, Spread::Interval(1.0, 40.0))],
        )];
        let drawn = draw(&rows, String::new(), ("latency", f64::INFINITY), |v| {
            v.to_string()
        })
        .markup();
        let attribute = |text: &str, name: &str| -> f64 {
            let (_, rest) = text.split_once(&format!(" {name}=\"")).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let (_, circle) = drawn.split_once("<circle").unwrap();
        let (_, figure) = drawn.split_once("<text class=\"figure\"").unwrap();
        assert_eq!(attribute(circle, "cx"), attribute(figure, "x"), "{drawn}");
    }

    #[test]
    fn the_axis_follows_the_figures() {
        let close = [
            entry("a", vec![mark_of(72.6, &[72.4, 72.8])]),
            entry("b", vec![mark_of(73.3, &[73.1, 73.4])]),
        ];
        let drawn = draw(&close, String::new(), ("%", 100.0), |v| v.to_string()).markup();
        let places = drawn.split(" cx=\"").skip(1).map(|rest| {
            let (x, _) = rest.split_once('"').unwrap();
            x.parse::<f64>().unwrap()
        });
        let places: Vec<f64> = places.collect();
        assert!(places[1] - places[0] > 200.0, "{places:?}");
    }

    #[test]
    fn the_legend_tells_an_interval_from_a_range_and_ours_from_the_published() {
        let names = |rows: &[Entry]| -> Vec<String> {
            let all = symbols(rows, "published by kot-2019, on another machine").into_iter();
            all.map(|(_, name)| name).collect()
        };
        let interval = entry("a", vec![mark(2.0, Spread::Interval(1.0, 3.0))]);
        assert_eq!(names(&[interval]), ["all runs", "95 % interval", "a run"]);
        let marks = vec![
            mark(2.0, Spread::Range(1.0, 3.0)),
            Mark::published(9.0, "9 µs", "kot-2019"),
        ];
        let both = [entry("a", marks)];
        let told = names(&both);
        assert!(told[1].starts_with("range"), "{told:?}");
        assert_eq!(told[3], "published by kot-2019, on another machine");
        let drawn = draw(&both, String::new(), ("latency", f64::INFINITY), |v| {
            v.to_string()
        })
        .markup();
        assert!(drawn.contains(">published 9 µs</text>"), "{drawn}");
    }
}

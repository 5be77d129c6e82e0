//! A picture of lines over a numeric label: latencies by interval, by working set, shares by size.

use maud::{Markup, html};

use tare_figures::mark::MARKED;
use tare_figures::rows::{Row, with};

use crate::html::parts::{Figure, N, lacking_of, legend_of, line_legend};
use crate::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};

/// The number of places that are named at the top.
const NAMED: usize = 8;
/// The number of points from which they are small.
const SMALL: usize = 100;
/// How far the points of two lines at one place are drawn apart if they have intervals, in pixels.
const APART: f64 = 4.0;

/// A picture of lines.
pub struct Curve<'c> {
    /// Its heading.
    pub title: &'c str,
    /// How to read it.
    pub read: &'c str,
    /// The height of the picture, in pixels.
    pub height: f64,
    /// The dimension below.
    pub across: Dimension<'c>,
    /// The dimension at the left.
    pub upward: Dimension<'c>,
    /// The lines.
    pub lines: Vec<Line>,
    /// Whether a broken line shows where both dimensions are equal.
    pub has_ideal: bool,
    /// Upright lines at places below, each with its name.
    pub bounds: Vec<(f64, String)>,
    /// The title of an axis at the top with the names of the points, if there is one.
    pub named: Option<&'c str>,
    /// An axis at the right, if there is one.
    pub right: Option<Right<'c>>,
}

/// An axis at the right: its title, the unit in which it counts, and how it is written.
pub type Right<'c> = (&'c str, f64, fn(f64) -> String);

/// One of the two dimensions of a picture.
pub struct Dimension<'c> {
    /// The title of its axis.
    pub title: &'c str,
    /// How figures are placed.
    pub scaling: Scaling,
    /// The figures that have a mark; about `count` round ones if there are none.
    pub ticks: Vec<f64>,
    /// About how many marks there are.
    pub count: usize,
    /// Writes a mark.
    pub tick: fn(f64) -> String,
    /// Writes a figure.
    pub write: fn(f64) -> String,
}

/// How figures are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Equal ratios at equal distances.
    Logarithmic,
    /// Evenly, from 0 on.
    FromZero,
    /// Logarithmically if they are far apart, with a place for 0.
    WithZero,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The place of its colour; lines may share one.
    pub series: usize,
    /// Whether it is the second one of its colour.
    pub is_second: bool,
    /// Its points, in their order across.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Its name: `1/64s`.
    pub name: String,
    /// Where it stands across and upwards.
    pub at: (f64, f64),
    /// The interval of its figure, if it has one.
    pub interval: Option<[f64; 2]>,
    /// Whether its figure is marked.
    pub is_marked: bool,
    /// Why it is doubtful, as the end of its name: `saturated`. It is drawn as a ring.
    pub doubt: Option<String>,
}

impl Point {
    /// Returns the point of a row at a place across; `None` without a figure above 0.
    #[must_use]
    pub fn of(row: &Row, name: String, across: f64, doubt: Option<String>) -> Option<Self> {
        let value = row.estimate().filter(|value| *value > 0.0)?;
        Some(Self {
            name,
            at: (across, value),
            interval: None,
            is_marked: row.is_marked(),
            doubt,
        })
    }
}

impl Scaling {
    fn scale(self, figures: &[f64], room: (f64, f64), to: (f64, f64)) -> Scale {
        let positive = || figures.iter().copied().filter(|figure| *figure > 0.0);
        let low = positive().fold(f64::INFINITY, f64::min);
        let high = positive().fold(0.0, f64::max);
        match self {
            Self::Logarithmic => Scale::log((low / room.0, high * room.1), to),
            Self::FromZero => Scale::linear((0.0, high * 1.05), to),
            Self::WithZero => Scale::with_a_place_for_zero(figures, to),
        }
    }
}

impl<'c> Dimension<'c> {
    /// Makes a logarithmic dimension.
    #[must_use]
    pub fn logarithmic(title: &'c str, tick: fn(f64) -> String, write: fn(f64) -> String) -> Self {
        Self {
            title,
            scaling: Scaling::Logarithmic,
            ticks: Vec::new(),
            count: 6,
            tick,
            write,
        }
    }

    /// Makes a logarithmic dimension of rates.
    #[must_use]
    pub fn rate(title: &'c str) -> Self {
        Self::logarithmic(title, |rate| N.tick(rate), |rate| N.rate(rate))
    }

    fn axis(&self, side: Side, scale: Scale) -> Axis {
        let ticks = match self.ticks.is_empty() {
            true => scale.ticks(self.count),
            false => self.ticks.clone(),
        };
        Axis::new(side, scale, self.title, ticks, self.tick)
    }
}

impl Line {
    /// Makes a line of each name and points, in their order; those without points come last, and
    /// are named only.
    pub fn each(lines: impl IntoIterator<Item = (String, Vec<Point>)>) -> Vec<Self> {
        let mut lines = Vec::from_iter(lines);
        lines.sort_by_key(|(_, points)| points.is_empty());
        let lines = lines
            .into_iter()
            .enumerate()
            .map(|(series, (name, points))| Self {
                name,
                series,
                is_second: false,
                points,
            });
        lines.collect()
    }
}

impl<'c> Curve<'c> {
    /// The height of a picture, in pixels.
    const HEIGHT: f64 = 360.0;

    /// Makes a picture of lines over two dimensions, still without a title.
    #[must_use]
    pub fn new(lines: Vec<Line>, across: Dimension<'c>, upward: Dimension<'c>) -> Self {
        Self {
            title: "",
            read: "",
            height: Self::HEIGHT,
            across,
            upward,
            lines,
            has_ideal: false,
            bounds: Vec::new(),
            named: None,
            right: None,
        }
    }
}

impl Curve<'_> {
    /// Renders it; `None` without a point. Lines of more series than there are colours are drawn in
    /// several pictures on the same axes.
    #[must_use]
    pub fn render(&self) -> Option<Markup> {
        let drawn = || self.lines.iter().filter(|line| !line.points.is_empty());
        let most = drawn().map(|line| line.series).max()?;
        let of = most / COLOURS + 1;
        let parts = (1..=of).map(|part| {
            let is_in = |line: &&Line| line.series / COLOURS + 1 == part;
            self.part(&drawn().filter(is_in).collect::<Vec<_>>(), (part, of))
        });
        let parts: Vec<Markup> = parts.collect();
        Some(html! { @for part in parts { (part) } })
    }

    /// Returns how to read it, and which lines none of its parts has.
    fn caption(&self) -> String {
        let lacking = self.lines.iter().filter(|line| line.points.is_empty());
        let lacking = lacking.map(|line| line.name.clone());
        let lacking = lacking_of(lacking.collect());
        let is_marked = self.points().any(|point| point.is_marked);
        let marked = if is_marked { MARKED } else { "" };
        let parts = [self.read, marked, &lacking];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        Vec::from_iter(parts).join(" ")
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.lines.iter().flat_map(|line| &line.points)
    }

    /// Renders some of the lines.
    fn part(&self, lines: &[&Line], (part, of): (usize, usize)) -> Markup {
        let plot = Plot::twice(|is_narrow| match is_narrow {
            true => self.drawn(lines, Plot::half(self.height, self.title)),
            false => self.drawn(lines, Plot::new(self.height, self.title)),
        });
        let number = match of {
            1 => String::new(),
            _ => format!(" ({part} of {of})"),
        };
        let figure = Figure {
            title: format!("{}{number}", self.title),
            read: match part == of {
                true => self.caption(),
                false => self.read.to_owned(),
            },
            legend: self.legend(lines),
            plot: &plot,
            table: None,
        };
        figure.render()
    }

    /// Draws some of the lines.
    fn drawn(&self, lines: &[&Line], mut plot: Plot) -> Plot {
        if self.named.is_some() {
            plot = plot.with_top_axis();
        }
        if self.right.is_some() {
            plot = plot.with_right_axis();
        }
        let places: Vec<f64> = self.points().map(|point| point.at.0).collect();
        let ideal = places.iter().copied().filter(|_| self.has_ideal);
        let intervals = self.points().filter_map(|point| point.interval).flatten();
        let figures = self.points().map(|point| point.at.1);
        let figures: Vec<f64> = figures.chain(ideal).chain(intervals).collect();
        let across = self
            .across
            .scaling
            .scale(&places, (1.2, 1.2), plot.across());
        // Names of bounds stand above the lines.
        let positive = || figures.iter().copied().filter(|figure| *figure > 0.0);
        let spread = positive().fold(0.0, f64::max) / positive().fold(f64::INFINITY, f64::min);
        let above = if self.bounds.is_empty() { 0.0 } else { 0.12 };
        let room = (1.4, 1.4 * spread.max(1.0).powf(above));
        let upward = self.upward.scaling.scale(&figures, room, plot.upwards());
        self.references(&mut plot, &places, across, upward);
        let first = lines.first().map_or(0, |line| line.series);
        let last = lines.last().map_or(0, |line| line.series);
        let has_intervals = self.points().any(|point| point.interval.is_some());
        let apart = if has_intervals { APART } else { 0.0 };
        for line in lines {
            let shift = (line.series as f64 - (first + last) as f64 / 2.0) * apart;
            self.line(&mut plot, line, |x| across.at(x) + shift, upward);
        }
        plot.axis(self.upward.axis(Side::Left, upward));
        plot.axis(self.across.axis(Side::Bottom, across));
        if let Some((title, unit, write)) = self.right {
            let ticks = upward.ticks_in(unit, self.upward.count);
            let write = |figure| write(figure / unit);
            plot.axis(Axis::new(Side::Right, upward, title, ticks, write));
        }
        if let Some(title) = self.named {
            plot.axis(self.names(title, across));
        }
        plot
    }

    /// Draws the line on which both dimensions are equal, and the bounds.
    fn references(&self, plot: &mut Plot, places: &[f64], across: Scale, upward: Scale) {
        let least = places.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = places.iter().copied().fold(0.0, f64::max);
        if self.has_ideal {
            // As far as both axes reach, so that it is a line for a single place, too.
            let (x, y) = (across.range(), upward.range());
            let ends = [x.0.max(y.0), x.1.min(y.1)].map(|at| (across.at(at), upward.at(at)));
            plot.path("limit", &path(ends));
        }
        for (at, name) in &self.bounds {
            if (least..greatest).contains(at) {
                let (x, (bottom, top)) = (across.at(*at), plot.upwards());
                plot.path("limit", &path([(x, bottom), (x, top)]));
                plot.label("peak", (x, top + 14.0), name);
            }
        }
    }

    fn line(&self, plot: &mut Plot, line: &Line, x: impl Fn(f64) -> f64, upward: Scale) {
        let colour = colour(line.series);
        let (kind, hollow) = match (self.has_second(), line.is_second) {
            (true, true) => (" second", " hollow"),
            (true, false) => ("", ""),
            (false, _) => (" dashed", ""),
        };
        let places = line.points.iter();
        let places = places.map(|point| (x(point.at.0), upward.at(point.at.1)));
        plot.path(&format!("line{kind} {colour}"), &path(places));
        let mut bars = Path::default();
        for point in &line.points {
            if let Some([low, high]) = point.interval {
                bars.move_to(x(point.at.0), upward.at(low));
                bars.line_to(x(point.at.0), upward.at(high));
            }
        }
        plot.path(&format!("line interval {colour}"), &bars);
        let radius = if line.points.len() > SMALL { 2.5 } else { 4.0 };
        for point in &line.points {
            let doubt = point
                .doubt
                .as_ref()
                .map_or_else(String::new, |doubt| format!(", {doubt}"));
            let written = (self.upward.write)(point.at.1);
            let star = if point.is_marked { "*" } else { "" };
            let tooltip = format!("{}{}{doubt}: {written}{star}", line.name, with(&point.name));
            let mark = if point.doubt.is_some() {
                "ring"
            } else {
                "mark"
            };
            let at = (x(point.at.0), upward.at(point.at.1));
            plot.circle(&format!("{mark}{hollow} {colour}"), at, radius, &tooltip);
        }
    }

    fn has_second(&self) -> bool {
        self.lines.iter().any(|line| line.is_second)
    }

    /// Returns the axis with the names of the points, as many as there is room for.
    fn names(&self, title: &str, across: Scale) -> Axis {
        let mut named: Vec<(f64, &str)> = self
            .points()
            .map(|point| (point.at.0, point.name.as_str()))
            .collect();
        named.sort_by(|a, b| a.0.total_cmp(&b.0));
        named.dedup_by_key(|(at, _)| *at);
        let every = named.len().div_ceil(NAMED).max(1);
        let shown = named.iter().step_by(every).map(|(at, _)| *at);
        Axis::new(Side::Top, across, title, shown, |at| {
            let found = named.iter().find(|(known, _)| *known == at);
            found.map_or_else(String::new, |(_, name)| (*name).to_owned())
        })
    }

    fn legend(&self, lines: &[&Line]) -> Markup {
        let has_second = self.has_second();
        let entries = lines.iter().map(|line| {
            let hollow = if line.is_second { " hollow" } else { "" };
            (
                format!("{}{hollow}", colour(line.series)),
                line.name.clone(),
            )
        });
        match has_second {
            true => legend_of(entries),
            false => line_legend(entries),
        }
    }
}

/// Draws a line through places.
fn path(places: impl IntoIterator<Item = (f64, f64)>) -> Path {
    let mut path = Path::default();
    for (x, y) in places {
        path.go_to(x, y);
    }
    path
}

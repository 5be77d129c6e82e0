//! Pictures of how values are distributed: how often they are greater than others, and how many are
//! about so great.
//!
//! Both are drawn from a [`Tail`], which says how many values lie above another. There is a panel
//! for each load or phase, all on the same axes; one panel has the whole width, several stand side
//! by side.

use maud::{Markup, PreEscaped, html};
use tare_stats::{Counts, Response};

use super::parts::{N, Table, legend_of, line_legend};
use crate::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};

/// The number of points of a curve, for each pixel of its width.
const POINTS: f64 = 0.6;
/// The number of bars for each factor of ten, and of those of equal width.
const PER_DECADE: f64 = 20.0;
const EVEN: f64 = 120.0;
/// The ratio of greatest and least value from which on bars have equal ratios.
const WIDE: f64 = 12.0;
/// The greatest number of outlines over each other that are filled.
const FILLED: usize = 3;
/// How many times as far as the values reach a limit may lie and be drawn.
const NEAR: f64 = 1_000.0;

/// A distribution, as far as pictures need it.
pub trait Tail {
    /// Returns the least and the greatest value; `None` if there is none.
    fn ends(&self) -> Option<(u64, u64)>;
    /// Returns the number of values.
    fn total(&self) -> u64;
    /// Returns the number of values that are greater than this one.
    fn above(&self, value: u64) -> u64;
    /// Returns the same values as great as they can be, if some are known only within a range.
    fn most(&self) -> Option<&dyn Tail> {
        None
    }
}

/// Values of which some are known only within a range: as small, and as great as they can be.
#[derive(Debug)]
pub struct Within<T>(pub T, pub T);

impl<T: Tail> Tail for Within<T> {
    fn ends(&self) -> Option<(u64, u64)> {
        let ((least, one), (_, other)) = self.0.ends().zip(self.1.ends())?;
        Some((least, one.max(other)))
    }

    fn total(&self) -> u64 {
        self.0.total()
    }

    fn above(&self, value: u64) -> u64 {
        self.0.above(value)
    }

    fn most(&self) -> Option<&dyn Tail> {
        Some(&self.1)
    }
}

/// Returns whether the number of values above one is known.
fn is_known(tail: &dyn Tail, value: u64) -> bool {
    let same = |most: &dyn Tail| most.above(value) == tail.above(value);
    tail.most()
        .is_none_or(|most| most.total() == tail.total() && same(most))
}

impl Tail for Counts {
    fn ends(&self) -> Option<(u64, u64)> {
        self.min().zip(self.max())
    }

    fn total(&self) -> u64 {
        self.total()
    }

    fn above(&self, value: u64) -> u64 {
        self.count_above(value)
    }
}

impl Tail for Response<'_> {
    fn ends(&self) -> Option<(u64, u64)> {
        self.min().zip(self.max())
    }

    fn total(&self) -> u64 {
        self.total()
    }

    fn above(&self, value: u64) -> u64 {
        self.count_above(value)
    }
}

/// The unit of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Ticks of a TSC, with its frequency if that is known.
    Cycles(Option<f64>),
}

/// The curves of one target.
#[derive(Clone, Copy)]
pub struct Series<'a> {
    /// Its place among the names of the picture, which gives it its colour.
    pub place: usize,
    /// Its values.
    pub tail: &'a dyn Tail,
    /// The same counted otherwise, drawn with a broken line.
    pub second: Option<&'a dyn Tail>,
    /// For how long they were counted, if rates are drawn instead of shares.
    pub seconds: Option<f64>,
}

/// What belongs over each other.
pub struct Panel<'a> {
    /// Its name; empty if there is but one panel.
    pub name: String,
    /// The series.
    pub series: Vec<Series<'a>>,
}

/// Distributions of one quantity.
pub struct Distributions<'a> {
    /// The quantity, in the plural: `wake-up latencies`.
    pub of: &'a str,
    /// The title of the axis below: `latency`.
    pub across: &'a str,
    /// The unit of the values.
    pub unit: Unit,
    /// The least width of a bar: of smaller values nothing is distinguished.
    pub step: u64,
    /// Whether values were cut off to whole steps, so that one stands for up to a step more.
    pub is_cut_off: bool,
    /// By how much it is coarser than it could be: 1 for not at all.
    pub coarse: usize,
    /// The greatest number of runs that a series holds the values of, all together.
    pub runs: usize,
    /// The names of all series.
    pub names: Vec<String>,
    /// The panels.
    pub panels: Vec<Panel<'a>>,
    /// Limits that gates set, each with its text.
    pub limits: Vec<(f64, String)>,
}

impl<'a> Series<'a> {
    /// Returns what is drawn, each with its class; the second one lies below the first.
    fn tails(self) -> impl Iterator<Item = (&'static str, &'a dyn Tail)> {
        let second = self.second.into_iter().map(|tail| (" second", tail));
        second.chain([("", self.tail)])
    }

    /// Returns what a number of values of a tail is divided by.
    fn whole(self, tail: &dyn Tail) -> f64 {
        self.seconds.unwrap_or(tail.total().max(1) as f64)
    }
}

/// A distribution with its panel and its name.
pub struct Tailed<'a> {
    /// The name of its panel.
    pub panel: &'a str,
    /// Its name among those of the picture.
    pub name: &'a str,
    /// Its values.
    pub tail: &'a dyn Tail,
    /// The same counted otherwise.
    pub second: Option<&'a dyn Tail>,
}

/// Puts distributions into panels, in the order of the first of each. `names` are those of the
/// picture.
pub fn panels<'a>(names: &[String], tails: impl IntoIterator<Item = Tailed<'a>>) -> Vec<Panel<'a>> {
    let mut panels: Vec<Panel<'a>> = Vec::new();
    for tailed in tails {
        let place = names.iter().position(|name| name == tailed.name);
        let series = Series {
            place: place.unwrap_or(0),
            tail: tailed.tail,
            second: tailed.second,
            seconds: None,
        };
        match panels.iter_mut().find(|panel| panel.name == tailed.panel) {
            Some(panel) => panel.series.push(series),
            None => panels.push(Panel {
                name: tailed.panel.to_owned(),
                series: vec![series],
            }),
        }
    }
    panels
}

/// The extent of the axes, common to all panels.
struct Extent {
    low: f64,
    high: f64,
    /// One value of the largest distribution, and all of it, as shares or rates.
    least: f64,
    most: f64,
    /// The number of values of the largest distribution.
    largest: f64,
    /// Whether some are drawn twice: then broken lines mean that, and not a series.
    has_second: bool,
}

impl Distributions<'_> {
    /// Draws how often values are longer than others, on logarithmic axes. `upward` is the title of
    /// the axis at the left. Behind it stands `table`, or else a table of how many values are
    /// longer than some.
    #[must_use]
    pub fn exceedance(
        &self,
        title: &str,
        read: &str,
        upward: &str,
        table: Option<Table>,
    ) -> Option<Markup> {
        let extent = self.extent()?;
        let kind = if extent.has_second { "" } else { " dashed" };
        let table = table.unwrap_or_else(|| self.longer(&extent));
        self.figure((title, read), kind, Some(table), |panel, plot| {
            let across = Scale::fitting(extent.low, extent.high, plot.across());
            let scale = Scale::log((extent.least * 0.7, extent.most * 1.4), plot.upwards());
            for series in panel {
                for (second, tail) in series.tails() {
                    let path = self.falling(tail, series.whole(tail), across, scale);
                    let colour = colour(series.place);
                    plot.path(&format!("line{second}{kind} {colour}"), &path);
                }
            }
            let is_rate = panel.iter().any(|series| series.seconds.is_some());
            let ticks = decades(scale);
            plot.axis(Axis::new(
                Side::Left,
                scale,
                upward,
                ticks,
                |value| match is_rate {
                    true => N.tick(value),
                    false => N.with_unit(&N.tick(value * 100.0), "%"),
                },
            ));
            self.axis(plot, across);
            let (low, high) = across.range();
            let within = self.limits.iter();
            for (limit, text) in within.filter(|(limit, _)| (low..=high).contains(limit)) {
                plot.limit(across.at(*limit), text);
            }
        })
    }

    /// Draws how many of a million values are about so great, on a logarithmic scale upwards.
    #[must_use]
    pub fn histogram(&self, title: &str, read: &str, table: Option<Table>) -> Option<Markup> {
        const MILLION: f64 = 1e6;
        let extent = self.extent()?;
        let edges = self.edges(&extent);
        let bars = self.tails().flat_map(|(_, tail)| shares(tail, &edges));
        let highest = bars.fold(0.0, |most: f64, (.., share)| most.max(share)) * MILLION;
        let kind = match (extent.has_second, self.names.len()) {
            (true, _) => "line thin",
            (false, ..=FILLED) => "area",
            (false, _) => "line thin dashed",
        };
        let legend = kind.trim_start_matches("area");
        self.figure((title, read), legend, table, |panel, plot| {
            let across = Scale::fitting(extent.low, extent.high, plot.across());
            let least = MILLION / extent.largest;
            let scale = Scale::log((least * 0.6, highest * 1.6), plot.upwards());
            let bottom = plot.upwards().0;
            for series in panel {
                for (second, tail) in series.tails() {
                    let bars = shares(tail, &edges);
                    let bars = bars.map(|(low, high, share)| (low, high, share * MILLION));
                    let path = steps(bars, across, scale, bottom);
                    plot.path(&format!("{kind}{second} {}", colour(series.place)), &path);
                }
            }
            let ticks = decades(scale);
            plot.axis(Axis::new(Side::Left, scale, "of a million", ticks, |v| {
                N.tick(v)
            }));
            self.axis(plot, across);
        })
    }

    /// Makes a table of how many values, or how many per second, are longer than some; below that
    /// the same counted otherwise.
    fn longer(&self, extent: &Extent) -> Table {
        let scale = Scale::fitting(extent.low, extent.high, (0.0, 1.0));
        let ns = match self.unit {
            Unit::Cycles(Some(hz)) => hz / 1e9,
            Unit::Ns | Unit::Cycles(None) => 1.0,
        };
        let mut bounds: Vec<f64> = scale.ticks_in(ns, 9);
        bounds.retain(|bound| *bound >= self.step as f64);
        let sign = if self.is_cut_off { "≥" } else { ">" };
        let mut table = Table::new(["", "all"]);
        table
            .head
            .extend(bounds.iter().map(|bound| match self.unit {
                Unit::Cycles(None) => format!("{sign} {} cycles", N.tick(*bound)),
                _ => format!("{sign} {}", N.ns_tick(bound / ns)),
            }));
        for panel in &self.panels {
            for series in &panel.series {
                let both = |of: &dyn Fn(&dyn Tail) -> u64| {
                    let tails = [Some(series.tail), series.second].into_iter().flatten();
                    let each = tails.map(|tail| {
                        let mut ends = vec![of(tail)];
                        ends.extend(tail.most().map(of));
                        ends.dedup();
                        let ends = ends.into_iter().map(|count| match series.seconds {
                            Some(seconds) => N.rate(count as f64 / seconds),
                            None => N.count(count),
                        });
                        Vec::from_iter(ends).join(" to ")
                    });
                    each.collect::<Vec<_>>().join("\n")
                };
                let name = [panel.name.as_str(), &self.names[series.place]].join(" · ");
                let mut row = vec![name.trim_start_matches(" · ").to_owned()];
                row.push(both(&|tail| tail.total()));
                let above = |bound: &f64| both(&|tail| tail.above(self.below(*bound as u64)));
                row.extend(bounds.iter().map(above));
                table.rows.push(row);
            }
        }
        table
    }

    /// Returns the value of which those above are certainly above another one.
    fn below(&self, value: u64) -> u64 {
        value.saturating_sub(if self.is_cut_off { self.step } else { 0 })
    }

    /// Returns everything that is drawn.
    fn tails(&self) -> impl Iterator<Item = (&Series<'_>, &dyn Tail)> {
        let all = self.panels.iter().flat_map(|panel| &panel.series);
        all.flat_map(|series| series.tails().map(move |(_, tail)| (series, tail)))
    }

    fn extent(&self) -> Option<Extent> {
        let mut extent = Extent {
            low: f64::INFINITY,
            high: 2.0,
            least: f64::INFINITY,
            most: 0.0,
            largest: 0.0,
            has_second: false,
        };
        for (series, tail) in self.tails() {
            let (whole, total) = (series.whole(tail), tail.total() as f64);
            extent.least = extent.least.min(1.0 / whole);
            extent.most = extent.most.max(total / whole);
            extent.largest = extent.largest.max(total);
            extent.has_second |= series.second.is_some();
            if let Some((low, high)) = series.tail.ends() {
                extent.low = extent.low.min(low.max(self.step).max(1) as f64);
                extent.high = extent.high.max(high.max(2 * self.step) as f64);
            }
        }
        // A limit that is further away would leave no room for the values.
        let near = (extent.low / NEAR).max(1.0)..=extent.high * NEAR;
        for (limit, _) in self.limits.iter().filter(|(limit, _)| near.contains(limit)) {
            extent.low = extent.low.min(*limit);
            extent.high = extent.high.max(limit * 1.1);
        }
        (extent.low <= extent.high).then_some(extent)
    }

    /// Draws the share of values above each value.
    fn falling(&self, tail: &dyn Tail, whole: f64, across: Scale, upward: Scale) -> Path {
        let mut path = Path::default();
        let Some((shortest, longest)) = tail.ends() else {
            return path;
        };
        let (low, high) = across.range();
        let pixels = across.at(high) - across.at(low);
        let points = ((pixels * POINTS) as usize / self.coarse.max(1)).max(20);
        let share = |value: u64| tail.above(self.below(value)) as f64 / whole;
        let (shortest, longest) = (shortest.max(self.step).max(1), longest as f64);
        let all = tail.total() as f64 / whole;
        let mut before = (across.at(shortest as f64), upward.at(all));
        path.move_to(before.0, before.1);
        for point in 0..=points {
            let value = across.value(point as f64 / points as f64);
            if value < shortest as f64 || value >= longest {
                continue;
            }
            // Where a part lies is unknown from here on.
            if !is_known(tail, self.below(value as u64)) {
                path.line_to(before.0, before.1);
                return path;
            }
            let at = (across.at(value), upward.at(share(value as u64)));
            // A level stretch needs its ends only.
            if at.1 != before.1 {
                path.line_to(before.0, before.1);
                path.line_to(at.0, at.1);
            }
            before = at;
        }
        path.line_to(before.0, before.1);
        let last = share((longest as u64).saturating_sub(1));
        path.line_to(across.at(longest), upward.at(last));
        path
    }

    /// Returns the edges of the bars, rising multiples of the least width.
    fn edges(&self, extent: &Extent) -> Vec<u64> {
        let coarse = self.coarse.max(1) as f64;
        let step = self.step.max(1) as f64;
        let (low, high) = (extent.low, extent.high);
        let edge: Box<dyn Fn(f64) -> f64> = if high / low >= WIDE {
            let per_decade = (PER_DECADE / coarse).max(4.0);
            Box::new(move |n| low * 10_f64.powf(n / per_decade))
        } else {
            let width = ((high - low) / (EVEN / coarse).max(20.0)).max(step);
            Box::new(move |n| low + n * width)
        };
        let mut edges: Vec<u64> = Vec::new();
        for n in 0.. {
            let at = ((edge(f64::from(n)) / step).floor() * step) as u64;
            if edges.last() != Some(&at) {
                edges.push(at);
            }
            if at as f64 > high {
                break;
            }
        }
        edges
    }

    /// Adds the axis of values; above it that of the time, where they are not times themselves.
    fn axis(&self, plot: &mut Plot, across: Scale) {
        let marks = if self.panels.len() > 1 { 6 } else { 12 };
        let title = match self.unit {
            Unit::Ns => self.across.to_owned(),
            Unit::Cycles(_) => format!("{}, cycles", self.across),
        };
        let label = |value| match self.unit {
            Unit::Ns => N.ns_tick(value),
            Unit::Cycles(_) => N.tick(value),
        };
        let ticks = across.ticks(marks);
        plot.axis(Axis::new(Side::Bottom, across, title, ticks, label));
        if let Unit::Cycles(Some(hz)) = self.unit {
            let unit = hz / 1e9;
            let ticks = across.ticks_in(unit, marks);
            plot.axis(Axis::new(Side::Top, across, "time", ticks, |cycles| {
                N.ns_tick(cycles / unit)
            }));
        }
    }

    /// Renders the panels; of more series than colours, several times.
    fn figure(
        &self,
        (title, read): (&str, &str),
        kind: &str,
        table: Option<Table>,
        draw: impl Fn(&[Series<'_>], &mut Plot),
    ) -> Option<Markup> {
        let drawn = |panel: &Panel<'_>, first: usize| -> Option<Markup> {
            let part = first..first + COLOURS;
            let series = panel.series.iter().copied();
            let series: Vec<Series<'_>> = series.filter(|s| part.contains(&s.place)).collect();
            let description = format!("{}, {} {}", title, self.of, panel.name);
            let drawn = |mut plot: Plot| {
                if let Unit::Cycles(Some(_)) = self.unit {
                    plot = plot.with_top_axis();
                }
                draw(&series, &mut plot);
                plot
            };
            let half = || drawn(Plot::half(250.0, description.clone()));
            let plot = match self.panels.len() {
                1 => Plot::twice(|is_narrow| match is_narrow {
                    true => half(),
                    false => drawn(Plot::new(300.0, description.clone())),
                }),
                _ => half(),
            };
            (!series.is_empty()).then(|| {
                html! { div {
                    @if !panel.name.is_empty() { h4 { (panel.name) } }
                    div.plot tabindex="0" { (PreEscaped(plot.markup())) }
                } }
            })
        };
        let legend = |first: usize| {
            let names = self.names.iter().enumerate().skip(first).take(COLOURS);
            let names = names.map(|(place, name)| (colour(place), name.clone()));
            match kind.contains("dashed") {
                true => line_legend(names),
                false => legend_of(names),
            }
        };
        Some(html! {
            figure {
                h3 { (title) }
                p.read {
                    (read)
                    @if self.runs > 1 {
                        " All samples of the runs, up to " (self.runs) " in a line, are drawn together: one with more samples weighs \
                         more, and a single one shows even if it does not move the figure over the runs."
                    }
                }
                @for first in (0..self.names.len()).step_by(COLOURS) {
                    (legend(first))
                    div.pair[self.panels.len() > 1] {
                        @for panel in &self.panels { @if let Some(panel) = drawn(panel, first) { (panel) } }
                    }
                }
                @if let Some(table) = table { details { summary { "Figures" } (table.render()) } }
            }
        })
    }
}

/// Returns the ends of each bar, and the share of the values in it; none from where it is unknown.
/// The first holds all that is shorter, too.
fn shares<'a>(tail: &'a dyn Tail, edges: &'a [u64]) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
    let total = tail.total();
    let from = move |edge: u64| match edge.checked_sub(1) {
        Some(below) if Some(&edge) != edges.first() => tail.above(below),
        _ => total,
    };
    let known = edges.windows(2);
    let known = known.take_while(move |edge| is_known(tail, edge[1].saturating_sub(1)));
    known.map(move |edge| {
        let inside = from(edge[0]) - from(edge[1]);
        let share = inside as f64 / total.max(1) as f64;
        (edge[0] as f64, edge[1] as f64, share)
    })
}

/// Draws bars as one outline for each stretch of bars that are not empty.
pub fn steps(
    bars: impl Iterator<Item = (f64, f64, f64)>,
    across: Scale,
    upward: Scale,
    bottom: f64,
) -> Path {
    let mut path = Path::default();
    // The right edge of the bar before, if it was not empty.
    let mut edge = None;
    for (low, high, height) in bars {
        if height <= 0.0 {
            if let Some(edge) = edge.take() {
                path.line_to(edge, bottom);
            }
            continue;
        }
        let (left, right, y) = (across.at(low), across.at(high), upward.at(height));
        if edge.is_none() {
            path.move_to(left, bottom);
        }
        path.line_to(left, y);
        path.line_to(right, y);
        edge = Some(right);
    }
    if let Some(edge) = edge {
        path.line_to(edge, bottom);
    }
    path
}

/// Returns the powers of ten of a scale, at most about six of them.
fn decades(scale: Scale) -> Vec<f64> {
    let (low, high) = scale.range();
    let (from, to) = (low.log10().ceil() as i32, high.log10().floor() as i32);
    let step = ((to - from) / 6 + 1).max(1) as usize;
    let powers = (from..=to).rev().step_by(step);
    powers.map(|power| 10_f64.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures(of: &[&dyn Tail], hz: Option<f64>, step: u64) -> [String; 2] {
        let series = of.iter().enumerate().map(|(place, counts)| Series {
            place,
            tail: *counts,
            second: None,
            seconds: None,
        });
        let drawn = Distributions {
            of: "durations",
            across: "duration",
            unit: Unit::Cycles(hz),
            step,
            is_cut_off: step > 10,
            coarse: 1,
            runs: of.len(),
            names: of.iter().map(|_| "a target".to_owned()).collect(),
            limits: Vec::new(),
            panels: vec![Panel {
                name: String::new(),
                series: series.collect(),
            }],
        };
        let pictures = [
            drawn.exceedance("How often", "", "longer", None),
            drawn.histogram("Histogram", "", None),
        ];
        pictures.map(|picture| picture.map_or_else(String::new, |html| html.into_string()))
    }

    #[test]
    fn a_bar_holds_what_lies_between_its_edges_and_none_is_lost() {
        let counts = Counts::from_pairs([(90, 3), (100, 1), (109, 2), (500, 4)]).unwrap();
        let bars: Vec<_> = shares(&counts, &[100, 110, 500, 510]).collect();
        assert_eq!(
            bars,
            [
                (100.0, 110.0, 0.6),
                (110.0, 500.0, 0.0),
                (500.0, 510.0, 0.4)
            ]
        );
    }

    #[test]
    fn values_known_within_a_range_are_counted_as_one_and_drawn_nowhere() {
        let counts =
            |rest: [(u64, u64); 2]| Counts::from_pairs([(2, 19_997)].into_iter().chain(rest));
        let within = Within(
            counts([(5, 2), (5_000, 1)]).unwrap(),
            counts([(5_000, 2), (5_000, 1)]).unwrap(),
        );
        let [falling, bars] = pictures(&[&within], None, 1);
        assert!(falling.contains(">1 to 3<"), "{falling}");
        // The one at 2 is drawn alone, and the line ends at 5.
        let parts = Vec::from_iter(shares(&within, &[1, 3, 5, 6, 5_001]));
        assert_eq!(parts.len(), 2, "{parts:?}");
        assert!(bars.contains("<svg"));
    }

    #[test]
    fn nothing_is_counted_below_the_steps_to_which_values_were_cut_off() {
        let counts = Counts::from_pairs([(0, 3_900), (1_000, 90), (2_000, 8), (41_000, 1)]);
        let [falling, _] = pictures(&[&counts.unwrap()], None, 1_000);
        let (_, table) = falling.split_once("<table").unwrap();
        assert!(
            !table.contains("100\u{a0}cycles") && !table.contains("&gt;"),
            "{table}"
        );
        // Those of 1,000 stand for 1,000 to 2,000.
        assert!(table.contains(">99<") && table.contains(">1<"), "{table}");
    }

    #[test]
    fn each_series_is_drawn_and_times_stand_above_cycles() {
        let counts = Counts::from_pairs([(100, 990), (120, 9), (90_000, 1)]).unwrap();
        for picture in pictures(&[&counts as &dyn Tail; 7], Some(2.6e9), 10) {
            // Of more series than colours there are two, each for wide and for narrow screens.
            assert_eq!(picture.matches("<svg class").count(), 4);
            for place in 0..COLOURS {
                let drawn = format!("{}\" d=\"", colour(place));
                let outside = picture.replace("d=\"M0 4h26\"", "");
                let expected = if place == 0 { 4 } else { 2 };
                assert_eq!(outside.matches(&drawn).count(), expected, "{picture}");
            }
            assert!(picture.contains("duration, cycles") && picture.contains(">time<"));
        }
        let [_, narrow] = pictures(&[&counts.net(100)], None, 10);
        assert!(!narrow.contains(">time<") && !narrow.contains("All samples of the runs"));
        assert_eq!(pictures(&[&Counts::default()], None, 10), ["", ""]);
    }
}

//! Pictures of starts: how long they take one by one, how that and the throughput change as starts come more often, how the
//! latencies of each point are distributed, and what an instance takes of memory.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::rows::{Figure, Row};
use tare_pages::html::Detail;
use tare_pages::html::distributions::{self, Distributions, Panel, Unit};
use tare_pages::html::overview::overview;
use tare_pages::html::parts;
use tare_pages::svg::{Axis, Path, Plot, Scale, Side, colour};

use super::Started;
use super::series::{self, Point, Series, time};
use super::verdict;

/// How numbers are written on the page.
const N: tare_figures::format::Numbers = parts::N;
/// The height of a picture of curves, in pixels.
const HEIGHT: f64 = 360.0;
/// The greatest number of intervals that are named.
const MOST_INTERVALS: usize = 8;

/// Draws how long instances take without contention; `None` if none was ready.
pub(super) fn calm(run: &Run) -> Option<Markup> {
    let all = series::all(run);
    let figure = verdict::figure(&all.iter().collect::<Vec<_>>());
    overview(
        &of_calm(&all, "ready", figure),
        format!("Time until an instance is ready, without contention ({figure})"),
        "time until ready",
    )
}

/// Draws how much memory an instance takes; `None` if nothing tells.
fn memory(all: &[Series<'_>]) -> Option<Markup> {
    overview(
        &of_calm(all, "memory", Figure::Mean),
        "Peak memory of an instance (mean)".to_owned(),
        "peak memory, bytes",
    )
}

/// Returns the row of each series at the point without contention.
fn of_calm<'a>(all: &[Series<'a>], measure: &str, figure: Figure) -> Vec<&'a Row> {
    let rows = all.iter().filter_map(|one| one.calm().row(measure, figure));
    rows.collect()
}

/// Draws what the section shows.
pub(super) fn section(story: &Started, run: &Run, detail: &Detail) -> Markup {
    let all = series::all(run);
    let pictures = [
        LATENCY.draw(&all),
        THROUGHPUT.draw(&all),
        distributions(story, &all, detail),
        memory(&all),
    ];
    html! { @for picture in pictures.into_iter().flatten() { (picture) } }
}

/// A quantity of each point over the interval between starts.
struct Curves {
    title: &'static str,
    read: &'static str,
    upward: &'static str,
    of: (&'static str, Figure),
    write: fn(f64) -> String,
    /// Whether the rate that was planned is drawn beside it.
    has_ideal: bool,
}

const LATENCY: Curves = Curves {
    title: "Latency against interval",
    read: "Mean time from the planned start until an instance was ready. A line that stays level keeps up; one that rises does not. \
           A ring is a point at which the target was saturated, or where starts did not come as planned.",
    upward: "ready after",
    of: ("ready", Figure::Mean),
    write: time,
    has_ideal: false,
};

const THROUGHPUT: Curves = Curves {
    title: "Throughput against offered rate",
    read: "Instances that were done per second, against those that were planned. On the broken red line every one is done.",
    upward: "done per s",
    of: ("rate", Figure::Rate),
    write: |rate| N.rate(rate),
    has_ideal: true,
};

impl Curves {
    fn value(&self, point: &Point<'_>) -> Option<f64> {
        let (measure, figure) = self.of;
        point.value(measure, figure).filter(|value| *value > 0.0)
    }

    /// Returns planned starts per second and the value of each point that has one.
    fn points<'s, 'a>(
        &'s self,
        series: &'s Series<'a>,
    ) -> impl Iterator<Item = (f64, f64, &'s Point<'a>)> {
        let open = series.open();
        open.filter_map(|point| Some((point.rate()?, self.value(point)?, point)))
    }

    /// Draws the curves; `None` without a point.
    fn draw(&self, all: &[Series<'_>]) -> Option<Markup> {
        let all: Vec<&Series<'_>> = all
            .iter()
            .filter(|one| self.points(one).next().is_some())
            .collect();
        let points = || all.iter().flat_map(|one| self.points(one));
        let ideal = || points().filter(|_| self.has_ideal).map(|(rate, ..)| rate);
        let values = || points().map(|(_, value, _)| value).chain(ideal());
        let ends = |of: &dyn Fn(f64, f64) -> f64, all: Vec<f64>| all.into_iter().reduce(of);
        let low = ends(&f64::min, values().collect())?;
        let high = ends(&f64::max, values().collect())?;
        let slow = ends(&f64::min, points().map(|(rate, ..)| rate).collect())?;
        let fast = ends(&f64::max, points().map(|(rate, ..)| rate).collect())?;
        let mut plot = Plot::new(HEIGHT, self.title);
        if !self.has_ideal {
            plot = plot.with_top_axis();
        }
        let across = Scale::log((slow / 1.2, fast * 1.2), plot.across());
        let upward = Scale::log((low / 1.4, high * 1.4), plot.upwards());
        if self.has_ideal {
            let mut line = Path::default();
            for (place, rate) in [slow, fast].into_iter().enumerate() {
                let at = (across.at(rate), upward.at(rate));
                match place {
                    0 => line.move_to(at.0, at.1),
                    _ => line.line_to(at.0, at.1),
                }
            }
            plot.path("limit", &line);
        }
        for (place, one) in all.iter().enumerate() {
            let colour = colour(place);
            let mut line = Path::default();
            for (number, (rate, value, _)) in self.points(one).enumerate() {
                match number {
                    0 => line.move_to(across.at(rate), upward.at(value)),
                    _ => line.line_to(across.at(rate), upward.at(value)),
                }
            }
            plot.path(&format!("line dashed {colour}"), &line);
            for (rate, value, point) in self.points(one) {
                let at = (across.at(rate), upward.at(value));
                let told = format!("{}, {}: {}", one.name(), point.name(), (self.write)(value));
                let is_whole = point.saturated().or(point.not_open_loop()).is_none();
                let class = if is_whole { "mark" } else { "ring" };
                plot.circle(&format!("{class} {colour}"), at, 4.0, &told);
            }
        }
        let ticks = upward.ticks(6);
        plot.axis(Axis::new(
            Side::Left,
            upward,
            self.upward,
            ticks,
            |value| match self.has_ideal {
                true => N.tick(value),
                false => N.ns_tick(value),
            },
        ));
        let rates = across.ticks(8);
        let below = Axis::new(Side::Bottom, across, "planned per s", rates, |v| N.tick(v));
        plot.axis(below);
        if !self.has_ideal {
            let mut rates: Vec<(f64, &str)> = points()
                .map(|(rate, _, point)| (rate, point.interval()))
                .collect();
            rates.sort_by(|a, b| a.0.total_cmp(&b.0));
            rates.dedup_by_key(|(rate, _)| *rate);
            let spared = rates.len().div_ceil(MOST_INTERVALS).max(1);
            let shown = rates.iter().step_by(spared).map(|(rate, _)| *rate);
            plot.axis(Axis::new(Side::Top, across, "interval", shown, |rate| {
                let found = rates.iter().find(|(known, _)| *known == rate);
                found.map_or_else(String::new, |(_, interval)| (*interval).to_owned())
            }));
        }
        let legend = all.iter().enumerate();
        let legend = legend.map(|(place, one)| (colour(place), one.name()));
        let figure = parts::Figure {
            title: self.title.to_owned(),
            read: self.read.to_owned(),
            legend: parts::line_legend(legend),
            plot: &plot,
            table: None,
        };
        Some(figure.render())
    }
}

/// Draws how the latencies of each point are distributed: a panel for each interval.
fn distributions(story: &Started, all: &[Series<'_>], detail: &Detail) -> Option<Markup> {
    let mut panels: Vec<(Option<u64>, Panel<'_>)> = Vec::new();
    let mut runs = 0;
    for (place, one) in all.iter().enumerate() {
        for point in &one.points {
            let Some(kept) = story
                .of(point.case.plan)
                .filter(|own| !own.ready.is_empty())
            else {
                continue;
            };
            runs = runs.max(kept.runs);
            let series = distributions::Series {
                place,
                tail: &kept.ready,
                second: None,
                seconds: None,
            };
            let interval_ns = point.interval_ns();
            match panels.iter_mut().find(|(known, _)| *known == interval_ns) {
                Some((_, panel)) => panel.series.push(series),
                None => panels.push((
                    interval_ns,
                    Panel {
                        name: point.interval().to_owned(),
                        series: vec![series],
                    },
                )),
            }
        }
    }
    panels.sort_by_key(|(interval_ns, _)| std::cmp::Reverse(interval_ns.unwrap_or(u64::MAX)));
    let drawn = Distributions {
        of: "times until ready",
        across: "ready after",
        unit: Unit::Ns,
        step: 1,
        coarse: detail.coarseness(),
        runs,
        names: all.iter().map(Series::name).collect(),
        panels: panels.into_iter().map(|(_, panel)| panel).collect(),
    };
    drawn.exceedance(
        "How often, and how long",
        "For each interval: find a time below, go up to a line, and read at the left which share of the instances took longer. A \
         line ends at the longest that was seen; it does not say that longer ones don't happen.",
        "longer than that",
        None,
    )
}

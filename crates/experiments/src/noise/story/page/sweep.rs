//! Sweeps: the same workload over several sizes.

use maud::{Markup, html};

use crate::analysis::{Combination, CombinedFigures, CombinedTimed};
use crate::panels::{Panel, target_name};
use crate::svg::{Axis, Path, Plot, Scale, Side, colour};

use super::axes::{common_hz_of, upright};
use super::parts::{Figure, N, Table, both, cycles, entitle, legend_of, none};

/// Is the room at the bottom of a logarithmic axis in which zero lies, in pixels.
const ZERO_ROOM: f64 = 18.0;

/// Is one target over all sizes.
struct Line<'a> {
    name: String,
    /// Work of one repetition, the combination, and its figures.
    points: Vec<(f64, &'a Combination, &'a CombinedTimed)>,
}

/// Is the work on the horizontal axis.
struct Work {
    scale_is_log: bool,
    title: &'static str,
}

/// Renders durations and classes of a sweep; `None` if no size has figures.
pub(super) fn sweep(sizes: &[Panel<'_>]) -> Option<Markup> {
    let work = Work::of(sizes)?;
    let views = Lines::all(sizes);
    let by_size: Option<Vec<Markup>> = views.iter().map(|v| cycles_by_work(v, &work)).collect();
    let by_class: Option<Vec<Markup>> = views.iter().map(|v| classes(v, &work)).collect();
    Some(html! {
        @for picture in by_size? { (picture) }
        @for picture in by_class? { (picture) }
    })
}

/// Renders the share of time in delays over the sizes; `None` if no size has figures.
pub(super) fn shares(sizes: &[Panel<'_>]) -> Option<Markup> {
    let work = Work::of(sizes)?;
    let views = Lines::all(sizes);
    let pictures: Option<Vec<Markup>> = views.iter().map(|v| share_by_work(v, &work)).collect();
    Some(html! { @for picture in pictures? { (picture) } })
}

/// Holds the lines of one picture, and those of all targets, which the axes fit.
struct Lines<'a> {
    whole: Vec<Line<'a>>,
    drawn: Vec<Line<'a>>,
    /// The groups that are drawn, if they are not all.
    name: Option<String>,
}

impl<'a> Lines<'a> {
    /// Divides the targets into what can be overlaid in one picture each.
    fn all(sizes: &[Panel<'a>]) -> Vec<Self> {
        let whole = Panel::of_targets(sizes);
        let parts = whole.parts().into_iter();
        parts
            .map(|part| {
                let drawn: Vec<Panel<'a>> = sizes.iter().map(|s| s.restricted_to(&part)).collect();
                Self {
                    whole: lines(sizes),
                    drawn: lines(&drawn),
                    name: part.name_in(&whole),
                }
            })
            .collect()
    }
}

fn lines<'a>(sizes: &[Panel<'a>]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (_, combination) in sizes.iter().flat_map(|panel| &panel.members) {
        let CombinedFigures::Timed(timed) = &combination.figures else {
            continue;
        };
        let name = target_name(combination);
        let point = (timed.work as f64, *combination, &**timed);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                name,
                points: vec![point],
            }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

impl Work {
    fn of(sizes: &[Panel<'_>]) -> Option<Self> {
        let first = sizes.first()?.first();
        Some(match first.workload.as_str() {
            "prime" => Self {
                scale_is_log: false,
                title: "integer divisions in one repetition",
            },
            _ => Self {
                scale_is_log: true,
                title: "array elements of 8 bytes",
            },
        })
    }

    fn scale(&self, lines: &[Line<'_>], across: (f64, f64)) -> Option<Scale> {
        let all = || {
            lines
                .iter()
                .flat_map(|line| line.points.iter().map(|point| point.0))
        };
        let low = all().min_by(f64::total_cmp)?;
        let high = all().max_by(f64::total_cmp)?;
        Some(if self.scale_is_log {
            Scale::log((low / 1.15, high * 1.15), across)
        } else {
            Scale::linear((0.0, high * 1.04), across)
        })
    }

    fn axis(&self, plot: &mut Plot, scale: Scale, lines: &[Line<'_>]) {
        // Sizes that double have their own marks; others get round ones.
        let ticks = if self.scale_is_log {
            let mut sizes: Vec<f64> = lines
                .iter()
                .flat_map(|line| line.points.iter().map(|p| p.0))
                .collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            sizes
        } else {
            scale.ticks(10)
        };
        plot.axis(Axis::new(Side::Bottom, scale, self.title, ticks, |v| {
            N.tick(v)
        }));
    }
}

/// Draws one line with its marks.
fn draw(plot: &mut Plot, classes: &str, hollow: bool, points: &[(f64, f64, String)]) {
    let mut path = Path::default();
    for (place, (x, y, _)) in points.iter().enumerate() {
        if place == 0 {
            path.move_to(*x, *y);
        } else {
            path.line_to(*x, *y);
        }
    }
    let second = if hollow { " second" } else { "" };
    plot.path(&format!("line{second} {classes}"), &path);
    let mark = if hollow { "mark hollow" } else { "mark" };
    for (x, y, tooltip) in points {
        plot.circle(&format!("{mark} {classes}"), (*x, *y), 3.5, tooltip);
    }
}

fn share_by_work(view: &Lines<'_>, work: &Work) -> Option<Markup> {
    let (lines, whole) = (&view.drawn, &view.whole);
    let limits: Vec<u64> = lines
        .first()?
        .points
        .first()?
        .2
        .shares
        .iter()
        .map(|share| share.above_cycles)
        .collect();
    let value = |timed: &CombinedTimed, limit: u64| {
        let share = timed
            .shares
            .iter()
            .find(|share| share.above_cycles == limit)?;
        Some(share.share?.figure * 100.0)
    };
    let mut plot = Plot::new(300.0, "share of time in delays by size");
    let across = work.scale(whole, plot.across())?;
    let all: Vec<f64> = whole
        .iter()
        .flat_map(|line| &line.points)
        .flat_map(|point| limits.iter().filter_map(|&limit| value(point.2, limit)))
        .collect();
    let upward = zero_scale(&all, plot.upwards());
    let mut entries = Vec::new();
    let mut table = Table::new(["size"]);
    for (series, line) in lines.iter().enumerate() {
        for (place, &limit) in limits.iter().enumerate() {
            let points: Vec<_> = line
                .points
                .iter()
                .filter_map(|(x, c, timed)| {
                    let share = value(timed, limit)?;
                    let said = N.percent(share / 100.0);
                    let tooltip = format!("{}: {said} above {} cycles", c.label, N.count(limit));
                    Some((across.at(*x), upward.at(share), tooltip))
                })
                .collect();
            draw(&mut plot, &colour(series), place > 0, &points);
            let hollow = if place > 0 { " hollow" } else { "" };
            let name = format!("{}, above {} cycles", line.name, N.count(limit));
            entries.push((format!("{}{hollow}", colour(series)), name.clone()));
            table.head.push(name);
        }
    }
    table.rows = by_size(lines, |timed| {
        let each = limits.iter().map(|&limit| value(timed, limit));
        each.map(|v| v.map_or_else(none, |v| N.percent(v / 100.0)))
            .collect()
    });
    let ticks = upward.ticks(6);
    let label = |v: f64| N.with_unit(&N.tick(v), "%");
    plot.axis(Axis::new(
        Side::Left,
        upward,
        "share of the time in delays",
        ticks,
        label,
    ));
    work.axis(&mut plot, across, whole);
    let figure = Figure {
        title: entitle("Share of the time in delays", view.name.clone()),
        read:
            "The sum of all delays above a limit over the sum of all cycles, of all runs \
               together. A periodic disturbance of fixed length costs the same share whatever the size."
                .to_owned(),
        legend: legend_of(entries),
        plot: &plot,
        table: Some(table),
    };
    Some(figure.render())
}

fn cycles_by_work(view: &Lines<'_>, work: &Work) -> Option<Markup> {
    let (lines, whole) = (&view.drawn, &view.whole);
    let mut plot = Plot::new(300.0, "mean duration by size").with_right_axis();
    let across = work.scale(whole, plot.across())?;
    let mean = |timed: &CombinedTimed| timed.raw.mean.figure;
    let all = || {
        whole
            .iter()
            .flat_map(|line| line.points.iter().map(|p| mean(p.2).cycles))
    };
    let (low, high) = (all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?);
    let upward = if work.scale_is_log {
        Scale::log((low / 1.3, high * 1.3), plot.upwards())
    } else {
        Scale::linear((0.0, high * 1.05), plot.upwards())
    };
    let mut table = Table::new([
        "target and size",
        "steps",
        "mean, cycles",
        "mean, time",
        "shortest",
        "net mean, cycles",
        "net cycles per step",
    ]);
    for (series, line) in lines.iter().enumerate() {
        let points: Vec<_> = line
            .points
            .iter()
            .map(|(x, c, timed)| {
                let tooltip = format!("{}: {}", c.label, both(Some(mean(timed)), c));
                (across.at(*x), upward.at(mean(timed).cycles), tooltip)
            })
            .collect();
        draw(&mut plot, &colour(series), false, &points);
        for (_, c, timed) in &line.points {
            let net = timed.net.mean.figure.cycles;
            table.row([
                c.label.clone(),
                N.count(timed.work),
                plus_minus(timed.raw.mean.figure.cycles, timed.raw.mean.interval),
                super::parts::time(Some(mean(timed)), c),
                cycles(Some(timed.raw.min.lowest)),
                N.rounded(net),
                N.rounded(net / timed.work.max(1) as f64),
            ]);
        }
    }
    let hz = common_hz_of(
        lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.1)),
    );
    upright(&mut plot, upward, hz);
    work.axis(&mut plot, across, whole);
    let entries = lines
        .iter()
        .enumerate()
        .map(|(i, line)| (colour(i), line.name.clone()));
    let figure = Figure {
        title: entitle("Duration by size", view.name.clone()),
        read: "The mean duration of a repetition over all runs. A straight line means that \
               each step costs the same; its slope is the cost of a step."
            .to_owned(),
        legend: legend_of(entries),
        plot: &plot,
        table: Some(table),
    };
    Some(figure.render())
}

fn classes(view: &Lines<'_>, work: &Work) -> Option<Markup> {
    let (lines, whole) = (&view.drawn, &view.whole);
    let letters: Vec<char> = lines
        .first()?
        .points
        .first()?
        .2
        .classes
        .iter()
        .map(|class| class.class)
        .collect();
    // The study shows B, C and D; A is close to what the timer and the caches do by themselves.
    let shown = letters.iter().copied().filter(|letter| *letter != 'A');
    let per_million = |timed: &CombinedTimed, letter: char| {
        let class = timed.classes.iter().find(|class| class.class == letter)?;
        Some(class.count? as f64 / timed.repetitions.max(1) as f64 * 1e6)
    };
    let pictures: Vec<Markup> = shown
        .filter_map(|letter| {
            let mut plot = Plot::new(200.0, format!("delays of class {letter} by size"));
            let across = work.scale(whole, plot.across())?;
            let all: Vec<f64> = whole
                .iter()
                .flat_map(|line| &line.points)
                .filter_map(|point| per_million(point.2, letter))
                .collect();
            let upward = zero_scale(&all, plot.upwards());
            for (series, line) in lines.iter().enumerate() {
                let points: Vec<_> = line
                    .points
                    .iter()
                    .filter_map(|(x, c, timed)| {
                        let rate = per_million(timed, letter)?;
                        let tooltip = format!("{}: {} per million", c.label, N.short(rate));
                        Some((across.at(*x), upward.at(rate), tooltip))
                    })
                    .collect();
                draw(&mut plot, &colour(series), false, &points);
            }
            let ticks = upward.ticks(4);
            let title = format!("class {letter}, per million repetitions");
            plot.axis(Axis::new(Side::Left, upward, title, ticks, |v| N.tick(v)));
            work.axis(&mut plot, across, whole);
            Some(html! { div.plot tabindex="0" { (maud::PreEscaped(plot.markup())) } })
        })
        .collect();
    let mut table = Table::new(["size"]);
    for line in lines {
        table.head.extend(
            letters
                .iter()
                .map(|letter| format!("{}, {letter}", line.name)),
        );
    }
    table.rows = by_size(lines, |timed| {
        let each = letters.iter().map(|&letter| per_million(timed, letter));
        each.map(|rate| rate.map_or_else(none, |rate| N.short(rate)))
            .collect()
    });
    let entries = lines
        .iter()
        .enumerate()
        .map(|(i, line)| (colour(i), line.name.clone()));
    Some(html! {
        figure {
            h3 { (entitle("Delays by class and size", view.name.clone())) }
            p.read {
                "How many of a million repetitions were delayed by 400 to 2,000 cycles (B), by 2,000 to \
                 6,000 (C), by more (D), over all runs. Longer repetitions meet more of what comes with time."
            }
            (legend_of(entries))
            @for picture in pictures { (picture) }
            details { summary { "Figures" } (table.render()) }
        }
    })
}

/// Makes a row for each size, with the cells of each line one after the other.
fn by_size(lines: &[Line<'_>], cells: impl Fn(&CombinedTimed) -> Vec<String>) -> Vec<Vec<String>> {
    let mut sizes: Vec<u64> = lines
        .iter()
        .flat_map(|line| line.points.iter().filter_map(|point| point.1.size))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let width = lines.first().and_then(|line| line.points.first());
    let width = width.map_or(0, |point| cells(point.2).len());
    sizes
        .into_iter()
        .map(|size| {
            let mut row = vec![N.count(size)];
            for line in lines {
                let point = line.points.iter().find(|point| point.1.size == Some(size));
                row.extend(point.map_or_else(|| vec![none(); width], |point| cells(point.2)));
            }
            row
        })
        .collect()
}

/// Makes a scale with a place for zero if one of the figures is, logarithmic if they are far apart.
pub(super) fn zero_scale(figures: &[f64], upwards: (f64, f64)) -> Scale {
    let positive = || figures.iter().copied().filter(|v| *v > 0.0);
    let high = positive().fold(0.0, f64::max);
    let low = positive().fold(f64::INFINITY, f64::min);
    if high > 0.0 && high / low > 12.0 {
        let scale = Scale::log((low / 1.3, high * 1.4), upwards);
        return if figures.iter().any(|v| *v <= 0.0) {
            scale.with_zero(ZERO_ROOM)
        } else {
            scale
        };
    }
    Scale::linear((0.0, if high > 0.0 { high * 1.15 } else { 1.0 }), upwards)
}

/// Writes a mean with its interval; without one, the given value with three digits.
pub(super) fn plus_minus(value: f64, interval: Option<crate::analysis::Interval>) -> String {
    interval.map_or_else(
        || N.rounded(value),
        |interval| N.plus_minus(interval.estimate, interval.half_width()),
    )
}

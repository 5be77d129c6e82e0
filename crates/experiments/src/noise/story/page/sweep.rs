//! Sweeps: the same workload over several sizes.

use maud::{Markup, html};
use tare_figures::rows::{Figure as Of, Row};
use tare_pages::html::parts::N;
use tare_pages::kit::curve::{Curve, Dimension, Line, Point, Scaling};
use tare_pages::kit::over_time::MARKS;

use super::super::super::workload;
use super::super::panels::Panel;

/// A picture of figures by size.
struct Sweep<'s> {
    title: &'s str,
    read: &'s str,
    /// The title of the axis at the left.
    upward: &'s str,
    /// The part of a figure that is drawn.
    drawn: fn(&Row, f64) -> f64,
    height: f64,
}

/// Renders the share of time in delays over the sizes; `None` if no size has figures.
pub(super) fn shares(sizes: &[Panel<'_>]) -> Option<Markup> {
    let sweep = Sweep {
        title: "Share of the time in delays",
        read: "The sum of all delays above a limit over the sum of all cycles, of all runs together. A periodic disturbance of \
               fixed length costs the same share whatever the size.",
        upward: "% of the time in delays",
        drawn: |_, share| share * 100.0,
        height: 300.0,
    };
    let limits = [
        ("400cycles", ", above 400 cycles"),
        ("2000cycles", ", above 2,000 cycles"),
    ];
    let lines = limits.into_iter().flat_map(|(limit, words)| {
        let mut lines = sweep.lines(sizes, ("delayed", Of::Share, &[("above", limit)]));
        for line in &mut lines {
            line.name.push_str(words);
            line.is_second = limit == "2000cycles";
        }
        lines
    });
    let mut lines: Vec<Line> = lines.collect();
    lines.sort_by_key(|line| line.series);
    sweep.render(sizes, lines)
}

/// Renders mean durations and classes of delays over the sizes.
pub(super) fn durations_and_classes(sizes: &[Panel<'_>]) -> Vec<Markup> {
    let durations = Sweep {
        title: "Duration by size",
        read: "The mean duration of a repetition over all runs. A straight line means that each step costs the same; its slope \
               is the cost of a step.",
        upward: "cycles",
        drawn: |row, mean| row.time(mean).cycles,
        height: 300.0,
    };
    let lines = durations.lines(sizes, ("duration", Of::Mean, &[]));
    let mut pictures = vec![durations.render(sizes, lines)];
    // The study shows B, C and D; A is close to what the timer and the caches do by themselves.
    for (class, title, read) in [
        (
            "B",
            "Delays of 400 to 2,000 cycles (class B)",
            "Number of repetitions with such a delay, over all runs. Longer repetitions meet more interruptions.",
        ),
        ("C", "Delays of 2,000 to 6,000 cycles (class C)", ""),
        ("D", "Delays of more than 6,000 cycles (class D)", ""),
    ] {
        let sweep = Sweep {
            title,
            read,
            upward: "per million repetitions",
            drawn: |_, share| share * 1e6,
            height: 200.0,
        };
        let lines = sweep.lines(sizes, ("delays", Of::Share, &[("class", class)]));
        pictures.push(sweep.render(sizes, lines));
    }
    pictures.into_iter().flatten().collect()
}

impl Sweep<'_> {
    /// Returns a line for each target.
    fn lines(
        &self,
        sizes: &[Panel<'_>],
        (measure, figure, labels): (&str, Of, &[(&str, &str)]),
    ) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for member in sizes.iter().flat_map(|panel| &panel.members) {
            let point = || {
                let work = member.known("work", Of::Value, &[])?.1.estimate;
                let (row, over) = member.known(measure, figure, labels)?;
                let interval = over.interval.as_ref().ok();
                let interval = interval.map(|both| [both.low, both.high]);
                Some(Point {
                    name: N.count(member.case.plan.labels.number("size")?),
                    at: (work, (self.drawn)(row, over.estimate)),
                    interval: interval.map(|ends| ends.map(|end| (self.drawn)(row, end))),
                    is_marked: row.is_marked(),
                    doubt: None,
                })
            };
            let Some(point) = point() else { continue };
            let name = member.name();
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    series: lines.len(),
                    name,
                    is_second: false,
                    points: vec![point],
                }),
            }
        }
        lines
    }

    /// Renders it. Nothing but zeros is a sentence.
    fn render(&self, sizes: &[Panel<'_>], lines: Vec<Line>) -> Option<Markup> {
        let points = || lines.iter().flat_map(|line| &line.points);
        points().next()?;
        if points().all(|point| point.at.1 == 0.0) {
            return Some(html! { h3 { (self.title) } p.note { "None, at any size." } });
        }
        let has_intervals = points().any(|point| point.interval.is_some());
        let bars = " Upright bars are 95 % intervals over the runs.";
        let read = format!("{}{}", self.read, if has_intervals { bars } else { "" });
        let mut works: Vec<f64> = points().map(|point| point.at.0).collect();
        works.sort_by(f64::total_cmp);
        works.dedup();
        let workload = workload(&sizes[0].plan().work.id);
        let scaling = match workload.is_some_and(|workload| workload.is_linear) {
            true => Scaling::FromZero,
            false => Scaling::Logarithmic,
        };
        let is_time = self.upward == "cycles";
        let across = Dimension {
            title: workload.map_or("size", |workload| workload.steps),
            scaling,
            // Sizes that double have their own marks.
            ticks: if scaling == Scaling::FromZero {
                Vec::new()
            } else {
                works
            },
            count: 10,
            tick: |work| N.tick(work),
            write: |work| N.tick(work),
        };
        let upward = Dimension {
            title: self.upward,
            scaling: if is_time { scaling } else { Scaling::WithZero },
            ticks: Vec::new(),
            count: if is_time { MARKS } else { 6 },
            tick: |value| N.tick(value),
            write: |value| N.short(value),
        };
        let hz = sizes[0].hz().filter(|_| is_time);
        let curve = Curve {
            title: self.title,
            read: &read,
            height: self.height,
            right: hz.map(|hz| ("time", hz / 1e9, (|ns| N.ns_tick(ns)) as fn(f64) -> String)),
            ..Curve::new(lines, across, upward)
        };
        curve.render()
    }
}

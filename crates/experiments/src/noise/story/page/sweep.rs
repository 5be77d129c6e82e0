//! Sweeps: the same workload over several sizes.

use maud::{Markup, html};
use tare_figures::rows::{Figure as Of, Row};
use tare_figures::words::NONE;
use tare_pages::html::parts::{Figure, N, Table, legend_of};
use tare_pages::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};

use super::super::super::workload;
use super::super::panels::Panel;
use super::{MARKS, upright};

/// One figure of one target over all sizes.
struct Line {
    series: usize,
    name: String,
    /// Whether it is the second of its target.
    hollow: bool,
    points: Vec<Point>,
}

/// A figure at one size.
struct Point {
    size: u64,
    /// The work of one repetition.
    work: f64,
    /// The figure as it is drawn.
    value: f64,
    /// Its interval, if it has one.
    interval: Option<[f64; 2]>,
}

/// A picture of figures by size.
struct Sweep<'s> {
    title: &'s str,
    read: &'s str,
    /// The title of the axis at the left.
    upward: &'s str,
    /// What is drawn of a figure.
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
            line.hollow = limit == "2000cycles";
        }
        lines
    });
    let mut lines: Vec<Line> = lines.collect();
    lines.sort_by_key(|line| line.series);
    sweep.render(sizes, &lines)
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
    let mut pictures = vec![durations.render(sizes, &lines)];
    // The study shows B, C and D; A is close to what the timer and the caches do by themselves.
    for (class, title, read) in [
        (
            "B",
            "Delays of 400 to 2,000 cycles (class B)",
            "How many repetitions were delayed by so much, over all runs. Longer ones meet more of what comes with time.",
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
        pictures.push(sweep.render(sizes, &lines));
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
                    size: member.case.plan.labels.number("size")?,
                    work,
                    value: (self.drawn)(row, over.estimate),
                    interval: interval.map(|ends| ends.map(|end| (self.drawn)(row, end))),
                })
            };
            let Some(point) = point() else { continue };
            let name = member.case.target();
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    series: lines.len(),
                    name,
                    hollow: false,
                    points: vec![point],
                }),
            }
        }
        lines
    }

    /// Renders it; of more targets than colours, several times on the same axes. Nothing but zeros is a sentence.
    fn render(&self, sizes: &[Panel<'_>], lines: &[Line]) -> Option<Markup> {
        let most = lines.iter().map(|line| line.series).max()?;
        let mut points = lines.iter().flat_map(|line| &line.points);
        if points.all(|point| point.value == 0.0) {
            return Some(html! { h3 { (self.title) } p.note { "None, at any size." } });
        }
        let parts = (0..=most).step_by(COLOURS).map(|first| {
            let is_in = |line: &&Line| (first..first + COLOURS).contains(&line.series);
            self.part(
                sizes,
                lines,
                &lines.iter().filter(is_in).collect::<Vec<_>>(),
            )
        });
        let parts: Vec<Markup> = parts.collect();
        Some(html! { @for part in parts { (part) } })
    }

    /// Renders some lines on axes that fit all.
    fn part(&self, sizes: &[Panel<'_>], all: &[Line], lines: &[&Line]) -> Markup {
        let is_time = self.upward == "cycles";
        let mut plot = Plot::new(self.height, self.title);
        if is_time && sizes[0].hz().is_some() {
            plot = plot.with_right_axis();
        }
        let points = || all.iter().flat_map(|line| &line.points);
        let intervals = || points().filter_map(|point| point.interval);
        let values = points().map(|point| point.value);
        let values: Vec<f64> = values.chain(intervals().flatten()).collect();
        let mut works: Vec<f64> = points().map(|point| point.work).collect();
        works.sort_by(f64::total_cmp);
        works.dedup();
        let ends = |all: &[f64]| {
            // An interval may end at 0, which has no place on a logarithmic scale.
            let positive = all.iter().copied().filter(|value| *value > 0.0);
            let low = positive.fold(f64::INFINITY, f64::min);
            (low, all.iter().copied().fold(0.0, f64::max))
        };
        let ((low, high), (least, most)) = (ends(&values), ends(&works));
        let workload = workload(&sizes[0].plan().work.id);
        let is_linear = workload.is_some_and(|workload| workload.is_linear);
        let title = workload.map_or("size", |workload| workload.steps);
        let across = match is_linear {
            true => Scale::linear((0.0, most * 1.04), plot.across()),
            false => Scale::log((least / 1.15, most * 1.15), plot.across()),
        };
        // Sizes that double have their own marks.
        let ticks = if is_linear { across.ticks(10) } else { works };
        plot.axis(Axis::new(Side::Bottom, across, title, ticks, |v| N.tick(v)));
        let upward = match (is_time, is_linear) {
            (false, _) => Scale::with_a_place_for_zero(&values, plot.upwards()),
            (true, true) => Scale::linear((0.0, high * 1.05), plot.upwards()),
            (true, false) => Scale::log((low / 1.3, high * 1.3), plot.upwards()),
        };
        if is_time {
            upright(&mut plot, upward, sizes[0].hz(), MARKS);
        } else {
            let ticks = upward.ticks(6);
            plot.axis(Axis::new(Side::Left, upward, self.upward, ticks, |v| {
                N.tick(v)
            }));
        }
        // Intervals at one size would hide each other.
        const APART: f64 = 4.0;
        let first = lines.first().map_or(0, |line| line.series);
        let last = lines.last().map_or(0, |line| line.series);
        let middle = (first + last) as f64 / 2.0;
        for line in lines {
            let shift = (line.series as f64 - middle) * APART;
            let (second, hollow) = if line.hollow {
                (" second", " hollow")
            } else {
                ("", "")
            };
            let colour = colour(line.series);
            let mut path = Path::default();
            let mut bars = Path::default();
            for point in &line.points {
                let x = across.at(point.work) + shift;
                path.go_to(x, upward.at(point.value));
                if let Some([low, high]) = point.interval {
                    bars.move_to(x, upward.at(low));
                    bars.line_to(x, upward.at(high));
                }
            }
            plot.path(&format!("line{second} {colour}"), &path);
            plot.path(&format!("line interval {colour}"), &bars);
            for point in &line.points {
                let at = (across.at(point.work) + shift, upward.at(point.value));
                let said = format!("{}, {}: {}", line.name, point.size, N.short(point.value));
                plot.circle(&format!("mark{hollow} {colour}"), at, 3.5, &said);
            }
        }
        let legend = lines.iter().map(|line| {
            let hollow = if line.hollow { " hollow" } else { "" };
            (
                format!("{}{hollow}", colour(line.series)),
                line.name.clone(),
            )
        });
        let bars = " Upright bars are 95 % intervals over the runs.";
        let bars = if intervals().next().is_some() {
            bars
        } else {
            ""
        };
        let figure = Figure {
            title: self.title.to_owned(),
            read: format!("{}{bars}", self.read),
            legend: legend_of(legend),
            plot: &plot,
            table: Some(table(lines)),
        };
        figure.render()
    }
}

fn table(lines: &[&Line]) -> Table {
    let mut table = Table::new(["size"]);
    table
        .head
        .extend(lines.iter().map(|line| line.name.clone()));
    let sizes = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.size));
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    sizes.dedup();
    for size in sizes {
        let cells = lines.iter().map(|line| {
            let point = line.points.iter().find(|point| point.size == size);
            point.map_or_else(|| NONE.to_owned(), |point| N.short(point.value))
        });
        table
            .rows
            .push(std::iter::once(N.count(size)).chain(cells).collect());
    }
    table
}

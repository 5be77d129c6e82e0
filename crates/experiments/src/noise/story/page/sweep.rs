//! Sweeps: the same workload over several sizes.

use maud::Markup;
use tare_report::html::parts::{Figure, N, Table, legend_of};
use tare_report::rows::{Figure as Of, Row};
use tare_report::svg::{Axis, COLOURS, Path, Plot, Scale, Side, colour};
use tare_report::words::NONE;

use super::super::panels::{Member, Panel};
use super::{MARKS, upright};

/// One figure of one target over all sizes.
struct Line<'a> {
    series: usize,
    name: String,
    /// Whether it is the second of its target.
    hollow: bool,
    /// The size, the work of one repetition, and the row.
    points: Vec<(u64, f64, &'a Row)>,
}

/// A picture of figures by size.
struct Sweep<'s> {
    title: String,
    read: &'s str,
    /// The title of the axis at the left; of durations in cycles there are axes of their own.
    upward: Option<String>,
    /// What is drawn of a figure.
    drawn: fn(&Row, f64) -> f64,
    /// How it is written.
    written: fn(f64) -> String,
    height: f64,
}

/// Renders the share of time in delays over the sizes; `None` if no size has figures.
pub(super) fn shares(sizes: &[Panel<'_>]) -> Option<Markup> {
    let lines = |limit: &str, words: &str, hollow| {
        lines(
            sizes,
            ("delayed", Of::Share),
            &[("above", limit)],
            words,
            hollow,
        )
    };
    let mut both = lines("400cycles", ", above 400 cycles", false);
    both.extend(lines("2000cycles", ", above 2,000 cycles", true));
    both.sort_by_key(|line| line.series);
    let sweep = Sweep {
        title: "Share of the time in delays".to_owned(),
        read: "The sum of all delays above a limit over the sum of all cycles, of all runs together. A periodic disturbance of \
               fixed length costs the same share whatever the size.",
        upward: Some("share of the time in delays".to_owned()),
        drawn: |_, share| share * 100.0,
        written: |percent| N.percent(percent / 100.0),
        height: 300.0,
    };
    sweep.render(sizes, &both)
}

/// Renders mean durations and classes of delays over the sizes.
pub(super) fn durations_and_classes(sizes: &[Panel<'_>]) -> Vec<Markup> {
    let durations = Sweep {
        title: "Duration by size".to_owned(),
        read: "The mean duration of a repetition over all runs. A straight line means that each step costs the same; its slope \
               is the cost of a step.",
        upward: None,
        drawn: |row, mean| row.time(mean).cycles,
        written: |cycles| N.rounded(cycles),
        height: 300.0,
    };
    let means = lines(sizes, ("duration", Of::Mean), &[], "", false);
    let durations = durations.render(sizes, &means);
    // The study shows B, C and D; A is close to what the timer and the caches do by themselves.
    let classes = [
        ("B", "400 to 2,000"),
        ("C", "2,000 to 6,000"),
        ("D", "over 6,000"),
    ];
    let classes = classes.into_iter().filter_map(|(letter, cycles)| {
        let sweep = Sweep {
            title: format!("Delays of {cycles} cycles (class {letter}) by size"),
            read: if letter == "B" {
                "How many repetitions were delayed by so much, over all runs. Longer ones meet more of what comes with time."
            } else {
                ""
            },
            upward: Some("per million repetitions".to_owned()),
            drawn: |_, share| share * 1e6,
            written: |rate| N.short(rate),
            height: 200.0,
        };
        let lines = lines(
            sizes,
            ("delays", Of::Share),
            &[("class", letter)],
            "",
            false,
        );
        sweep.render(sizes, &lines)
    });
    durations.into_iter().chain(classes).collect()
}

/// Returns a line for each target.
fn lines<'a>(
    sizes: &[Panel<'a>],
    (measure, figure): (&str, Of),
    labels: &[(&str, &str)],
    words: &str,
    hollow: bool,
) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for member in sizes.iter().flat_map(|panel| &panel.members) {
        let point = || {
            let work = member.known("work", Of::Value, &[])?.1.estimate;
            Some((
                member.case.plan.size?,
                work,
                member.known(measure, figure, labels)?.0,
            ))
        };
        let Some(point) = point() else { continue };
        let name = format!("{}{words}", target(member));
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                series: lines.len(),
                name,
                hollow,
                points: vec![point],
            }),
        }
    }
    lines
}

fn target(member: &Member<'_>) -> String {
    member.case.target()
}

impl Sweep<'_> {
    /// Renders it; of more targets than colours, several times on the same axes.
    fn render(&self, sizes: &[Panel<'_>], lines: &[Line<'_>]) -> Option<Markup> {
        let most = lines.iter().map(|line| line.series).max()?;
        let parts = (0..=most).step_by(COLOURS).filter_map(|first| {
            let is_in = |line: &&Line<'_>| (first..first + COLOURS).contains(&line.series);
            self.part(
                sizes,
                lines,
                &lines.iter().filter(is_in).collect::<Vec<_>>(),
            )
        });
        let parts: Vec<Markup> = parts.collect();
        Some(maud::html! { @for part in parts { (part) } })
    }

    fn part(&self, sizes: &[Panel<'_>], all: &[Line<'_>], lines: &[&Line<'_>]) -> Option<Markup> {
        let mut plot = Plot::new(self.height, self.title.clone());
        if self.upward.is_none() {
            plot = plot.with_right_axis();
        }
        let value = |row: &Row| Some((self.drawn)(row, row.over.as_ref().ok()?.estimate));
        let points = || all.iter().flat_map(|line| &line.points);
        let values: Vec<f64> = points().filter_map(|(.., row)| value(row)).collect();
        let low = values.iter().copied().min_by(f64::total_cmp)?;
        let high = values.iter().copied().max_by(f64::total_cmp)?;
        let across = self.across(&mut plot, sizes, points().map(|point| point.1))?;
        let is_prime = sizes[0].plan().workload == "prime";
        let upward = match &self.upward {
            Some(_) => Scale::with_a_place_for_zero(&values, plot.upwards()),
            None if is_prime => Scale::linear((0.0, high * 1.05), plot.upwards()),
            None => Scale::log((low / 1.3, high * 1.3), plot.upwards()),
        };
        for line in lines {
            let (second, mark) = match line.hollow {
                true => (" second", "mark hollow"),
                false => ("", "mark"),
            };
            let colour = colour(line.series);
            let mut path = Path::default();
            let drawn = line.points.iter().filter_map(|(size, work, row)| {
                let value = value(row)?;
                let said = format!("{}, {size}: {}", line.name, (self.written)(value));
                Some(((across.at(*work), upward.at(value)), said))
            });
            let drawn: Vec<_> = drawn.collect();
            for (at, _) in &drawn {
                path.go_to(at.0, at.1);
            }
            plot.path(&format!("line{second} {colour}"), &path);
            for (at, said) in &drawn {
                plot.circle(&format!("{mark} {colour}"), *at, 3.5, said);
            }
        }
        match &self.upward {
            None => upright(&mut plot, upward, sizes[0].hz(), MARKS),
            Some(title) if title.starts_with("share") => {
                let label = |v: f64| N.with_unit(&N.tick(v), "%");
                plot.axis(Axis::new(Side::Left, upward, title, upward.ticks(6), label));
            }
            Some(title) => {
                plot.axis(Axis::new(Side::Left, upward, title, upward.ticks(4), |v| {
                    N.tick(v)
                }));
            }
        }
        let figure = Figure {
            title: self.title.clone(),
            read: self.read.to_owned(),
            legend: legend_of(lines.iter().map(|line| {
                let hollow = if line.hollow { " hollow" } else { "" };
                (
                    format!("{}{hollow}", colour(line.series)),
                    line.name.clone(),
                )
            })),
            plot: &plot,
            table: Some(self.table(lines, value)),
        };
        Some(figure.render())
    }

    /// Adds the axis of the work in one repetition.
    fn across(
        &self,
        plot: &mut Plot,
        sizes: &[Panel<'_>],
        works: impl Iterator<Item = f64>,
    ) -> Option<Scale> {
        let mut works: Vec<f64> = works.collect();
        works.sort_by(f64::total_cmp);
        works.dedup();
        let (low, high) = (works.first()?, works.last()?);
        let (scale, title, ticks) = match sizes[0].plan().workload.as_str() {
            "prime" => {
                let scale = Scale::linear((0.0, high * 1.04), plot.across());
                let title = "integer divisions in one repetition";
                (scale, title, scale.ticks(10))
            }
            // Sizes that double have their own marks.
            _ => {
                let scale = Scale::log((low / 1.15, high * 1.15), plot.across());
                (scale, "array elements of 8 bytes", works)
            }
        };
        plot.axis(Axis::new(Side::Bottom, scale, title, ticks, |v| N.tick(v)));
        Some(scale)
    }

    fn table(&self, lines: &[&Line<'_>], value: impl Fn(&Row) -> Option<f64>) -> Table {
        let mut table = Table::new(["size"]);
        table
            .head
            .extend(lines.iter().map(|line| line.name.clone()));
        let sizes = lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0));
        let mut sizes: Vec<u64> = sizes.collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let cell = |line: &&Line<'_>| {
                let point = line.points.iter().find(|point| point.0 == size);
                let value = point.and_then(|(.., row)| value(row));
                value.map_or_else(|| NONE.to_owned(), self.written)
            };
            let cells = lines.iter().map(cell);
            table
                .rows
                .push(std::iter::once(N.count(size)).chain(cells).collect());
        }
        table
    }
}

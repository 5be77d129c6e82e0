//! Durations over time: every run, every listed delay, every maximum.
//!
//! Clouds of dots can't be laid over each other, since the last one drawn hides the others. So each target has a strip of
//! its own, on the same axes.

use std::cmp::Reverse;

use maud::Markup;
use tare_report::analysis::Time;
use tare_report::html::parts::{Figure, N, Table, legend_of};
use tare_report::plain::MANY;
use tare_report::svg::{Axis, Path, Plot, Scale, Side, band, scatter};
use tare_report::words;
use tare_results::model::Labels;

use super::super::collect::{Peak, Timeline};
use super::super::panels::{Member, Panel};
use super::{MARKS, upright};

/// The height of the line with a target's name, in pixels.
const NAME: f64 = 22.0;
/// The part of a low strip's height within which dots are drawn as one, in pixels.
const ROW: f64 = 2.0;

/// Renders all runs of a panel over time, in about `budget` bytes; `None` if nothing was drawn.
pub(super) fn over_time(panel: &Panel<'_>, budget: usize) -> Option<Markup> {
    let runs = || {
        panel
            .members
            .iter()
            .flat_map(|member| &member.pictures.runs)
    };
    let low = runs().filter_map(|run| Some(run.ends()?.0)).min()? as f64;
    let high = runs().filter_map(|run| Some(run.ends()?.1)).max()? as f64;
    let (dots, name) = match panel.members.len() {
        1 => (270.0, 0.0),
        ..=MANY => (120.0, NAME),
        _ => (52.0, NAME),
    };
    let title = match panel.is_gap() {
        true => "Interruptions over time".to_owned(),
        false => format!("{} over time", panel.title()),
    };
    let height = panel.members.len() as f64 * (dots + name);
    let mut plot = Plot::strips(height, format!("{title}; the longest is {high} cycles"));
    let (hz, is_alone) = (panel.hz(), name == 0.0);
    if is_alone {
        plot = plot.with_right_axis();
    }
    let slots = Slots::new(runs(), plot.across());
    slots.draw(&mut plot);
    let budget = budget / runs().count().max(1);
    let mut top = plot.upwards().1;
    for (place, member) in panel.members.iter().enumerate() {
        let upwards = (top + name + dots, top + name);
        let scale = Scale::fitting(low, high, upwards);
        let rows = if is_alone { scale } else { scale.in_rows(ROW) };
        for run in &member.pictures.runs {
            slots.run(&mut plot, run, rows, budget);
            slots.peaks(&mut plot, member, run, scale);
        }
        slots.longest(&mut plot, member, scale);
        if is_alone {
            upright(&mut plot, scale, hz, MARKS);
        } else {
            plot.rule(upwards.0);
            let named = format!("{} · {}", member.group().name(), member.case.target());
            plot.text("row", (plot.across().0, top + name - 9.0), &named);
            let unit = hz.map_or(1.0, |hz| hz / 1e9);
            let label = |cycles: f64| match hz {
                Some(_) => N.ns_tick(cycles / unit),
                None => N.tick(cycles),
            };
            let titles = [if hz.is_some() { "time" } else { "cycles" }, ""];
            let ticks = scale.ticks_in(unit, 3);
            plot.axis(Axis::new(
                Side::Left,
                scale,
                titles[place.min(1)],
                ticks,
                label,
            ));
        }
        top += dots + name;
    }
    slots.axis(&mut plot, hz);
    let figure = Figure {
        title,
        read: reading(panel, slots.blocks.len()),
        legend: legend_of([]),
        plot: &plot,
        table: Some(peak_table(panel)),
    };
    Some(figure.render())
}

fn reading(panel: &Panel<'_>, runs: usize) -> String {
    let first = &panel.members[0].case;
    let (mut text, then) = match panel.is_gap() {
        true => (
            "Each dot is one interruption: when it came, and how long it lasted. Dots at one height and at even distances have \
             one periodic cause."
                .to_owned(),
            "nothing is known of single gaps",
        ),
        false => {
            let threshold = first.records().next();
            let threshold = threshold.and_then(|record| record.value("threshold", &Labels::default()));
            let threshold = Time::new(threshold.unwrap_or_default(), first.hz());
            let text = format!(
                "Each dot is one repetition that took over {} more than the mean. The band holds all others, from the shortest \
                 to the longest of each moment, the line is their mean.",
                words::both(N, threshold, None)
            );
            (text, "only the longest repetition of each moment is known")
        }
    };
    if runs > 1 {
        text.push_str(" The runs stand side by side, in the order in which they were made.");
    }
    if panel.members.len() > 1 {
        text.push_str(
            " Every target has its own strip with the same axes; the longest of each is marked.",
        );
    }
    let mut all = panel
        .members
        .iter()
        .flat_map(|member| &member.pictures.runs);
    if all.any(|run| run.full_from.is_some()) {
        text.push_str(&format!(
            " Where it is shaded the list of delays was full, and {then}."
        ));
    }
    text
}

/// Runs side by side, with equal distances in time on all of them.
struct Slots {
    blocks: Vec<u32>,
    left: f64,
    width: f64,
    longest_wall: u64,
}

impl Slots {
    fn new<'a>(runs: impl Iterator<Item = &'a Timeline>, (left, right): (f64, f64)) -> Self {
        let (mut blocks, mut longest_wall) = (Vec::new(), 1);
        for run in runs {
            blocks.push(run.block);
            longest_wall = run.wall.max(longest_wall);
        }
        blocks.sort_unstable();
        blocks.dedup();
        Self {
            left,
            width: (right - left) / blocks.len().max(1) as f64,
            blocks,
            longest_wall,
        }
    }

    /// Returns the place of a moment, given as a fraction of the run's time.
    fn at(&self, run: &Timeline, fraction: f64) -> f64 {
        let slot = self.blocks.iter().position(|block| *block == run.block);
        let share = run.wall as f64 / self.longest_wall as f64;
        self.left + (slot.unwrap_or(0) as f64 + fraction * share) * self.width
    }

    fn column(&self, run: &Timeline, column: f64) -> f64 {
        self.at(run, column / run.columns.max(1) as f64)
    }

    fn draw(&self, plot: &mut Plot) {
        let (bottom, top) = plot.upwards();
        let mut splits = Path::default();
        for slot in 1..self.blocks.len() {
            let x = self.left + slot as f64 * self.width;
            splits.move_to(x, top);
            splits.line_to(x, bottom);
        }
        plot.path("split", &splits);
    }

    fn axis(&self, plot: &mut Plot, hz: Option<f64>) {
        let wall = self.longest_wall as f64;
        let whole = (self.left, self.left + self.width * self.blocks.len() as f64);
        if self.blocks.len() > 1 {
            let scale = Scale::linear((0.0, self.blocks.len() as f64), whole);
            let length = hz.map(|hz| format!(" ({})", N.ns(wall / hz * 1e9, None)));
            let title = format!("runs, each over its own time{}", length.unwrap_or_default());
            let middles = (0..self.blocks.len()).map(|slot| slot as f64 + 0.5);
            let label = |at: f64| self.blocks[at as usize].to_string();
            plot.axis(Axis::new(Side::Bottom, scale, title, middles, label));
            return;
        }
        let (unit, title) = match hz {
            Some(hz) => (hz / 1e9, "time since the first stamp"),
            None => (1.0, "cycles since the first stamp"),
        };
        let scale = Scale::linear((0.0, wall), whole);
        let label = |cycles: f64| match hz {
            Some(_) => N.ns_tick(cycles / unit),
            None => N.tick(cycles),
        };
        let ticks = scale.ticks_in(unit, 8);
        plot.axis(Axis::new(Side::Bottom, scale, title, ticks, label));
    }

    fn run(&self, plot: &mut Plot, run: &Timeline, scale: Scale, budget: usize) {
        if let Some(from) = run.full_from {
            plot.shade("missing", self.at(run, from), self.at(run, 1.0));
        }
        let x = |column: f64| self.column(run, column);
        band::draw(plot, 0, &run.band, x, |cycles| scale.at(cycles));
        let dots = run.marks.iter();
        let dots = dots.map(|mark| (x(mark.column as f64 + 0.5), scale.at(mark.cycles as f64)));
        plot.path("dots s0", &scatter(dots.collect(), budget));
    }

    fn peak(&self, run: &Timeline, peak: &Peak, scale: Scale) -> (f64, f64) {
        let column = u128::from(peak.after) * run.columns as u128 / u128::from(run.wall);
        let column = (column as usize).min(run.columns.saturating_sub(1));
        let x = self.column(run, column as f64 + 0.5);
        (x, scale.at(peak.cycles as f64))
    }

    /// Makes the longest delays tell their place and length when pointed at: all runs together get about as many as one.
    fn peaks(&self, plot: &mut Plot, member: &Member<'_>, run: &Timeline, scale: Scale) {
        let many = (run.peaks.len() / self.blocks.len()).max(1);
        for peak in run.peaks.iter().take(many) {
            let tooltip = format!(
                "{}, run {}: {}, {} after the start, repetition {}",
                member.case.target(),
                run.block,
                words::both(N, time(peak.cycles, member), None),
                after(peak, member),
                N.count(peak.index),
            );
            plot.circle("hit s0", self.peak(run, peak, scale), 6.0, &tooltip);
        }
    }

    /// Marks the longest of all delays of a target and writes its length beside it.
    fn longest(&self, plot: &mut Plot, member: &Member<'_>, scale: Scale) {
        let runs = member.pictures.runs.iter();
        let peaks = runs.filter_map(|run| Some((run, run.peaks.first()?)));
        if let Some((run, peak)) = peaks.max_by_key(|(_, peak)| peak.cycles) {
            let at = self.peak(run, peak, scale);
            let text = words::time(N, time(peak.cycles, member), None);
            plot.circle("ring s0", at, 4.5, &text);
            plot.label("peak", at, &text);
        }
    }
}

fn time(cycles: u64, member: &Member<'_>) -> Time {
    Time::new(cycles as f64, member.case.hz())
}

fn after(peak: &Peak, member: &Member<'_>) -> String {
    let time = time(peak.after, member);
    // A moment is told to the microsecond, as it can be found in a trace.
    time.ns.map_or_else(
        || words::cycles(N, time),
        |ns| N.with_unit(&N.fixed(ns / 1e9, 6), "s"),
    )
}

fn peak_table(panel: &Panel<'_>) -> Table {
    const ROWS: usize = 20;
    let mut table = Table::new([
        "The longest",
        "run",
        "cycles",
        "time",
        "after the start",
        "repetition",
    ]);
    let runs = panel.members.iter().flat_map(|member| {
        let runs = member.pictures.runs.iter();
        runs.map(move |run| (member, run))
    });
    let peaks =
        runs.flat_map(|(member, run)| run.peaks.iter().map(move |peak| (member, run.block, peak)));
    let mut peaks: Vec<_> = peaks.collect();
    peaks.sort_by_key(|(.., peak)| Reverse(peak.cycles));
    for (member, run, peak) in peaks.into_iter().take(ROWS) {
        let time = time(peak.cycles, member);
        table.row([
            member.case.target(),
            run.to_string(),
            N.count(peak.cycles),
            time.ns
                .map_or_else(|| words::NONE.to_owned(), |ns| N.ns(ns, None)),
            after(peak, member),
            N.count(peak.index),
        ]);
    }
    table
}

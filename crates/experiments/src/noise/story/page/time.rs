//! Durations over time: every run, every listed delay, every maximum.
//!
//! Clouds of dots can't be laid over each other, since the last one drawn hides the others. So each target has a strip of
//! its own, on the same axes.

use maud::Markup;
use tare_figures::interval::Time;
use tare_figures::words;
use tare_pages::html::parts::{Figure, N, Table, legend_of};
use tare_pages::plain::MANY;
use tare_pages::svg::{Axis, Path, Plot, Scale, Side, band, colour, scatter};
use tare_results::model::Labels;

use super::super::collect::{Peak, Timeline};
use super::super::panels::{Member, Panel};
use super::{MARKS, upright};

/// The height of the line with a target's name, in pixels.
const NAME: f64 = 22.0;
/// The part of a low strip's height within which dots are drawn as one, in pixels.
const ROW: f64 = 2.0;
/// The ratio of the lengths of two runs up to which they are drawn over one axis of time.
const ALIKE: f64 = 1.25;

/// Renders all runs of a panel over time, in about `budget` bytes; `None` if nothing was drawn.
pub(super) fn over_time(panel: &Panel<'_>, budget: usize) -> Option<Markup> {
    let runs = || {
        panel
            .members
            .iter()
            .flat_map(|member| &member.pictures.runs)
    };
    let clock = Clock::of(panel);
    let ends = || runs().filter_map(|run| Some((clock.of_run(run), run.ends()?)));
    let low = ends().map(|(unit, (low, _))| low as f64 / unit);
    let low = low.reduce(f64::min)?;
    let high = ends().map(|(unit, (_, high))| high as f64 / unit);
    let high = high.reduce(f64::max)?;
    let (dots, name) = match panel.members.len() {
        1 => (270.0, 0.0),
        ..=MANY => (120.0, NAME),
        _ => (52.0, NAME),
    };
    let title = match panel.only_reads_clock() {
        true => "Interruptions over time".to_owned(),
        false => format!("{} over time", panel.title()),
    };
    // What never happened takes no more room than its name.
    let drawn = |member: &Member<'_>| match member.pictures.runs.iter().any(|r| r.ends().is_some())
    {
        true => dots,
        false => 0.0,
    };
    let height = panel.members.iter().map(|member| drawn(member) + name);
    let height = height.sum();
    let longest = clock.written(high);
    let mut plot = Plot::strips(height, format!("{title}; the longest is {longest}"));
    let is_alone = name == 0.0;
    if is_alone {
        plot = plot.with_right_axis();
    }
    let all = Slots::new(clock, runs(), plot.across());
    all.draw(&mut plot);
    let budget = budget / runs().count().max(1);
    let mut top = plot.upwards().1;
    let mut title_of_axis = if clock.is_time { "time" } else { "cycles" };
    for member in &panel.members {
        let slots = &all.of(member);
        let dots = drawn(member);
        let upwards = (top + name + dots, top + name);
        let scale = Scale::fitting(low, high, upwards);
        let rows = if is_alone { scale } else { scale.in_rows(ROW) };
        for run in &member.pictures.runs {
            slots.run(&mut plot, run, rows, budget);
            slots.peaks(&mut plot, member, run, scale);
        }
        if is_alone {
            let hz = member.case.hz().filter(|_| clock.is_time);
            let unit = hz.map_or(1.0, |hz| hz / 1e9);
            let scale = Scale::fitting(low * unit, high * unit, upwards);
            upright(&mut plot, scale, hz, MARKS);
        } else {
            plot.rule(upwards.0);
            let mut named = format!(
                "{} · {}",
                member.group().capabilities().heading,
                member.case.target()
            );
            if dots == 0.0 {
                named.push_str(": nothing to draw, there was no gap");
            } else if all.differ {
                named.push_str(&format!(", up to {} a run", clock.written(slots.longest)));
            }
            plot.text("row", (plot.across().0, top + name - 9.0), &named);
            if dots > 0.0 {
                let title = std::mem::take(&mut title_of_axis);
                let ticks = scale.ticks(3);
                plot.axis(Axis::new(Side::Left, scale, title, ticks, |at| {
                    clock.tick(at)
                }));
            }
        }
        // A label keeps out of the way of what was written before, so the strip's own name comes first.
        slots.longest(&mut plot, member, scale);
        top += dots + name;
    }
    all.axis(&mut plot);
    let figure = Figure {
        title,
        read: reading(panel, &all),
        legend: legend_of([]),
        plot: &plot,
        table: Some(peak_table(panel)),
    };
    Some(figure.render())
}

fn reading(panel: &Panel<'_>, slots: &Slots) -> String {
    let first = &panel.members[0].case;
    let (mut text, then) = match panel.only_reads_clock() {
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
    if slots.blocks.len() > 1 {
        text.push_str(" The runs stand side by side, in the order in which they were made.");
    }
    if panel.members.len() > 1 {
        text.push_str(match slots.differ {
            true => {
                " Every target has its own strip, all with the same heights, each over its own time; the longest of each is \
                 marked."
            }
            false => " Every target has its own strip with the same axes; the longest of each is marked.",
        });
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

/// What lengths are drawn in: ns where every run tells how fast its cycles tick, else cycles.
#[derive(Clone, Copy, Debug)]
struct Clock {
    is_time: bool,
}

impl Clock {
    fn of(panel: &Panel<'_>) -> Self {
        let runs = panel.members.iter().map(|member| &member.pictures.runs);
        Self {
            is_time: runs.flatten().all(|run| run.hz.is_some()),
        }
    }

    /// Returns how many cycles of a run are one unit.
    fn of_run(self, run: &Timeline) -> f64 {
        let hz = run.hz.filter(|_| self.is_time);
        hz.map_or(1.0, |hz| hz / 1e9)
    }

    fn written(self, length: f64) -> String {
        match self.is_time {
            true => N.ns(length, None),
            false => words::cycles(N, Time::new(length, None)),
        }
    }

    fn tick(self, length: f64) -> String {
        match self.is_time {
            true => N.ns_tick(length),
            false => N.tick(length),
        }
    }
}

/// Runs side by side, with equal distances in time on all of them.
#[derive(Clone, Debug)]
struct Slots {
    clock: Clock,
    blocks: Vec<u32>,
    left: f64,
    width: f64,
    /// How long the longest of the runs takes.
    longest: f64,
    /// Whether the runs of some targets take so much longer than those of others that each target has its own time.
    differ: bool,
}

impl Slots {
    fn new<'a>(
        clock: Clock,
        runs: impl Iterator<Item = &'a Timeline>,
        (left, right): (f64, f64),
    ) -> Self {
        let (mut blocks, mut lengths) = (Vec::new(), Vec::new());
        for run in runs {
            blocks.push(run.block);
            lengths.push(run.wall as f64 / clock.of_run(run));
        }
        blocks.sort_unstable();
        blocks.dedup();
        let longest = lengths.iter().copied().fold(1.0, f64::max);
        let shortest = lengths.iter().copied().fold(longest, f64::min);
        Self {
            clock,
            left,
            width: (right - left) / blocks.len().max(1) as f64,
            blocks,
            longest,
            differ: longest / shortest.max(1.0) > ALIKE,
        }
    }

    /// Returns those of one target.
    fn of(&self, member: &Member<'_>) -> Self {
        let runs = member.pictures.runs.iter();
        let own = runs.map(|run| run.wall as f64 / self.clock.of_run(run));
        Self {
            longest: match self.differ {
                true => own.fold(1.0, f64::max),
                false => self.longest,
            },
            ..self.clone()
        }
    }

    /// Returns the place of a moment, given as a fraction of the run's time.
    fn at(&self, run: &Timeline, fraction: f64) -> f64 {
        let slot = self.blocks.iter().position(|block| *block == run.block);
        let share = run.wall as f64 / self.clock.of_run(run) / self.longest;
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

    fn axis(&self, plot: &mut Plot) {
        let whole = (self.left, self.left + self.width * self.blocks.len() as f64);
        if self.blocks.len() > 1 {
            let scale = Scale::linear((0.0, self.blocks.len() as f64), whole);
            let length = match self.differ {
                true => String::new(),
                false => format!(" ({})", self.clock.written(self.longest)),
            };
            let title = format!("runs, each over its own time{length}");
            let middles = (0..self.blocks.len()).map(|slot| slot as f64 + 0.5);
            let label = |at: f64| self.blocks[at as usize].to_string();
            plot.axis(Axis::new(Side::Bottom, scale, title, middles, label));
            return;
        }
        if self.differ {
            let scale = Scale::linear((0.0, 100.0), whole);
            let title = "part of each target's own time";
            let label = |percent: f64| N.with_unit(&N.tick(percent), "%");
            let ticks = scale.ticks(5);
            plot.axis(Axis::new(Side::Bottom, scale, title, ticks, label));
            return;
        }
        let title = match self.clock.is_time {
            true => "time since the first stamp",
            false => "cycles since the first stamp",
        };
        let scale = Scale::linear((0.0, self.longest), whole);
        let ticks = scale.ticks(8);
        plot.axis(Axis::new(Side::Bottom, scale, title, ticks, |at| {
            self.clock.tick(at)
        }));
    }

    fn run(&self, plot: &mut Plot, run: &Timeline, scale: Scale, budget: usize) {
        if let Some(from) = run.full_from {
            plot.shade("missing", self.at(run, from), self.at(run, 1.0));
        }
        let unit = self.clock.of_run(run);
        let x = |column: f64| self.column(run, column);
        let y = |cycles: f64| scale.at(cycles / unit);
        band::draw(plot, &colour(0), &run.band, x, y);
        let dots = run.marks.iter();
        let dots = dots.map(|mark| (x(mark.column as f64 + 0.5), y(mark.cycles as f64)));
        plot.path("dots s0", &scatter(dots.collect(), budget));
    }

    fn peak(&self, run: &Timeline, peak: &Peak, scale: Scale) -> (f64, f64) {
        let column = u128::from(peak.after) * run.columns as u128 / u128::from(run.wall);
        let column = (column as usize).min(run.columns.saturating_sub(1));
        let x = self.column(run, column as f64 + 0.5);
        (x, scale.at(peak.cycles as f64 / self.clock.of_run(run)))
    }

    /// Makes the longest delays tell their place and length when pointed at: all runs together get about as many as one.
    fn peaks(&self, plot: &mut Plot, member: &Member<'_>, run: &Timeline, scale: Scale) {
        let many = (run.peaks.len() / self.blocks.len()).max(1);
        for peak in run.peaks.iter().take(many) {
            let tooltip = format!(
                "{}, run {}: {}, {} after the start, repetition {}",
                member.case.target(),
                run.block,
                words::both(N, run.time(peak.cycles), None),
                after(peak, run),
                N.count(peak.index),
            );
            plot.circle("hit s0", self.peak(run, peak, scale), 6.0, &tooltip);
        }
    }

    /// Marks the longest of all delays of a target and writes its length beside it.
    fn longest(&self, plot: &mut Plot, member: &Member<'_>, scale: Scale) {
        let runs = member.pictures.runs.iter();
        let peaks = runs.filter_map(|run| Some((run, run.peaks.first()?)));
        let length = |(run, peak): &(&Timeline, &Peak)| peak.cycles as f64 / self.clock.of_run(run);
        if let Some((run, peak)) = peaks.max_by(|a, b| length(a).total_cmp(&length(b))) {
            let at = self.peak(run, peak, scale);
            let text = words::time(N, run.time(peak.cycles), None);
            plot.circle("ring s0", at, 4.5, &text);
            plot.label("peak", at, &text);
        }
    }
}

fn after(peak: &Peak, run: &Timeline) -> String {
    let time = run.time(peak.after);
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
        runs.flat_map(|(member, run)| run.peaks.iter().map(move |peak| (member, run, peak)));
    let mut peaks: Vec<_> = peaks.collect();
    let clock = Clock::of(panel);
    let length =
        |(_, run, peak): &(&Member<'_>, &Timeline, &Peak)| peak.cycles as f64 / clock.of_run(run);
    peaks.sort_by(|a, b| length(b).total_cmp(&length(a)));
    for (member, run, peak) in peaks.into_iter().take(ROWS) {
        let time = run.time(peak.cycles);
        table.row([
            member.case.target(),
            run.block.to_string(),
            N.count(peak.cycles),
            time.ns
                .map_or_else(|| words::NONE.to_owned(), |ns| N.ns(ns, None)),
            after(peak, run),
            N.count(peak.index),
        ]);
    }
    table
}

//! Durations over time: every run, every listed delay, every maximum.

use maud::Markup;

use crate::analysis::{Combination, Peak, Pictures, Time, TimePicture};
use crate::panels::{Panel, target_name};
use crate::svg::{Axis, Path, Plot, Scale, Side, colour, scatter};

use super::axes::{common_hz, upright};
use super::parts::{Figure, N, Table, both, legend};
use super::strips;

/// Renders all runs of a panel over time, in about `budget` bytes; `None` if nothing was drawn.
pub(super) fn over_time(panel: &Panel<'_>, pictures: &[Pictures], budget: usize) -> Option<Markup> {
    if strips::are_needed(panel) {
        return strips::strips(panel, pictures, budget);
    }
    let over = Extent::of(panel, pictures)?;
    let drawn = &over.drawn;
    let mut plot = Plot::new(340.0, over.description(panel)).with_right_axis();
    let slots = over.slots(&plot);
    let scale = over.scale(plot.upwards());
    slots.draw(&mut plot);
    let budget = budget / over.runs;
    for (series, (_, pictures)) in drawn.iter().enumerate() {
        for run in &pictures.runs {
            draw_run(&mut plot, series, run, &slots, scale, budget);
        }
    }
    for (series, (combination, pictures)) in drawn.iter().enumerate() {
        for run in &pictures.runs {
            draw_peaks(&mut plot, series, run, &slots, scale, combination);
        }
    }
    label_longest(&mut plot, drawn, &slots, scale);
    upright(&mut plot, scale, common_hz(panel));
    slots.axis(&mut plot, common_hz(panel));
    let figure = Figure {
        title: title(panel),
        read: reading(panel, slots.blocks.len(), drawn),
        legend: legend(panel),
        plot: &plot,
        table: Some(peak_table(drawn)),
    };
    Some(figure.render())
}

/// Holds what is drawn over time, and how far it reaches.
pub(super) struct Extent<'a> {
    pub drawn: Vec<(&'a Combination, &'a Pictures)>,
    /// Number of all runs of all targets.
    pub runs: usize,
    low: u64,
    high: u64,
    longest_wall: u64,
}

impl<'a> Extent<'a> {
    /// Takes all runs of a panel; `None` if nothing of them can be drawn.
    pub(super) fn of(panel: &Panel<'a>, pictures: &'a [Pictures]) -> Option<Self> {
        let members = panel.members.iter();
        let drawn: Vec<(&Combination, &Pictures)> = members
            .map(|(place, combination)| (*combination, &pictures[*place]))
            .collect();
        let runs = || drawn.iter().flat_map(|(_, pictures)| &pictures.runs);
        Some(Self {
            runs: runs().count().max(1),
            low: runs().filter_map(TimePicture::shortest).min()?,
            high: runs().filter_map(TimePicture::longest).max()?,
            longest_wall: runs().map(|run| run.wall_cycles).max()?,
            drawn,
        })
    }

    pub(super) fn slots(&self, plot: &Plot) -> Slots {
        let runs = self.drawn.iter().flat_map(|(_, pictures)| &pictures.runs);
        Slots::new(runs, plot.across(), self.longest_wall)
    }

    pub(super) fn scale(&self, upwards: (f64, f64)) -> Scale {
        Scale::fitting(self.low as f64, self.high as f64, upwards)
    }

    pub(super) fn description(&self, panel: &Panel<'_>) -> String {
        let what = if panel.is_gap() { "gaps" } else { "durations" };
        let (title, high) = (panel.title(), self.high);
        format!("{what} of {title} over time; the longest is {high} cycles")
    }
}

/// Names the picture.
pub(super) fn title(panel: &Panel<'_>) -> String {
    if panel.is_gap() {
        return "Interruptions over time".to_owned();
    }
    format!("{} over time", panel.title())
}

pub(super) fn reading(
    panel: &Panel<'_>,
    runs: usize,
    drawn: &[(&Combination, &Pictures)],
) -> String {
    let mut text = if panel.is_gap() {
        "Each dot is one interruption: when it came, and how long it lasted. Dots at one height \
         and at even distances have one periodic cause."
            .to_owned()
    } else {
        let threshold = drawn.iter().find_map(|(c, p)| {
            let cycles = p.runs.first()?.threshold_cycles as f64;
            Some(both(Some(Time::new(cycles, c.tsc_hz)), c))
        });
        format!(
            "Each dot is one repetition that took over {} more than the mean. The band holds all others, \
             from the shortest to the longest of each moment, the line is their mean.",
            threshold.unwrap_or_default()
        )
    };
    if runs > 1 {
        text.push_str(" The runs stand side by side, in the order in which they were made.");
    }
    if drawn
        .iter()
        .any(|(_, p)| p.runs.iter().any(|run| run.full_from.is_some()))
    {
        let then = if panel.is_gap() {
            "nothing is known of single gaps"
        } else {
            "only the longest repetition of each moment is known"
        };
        text.push_str(&format!(
            " Where it is shaded the list of delays was full, and {then}."
        ));
    }
    text
}

/// Places runs side by side, with equal distances in time on all of them.
pub(super) struct Slots {
    blocks: Vec<u32>,
    left: f64,
    width: f64,
    longest_wall: u64,
}

impl Slots {
    fn new<'a>(
        runs: impl Iterator<Item = &'a TimePicture>,
        (left, right): (f64, f64),
        longest_wall: u64,
    ) -> Self {
        let mut blocks: Vec<u32> = runs.map(|run| run.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        Self {
            left,
            width: (right - left) / blocks.len().max(1) as f64,
            blocks,
            longest_wall: longest_wall.max(1),
        }
    }

    /// Returns how many runs stand side by side.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the place of a moment, given as a fraction of the run's time.
    fn at(&self, run: &TimePicture, fraction: f64) -> f64 {
        let slot = self.blocks.iter().position(|block| *block == run.block);
        let share = run.wall_cycles as f64 / self.longest_wall as f64;
        self.left + (slot.unwrap_or(0) as f64 + fraction * share) * self.width
    }

    fn column(&self, run: &TimePicture, column: usize) -> f64 {
        self.at(run, (column as f64 + 0.5) / run.columns.max(1) as f64)
    }

    pub(super) fn draw(&self, plot: &mut Plot) {
        let (bottom, top) = plot.upwards();
        let mut splits = Path::default();
        for slot in 1..self.blocks.len() {
            let x = self.left + slot as f64 * self.width;
            splits.move_to(x, top);
            splits.line_to(x, bottom);
        }
        plot.path("split", &splits);
    }

    pub(super) fn axis(&self, plot: &mut Plot, hz: Option<f64>) {
        let wall = self.longest_wall as f64;
        let whole = (self.left, self.left + self.width * self.blocks.len() as f64);
        if self.blocks.len() > 1 {
            let scale = Scale::linear((0.0, self.blocks.len() as f64), whole);
            let length = hz.map(|hz| N.ns(wall / hz * 1e9, None));
            let title = length.map_or_else(
                || "runs, each over its own time".to_owned(),
                |length| format!("runs, each over its own time ({length})"),
            );
            let middles = (0..self.blocks.len()).map(|slot| slot as f64 + 0.5);
            let label = |at: f64| {
                let block = self.blocks.get(at as usize).copied().unwrap_or_default();
                block.to_string()
            };
            plot.axis(Axis::new(Side::Bottom, scale, title, middles, label));
            return;
        }
        let (unit, title) = match hz {
            Some(hz) => (hz / 1e9, "time since the first stamp"),
            None => (1.0, "cycles since the first stamp"),
        };
        let scale = Scale::linear((0.0, wall), whole);
        let ticks = scale.ticks_in(unit, 8);
        plot.axis(Axis::new(
            Side::Bottom,
            scale,
            title,
            ticks,
            |cycles| match hz {
                Some(_) => N.ns_tick(cycles / unit),
                None => N.tick(cycles),
            },
        ));
    }
}

pub(super) fn draw_run(
    plot: &mut Plot,
    series: usize,
    run: &TimePicture,
    slots: &Slots,
    scale: Scale,
    budget: usize,
) {
    let colour = colour(series);
    if let Some(from) = run.full_from {
        plot.shade("missing", slots.at(run, from), slots.at(run, 1.0));
    }
    let mut band = Path::default();
    for (place, column) in run.band.iter().enumerate() {
        let (x, y) = (
            slots.column(run, column.column),
            scale.at(column.high as f64),
        );
        if place == 0 {
            band.move_to(x, y);
        } else {
            band.line_to(x, y);
        }
    }
    for column in run.band.iter().rev() {
        band.line_to(
            slots.column(run, column.column),
            scale.at(column.low as f64),
        );
    }
    if !run.band.is_empty() {
        band.close();
    }
    plot.path(&format!("band {colour}"), &band);
    let mut line = Path::default();
    for (place, column) in run.band.iter().enumerate() {
        let (x, y) = (slots.column(run, column.column), scale.at(column.mean));
        if place == 0 {
            line.move_to(x, y);
        } else {
            line.line_to(x, y);
        }
    }
    plot.path(&format!("line {colour}"), &line);
    let dots = run.marks.iter().chain(&run.unlisted);
    let dots = dots.map(|mark| (slots.column(run, mark.column), scale.at(mark.cycles as f64)));
    plot.path(&format!("dots {colour}"), &scatter(dots.collect(), budget));
}

/// Makes the longest delays tell their place and length when pointed at.
fn draw_peaks(
    plot: &mut Plot,
    series: usize,
    run: &TimePicture,
    slots: &Slots,
    scale: Scale,
    combination: &Combination,
) {
    // All runs together get about as many as one would.
    let many = slots.blocks.len() * 2;
    for peak in run.peaks.iter().take((run.peaks.len() * 2 / many).max(1)) {
        let at = (peak_x(slots, run, peak), scale.at(peak.cycles as f64));
        let tooltip = format!(
            "{}, run {}: {}, {} after the start, repetition {}",
            target_name(combination),
            run.block,
            both(
                Some(Time::new(peak.cycles as f64, combination.tsc_hz)),
                combination
            ),
            after(peak, combination),
            N.count(peak.index),
        );
        plot.circle(&format!("hit {}", colour(series)), at, 6.0, &tooltip);
    }
}

/// Marks the longest of all delays and writes its length beside it.
pub(super) fn label_longest(
    plot: &mut Plot,
    drawn: &[(&Combination, &Pictures)],
    slots: &Slots,
    scale: Scale,
) {
    let peaks = drawn
        .iter()
        .enumerate()
        .flat_map(|(series, (combination, pictures))| {
            let runs = pictures.runs.iter();
            runs.filter_map(move |run| Some((series, *combination, run, run.peaks.first()?)))
        });
    let Some((series, combination, run, peak)) = peaks.max_by_key(|(.., peak)| peak.cycles) else {
        return;
    };
    let at = (peak_x(slots, run, peak), scale.at(peak.cycles as f64));
    let time = Time::new(peak.cycles as f64, combination.tsc_hz);
    let text = crate::words::time(N, time, Some(combination.timer_step));
    plot.circle(&format!("ring {}", colour(series)), at, 4.5, &text);
    plot.label("peak", at, &text);
}

fn peak_x(slots: &Slots, run: &TimePicture, peak: &Peak) -> f64 {
    let column = u128::from(peak.after_cycles) * run.columns as u128 / u128::from(run.wall_cycles);
    slots.column(run, (column as usize).min(run.columns.saturating_sub(1)))
}

fn after(peak: &Peak, combination: &Combination) -> String {
    let time = Time::new(peak.after_cycles as f64, combination.tsc_hz);
    // A moment is told to the millisecond, as it can be found in a trace.
    time.ns.map_or_else(
        || N.with_unit(&N.count(peak.after_cycles), "cycles"),
        |ns| N.with_unit(&N.fixed(ns / 1e9, 6), "s"),
    )
}

pub(super) fn peak_table(drawn: &[(&Combination, &Pictures)]) -> Table {
    const ROWS: usize = 20;
    let mut table = Table::new([
        "The longest",
        "run",
        "cycles",
        "time",
        "after the start",
        "repetition",
    ]);
    let mut peaks: Vec<(&Combination, u32, &Peak)> = drawn
        .iter()
        .flat_map(|(combination, pictures)| {
            let runs = pictures.runs.iter();
            runs.flat_map(move |run| run.peaks.iter().map(move |p| (*combination, run.block, p)))
        })
        .collect();
    peaks.sort_by_key(|(_, _, peak)| std::cmp::Reverse(peak.cycles));
    for (combination, run, peak) in peaks.into_iter().take(ROWS) {
        let time = Time::new(peak.cycles as f64, combination.tsc_hz);
        table.row([
            target_name(combination),
            run.to_string(),
            N.count(peak.cycles),
            super::parts::time(Some(time), combination),
            after(peak, combination),
            N.count(peak.index),
        ]);
    }
    table
}

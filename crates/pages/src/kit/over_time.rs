//! Pictures of values over time: a strip for each target or run, all on the same axes.
//!
//! Clouds of dots can't be laid over each other, since the last one drawn hides the others.

use maud::Markup;

use super::track::{Mark, Track};
use crate::html::parts::{Figure, N, Table, legend_of};
use crate::svg::{Axis, Path, Plot, Scale, Side, band, colour, cut, scatter};
use tare_figures::interval::Time;
use tare_figures::words;

/// The part of a low strip's height within which dots are drawn as one, in pixels.
const ROW: f64 = 2.0;
/// The ratio of the lengths of two runs up to which they are drawn over one axis of time.
const ALIKE: f64 = 1.25;
/// About how many marks an upright axis has.
pub const MARKS: usize = 9;

/// A picture of values over time. Lengths are in ns where every run knows how fast its clock ticks,
/// else in ticks.
#[derive(Clone, Debug, Default)]
pub struct OverTime<'a> {
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub read: String,
    /// The note for runs whose list of events was full.
    pub when_full: &'static str,
    /// The title of the axis at the left; empty for what lengths are in.
    pub upward: &'static str,
    /// What time is counted from: `since the first stamp`.
    pub since: &'static str,
    /// The strips from top to bottom.
    pub strips: Vec<Strip<'a>>,
    /// The height of what is drawn in a strip, and of what stands above it, in pixels. Without room
    /// above it a single strip has an axis at both sides.
    pub heights: (f64, f64),
    /// Whether runs stand side by side in their strips, by block.
    pub side_by_side: bool,
    /// Whether the heights are logarithmic in any case.
    pub log: bool,
    /// The least by which lengths can differ, in ns, if figures are not written finer.
    pub step_ns: Option<f64>,
    /// About how many bytes single events may take.
    pub budget: usize,
    /// How many columns are drawn as one.
    pub coarse: usize,
}

/// A strip: one target with its runs, or one run.
#[derive(Clone, Debug, Default)]
pub struct Strip<'a> {
    /// What stands above it.
    pub name: String,
    /// The end of its name if it has nothing to draw; then it takes no more room than its name.
    pub nothing: &'static str,
    /// Its target.
    pub target: String,
    /// Its place among the series of the page, which gives it its colour.
    pub series: usize,
    /// Its runs.
    pub tracks: &'a [Track],
    /// A height that is marked, in ns, and its name.
    pub limit: Option<(f64, String)>,
    /// Parts of its time, each with its end in ns, and its name.
    pub phases: Vec<(f64, String)>,
}

/// What lengths are drawn in, and where runs stand.
struct Slots {
    is_time: bool,
    step_ns: Option<f64>,
    blocks: Vec<u32>,
    left: f64,
    width: f64,
    /// How long the longest of the runs takes.
    longest: f64,
    /// Whether the strips' runs differ so much in length that each strip has its own time axis.
    differ: bool,
}

impl OverTime<'_> {
    /// Renders it, with a table behind it if there is one; `None` if there is nothing to draw.
    #[must_use]
    pub fn render(&self, table: Option<Table>) -> Option<Markup> {
        let tracks = || self.strips.iter().flat_map(|strip| strip.tracks);
        let mut slots = Slots::new(self);
        let ends = || tracks().filter_map(|track| Some((slots.unit(track), track.ends()?)));
        let mut low = ends()
            .map(|(unit, (low, _))| low as f64 / unit)
            .reduce(f64::min)?;
        let mut high = ends()
            .map(|(unit, (_, high))| high as f64 / unit)
            .reduce(f64::max)?;
        if self.log {
            (low, high) = (low.max(1.0), high.max(2.0));
        }
        let (drawn, name) = self.heights;
        let is_alone = name == 0.0;
        let drawn = |strip: &Strip<'_>| match strip.tracks.iter().any(|t| t.ends().is_some()) {
            true => drawn,
            false => 0.0,
        };
        let height = self.strips.iter().map(|strip| drawn(strip) + name).sum();
        let description = format!("{}; the longest is {}", self.title, slots.written(high));
        let mut plot = Plot::strips(height, description);
        if is_alone {
            plot = plot.with_right_axis();
        }
        slots.place(plot.across());
        slots.splits(&mut plot);
        let budget = self.budget / tracks().count().max(1);
        let mut top = plot.upwards().1;
        let mut title = match (self.upward, slots.is_time) {
            ("", true) => "time",
            (_, false) => "cycles",
            (upward, _) => upward,
        };
        for strip in &self.strips {
            let dots = drawn(strip);
            let upwards = (top + name + dots, top + name);
            let scale = match self.log {
                true => Scale::log((low / 1.2, high * 1.6), upwards),
                false => Scale::fitting(low, high, upwards),
            };
            let own = slots.of(strip);
            if !is_alone {
                own.name(&mut plot, strip, upwards);
                plot.rule(upwards.0);
            }
            if let Some((at, name)) = &strip.limit {
                own.limit(&mut plot, scale, *at, name);
            }
            let rows = if is_alone || self.log {
                scale
            } else {
                scale.in_rows(ROW)
            };
            for track in strip.tracks {
                own.track(&mut plot, strip, track, rows, (budget, self.coarse.max(1)));
                own.peaks(&mut plot, strip, track, scale);
            }
            if is_alone {
                let hz = strip
                    .tracks
                    .first()
                    .and_then(|t| t.hz)
                    .filter(|_| slots.is_time);
                let unit = hz.map_or(1.0, |hz| hz / 1e9);
                let scale = Scale::fitting(low * unit, high * unit, upwards);
                upright(&mut plot, scale, hz, MARKS);
            } else if dots > 0.0 {
                let ticks = scale.ticks(if self.log { 4 } else { 3 });
                let title = std::mem::take(&mut title);
                plot.axis(Axis::new(Side::Left, scale, title, ticks, |at| {
                    slots.tick(at)
                }));
            }
            // A label keeps out of the way of what was written before, so the strip's own name
            // comes first.
            own.longest(&mut plot, strip, scale);
            top += dots + name;
        }
        slots.axis(&mut plot, self.since);
        let figure = Figure {
            title: self.title.clone(),
            read: self.reading(&slots),
            legend: legend_of([]),
            plot: &plot,
            table,
        };
        Some(figure.render())
    }

    fn reading(&self, slots: &Slots) -> String {
        let mut text = self.read.clone();
        if slots.blocks.len() > 1 {
            text.push_str(" The runs stand side by side, in the order in which they were made.");
        }
        if self.side_by_side && self.strips.len() > 1 {
            text.push_str(match slots.differ {
                true => {
                    " Every target has its own strip, all with the same heights, each over its own time; the longest of \
                     each is marked."
                }
                false => " Every target has its own strip with the same axes; the longest of each is marked.",
            });
        }
        let mut tracks = self.strips.iter().flat_map(|strip| strip.tracks);
        if tracks.any(|track| track.full_from.is_some()) {
            let then = self.when_full;
            text.push_str(&format!(
                " Where it is shaded the list of delays was full, and {then}."
            ));
        }
        text
    }

    /// Returns the table of the longest events of all runs.
    #[must_use]
    pub fn peaks(&self, each: &str) -> Table {
        const ROWS: usize = 20;
        let mut table = Table::new([
            "The longest",
            "run",
            "cycles",
            "time",
            "after the start",
            each,
        ]);
        let slots = Slots::new(self);
        let mut peaks = Vec::new();
        for strip in &self.strips {
            for track in strip.tracks {
                let length = |value: u64| value as f64 / slots.unit(track);
                peaks.extend(
                    track
                        .peaks
                        .iter()
                        .map(|p| (length(p.value), strip, track, p)),
                );
            }
        }
        peaks.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (_, strip, track, peak) in peaks.into_iter().take(ROWS) {
            let ns = track.time(peak.value).ns;
            table.row([
                strip.target.clone(),
                track.block.to_string(),
                N.count(peak.value),
                ns.map_or_else(|| words::NONE.to_owned(), |ns| N.ns(ns, None)),
                moment(track, peak.after),
                N.count(peak.index),
            ]);
        }
        table
    }
}

impl Slots {
    fn new(picture: &OverTime<'_>) -> Self {
        let tracks = || picture.strips.iter().flat_map(|strip| strip.tracks);
        let mut slots = Self {
            is_time: tracks().all(|track| track.hz.is_some()),
            step_ns: picture.step_ns,
            blocks: vec![0],
            left: 0.0,
            width: 0.0,
            longest: 1.0,
            differ: false,
        };
        slots.longest = tracks()
            .map(|track| slots.length(track))
            .fold(1.0, f64::max);
        if picture.side_by_side {
            slots.blocks = tracks().map(|track| track.block).collect();
            slots.blocks.sort_unstable();
            slots.blocks.dedup();
            let lengths = tracks().map(|track| slots.length(track));
            let shortest = lengths.fold(slots.longest, f64::min);
            slots.differ = slots.longest / shortest.max(1.0) > ALIKE;
        }
        slots
    }

    fn place(&mut self, (left, right): (f64, f64)) {
        self.left = left;
        self.width = (right - left) / self.blocks.len().max(1) as f64;
    }

    /// Returns those of one strip.
    fn of(&self, strip: &Strip<'_>) -> Self {
        let own = strip.tracks.iter().map(|track| self.length(track));
        Self {
            blocks: self.blocks.clone(),
            longest: match self.differ {
                true => own.fold(1.0, f64::max),
                false => self.longest,
            },
            ..*self
        }
    }

    /// Returns how many ticks of a run are one unit.
    fn unit(&self, track: &Track) -> f64 {
        let hz = track.hz.filter(|_| self.is_time);
        hz.map_or(1.0, |hz| hz / 1e9)
    }

    fn length(&self, track: &Track) -> f64 {
        track.length as f64 / self.unit(track)
    }

    fn written(&self, length: f64) -> String {
        match self.is_time {
            true => N.ns(length, self.step_ns),
            false => words::cycles(N, Time::new(length, None)),
        }
    }

    fn tick(&self, length: f64) -> String {
        match self.is_time {
            true => N.ns_tick(length),
            false => N.tick(length),
        }
    }

    /// Returns the place of a moment of a run.
    fn at(&self, track: &Track, fraction: f64) -> f64 {
        let slot = self.blocks.iter().position(|block| *block == track.block);
        let share = self.length(track) / self.longest;
        self.left + (slot.unwrap_or(0) as f64 + fraction * share) * self.width
    }

    fn column(&self, track: &Track, column: f64) -> f64 {
        self.at(track, column / track.columns.max(1) as f64)
    }

    fn mark(&self, track: &Track, mark: Mark, scale: Scale) -> (f64, f64) {
        let x = self.column(track, mark.column as f64 + 0.5);
        (x, scale.at(mark.value as f64 / self.unit(track)))
    }

    fn splits(&self, plot: &mut Plot) {
        let (bottom, top) = plot.upwards();
        let mut splits = Path::default();
        for slot in 1..self.blocks.len() {
            let x = self.left + slot as f64 * self.width;
            splits.move_to(x, top);
            splits.line_to(x, bottom);
        }
        plot.path("split", &splits);
    }

    /// Writes the name of a strip above it, and those of its phases as far as there is room.
    fn name(&self, plot: &mut Plot, strip: &Strip<'_>, (bottom, top): (f64, f64)) {
        let mut name = strip.name.clone();
        match strip.tracks.iter().any(|track| track.ends().is_some()) {
            false => name.push_str(strip.nothing),
            true if self.differ => {
                name.push_str(&format!(", up to {} a run", self.written(self.longest)));
            }
            true => {}
        }
        let above = if strip.phases.is_empty() { 9.0 } else { 26.0 };
        plot.text("row", (self.left, top - above), &name);
        let mut splits = Path::default();
        let mut from = self.left;
        for (number, (end, name)) in strip.phases.iter().enumerate() {
            if number > 0 {
                splits.move_to(from, top - 14.0);
                splits.line_to(from, bottom);
            }
            let to = self.left + (end / self.longest).min(1.0) * self.width;
            let name = cut(name, to - from - 6.0);
            // Two letters and an ellipsis name nothing.
            if name.chars().count() > 3 || !name.contains('…') {
                plot.text("phase", (from + 4.0, top - 5.0), &name);
            }
            from = to;
        }
        plot.path("split", &splits);
    }

    fn limit(&self, plot: &mut Plot, scale: Scale, at: f64, name: &str) {
        if (scale.range().0..scale.range().1).contains(&at) {
            let (y, right) = (scale.at(at), self.left + self.width);
            let mut line = Path::default();
            line.move_to(self.left, y);
            line.line_to(right, y);
            plot.path("limit", &line);
            if !name.is_empty() {
                plot.label("interval", (right, y - 8.0), name);
            }
        }
    }

    fn track(
        &self,
        plot: &mut Plot,
        strip: &Strip<'_>,
        track: &Track,
        scale: Scale,
        (budget, coarse): (usize, usize),
    ) {
        if let Some(from) = track.full_from {
            plot.shade("missing", self.at(track, from), self.at(track, 1.0));
        }
        let own = colour(strip.series);
        for (class, columns) in &track.bands {
            let class = if class.is_empty() { &own } else { *class };
            let x = |column: f64| self.column(track, column * coarse as f64);
            let y = |value: f64| scale.at(value / self.unit(track));
            band::draw(plot, class, &band::coarser(columns, coarse), x, y);
        }
        let dots = track
            .marks
            .iter()
            .map(|mark| self.mark(track, *mark, scale));
        plot.path(&format!("dots {own}"), &scatter(dots.collect(), budget));
    }

    /// Makes the longest events show their place and length when pointed at: all runs together get
    /// about as many as one.
    fn peaks(&self, plot: &mut Plot, strip: &Strip<'_>, track: &Track, scale: Scale) {
        let many = (track.peaks.len() / self.blocks.len()).max(1);
        for peak in track.peaks.iter().take(many) {
            let tooltip = format!(
                "{}, run {}: {}, {} after the start, repetition {}",
                strip.target,
                track.block,
                words::both(N, track.time(peak.value), None),
                moment(track, peak.after),
                N.count(peak.index),
            );
            let class = format!("hit {}", colour(strip.series));
            plot.circle(
                &class,
                self.mark(track, track.mark(peak), scale),
                6.0,
                &tooltip,
            );
        }
    }

    /// Marks the longest of a strip and writes its length next to it.
    fn longest(&self, plot: &mut Plot, strip: &Strip<'_>, scale: Scale) {
        let longest = strip
            .tracks
            .iter()
            .filter_map(|track| Some((track, track.longest()?)));
        let length = |(track, mark): &(&Track, Mark)| mark.value as f64 / self.unit(track);
        if let Some((track, mark)) = longest.max_by(|a, b| length(a).total_cmp(&length(b))) {
            let at = self.mark(track, mark, scale);
            let step = self.step_ns.map(|ns| Time {
                cycles: 0.0,
                ns: Some(ns),
            });
            let text = words::time(N, track.time(mark.value), step);
            plot.circle(&format!("ring {}", colour(strip.series)), at, 4.5, &text);
            plot.label("peak", at, &text);
        }
    }

    fn axis(&self, plot: &mut Plot, since: &str) {
        let whole = (self.left, self.left + self.width * self.blocks.len() as f64);
        let unit = if self.is_time { "time" } else { "cycles" };
        let axis = match (self.blocks.len(), self.differ) {
            (2.., differ) => {
                let scale = Scale::linear((0.0, self.blocks.len() as f64), whole);
                let length = match differ {
                    true => String::new(),
                    false => format!(" ({})", self.written(self.longest)),
                };
                let title = format!("runs, each over its own time{length}");
                let middles = (0..self.blocks.len()).map(|slot| slot as f64 + 0.5);
                let label = |at: f64| self.blocks[at as usize].to_string();
                Axis::new(Side::Bottom, scale, title, middles, label)
            }
            (_, true) => {
                let scale = Scale::linear((0.0, 100.0), whole);
                let title = "part of each target's own time";
                let label = |percent: f64| N.with_unit(&N.tick(percent), "%");
                Axis::new(Side::Bottom, scale, title, scale.ticks(5), label)
            }
            (_, false) => {
                let scale = Scale::linear((0.0, self.longest), whole);
                let title = format!("{unit} {since}");
                Axis::new(Side::Bottom, scale, title, scale.ticks(8), |at| {
                    self.tick(at)
                })
            }
        };
        plot.axis(axis);
    }
}

/// Writes a moment to the microsecond, as it can be found in a trace.
fn moment(track: &Track, after: u64) -> String {
    let time = track.time(after);
    time.ns.map_or_else(
        || words::cycles(N, time),
        |ns| N.with_unit(&N.fixed(ns / 1e9, 6), "s"),
    )
}

/// Adds the upright axes of a plot of durations, with about `marks` marks at most: cycles left,
/// time right. Both are the same scale with marks at round figures of different units.
pub fn upright(plot: &mut Plot, scale: Scale, hz: Option<f64>, marks: usize) {
    let ticks = scale.ticks(marks);
    plot.axis(Axis::new(Side::Left, scale, "cycles", ticks, |v| N.tick(v)));
    if let Some(hz) = hz {
        let unit = hz / 1e9;
        let ticks = scale.ticks_in(unit, marks);
        let label = |cycles| N.ns_tick(cycles / unit);
        plot.axis(Axis::new(Side::Right, scale, "time", ticks, label));
    }
}

//! Latencies over time, with the phases marked: one strip for each run, or for each place if there are many runs.

use maud::Markup;

use crate::svg::{Axis, Path, Plot, Scale, Side, colour};
use crate::wakeup::table::phase_name;
use crate::wakeup::words::{place, time};
use crate::wakeup::{COLUMNS, LatencyColumn, RunPicture, WakeupCombination};

use super::super::parts::{Figure, N, Table, legend_of};
use super::Shown;

/// Is the height of what is drawn of one strip, and of its name with the phases above it, in pixels.
const DRAWN: f64 = 88.0;
const NAMES: f64 = 46.0;

/// Is the greatest number of strips of single runs; with more, the runs of a place are laid over each other.
const STRIPS: usize = 12;

/// Is the number of strips from which each is drawn more coarsely.
const MANY: usize = 24;

/// Is about the width of a character of a phase's name, in pixels.
const CHARACTER: f64 = 6.2;

/// Is what one strip shows.
struct Strip<'a> {
    combination: &'a WakeupCombination,
    name: String,
    run: RunPicture,
}

/// Renders all latencies over time; `None` if there is nothing to draw.
pub(super) fn over_time(shown: &Shown<'_>) -> Option<Markup> {
    let strips = strips(shown);
    let columns = || strips.iter().flat_map(|strip| &strip.run.columns);
    let low = columns().map(|column| column.low).min()?.max(1) as f64;
    let high = columns().map(|column| column.high).max()?.max(2) as f64;
    let length = strips.iter().map(|strip| strip.run.length_ns).max()? as f64;
    let coarse = shown.coarse * strips.len().div_ceil(MANY).max(1);
    let description = format!(
        "wake-up latencies over time; the longest is {}",
        time(N, high)
    );
    let mut plot = Plot::strips(strips.len() as f64 * (DRAWN + NAMES), description);
    let (_, mut y) = plot.upwards();
    let across = Scale::linear((0.0, length), plot.across());
    for (number, strip) in strips.iter().enumerate() {
        let upwards = (y + NAMES + DRAWN, y + NAMES);
        let scale = Scale::log((low / 1.2, high * 1.6), upwards);
        let series = shown.series(strip.combination);
        plot.text("row", (plot.across().0, y + 20.0), &strip.name);
        phases(&mut plot, strip, across, upwards);
        let is_new = number == 0
            || strips[number - 1].combination.intervals_ns != strip.combination.intervals_ns;
        limit(
            &mut plot,
            strip.combination,
            across,
            scale,
            (length, is_new),
        );
        draw(&mut plot, series, &strip.run, across, scale, coarse);
        longest(&mut plot, series, &strip.run, across, scale);
        plot.rule(upwards.0);
        let title = if number == 0 { "latency" } else { "" };
        plot.axis(Axis::new(Side::Left, scale, title, scale.ticks(4), |ns| {
            N.ns_tick(ns)
        }));
        y += DRAWN + NAMES;
    }
    plot.axis(Axis::new(
        Side::Bottom,
        across,
        "time since the first activation was due",
        across.ticks(9),
        |ns| N.ns_tick(ns),
    ));
    let mut read = "The band reaches from the shortest to the longest latency of each moment, so that every maximum is \
                    in it; the line is the mean. A wake-up above the dashed line was later than an interval and missed \
                    activations."
        .to_owned();
    if strips.iter().any(|strip| strip.run.phase_ns.is_some()) {
        read.push_str(" Vertical lines mark where one load ends and the next begins.");
    }
    let figure = Figure {
        title: "Wake-up latency over time".to_owned(),
        read,
        legend: legend_of([]),
        plot: &plot,
        table: Some(table(&strips)),
    };
    Some(figure.render())
}

fn strips<'a>(shown: &Shown<'a>) -> Vec<Strip<'a>> {
    let runs: usize = shown
        .members
        .iter()
        .map(|(_, pictures)| pictures.runs.len())
        .sum();
    let mut strips = Vec::new();
    for (combination, pictures) in &shown.members {
        let mut name = place(combination);
        if combination.phases.len() == 1 && combination.load != "idle" {
            name.push_str(&format!(" under {}", combination.load));
        }
        match pictures.runs.as_slice() {
            [] => {}
            several if runs > STRIPS && several.len() > 1 => strips.push(Strip {
                combination,
                name: format!("{name}, {} runs over each other", several.len()),
                run: RunPicture::merged(several),
            }),
            several => strips.extend(several.iter().map(|run| Strip {
                combination,
                name: if several.len() > 1 {
                    format!("{name}, run {}", run.block)
                } else {
                    name.clone()
                },
                run: run.clone(),
            })),
        }
    }
    strips
}

/// Marks where phases begin, and names them as far as there is room.
fn phases(plot: &mut Plot, strip: &Strip<'_>, across: Scale, (bottom, top): (f64, f64)) {
    let Some(length) = strip.run.phase_ns else {
        return;
    };
    let mut splits = Path::default();
    for (number, phase) in strip.combination.phases.iter().enumerate() {
        let (from, to) = (
            across.at(number as f64 * length),
            across.at((number + 1) as f64 * length),
        );
        if number > 0 {
            splits.move_to(from, top - 14.0);
            splits.line_to(from, bottom);
        }
        let room = ((to - from - 6.0) / CHARACTER).max(0.0) as usize;
        let name = phase_name(strip.combination, phase);
        let name: String = match name.chars().count() {
            long if long > room && room < 3 => String::new(),
            long if long > room => name.chars().take(room - 1).chain(['…']).collect(),
            _ => name,
        };
        plot.text("phase", (from + 4.0, top - 5.0), &name);
    }
    plot.path("split", &splits);
}

/// Draws the interval, and names it if it `is_new`: who is later misses activations.
fn limit(
    plot: &mut Plot,
    combination: &WakeupCombination,
    across: Scale,
    scale: Scale,
    (length, is_new): (f64, bool),
) {
    let Some(&interval) = combination.intervals_ns.iter().min() else {
        return;
    };
    let name = format!("interval {}", N.ns_tick(interval as f64));
    let interval = interval as f64;
    let (low, high) = scale.range();
    if !(low..high).contains(&interval) {
        return;
    }
    let mut line = Path::default();
    line.move_to(across.at(0.0), scale.at(interval));
    line.line_to(across.at(length), scale.at(interval));
    plot.path("limit", &line);
    if is_new {
        plot.label(
            "interval",
            (across.at(length), scale.at(interval) - 8.0),
            &name,
        );
    }
}

fn draw(
    plot: &mut Plot,
    series: usize,
    run: &RunPicture,
    across: Scale,
    scale: Scale,
    coarse: usize,
) {
    let columns = coarser(&run.columns, coarse);
    let x = |column: f64| across.at(column * coarse as f64 / COLUMNS as f64 * run.length_ns as f64);
    let y = |ns: f64| scale.at(ns.max(1.0));
    // Columns without a wake-up, in a stall, are gaps.
    for stretch in columns.chunk_by(|a, b| b.column == a.column + 1) {
        if let [only] = stretch {
            let ends = (x(only.column as f64), x(only.column as f64 + 1.0));
            let heights = [only.low as f64, only.mean, only.high as f64].map(y);
            alone(plot, series, ends, heights);
            continue;
        }
        let middle = |column: &LatencyColumn| x(column.column as f64 + 0.5);
        let mut band = Path::default();
        let mut mean = Path::default();
        for (place, column) in stretch.iter().enumerate() {
            let (at, high) = (middle(column), y(column.high as f64));
            if place == 0 {
                band.move_to(at, high);
                mean.move_to(at, y(column.mean));
            } else {
                band.line_to(at, high);
                mean.line_to(at, y(column.mean));
            }
        }
        for column in stretch.iter().rev() {
            band.line_to(middle(column), y(column.low as f64));
        }
        band.close();
        plot.path(&format!("band {}", colour(series)), &band);
        plot.path(&format!("line thin {}", colour(series)), &mean);
    }
}

/// Draws a column that has no neighbours: all of a stall may be in it.
fn alone(plot: &mut Plot, series: usize, (from, to): (f64, f64), [low, mean, high]: [f64; 3]) {
    let mut band = Path::default();
    for (number, at) in [(from, high), (to, high), (to, low), (from, low)]
        .into_iter()
        .enumerate()
    {
        match number {
            0 => band.move_to(at.0, at.1),
            _ => band.line_to(at.0, at.1),
        }
    }
    band.close();
    let mut line = Path::default();
    line.move_to(from, mean);
    line.line_to(to, mean);
    plot.path(&format!("band {}", colour(series)), &band);
    plot.path(&format!("line thin {}", colour(series)), &line);
}

/// Joins neighbouring columns; the longest of each stays.
fn coarser(columns: &[LatencyColumn], factor: usize) -> Vec<LatencyColumn> {
    let mut joined: Vec<LatencyColumn> = Vec::new();
    for column in columns {
        let column = LatencyColumn {
            column: column.column / factor,
            ..*column
        };
        match joined.last_mut() {
            Some(last) if last.column == column.column => last.add(&column),
            _ => joined.push(column),
        }
    }
    joined
}

fn longest(plot: &mut Plot, series: usize, run: &RunPicture, across: Scale, scale: Scale) {
    let Some((at_ns, ns)) = run.longest else {
        return;
    };
    let at = (across.at(at_ns as f64), scale.at((ns as f64).max(1.0)));
    let text = time(N, ns as f64);
    plot.circle(&format!("ring {}", colour(series)), at, 4.0, &text);
    plot.label("peak", at, &text);
}

fn table(strips: &[Strip<'_>]) -> Table {
    let mut table = Table::new(["place and run", "longest", "after", "wake-ups"]);
    for strip in strips {
        let woken: u64 = strip.run.columns.iter().map(|column| column.count).sum();
        let (after, longest) = strip.run.longest.map_or_else(
            || (super::super::parts::none(), super::super::parts::none()),
            |(at, ns)| {
                let seconds = N.fixed(at as f64 / 1e9, 2);
                (N.with_unit(&seconds, "s"), time(N, ns as f64))
            },
        );
        table.row([strip.name.clone(), longest, after, N.count(woken)]);
    }
    table
}

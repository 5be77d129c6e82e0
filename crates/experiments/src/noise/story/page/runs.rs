//! Every run by itself: how much the runs of a combination differ.

use maud::Markup;

use crate::analysis::{CellFigures, CellSummary, Combination, Summary};
use crate::panels::{Panel, target_name};
use crate::svg::{Axis, Plot, Scale, Side, colour};

use super::parts::{Figure, N, Table, cycles, legend_of, time};
use super::sweep::{plus_minus, zero_scale};

/// Are runs, each with its share in per cent.
type Points = Vec<(u32, f64)>;

/// Is one share of one target over the runs.
struct Line {
    colour: String,
    name: String,
    hollow: bool,
    points: Points,
}

/// Renders the share of time lost in each run of a panel; `None` with a single run.
pub(super) fn by_run(panel: &Panel<'_>, summary: &Summary) -> Option<Markup> {
    let cells = |combination: &Combination| -> Vec<&CellSummary> {
        let of = |id: &u32| summary.cells.iter().find(|cell| cell.id == *id);
        combination.cells.iter().filter_map(of).collect()
    };
    let mut blocks: Vec<u32> = panel
        .members
        .iter()
        .flat_map(|(_, c)| cells(c).into_iter().map(|cell| cell.block))
        .collect();
    blocks.sort_unstable();
    blocks.dedup();
    if blocks.len() < 2 {
        return None;
    }
    let lines = lines(panel, cells);
    let all: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.1))
        .collect();
    let mut plot = Plot::new(
        240.0,
        format!("share of time lost in each run of {}", panel.title()),
    );
    let upward = zero_scale(&all, plot.upwards());
    let (left, right) = plot.across();
    let (first, last) = (f64::from(blocks[0]), f64::from(blocks[blocks.len() - 1]));
    let across = Scale::linear((first - 0.5, last + 0.5), (left, right));
    for line in &lines {
        // Beside the other limit, which is often nearly the same.
        let (mark, aside) = if line.hollow {
            ("mark hollow", 7.0)
        } else {
            ("mark", 0.0)
        };
        for (block, share) in &line.points {
            let share_text = N.percent(share / 100.0);
            let tooltip = format!("{}, run {block}: {share_text}", line.name);
            let at = (across.at(f64::from(*block)) + aside, upward.at(*share));
            plot.circle(&format!("{mark} {}", line.colour), at, 4.0, &tooltip);
        }
    }
    let ticks = upward.ticks(5);
    let label = |v: f64| N.with_unit(&N.tick(v), "%");
    let title = if panel.is_gap() {
        "time lost"
    } else {
        "time in delays"
    };
    plot.axis(Axis::new(Side::Left, upward, title, ticks, label));
    let ticks = blocks.iter().map(|block| f64::from(*block));
    plot.axis(Axis::new(Side::Bottom, across, "run", ticks, |v| N.tick(v)));
    let figure = Figure {
        title: "From run to run".to_owned(),
        read:
            "Each mark is one run. How far they lie apart is how sure the result is: intervals are \
               made from these marks, not from the samples within a run."
                .to_owned(),
        legend: legend_of(lines.iter().map(|line| {
            let hollow = if line.hollow { " hollow" } else { "" };
            (format!("{}{hollow}", line.colour), line.name.clone())
        })),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

/// Returns the shares of all targets of a panel.
fn lines<'s>(panel: &Panel<'_>, cells: impl Fn(&Combination) -> Vec<&'s CellSummary>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (series, (_, combination)) in panel.members.iter().enumerate() {
        for (limit, points) in shares(&cells(combination)) {
            let hollow = limit.is_some_and(|limit| limit > 400);
            let name = match limit {
                Some(limit) => format!(
                    "{}, above {} cycles",
                    target_name(combination),
                    N.count(limit)
                ),
                None => target_name(combination),
            };
            lines.push(Line {
                colour: colour(series),
                name,
                hollow,
                points,
            });
        }
    }
    lines
}

/// Returns the shares of each limit in per cent, by run; `gap` has one share without a limit.
fn shares(cells: &[&CellSummary]) -> Vec<(Option<u64>, Points)> {
    let mut lines: Vec<(Option<u64>, Points)> = Vec::new();
    let mut add = |limit, block, share: f64| {
        let point = (block, share * 100.0);
        match lines.iter_mut().find(|(known, _)| *known == limit) {
            Some((_, points)) => points.push(point),
            None => lines.push((limit, vec![point])),
        }
    };
    for cell in cells {
        match &cell.figures {
            CellFigures::Gap(gap) => add(None, cell.block, gap.share_lost),
            CellFigures::Timed(timed) => {
                for share in &timed.shares {
                    if let Some(value) = share.share {
                        add(Some(share.above_cycles), cell.block, value);
                    }
                }
            }
        }
    }
    lines
}

/// Makes the table of all runs of timed workloads, one row per cell.
pub(super) fn timed_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        "cell",
        "run",
        "repetitions",
        "mean ± 90 %,\nas the study",
        "sd",
        "shortest",
        "median",
        "p99",
        "p99.9",
        "p99.99",
        "longest",
        "longest,\ntime",
        "net mean",
        "net median",
        "> 400",
        "> 2,000",
    ]);
    for (cell, combination) in with_combinations(summary) {
        let CellFigures::Timed(timed) = &cell.figures else {
            continue;
        };
        let raw = &timed.raw;
        let share = |place: usize| {
            let share = timed.shares.get(place).and_then(|share| share.share);
            share.map_or_else(super::parts::none, |share| N.percent(share))
        };
        table.row([
            format!("{} · {}", cell.id, named(combination)),
            cell.block.to_string(),
            N.count(timed.repetitions),
            plus_minus(raw.mean.cycles, timed.study_interval),
            N.rounded(raw.sd.cycles),
            cycles(Some(raw.min)),
            cycles(Some(raw.median)),
            cycles(raw.p99.value),
            cycles(raw.p99_9.value),
            cycles(raw.p99_99.value),
            cycles(Some(raw.max)),
            time(Some(raw.max), combination),
            N.rounded(timed.net.mean.cycles),
            cycles(Some(timed.net.median)),
            share(0),
            share(1),
        ]);
    }
    table
}

/// Makes the table of all runs of `gap`, one row per cell.
pub(super) fn gap_table(summary: &Summary) -> Table {
    let mut table = Table::new([
        "cell",
        "run",
        "timer\nreads",
        "spun for",
        "quiet\niteration",
        "mean ± 90 %,\nas the study",
        "sd",
        "gaps",
        "gaps/s",
        "lost",
        "median",
        "p99",
        "p99.9",
        "longest",
        "longest,\ncycles",
        "period",
    ]);
    for (cell, combination) in with_combinations(summary) {
        let CellFigures::Gap(gap) = &cell.figures else {
            continue;
        };
        let none = super::parts::none;
        table.row([
            format!("{} · {}", cell.id, named(combination)),
            cell.block.to_string(),
            N.count(gap.reads),
            time(Some(gap.wall), combination),
            N.fixed(gap.quiet.cycles, 2),
            plus_minus(gap.mean.cycles, gap.study_interval),
            gap.sd.map_or_else(none, |sd| N.rounded(sd.cycles)),
            N.count(gap.gaps),
            gap.gaps_per_second.map_or_else(none, |rate| N.short(rate)),
            N.percent(gap.share_lost),
            time(gap.median, combination),
            time(gap.p99.value, combination),
            time(gap.p99_9.value, combination),
            time(gap.longest, combination),
            cycles(gap.longest),
            gap.period
                .map_or_else(none, |period| time(Some(period.period), combination)),
        ]);
    }
    table
}

fn named(combination: &Combination) -> String {
    if combination.emulated {
        format!("{} (emulated)", combination.label)
    } else {
        combination.label.clone()
    }
}

fn with_combinations(summary: &Summary) -> impl Iterator<Item = (&CellSummary, &Combination)> {
    summary.cells.iter().filter_map(|cell| {
        let of = |c: &&Combination| c.cells.contains(&cell.id);
        Some((cell, summary.combinations.iter().find(of)?))
    })
}

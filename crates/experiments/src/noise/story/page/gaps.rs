//! Gaps: how often they are longer than a length, and how they follow each other.

use maud::Markup;
use tare_stats::{Bin, Counts};

use crate::analysis::{Combination, CombinedFigures, Pictures};
use crate::panels::{Panel, target_name};
use crate::svg::{Axis, Path, Plot, Scale, Side, colour};
use crate::words;

use super::axes::{common_hz, flat};
use super::histogram::steps;
use super::parts::{Figure, N, Table, View, both, line_legend, none};

/// Is said where gaps are missing in the list.
const INCOMPLETE: &str = " The list of delays was full, so these figures are lower bounds.";

/// Renders how often per second gaps are longer than a length; `None` without gaps.
pub(super) fn exceedance(view: &View<'_>, pictures: &[Pictures]) -> Option<Markup> {
    let all = with_gaps(view.whole, pictures);
    let drawn = with_gaps(&view.part, pictures);
    let filled = || all.iter().filter(|(_, counts, _)| !counts.is_empty());
    let low = filled().filter_map(|(_, counts, _)| counts.min()).min()? as f64;
    let high = filled().filter_map(|(_, counts, _)| counts.max()).max()? as f64;
    let least = filled()
        .map(|(_, _, seconds)| 1.0 / seconds)
        .min_by(f64::total_cmp)?;
    let most = filled()
        .map(|(_, counts, seconds)| counts.total() as f64 / seconds)
        .max_by(f64::total_cmp)?;
    let description = "how often per second a gap is at least as long as a length";
    let mut plot = Plot::new(300.0, description).with_top_axis();
    let across = Scale::log((low / 1.05, high * 1.15), plot.across());
    let upward = Scale::log((least / 1.6, most * 1.5), plot.upwards());
    for (series, (_, counts, seconds)) in drawn.iter().enumerate() {
        let path = falling(counts, *seconds, across, upward);
        plot.path(&format!("line dashed {}", colour(series)), &path);
    }
    let ticks = upward.ticks(9);
    let axis = Axis::new(
        Side::Left,
        upward,
        "gaps per second of at least this length",
        ticks,
        |v| N.tick(v),
    );
    plot.axis(axis);
    flat(
        &mut plot,
        across,
        "length of the gap",
        common_hz(view.whole),
    );
    let read = "Find a length that would hurt below, go up to the line, and read at the left how often \
                per second an interruption is at least that long. The line ends at the longest one that \
                was seen; it does not say that longer ones don't happen.";
    let is_complete = drawn
        .iter()
        .all(|(combination, counts, _)| match &combination.figures {
            CombinedFigures::Gap(gap) => gap.gaps == counts.total(),
            CombinedFigures::Timed(_) => true,
        });
    let figure = Figure {
        title: view.title("How often, and how long"),
        read: view.read(read.to_owned() + if is_complete { "" } else { INCOMPLETE }),
        legend: line_legend(&view.part),
        plot: &plot,
        table: Some(exceedance_table(&drawn)),
    };
    Some(figure.render())
}

/// Returns the combinations of a panel with their gaps and the seconds that they spun for.
fn with_gaps<'a>(
    panel: &Panel<'a>,
    pictures: &'a [Pictures],
) -> Vec<(&'a Combination, &'a Counts, f64)> {
    panel
        .members
        .iter()
        .filter_map(|(place, combination)| {
            let seconds = combination.figures.gap()?.wall.ns? / 1e9;
            Some((*combination, &pictures[*place].counts, seconds))
        })
        .collect()
}

/// Draws the number of gaps at least as long as each length, per second.
fn falling(counts: &Counts, seconds: f64, across: Scale, upward: Scale) -> Path {
    let mut path = Path::default();
    let mut left = counts.total();
    let mut before = f64::NEG_INFINITY;
    for (length, count) in counts.iter() {
        let x = across.at(length as f64);
        let rate = upward.at(left as f64 / seconds);
        left -= count;
        // Steps closer than half a pixel are drawn as one; the last is always drawn.
        if x - before < 0.5 && left > 0 {
            continue;
        }
        if path.is_empty() {
            path.move_to(across.at(across.range().0), rate);
        }
        path.line_to(x, rate);
        path.line_to(x, upward.at(left as f64 / seconds));
        before = x;
    }
    path
}

fn exceedance_table(drawn: &[(&Combination, &Counts, f64)]) -> Table {
    let mut table = Table::new(["at least"]);
    table
        .head
        .extend(drawn.iter().map(|(c, _, _)| target_name(c)));
    for ns in [500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7] {
        let mut some = false;
        let rates: Vec<String> = drawn
            .iter()
            .map(|(combination, counts, seconds)| {
                let hz = combination.tsc_hz.unwrap_or_default();
                let bound = (ns * hz / 1e9).ceil() as u64;
                let CombinedFigures::Gap(gap) = &combination.figures else {
                    return none();
                };
                if (bound as f64) < gap.threshold.cycles {
                    return "below the threshold".to_owned();
                }
                let count = counts.count_above(bound.saturating_sub(1));
                some |= count > 0;
                N.rate(count as f64 / seconds)
            })
            .collect();
        if some {
            let mut row = vec![N.ns_tick(ns)];
            row.extend(rates);
            table.rows.push(row);
        }
    }
    table
}

/// Renders the times from gap to gap; `None` with fewer than two gaps.
pub(super) fn inter_arrivals(view: &View<'_>, pictures: &[Pictures]) -> Option<Markup> {
    let bins_of = |panel: &Panel<'_>| -> Vec<&[Bin]> {
        let members = panel.members.iter();
        members
            .map(|(place, _)| pictures[*place].inter_arrivals.bins.as_slice())
            .collect()
    };
    let all = bins_of(view.whole);
    let members = view.part.members.iter().map(|(_, c)| *c);
    let drawn: Vec<(&Combination, &[Bin])> = members.zip(bins_of(&view.part)).collect();
    let filled = || {
        let all = all.iter().flat_map(|bins| bins.iter());
        all.filter(|bin| bin.tally.count > 0)
    };
    let low = filled().map(|bin| bin.low).min_by(f64::total_cmp)?;
    let high = filled().map(|bin| bin.high).max_by(f64::total_cmp)?;
    let total = |bins: &[Bin]| bins.iter().map(|bin| bin.tally.count).sum::<u64>().max(1);
    let share = |bin: &Bin, bins: &[Bin]| bin.tally.count as f64 / total(bins) as f64 * 100.0;
    let most = all
        .iter()
        .flat_map(|bins| bins.iter().map(|bin| share(bin, bins)))
        .fold(0.0, f64::max);
    let mut plot = Plot::new(260.0, "times from gap to gap").with_top_axis();
    let across = Scale::log((low.max(1.0), high), plot.across());
    // One bar that holds most of them would flatten all others.
    let upward = if most > 10.0 {
        let least = 100.0 / all.iter().map(|bins| total(bins)).max()? as f64;
        Scale::log((least * 0.6, most * 1.6), plot.upwards())
    } else {
        Scale::linear((0.0, most * 1.15), plot.upwards())
    };
    for (series, (_, bins)) in drawn.iter().enumerate() {
        let bars = bins
            .iter()
            .filter(|bin| bin.high > low && bin.low < high)
            .map(|bin| (bin.low, bin.high, share(bin, bins)));
        let path = steps(bars, across, upward, plot.upwards().0);
        plot.path(&view.outline(series), &path);
    }
    for (combination, _) in &drawn {
        let CombinedFigures::Gap(gap) = &combination.figures else {
            continue;
        };
        let Some(period) = gap.period else { continue };
        let at = period.figure.period;
        let (x, (bottom, top)) = (across.at(at.cycles), plot.upwards());
        let mut line = Path::default();
        line.move_to(x, bottom);
        line.line_to(x, top);
        plot.path("split", &line);
        plot.label(
            "peak",
            (x, top + 4.0),
            &format!("every {}", words::time(N, at, None)),
        );
    }
    let ticks = upward.ticks(7);
    plot.axis(Axis::new(Side::Left, upward, "% of the gaps", ticks, |v| {
        N.tick(v)
    }));
    flat(
        &mut plot,
        across,
        "from the start of one gap to the start of the next",
        common_hz(view.whole),
    );
    let figure = Figure {
        title: view.title("From gap to gap"),
        read: view.read(
            "A narrow peak means a clock: so many gaps follow the one before at that distance. A \
               broad hill means that they come at random."
                .to_owned(),
        ),
        legend: view.outline_legend(),
        plot: &plot,
        table: Some(period_table(&drawn)),
    };
    Some(figure.render())
}

fn period_table(drawn: &[(&Combination, &[Bin])]) -> Table {
    let mut table = Table::new([
        "strongest clock",
        "period",
        "of the gaps",
        "of its ticks present",
        "mean length",
        "runs that show it",
    ]);
    for (combination, _) in drawn {
        let CombinedFigures::Gap(gap) = &combination.figures else {
            continue;
        };
        let name = target_name(combination);
        match gap.period {
            Some(period) => {
                let figure = period.figure;
                table.row([
                    name,
                    both(Some(figure.period), combination),
                    N.percent(figure.share_of_gaps),
                    N.percent(figure.share_of_ticks),
                    both(Some(figure.mean_length), combination),
                    format!("{} of {}", period.runs, combination.runs),
                ]);
            }
            None => table.row([
                name,
                "none found".to_owned(),
                none(),
                none(),
                none(),
                none(),
            ]),
        }
    }
    table
}

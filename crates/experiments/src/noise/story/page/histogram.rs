//! Histograms of durations: the whole range, and the common part of it.

use maud::{Markup, html};
use tare_stats::{Bin, Counts, Quantile, linear_bins, log_bins};

use crate::analysis::{Pictures, Time};
use crate::panels::{Panel, target_name};
use crate::svg::{Axis, Path, Plot, Scale, Side};

use super::axes::{common_hz, flat};
use super::parts::{Figure, N, Table, View};

/// Is about the number of bins across a histogram.
const BINS: usize = 120;

/// Is the number of bins for each factor of ten on a logarithmic axis.
const PER_DECADE: usize = 24;

/// Renders the histograms of a panel: the whole range, and the common durations if they are a small
/// part of it; `None` without samples.
pub(super) fn histograms(view: &View<'_>, pictures: &[Pictures]) -> Option<Markup> {
    let panel = view.whole;
    let counts_of = |panel: &Panel<'_>| -> Vec<&Counts> {
        let members = panel.members.iter();
        members.map(|(place, _)| &pictures[*place].counts).collect()
    };
    let counts = counts_of(panel);
    let filled = || counts.iter().filter(|counts| !counts.is_empty());
    let low = filled().filter_map(|counts| counts.min()).min()?;
    let high = filled().filter_map(|counts| counts.max()).max()?;
    let body = filled()
        .filter_map(|counts| counts.quantile(Quantile::P99))
        .max()?;
    let is_long = body - low < (high - low) / 4;
    let drawn = counts_of(&view.part);
    let whole = histogram(view, &drawn, low, high, Span::Whole);
    let common = if is_long {
        let above = ((body - low) / 4)
            .max(panel.first().timer_step.cycles as u64 * 4)
            .max(4);
        histogram(view, &drawn, low, body.saturating_add(above), Span::Common)
    } else {
        None
    };
    Some(html! { (whole?) @if let Some(common) = common { (common) } })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Span {
    /// From the shortest to the longest.
    Whole,
    /// The 99 % that are shortest, and somewhat more.
    Common,
}

fn histogram(
    view: &View<'_>,
    counts: &[&Counts],
    low: u64,
    high: u64,
    span: Span,
) -> Option<Markup> {
    let panel = view.whole;
    let title = panel.title();
    let step = panel
        .members
        .iter()
        .map(|(_, c)| c.timer_step.cycles)
        .fold(1.0, f64::max);
    let is_log = high / low.max(1) >= 12;
    let bins: Vec<Vec<Bin>> = counts
        .iter()
        .map(|counts| {
            let bins = if is_log {
                log_bins(counts, low.max(1)..=high, PER_DECADE, Some(step))
            } else {
                linear_bins(counts, low..=high, BINS, Some(step))
            };
            bins.map_or_else(|_| Vec::new(), |bins| bins.bins)
        })
        .collect();
    let all = || bins.iter().flatten();
    let left = all()
        .map(|bin| bin.low)
        .min_by(f64::total_cmp)?
        .max(if is_log { 0.5 } else { 0.0 });
    let right = all().map(|bin| bin.high).max_by(f64::total_cmp)?;
    let description = format!("histogram of the durations of {title}");
    let mut plot = Plot::new(300.0, description).with_top_axis();
    let across = if is_log {
        Scale::log((left, right), plot.across())
    } else {
        Scale::linear((left, right), plot.across())
    };
    let per_million = |count: u64, total: u64| count as f64 / total.max(1) as f64 * 1e6;
    let highest = bins.iter().zip(counts).flat_map(|(bins, counts)| {
        bins.iter()
            .map(|bin| per_million(bin.tally.count, counts.total()))
    });
    let highest = highest.fold(0.0, f64::max);
    let most = counts.iter().map(|counts| counts.total()).max()?;
    let upward = Scale::log((per_million(1, most) * 0.6, highest * 1.6), plot.upwards());
    for (series, (bins, counts)) in bins.iter().zip(counts).enumerate() {
        let heights = bins.iter().map(|bin| {
            (
                bin.low,
                bin.high,
                per_million(bin.tally.count, counts.total()),
            )
        });
        let path = steps(heights, across, upward, plot.upwards().0);
        plot.path(&view.outline(series), &path);
    }
    let ticks = upward.ticks(9);
    plot.axis(Axis::new(
        Side::Left,
        upward,
        "repetitions per million",
        ticks,
        |v| N.tick(v),
    ));
    flat(&mut plot, across, "duration", common_hz(panel));
    let (name, read) = match span {
        Span::Whole => (
            format!("{title}, how long repetitions take"),
            format!(
                "The higher a bar, the more repetitions took that long; the scale is logarithmic, so \
                 that a single one among millions can be seen. {}",
                if is_log {
                    "Bars are about 10 % of their duration wide, and not narrower than the timer's step."
                } else {
                    "Bars are not narrower than the timer's step."
                }
            ),
        ),
        Span::Common => (
            format!("{title}, the common durations"),
            "The same, for the 99 % of the repetitions that are shortest.".to_owned(),
        ),
    };
    let figure = Figure {
        title: view.title(&name),
        read: view.read(read),
        legend: view.outline_legend(),
        plot: &plot,
        table: Some(bin_table(&view.part, &bins)),
    };
    Some(figure.render())
}

/// Draws bars as one outline per run of bars that are not empty.
pub(super) fn steps(
    bars: impl Iterator<Item = (f64, f64, f64)>,
    across: Scale,
    upward: Scale,
    bottom: f64,
) -> Path {
    let mut path = Path::default();
    // The right edge of the bar before, if it was not empty.
    let mut edge = None;
    for (low, high, height) in bars {
        if height <= 0.0 {
            if let Some(edge) = edge.take() {
                path.line_to(edge, bottom);
            }
            continue;
        }
        let (left, right, y) = (across.at(low), across.at(high), upward.at(height));
        if edge.is_none() {
            path.move_to(left, bottom);
        }
        path.line_to(left, y);
        path.line_to(right, y);
        edge = Some(right);
    }
    if let Some(edge) = edge {
        path.line_to(edge, bottom);
    }
    path
}

fn bin_table(panel: &Panel<'_>, bins: &[Vec<Bin>]) -> Table {
    let mut table = Table::new(["cycles from", "to below", "time from"]);
    table
        .head
        .extend(panel.members.iter().map(|(_, c)| target_name(c)));
    let rows = bins.iter().map(Vec::len).max().unwrap_or_default();
    for row in 0..rows {
        let at: Vec<Option<&Bin>> = bins.iter().map(|bins| bins.get(row)).collect();
        let counts: Vec<u64> = at
            .iter()
            .map(|bin| bin.map_or(0, |bin| bin.tally.count))
            .collect();
        let Some(bin) = at
            .iter()
            .flatten()
            .next()
            .filter(|_| counts.iter().any(|&n| n > 0))
        else {
            continue;
        };
        let hz = panel.first().tsc_hz;
        let mut cells = vec![
            N.fixed(bin.low.max(0.0).ceil(), 0),
            N.fixed(bin.high.ceil(), 0),
            super::parts::time(Some(Time::new(bin.low.max(0.0), hz)), panel.first()),
        ];
        cells.extend(counts.into_iter().map(|count| N.count(count)));
        table.rows.push(cells);
    }
    table
}

//! Pictures of starts: how long they take one by one, how that and the throughput change as starts
//! come more often, how the latencies of each interval are distributed, and how much memory an
//! instance takes.

use maud::{Markup, html};
use tare_figures::Run;
use tare_figures::rows::{Figure, Row};
use tare_pages::html::Detail;
use tare_pages::html::distributions::{Distributions, Tailed, Unit, panels};
use tare_pages::html::overview::overview_of;
use tare_pages::html::parts::N;
use tare_pages::kit::curve::{Curve, Dimension, Line, Point};
use tare_pages::kit::series::{Series, native_first};

use super::ladder::{open, pace, place, rate, time};
use super::{NAME, Started, ladder, verdict};

/// Draws how long instances take one after the other; `None` if none was ready.
pub(super) fn calm(run: &Run) -> Option<Markup> {
    let all = ladder::all(run);
    // The figure of the headline.
    let (told, _) = native_first(all.iter().collect(), |one| one.is_emulated());
    let figure = verdict::figure(&verdict::plain(&told));
    let titles = ("Time until an instance is ready", "time until ready");
    of_calm(&all, "ready", figure, titles)
}

/// Draws a figure of each ladder at its first point: starts one after the other, else the lowest
/// rate. `what` names it in the title and next to the axis.
fn of_calm(
    all: &[Series<'_>],
    measure: &str,
    figure: Figure,
    (what, axis): (&str, &str),
) -> Option<Markup> {
    let first = all.iter().map(Series::first);
    let rows = first.filter_map(|case| case.row(measure, figure, &[]));
    let rows: Vec<&Row> = rows.collect();
    let name = |row: &Row| match Series::of_row(all, row) {
        Some((_, one, _)) => ladder::name_without_load(one),
        None => row.marked_target(),
    };
    let is_alone = |one: &Series<'_>| ladder::interval_ns(one.first()).is_none();
    let how = match all.iter().all(is_alone) {
        true => "one after the other",
        false => "at the lowest rate",
    };
    let title = format!("{what}, {how} ({figure})");
    overview_of(&rows, name, |_| false, (title, axis))
}

/// Draws what the section shows.
pub(super) fn section(story: &Started, run: &Run, detail: &Detail) -> Markup {
    let all = ladder::all(run);
    let upward = Dimension::logarithmic("ready after", |ns| N.ns_tick(ns), time);
    let latency = Curve {
        title: "Latency against offered rate",
        read: "Mean time from the planned start until an instance was ready. A target whose line stays level starts instances \
               as fast at a high rate as at a low one. A ring marks a point at which the target was saturated, or where more than one \
               in a hundred of the starts was more than one interval late.",
        named: Some("rate"),
        ..curve(&all, "ready", Figure::Mean, upward)
    };
    let throughput = Curve {
        title: "Throughput against offered rate",
        read: "Instances that ended well per second, against those that were planned. On the broken red line every one does.",
        has_ideal: true,
        ..curve(&all, "rate", Figure::Rate, Dimension::rate("ended per s"))
    };
    let titles = ("Peak memory of an instance", "peak memory");
    let memory = of_calm(&all, "memory", Figure::Mean, titles);
    let pictures = [
        latency.render(),
        throughput.render(),
        distributions(story, run, &all, detail),
        memory,
    ];
    html! { @for picture in pictures.into_iter().flatten() { (picture) } }
}

/// Returns the picture of a figure over the planned rate.
fn curve(
    all: &[Series<'_>],
    measure: &str,
    figure: Figure,
    upward: Dimension<'static>,
) -> Curve<'static> {
    let lines = all.iter().map(|one| {
        let points = open(one).filter_map(|case| {
            let row = case.row(measure, figure, &[])?;
            Point::of(row, pace(case), rate(case)?, case.doubt())
        });
        (ladder::name(one), points.collect())
    });
    Curve::new(Line::each(lines), Dimension::rate("planned per s"), upward)
}

/// Draws how the latencies of each interval are distributed, with a panel for each.
fn distributions(
    story: &Started,
    run: &Run,
    all: &[Series<'_>],
    detail: &Detail,
) -> Option<Markup> {
    let names: Vec<String> = all.iter().map(ladder::name).collect();
    let mut known: Vec<_> = names
        .iter()
        .zip(all)
        .flat_map(|(name, one)| one.cases.iter().map(move |case| (name, case)))
        .filter_map(|(name, case)| Some((name, case, pace(case), story.0.of(case.plan)?)))
        .filter(|(.., ready)| !ready.is_empty())
        .collect();
    known.sort_by_key(|(_, case, ..)| place(case));
    let tails = known.iter().map(|(name, _, pace, ready)| Tailed {
        panel: pace,
        name,
        tail: *ready,
        second: None,
    });
    let runs = known.iter().map(|(_, case, ..)| case.cells.len());
    let drawn = Distributions {
        of: "times until ready",
        across: "ready after",
        unit: Unit::Ns,
        step: 1,
        is_cut_off: false,
        coarse: detail.coarseness(),
        runs: runs.max().unwrap_or(0),
        panels: panels(&names, tails),
        names: names.clone(),
        limits: run.limits(NAME, &["ready"]),
    };
    drawn.exceedance(
        "How often, and how long",
        "For each interval: find a time below, go up to a line, and read at the left which share of the instances took longer. A \
         line ends at the longest that was seen; it does not say that longer ones don't happen.",
        "longer than that",
        None,
    )
}

//! Raw samples, one after the other.

use maud::Markup;
use tare_figures::interval::Time;
use tare_figures::words;
use tare_pages::html::parts::{Figure, N, legend_of};
use tare_pages::kit::over_time::{MARKS, upright};
use tare_pages::svg::{Axis, COLOURS, Plot, Scale, Side, colour, scatter};

use super::super::panels::{Member, Panel};

/// How far apart targets with the same durations are drawn, in pixels.
const APART: f64 = 3.4;

/// Renders the raw samples from the middle of the first run; of more targets than colours, several
/// times.
pub(super) fn windows(panel: &Panel<'_>) -> Vec<Markup> {
    let parts = panel.members.chunks(COLOURS);
    parts.filter_map(|part| window(panel, part)).collect()
}

fn window(panel: &Panel<'_>, part: &[Member<'_>]) -> Option<Markup> {
    let all = || {
        panel
            .members
            .iter()
            .flat_map(|member| &member.pictures.window)
    };
    let (low, high) = (*all().min()?, *all().max()?);
    let length = part
        .iter()
        .map(|member| member.pictures.window.len())
        .max()?;
    let title = format!("{}, {} in a row", panel.title(), N.count(length as u64));
    let mut plot = Plot::new(260.0, title.clone()).with_right_axis();
    let scale = Scale::fitting(low as f64, high as f64, plot.upwards());
    let across = Scale::linear((0.0, length as f64), plot.across());
    for (series, member) in part.iter().enumerate() {
        // Targets with the same durations would hide each other.
        let shift = (series as f64 - (part.len() - 1) as f64 / 2.0) * APART;
        let samples = member.pictures.window.iter().enumerate();
        let dots =
            samples.map(|(at, value)| (across.at(at as f64), scale.at(*value as f64) + shift));
        let path = scatter(dots.collect(), usize::MAX);
        plot.path(&format!("dots fine {}", colour(series)), &path);
    }
    let step = panel.members[0].step();
    // Marks between two steps of the timer would promise what it can't show.
    let marks = (high - low) / step.max(1) + 2;
    upright(&mut plot, scale, panel.hz(), MARKS.min(marks as usize));
    let ticks = across.ticks(10);
    plot.axis(Axis::new(Side::Bottom, across, "repetition", ticks, |v| {
        N.tick(v)
    }));
    let mut read = format!(
        "{} repetitions, one after the other, from the middle of the first run: every one is here.",
        N.count(length as u64)
    );
    if part.len() > 1 {
        read.push_str(" Targets are drawn a little below each other, so that none hides another.");
    }
    if step > 1 {
        let step = words::step(N, Time::new(step as f64, panel.hz()));
        read.push_str(&format!(
            " Rows are at least {step} apart, which is the timer's step."
        ));
    }
    let names = part.iter().enumerate();
    let figure = Figure {
        title,
        read,
        legend: legend_of(names.map(|(place, member)| (colour(place), member.name()))),
        plot: &plot,
        table: None,
    };
    (length > 0).then(|| figure.render())
}

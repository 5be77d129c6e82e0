//! Raw samples, one after the other.

use maud::Markup;

use crate::analysis::Pictures;
use crate::panels::Panel;
use crate::svg::{Axis, Plot, Scale, Side, colour, scatter};
use crate::words;

use super::axes::{common_hz, upright_with};
use super::parts::{Figure, N, View, legend};

/// Is how far apart targets with the same durations are drawn, in pixels.
const APART: f64 = 3.4;

/// Renders the raw samples from the middle of the first run; `None` if none were kept.
pub(super) fn window(view: &View<'_>, pictures: &[Pictures]) -> Option<Markup> {
    let panel = view.whole;
    let windows_of = |panel: &Panel<'_>| -> Vec<_> {
        let members = panel.members.iter();
        members.map(|(place, _)| &pictures[*place].window).collect()
    };
    let whole = windows_of(panel);
    let windows = windows_of(&view.part);
    let all = || whole.iter().flat_map(|window| window.iter());
    let low = all().map(|sample| sample.value).min()?;
    let high = all().map(|sample| sample.value).max()?;
    let length = windows.iter().map(|window| window.len()).max()?;
    let title = panel.title();
    let description = format!("{length} consecutive repetitions of {title}");
    let mut plot = Plot::new(260.0, description).with_right_axis();
    let scale = Scale::fitting(low as f64, high as f64, plot.upwards());
    let across = Scale::linear((0.0, length as f64), plot.across());
    // Targets with the same durations would hide each other.
    let shift = |series: usize| (series as f64 - (windows.len() - 1) as f64 / 2.0) * APART;
    for (series, window) in windows.iter().enumerate() {
        let dots = window.iter().enumerate().map(|(place, sample)| {
            let y = scale.at(sample.value as f64) + shift(series);
            (across.at(place as f64), y)
        });
        let path = scatter(dots.collect(), usize::MAX);
        plot.path(&format!("dots fine {}", colour(series)), &path);
    }
    // Marks between two steps of the timer would promise what it cannot show.
    let steps = (high - low) as f64 / panel.first().timer_step.cycles.max(1.0);
    upright_with(&mut plot, scale, common_hz(panel), steps as usize + 2);
    let ticks = across.ticks(10);
    let axis = Axis::new(Side::Bottom, across, "repetition", ticks, |v| N.tick(v));
    plot.axis(axis);
    let mut read = format!(
        "{} repetitions, one after the other, from the middle of the first run: every one is here.",
        N.count(length as u64)
    );
    if windows.len() > 1 {
        read.push_str(" Targets are drawn a little below each other, so that none hides another.");
    }
    let step = panel.first().timer_step;
    if step.cycles > 1.0 {
        read.push_str(&format!(
            " Rows are at least {} apart, which is the timer's step.",
            words::step(N, step)
        ));
    }
    let figure = Figure {
        title: view.title(&format!("{title}, {} in a row", N.count(length as u64))),
        read: view.read(read),
        legend: legend(&view.part),
        plot: &plot,
        table: None,
    };
    Some(figure.render())
}

//! Delays over time for many targets: one strip each, one below the other, on the same axes.
//!
//! Clouds of dots cannot be overlaid: the last one drawn hides the others. A strip is low, so its dots
//! lie closer, but each target can be seen and its name stands at it.

use maud::Markup;

use crate::analysis::Pictures;
use crate::panels::{MANY, Panel, target_name};
use crate::svg::{Axis, Plot, Side};

use super::axes::common_hz;
use super::parts::{Figure, N, legend_of};
use super::time::{Extent, draw_run, label_longest, peak_table, reading, title};

/// Is the height of the dots of one target, and of the line with its name above them, in pixels.
const DOTS: f64 = 52.0;
const NAME: f64 = 22.0;

/// Is the part of a strip's height within which dots are drawn as one, in pixels.
const ROW: f64 = 2.0;

/// Says whether a panel has too many targets to overlay their dots.
pub(super) fn are_needed(panel: &Panel<'_>) -> bool {
    panel.members.len() > MANY
}

/// Renders all runs of a panel over time, in about `budget` bytes; `None` if nothing was drawn.
pub(super) fn strips(panel: &Panel<'_>, pictures: &[Pictures], budget: usize) -> Option<Markup> {
    let over = Extent::of(panel, pictures)?;
    let height = over.drawn.len() as f64 * (DOTS + NAME);
    let mut plot = Plot::strips(height, over.description(panel));
    let (_, top) = plot.upwards();
    let slots = over.slots(&plot);
    slots.draw(&mut plot);
    let hz = common_hz(panel);
    let unit = hz.map_or(1.0, |hz| hz / 1e9);
    let budget = budget / over.runs;
    let mut y = top;
    for (place, (combination, pictures)) in over.drawn.iter().enumerate() {
        let upwards = (y + NAME + DOTS, y + NAME);
        let scale = over.scale(upwards).in_rows(ROW);
        for run in &pictures.runs {
            draw_run(&mut plot, 0, run, &slots, scale, budget);
        }
        let one = [(*combination, *pictures)];
        label_longest(&mut plot, &one, &slots, scale);
        plot.rule(upwards.0);
        let name = format!(
            "{} · {}",
            combination.group.name(),
            target_name(combination)
        );
        plot.text("row", (plot.across().0, y + NAME - 9.0), &name);
        let unit_name = match (place, hz) {
            (0, Some(_)) => "time",
            (0, None) => "cycles",
            _ => "",
        };
        let ticks = scale.ticks_in(unit, 3);
        plot.axis(Axis::new(
            Side::Left,
            scale,
            unit_name,
            ticks,
            |cycles| match hz {
                Some(_) => N.ns_tick(cycles / unit),
                None => N.tick(cycles),
            },
        ));
        y += DOTS + NAME;
    }
    slots.axis(&mut plot, hz);
    let mut read = reading(panel, slots.blocks(), &over.drawn);
    read.push_str(
        " Every target has its own strip with the same axes; the longest of each is marked.",
    );
    let figure = Figure {
        title: title(panel),
        read,
        legend: legend_of([]),
        plot: &plot,
        table: Some(peak_table(&over.drawn)),
    };
    Some(figure.render())
}

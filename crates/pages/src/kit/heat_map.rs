//! Maps: a figure by two numbers, as shades.

use maud::{Markup, html};

use crate::html::parts::Figure;
use crate::svg::{Axis, Plot, Scale, Side};

/// The height of a tile, in pixels.
const TILE: f64 = 24.0;

/// The most numbers that are written on an axis.
const TICKS: usize = 24;

/// A map of a figure by two numbers.
#[derive(Clone, Debug)]
pub struct HeatMap<'a> {
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub read: String,
    /// The titles of the axes below and at the left.
    pub axes: [&'a str; 2],
    /// The figures, each with its numbers across and upwards; one of 0 is not drawn.
    pub tiles: Vec<([u64; 2], f64)>,
    /// How numbers on the two axes are written.
    pub labels: [fn(u64) -> String; 2],
    /// How figures are written.
    pub write: fn(f64) -> String,
}

impl HeatMap<'_> {
    /// Returns the least and the greatest figure above 0; `None` without any.
    #[must_use]
    pub fn ends(&self) -> Option<(f64, f64)> {
        let all = || {
            let values = self.tiles.iter().map(|(_, value)| *value);
            values.filter(|value| *value > 0.0)
        };
        Some((all().reduce(f64::min)?, all().reduce(f64::max)?))
    }

    /// Renders it, a tile the stronger the greater a figure is; `None` without any.
    #[must_use]
    pub fn render(&self) -> Option<Markup> {
        let (low, high) = self.ends()?;
        let numbers = [0, 1].map(|axis| {
            let mut all: Vec<u64> = self.tiles.iter().map(|(at, _)| at[axis]).collect();
            all.sort_unstable();
            all.dedup();
            all
        });
        let counts = [0, 1].map(|axis| numbers[axis].len() as f64);
        let mut plot = Plot::strips(TILE * counts[1], self.title.clone());
        let ((left, right), (bottom, top)) = (plot.across(), plot.upwards());
        let size = ((right - left) / counts[0], (bottom - top) / counts[1]);
        let range = (high / low).ln().max(f64::MIN_POSITIVE);
        for (at, value) in self.tiles.iter().filter(|(_, value)| *value > 0.0) {
            let place = |axis: usize| numbers[axis].partition_point(|n| *n < at[axis]) as f64;
            let from = (left + place(0) * size.0, bottom - (place(1) + 1.0) * size.1);
            let [across, upward] = [0, 1].map(|axis| self.labels[axis](at[axis]));
            let said = format!("{across} by {upward}: {}", (self.write)(*value));
            plot.tile(from, size, (value / low).ln() / range, &said);
        }
        for (axis, side, from, step) in [
            (0, Side::Bottom, left, size.0),
            (1, Side::Left, bottom, -size.1),
        ] {
            let ends = (from + step / 2.0, from + step * (counts[axis] - 0.5));
            let scale = Scale::linear((0.0, counts[axis] - 1.0), ends);
            let every = numbers[axis].len().div_ceil(TICKS);
            let places = (0..numbers[axis].len()).step_by(every.max(1));
            let places = places.map(|place| place as f64);
            let label = |place: f64| self.labels[axis](numbers[axis][place as usize]);
            plot.axis(Axis::new(side, scale, self.axes[axis], places, label));
        }
        let figure = Figure {
            title: self.title.clone(),
            read: self.read.clone(),
            legend: html! {},
            plot: &plot,
            table: None,
        };
        Some(figure.render())
    }
}

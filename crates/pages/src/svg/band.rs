//! Samples over time in columns of pixels, without losing a maximum.

use std::collections::BTreeMap;

use tare_results::model::Bin;

use super::Plot;
use super::path::Path;

/// The number of columns of pixels across a plot.
pub const COLUMNS: usize = 720;

/// What lies in one column of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// The column, from 0.
    pub place: usize,
    /// Samples.
    pub n: u64,
    /// Least value.
    pub low: u64,
    /// Mean.
    pub mean: f64,
    /// Greatest value.
    pub high: u64,
}

impl Column {
    /// Takes the samples of a bin.
    #[must_use]
    pub fn of(bin: &Bin, place: usize) -> Self {
        Self {
            place,
            n: bin.n,
            low: bin.min,
            mean: bin.sum as f64 / bin.n.max(1) as f64,
            high: bin.max,
        }
    }
}

/// Puts the samples of each column together; in order of their places.
#[must_use]
pub fn joined(columns: impl IntoIterator<Item = Column>) -> Vec<Column> {
    let mut joined: BTreeMap<usize, Column> = BTreeMap::new();
    for column in columns {
        let known = joined.entry(column.place).or_insert(Column {
            n: 0,
            mean: 0.0,
            ..column
        });
        let n = known.n + column.n;
        let sum = known.mean * known.n as f64 + column.mean * column.n as f64;
        *known = Column {
            place: column.place,
            n,
            low: known.low.min(column.low),
            mean: sum / n.max(1) as f64,
            high: known.high.max(column.high),
        };
    }
    joined.into_values().collect()
}

/// Joins this many neighbouring columns to one; the greatest value stays.
#[must_use]
pub fn coarser(columns: &[Column], factor: usize) -> Vec<Column> {
    joined(columns.iter().map(|column| Column {
        place: column.place / factor.max(1),
        ..*column
    }))
}

/// Draws a band from the least to the greatest value of each column, and a line through the means,
/// in the colour of a class. `x` gives the left edge of a column, `y` the height of a value.
/// Columns without samples are left free.
pub fn draw(
    plot: &mut Plot,
    colour: &str,
    columns: &[Column],
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) {
    for stretch in columns.chunk_by(|a, b| b.place == a.place + 1) {
        let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else {
            continue;
        };
        // From edge to edge, so that a column without neighbours can be seen: all of a stall may be
        // in it.
        let middles = stretch.iter().map(|c| (c.place as f64 + 0.5, c));
        let from = [(first.place as f64, first)].into_iter();
        let points = from.chain(middles).chain([(last.place as f64 + 1.0, last)]);
        let points: Vec<(f64, &Column)> = points.map(|(at, column)| (x(at), column)).collect();
        let (mut band, mut mean) = (Path::default(), Path::default());
        for (at, column) in &points {
            band.go_to(*at, y(column.high as f64));
            mean.go_to(*at, y(column.mean));
        }
        for (at, column) in points.iter().rev() {
            band.line_to(*at, y(column.low as f64));
        }
        band.close();
        plot.path(&format!("band {colour}"), &band);
        plot.path(&format!("line thin {colour}"), &mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_columns_keep_every_sample_and_the_greatest() {
        let column = |place, n, low, mean, high| Column {
            place,
            n,
            low,
            mean,
            high,
        };
        let columns = [
            column(0, 1, 5, 5.0, 5),
            column(1, 3, 1, 2.0, 9),
            column(5, 1, 7, 7.0, 7),
        ];
        let expected = [column(0, 4, 1, 2.75, 9), column(2, 1, 7, 7.0, 7)];
        assert_eq!(coarser(&columns, 2), expected);
        assert_eq!(joined(columns), columns);
        let mut plot = Plot::new(100.0, "test");
        draw(&mut plot, "s0", &columns, |at| at, |value| value);
        let drawn = plot.markup();
        // One band from 0 to 2, and one from 5 to 6.
        assert_eq!(drawn.matches("class=\"band").count(), 2, "{drawn}");
        assert!(drawn.contains("M5 7h.5h.5"), "{drawn}");
    }
}

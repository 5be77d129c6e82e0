//! Marks: figures as a picture shows them, with how far they vary.

use crate::format::Numbers;
use crate::rows::Row;
use crate::words;

/// The meaning of an asterisk behind a figure.
pub const MARKED: &str = "* A figure that may mislead: a mean or sd over two modes, a quantile that may be in either of them \
                          (figures.csv has the share of the slow one, figure slow), or a median between the two runs in the \
                          middle, which are far apart.";

/// What stands before a figure that may be greater than what was measured.
pub const AT_LEAST: &str = "at least ";

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A dot: measured.
    Dot,
    /// A ring: measured, but executed by an emulator.
    Ring,
    /// A ring: what was measured is the least that it can be.
    Least,
    /// A diamond: published, on another machine.
    Diamond,
}

/// By how much a figure varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Its interval over the runs at 95 %.
    Interval(f64, f64),
    /// From the lowest to the highest run, where these are too few for an interval.
    Range(f64, f64),
}

/// A figure as it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Its shape.
    pub shape: Shape,
    /// What gives it its colour.
    pub series: usize,
    /// Where it stands.
    pub value: f64,
    /// By how much it varies, if that is known.
    pub spread: Option<Spread>,
    /// The same of each run.
    pub runs: Vec<f64>,
    /// The figure as it is written next to it.
    pub label: String,
    /// The text shown when it is pointed at.
    pub said: String,
}

impl Spread {
    /// Returns by how much the figure of a row varies; `None` if there is but one value.
    #[must_use]
    pub fn of(row: &Row) -> Option<Self> {
        let over = row.over.as_ref().ok()?;
        match &over.interval {
            Ok(interval) => Some(Self::Interval(interval.low, interval.high)),
            Err(_) if over.lowest < over.highest => Some(Self::Range(over.lowest, over.highest)),
            Err(_) => None,
        }
    }

    /// Brings both ends to another unit.
    #[must_use]
    pub fn map(self, to: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::Interval(low, high) => Self::Interval(to(low), to(high)),
            Self::Range(low, high) => Self::Range(to(low), to(high)),
        }
    }

    /// Returns its ends.
    #[must_use]
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::Interval(low, high) | Self::Range(low, high) => [low, high],
        }
    }

    /// Says what it is: `0.66–0.84 % (95 % CI)`.
    #[must_use]
    pub fn words(self, unit: &str, write: impl Fn(f64) -> String) -> String {
        let [low, high] = self.ends();
        let range = match unit {
            "1" => words::percent_range(Numbers::TYPESET, low, high),
            _ => format!("{} to {}", write(low), write(high)),
        };
        match self {
            Self::Interval(..) => format!("{range} (95 % CI)"),
            Self::Range(..) => format!("{range} (range)"),
        }
    }
}

impl Mark {
    /// Makes the mark of a row's figure; `None` if it has none. `drawn` brings a figure to the unit
    /// of the axis, and `write` writes it.
    #[must_use]
    pub fn of(
        row: &Row,
        series: usize,
        drawn: impl Fn(f64) -> f64,
        write: impl Fn(f64) -> String,
    ) -> Option<Self> {
        let over = row.over.as_ref().ok()?;
        let spread = Spread::of(row);
        let mut label = write(over.estimate);
        if row.is_marked() {
            label.push('*');
        }
        let mut said = format!("{}: {label}", row.place());
        if let Some(spread) = spread {
            said.push_str(&format!(", {}", spread.words(row.unit, &write)));
        }
        let runs = row.each.iter().filter_map(|run| run.figure.value());
        Some(Self {
            shape: if row.emulated {
                Shape::Ring
            } else {
                Shape::Dot
            },
            series,
            value: drawn(over.estimate),
            spread: spread.map(|spread| spread.map(&drawn)),
            runs: runs.map(&drawn).collect(),
            label,
            said,
        })
    }

    /// Marks it as the least that it can be.
    #[must_use]
    pub fn at_least(mut self) -> Self {
        self.shape = Shape::Least;
        let label = format!("{AT_LEAST}{}", self.label);
        self.said = self.said.replacen(&self.label, &label, 1);
        self.label = label;
        self
    }

    /// Makes the mark of a published figure.
    #[must_use]
    pub fn published(value: f64, label: &str, source: &str) -> Self {
        let said = format!("published by {source}, on another machine: {label}");
        Self::reference(value, format!("published {label}"), said)
    }

    /// Makes the mark of what was expected.
    #[must_use]
    pub fn expected(value: f64, label: &str) -> Self {
        let said = format!("expected: {label}");
        Self::reference(value, format!("expected {label}"), said)
    }

    fn reference(value: f64, label: String, said: String) -> Self {
        Self {
            shape: Shape::Diamond,
            series: 0,
            value,
            spread: None,
            runs: Vec::new(),
            label,
            said,
        }
    }
}

//! The histogram of `-h` and `-H`.

use std::fmt::Write as _;

use super::lines::least;
use super::{Unit, mean, rows_below};
use crate::latencies::Latencies;

/// Says how the histogram is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// How many values it has, from 0 on; longer latencies overflow.
    pub size: u64,
    /// The unit of the values.
    pub unit: Unit,
    /// Whether a last column sums up all threads, as with `-H`.
    pub all: bool,
}

impl Histogram {
    /// The largest size: that of cyclictest.
    pub const MOST: u64 = 1_000_000;

    /// Returns the least latency in ns that overflows.
    pub fn limit_ns(&self) -> u64 {
        self.size.saturating_mul(self.unit.ns())
    }
}

/// Writes the histogram.
pub fn histogram(threads: &[Latencies], style: &Histogram) -> String {
    let columns: Vec<Column> = threads
        .iter()
        .map(|thread| Column::of(thread, style))
        .collect();
    let all = style.all && threads.len() > 1;
    let mut text = "# Histogram\n".to_owned();
    let mut rows: Vec<_> = columns
        .iter()
        .map(|column| column.values.iter().peekable())
        .collect();
    for value in 0..style.size {
        let _ = write!(text, "{value:06} ");
        let mut sum = 0;
        for (place, row) in rows.iter_mut().enumerate() {
            let count = row
                .next_if(|(at, _)| *at == value)
                .map_or(0, |(_, count)| *count);
            let tab = if place > 0 { "\t" } else { "" };
            let _ = write!(text, "{tab}{count:06}");
            sum += count;
        }
        if all {
            let _ = write!(text, "\t{sum:06}");
        }
        text.push('\n');
    }
    let sum = |of: fn(&Column) -> u64| columns.iter().map(of).sum::<u64>();
    let longest = columns.iter().map(|column| column.max).max().unwrap_or(0);
    let lines: [Line; 5] = [
        (
            "Total",
            9,
            |column| column.total,
            Some(sum(|column| column.total)),
        ),
        ("Min Latencies", 5, |column| column.min, None),
        ("Avg Latencies", 5, |column| column.mean, None),
        ("Max Latencies", 5, |column| column.max, Some(longest)),
        (
            "Histogram Overflows",
            5,
            |column| column.over,
            Some(sum(|column| column.over)),
        ),
    ];
    for (name, width, of, last) in lines {
        let _ = write!(text, "# {name}:");
        let last = last.filter(|_| all);
        for figure in columns.iter().map(of).chain(last) {
            let _ = write!(text, " {figure:0width$}");
        }
        text.push('\n');
    }
    text.push_str("# Histogram Overflow at cycle number:\n");
    for (thread, column) in columns.iter().enumerate() {
        let _ = write!(text, "# Thread {thread}:");
        for cycle in &column.cycles {
            let _ = write!(text, " {cycle:05}");
        }
        let others = column.over - column.cycles.len() as u64;
        if others > 0 {
            let _ = write!(text, " # {others:05} others");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A line of figures: name, digits, figure of each thread, figure of all.
type Line = (&'static str, usize, fn(&Column) -> u64, Option<u64>);

/// One thread's column of the histogram.
struct Column {
    /// Values below the size that occurred, with their counts, rising.
    values: Vec<(u64, u64)>,
    total: u64,
    min: u64,
    mean: u64,
    max: u64,
    over: u64,
    /// Numbers of the first wake-ups that overflowed.
    cycles: Vec<u64>,
}

impl Column {
    fn of(latencies: &Latencies, style: &Histogram) -> Self {
        let values = rows_below(&latencies.counts, style.size, style.unit);
        let total = values.iter().map(|(_, count)| count).sum();
        let over = latencies.thread.uncounted + latencies.counts.total() - total;
        // cyclictest keeps as many as the histogram has values.
        let most = usize::try_from(style.size.min(over)).unwrap_or(usize::MAX);
        Self {
            values,
            total,
            min: least(latencies.thread.woken, latencies.thread.min_ns, style.unit),
            mean: mean(latencies, style.unit),
            max: style.unit.of(latencies.thread.max_ns),
            over,
            cycles: latencies.first_above(style.limit_ns(), most),
        }
    }
}

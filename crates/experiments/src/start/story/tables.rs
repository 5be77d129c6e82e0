//! The tables of starts: a heading for each series, and below it a line for each interval.

use tare_figures::Run;
use tare_figures::rows::{Figure, Row};
use tare_pages::tables::{Column, Line, Tabled};

use super::NAME;
use super::parts;
use super::series::{self, Point, Series};

const READY: &[Column] = &[
    Column::new("p50", "ready", Figure::MEDIAN),
    Column::new("95 % interval", "ready", Figure::MEDIAN)
        .interval()
        .page_only(),
    Column::new("p99", "ready", Figure::P99),
    Column::new("p99.9", "ready", Figure::P99_9).spared(3),
    Column::new("max", "ready", Figure::Max).highest(),
    Column::new("mean", "ready", Figure::Mean),
    Column::new("without\nlag, p50", "start", Figure::MEDIAN).spared(2),
    Column::new("to the\nend, p50", "exit", Figure::MEDIAN).spared(1),
];

const THROUGHPUT: &[Column] = &[
    Column::new("planned\nper s", "offered", Figure::Rate),
    Column::new("done\nper s", "rate", Figure::Rate),
    Column::new("refused", "refused", Figure::Share),
    Column::new("failed", "failed", Figure::Share),
    Column::new("not\nended", "unfinished", Figure::Share).spared(2),
    Column::new("lag\np99", "lag", Figure::P99).spared(4),
    Column::new("lag\nmax", "lag", Figure::Max).highest(),
    Column::new("in\ntime", "in-time", Figure::Share).spared(1),
    Column::new("most\nalive", "live", Figure::Value)
        .highest()
        .spared(3),
];

const COST: &[Column] = &[
    Column::new("CPU\ntime", "cpu", Figure::Mean),
    Column::new("of its\nown code", "cpu-part", Figure::Mean).of("part", "own"),
    Column::new("around\nthat", "cpu-part", Figure::Mean).of("part", "around"),
    Column::new("of the\nengine", "engine-cpu", Figure::Mean),
    Column::new("of the\nmachine", "machine-cpu", Figure::Mean).spared(1),
    Column::new("memory\np50", "memory", Figure::MEDIAN).spared(2),
    Column::new("memory\nmax", "memory", Figure::Max).highest(),
];

/// Returns the tables.
pub(super) fn tables(run: &Run) -> Vec<Tabled> {
    vec![
        Tabled {
            title: "Time until an instance is ready".to_owned(),
            read: "From the planned start, so that lateness in starting it counts. A quantile is given only if ten instances lie \
                   beyond it."
                .to_owned(),
            columns: READY.to_vec(),
        },
        Tabled {
            title: "Throughput".to_owned(),
            read: "Done are all instances that ended within the measured window. Lag is how late instances were started; in time \
                   are those started within 1 ms of their planned time."
                .to_owned(),
            columns: THROUGHPUT.to_vec(),
        },
        Tabled {
            title: "What an instance costs".to_owned(),
            read: "Means for each instance; of engine and machine, what they spent within the window divided by the instances \
                   done in it."
                .to_owned(),
            columns: COST.to_vec(),
        },
        Tabled {
            title: "Parts of a start, mean".to_owned(),
            read: "From the start call: vmm until the machine is reset, firmware until the kernel begins, kernel until main, \
                   main until ready, exit until the end was seen. Of what has no machine of its own, launch is the time until \
                   main. Parts whose border nothing tells are one."
                .to_owned(),
            columns: parts(run),
        },
    ]
}

/// Returns a column for each part that an instance of the run has. Means add up to the whole, medians do not.
fn parts(run: &Run) -> Vec<Column> {
    let is_there = |name: &&str| {
        let mut rows = run.rows.of(NAME, "part");
        rows.any(|row| row.has("part", name))
    };
    let names = parts::NAMES.into_iter().chain([parts::EXIT]);
    let columns = names
        .filter(is_there)
        .map(|name| Column::new(head(name), "part", Figure::Mean).of("part", name));
    columns.collect()
}

/// Breaks the name of a part that is made of several.
fn head(name: &'static str) -> &'static str {
    match name {
        "launch+main" => "launch\n+main",
        "vmm+firmware" => "vmm+\nfirmware",
        "vmm+firmware+kernel" => "vmm+firmware\n+kernel",
        "vmm+firmware+kernel+main" => "vmm+firmware\n+kernel+main",
        "firmware+kernel" => "firmware\n+kernel",
        "firmware+kernel+main" => "firmware\n+kernel+main",
        "kernel+main" => "kernel\n+main",
        name => name,
    }
}

/// Puts the lines of a table in order: by series, then from the longest interval to the shortest.
pub(super) fn arrange(run: &Run, lines: &mut [Line<'_>]) {
    let all = series::all(run);
    lines.sort_by_key(|line| place(&all, line.of));
}

/// Names a line by its interval, and its series above it.
pub(super) fn name(run: &Run, line: &Line<'_>) -> (Option<String>, String) {
    let all = series::all(run);
    match find(&all, line.of) {
        Some((series, point)) => (Some(series.name()), point.name()),
        None => (None, line.target()),
    }
}

fn find<'s, 'a>(all: &'s [Series<'a>], row: &Row) -> Option<(&'s Series<'a>, &'s Point<'a>)> {
    let (at, point) = place(all, row)?;
    let series = all.get(at)?;
    Some((series, series.points.get(point)?))
}

/// Returns the places of the series of a row, and of its point in that.
fn place(all: &[Series<'_>], row: &Row) -> Option<(usize, usize)> {
    all.iter().enumerate().find_map(|(at, series)| {
        let mut points = series.points.iter();
        Some((at, points.position(|point| point.case.has(row))?))
    })
}

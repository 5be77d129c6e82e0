//! The tables of starts: a heading for each ladder, and below it a line for each rate.

use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_pages::kit::series::Series;
use tare_pages::tables::{Column, Line, Tabled};

use super::ladder::{doubt, pace};
use super::{NAME, ladder, parts};

const READY: &[Column] = &[
    Column::new("p50", "ready", Figure::MEDIAN),
    Column::new("95 % interval", "ready", Figure::MEDIAN)
        .interval()
        .page_only(),
    Column::new("p99", "ready", Figure::P99),
    Column::new("p99.9", "ready", Figure::P99_9).spared(3),
    Column::new("max", "ready", Figure::Max),
    Column::new("mean", "ready", Figure::Mean),
    Column::new("without\nlag, p50", "start", Figure::MEDIAN).spared(2),
    Column::new("to the\nend, p50", "exit", Figure::MEDIAN).spared(1),
];

const THROUGHPUT: &[Column] = &[
    Column::new("planned\nper s", "offered", Figure::Rate),
    Column::new("done\nper s", "rate", Figure::Rate),
    Column::new("rejected", "rejected", Figure::Share),
    Column::new("failed", "failed", Figure::Share),
    Column::new("not\nended", "unfinished", Figure::Share).spared(2),
    Column::new("lag\np99", "lag", Figure::P99).spared(4),
    Column::new("lag\nmax", "lag", Figure::Max),
    Column::new("in\ntime", "in-time", Figure::Share).spared(1),
    Column::new("most\nalive", "live", Figure::Max).spared(3),
];

const COST: &[Column] = &[
    Column::new("CPU\ntime", "cpu", Figure::Mean),
    Column::new("of its\nown code", "cpu-part", Figure::Mean).of("part", "own"),
    Column::new("around\nthat", "cpu-part", Figure::Mean).of("part", "around"),
    Column::new("of the\ndaemons", "daemon-cpu", Figure::Mean),
    Column::new("of the\nmachine", "machine-cpu", Figure::Mean).spared(1),
    Column::new("memory\nmean", "memory", Figure::Mean).spared(2),
    Column::new("memory\nmax", "memory", Figure::Max),
];

/// Returns the tables.
pub(super) fn tables(run: &Run) -> Vec<Tabled> {
    let tabled = |title: &str, read: &str, columns: &[Column]| Tabled {
        title: title.to_owned(),
        read: read.to_owned(),
        columns: columns.to_vec(),
    };
    // Means add up to the whole, medians do not.
    let parts = parts::BEFORE_READY
        .iter()
        .chain([&parts::EXIT])
        .filter(|(name, _)| {
            let mut rows = run.rows.of(NAME, "part");
            rows.any(|row| row.has("part", name))
        });
    let parts = parts.map(|(name, head)| Column::new(head, "part", Figure::Mean).of("part", name));
    vec![
        tabled(
            "Time until an instance is ready",
            "From the planned start, so that lateness in starting it counts. A quantile is given only if ten instances lie beyond \
             it, and is the median over the runs; the mean is that of the runs' means, max the longest of all.",
            READY,
        ),
        tabled(
            "Throughput",
            "Done are all instances that ended well within the measured window. Lag is how late instances were started; in time are \
             those started within 1 ms of their planned time. Alone, an instance is planned for the moment at which the one before \
             has ended; at a rate, starts are as planned (open-loop) while at most one in a hundred lags by more than an interval.",
            THROUGHPUT,
        ),
        tabled(
            "What an instance costs",
            "CPU time: means for each instance; of the unikernel's own code, the time from entry to end, only where started alone; of \
             daemons (Docker's engine, containerd and the like) and machine, what they spent within the window divided by the \
             instances done in it, a mean of the runs, whatever else ran. Memory: the peak of the measured code itself as a process \
             and in a container (without the runtime), of QEMU for a guest.",
            COST,
        ),
        tabled(
            "Parts of a start, mean",
            "From the start call: vmm until the machine is reset, firmware until the kernel begins, kernel until main, main until \
             ready, exit until the end was seen. Where no machine is started, launch is the time until main. Parts with an unknown \
             border are shown as one.",
            &parts.collect::<Vec<_>>(),
        ),
    ]
}

/// Puts the lines of a table in order: by ladder, then from the longest interval to the shortest.
pub(super) fn arrange(run: &Run, lines: &mut [Line<'_>]) {
    let all = ladder::all(run);
    lines.sort_by_key(|line| Series::of_row(&all, line.of).map(|(place, ..)| place));
}

/// Names a line by its rate, below the name of its ladder.
pub(super) fn name(run: &Run, line: &Line<'_>) -> (Option<String>, String) {
    match Series::of_row(&ladder::all(run), line.of) {
        Some((_, ladder, case)) => {
            let doubt = doubt(case).map(|doubt| format!(", {doubt}"));
            (Some(ladder.name()), pace(case) + &doubt.unwrap_or_default())
        }
        None => (None, line.target()),
    }
}

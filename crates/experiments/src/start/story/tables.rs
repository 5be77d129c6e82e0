//! The tables of starts: a heading for each ladder, and below it a line for each rate.

use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_pages::kit::series::Series;
use tare_pages::tables::{Column, Line, Tabled};
use tare_results::model::Cell;
use tare_results::target::Kernel;

use super::super::exits::{ALL, EXITS, PART, REASON};
use super::ladder::pace;
use super::{NAME, ladder, parts};

const READY: &[Column] = &[
    Column::new("p50", "ready", Figure::MEDIAN).read(QUANTILE),
    Column::new("95 % interval", "ready", Figure::MEDIAN)
        .interval()
        .page_only(),
    Column::new("p99", "ready", Figure::P99).read(QUANTILE),
    Column::new("p99.9", "ready", Figure::P99_9)
        .spared(3)
        .read(QUANTILE),
    Column::new("max", "ready", Figure::Max).read("Max is the longest of all."),
    Column::new("mean", "ready", Figure::Mean).read("The mean is that of the runs' means."),
    Column::new("without\nlag, p50", "start", Figure::MEDIAN)
        .spared(2)
        .read("Without lag, it counts from the start call."),
    Column::new("to the\nend, p50", "exit", Figure::MEDIAN)
        .spared(1)
        .read("To the end, it counts until its end was seen."),
];
const QUANTILE: &str = "A quantile is given only if ten instances of each run lie beyond it, and is the median over the runs.";

const THROUGHPUT: &[Column] = &[
    Column::new("planned\nper s", "offered", Figure::Rate),
    Column::new("ended\nper s", "rate", Figure::Rate)
        .read("Ended are all that ended well within the measured window, planned in it or before."),
    Column::new("rejected", "rejected", Figure::Share).read(OUTCOME),
    Column::new("failed", "failed", Figure::Share).read(OUTCOME),
    Column::new("not\nended", "unfinished", Figure::Share)
        .spared(2)
        .read(OUTCOME),
    Column::new("lag\np99", "lag", Figure::P99)
        .spared(4)
        .read(LAG),
    Column::new("lag\nmax", "lag", Figure::Max).read(LAG),
    Column::new("in\ntime", "in-time", Figure::Share)
        .spared(1)
        .read("In time are those started within 1 ms of their planned time."),
    Column::new("most\nalive", "live", Figure::Max).spared(3),
];
const OUTCOME: &str = "Shares are of the arrivals planned in the window, whenever they ended.";
const LAG: &str = "Lag is how late instances were started.";

const COST: [Column; 7] = [
    Column::new("CPU\ntime", "cpu", Figure::Mean).read("CPU time is a mean over the instances."),
    Column::new("of its\nown code", "cpu-part", Figure::Mean).of("part", "own"),
    Column::new("around\nthat", "cpu-part", Figure::Mean).of("part", "around"),
    Column::new("of the\ndaemons", "daemon-cpu", Figure::Mean).read(
        "That of the daemons (Docker's engine, containerd and the like) is what they spent within the window, divided by the \
         instances that ended in it.",
    ),
    Column::new("of the\nmachine", "machine-cpu", Figure::Mean)
        .spared(1)
        .read(
            "That of the machine is what all CPUs spent within the window, whatever ran, divided by the instances that ended \
             in it; it has steps of 10 ms, and is a dash if in a run it is not more than a step above the time of instances and \
             daemons.",
        ),
    Column::new("memory\nmean", "memory", Figure::Mean).spared(2),
    Column::new("memory\nmax", "memory", Figure::Max),
];

const READ_EXITS: &str = "How often a guest under KVM leaves its virtual CPU, as the kernel's tracepoint kvm_exit counts it in two \
     instances that are started alone, before those that are measured. Parts are divided by the guest's own clock: writing \
     the line by which it is ready is part of its work.";

/// Returns the tables.
pub(super) fn tables(run: &Run) -> Vec<Tabled> {
    let is_alone = |cell: &&Cell| {
        let arrivals = cell.plan.arrivals.as_ref();
        arrivals.is_some_and(|arrivals| arrivals.interval_ns.is_none())
    };
    let (alone, at_a_rate): (Vec<&Cell>, Vec<&Cell>) = cells(run).partition(is_alone);
    let mut planned = Vec::new();
    if !alone.is_empty() {
        planned.push(
            "Alone, an instance is planned for the moment at which the one before has ended.",
        );
    }
    if !at_a_rate.is_empty() {
        planned.push(
            "At a rate, starts are as planned (open-loop) while at most one in a hundred lags by more than an interval.",
        );
    }
    // Means add up to the whole, medians do not.
    let parts = parts::BEFORE_READY
        .iter()
        .chain([&parts::AFTER_READY])
        .filter(|(name, _)| {
            let mut rows = run.rows.of(NAME, "part");
            rows.any(|row| row.has("part", name))
        });
    let read = parts::read(parts.clone().map(|(name, _)| *name));
    let has_exits = |part: &str| run.rows.of(NAME, EXITS).any(|row| row.has(PART, part));
    let exits = [(ALL, "all")].into_iter().chain(parts.clone().copied());
    let exits = exits.filter(|(part, _)| has_exits(part));
    let exits = exits.map(|(part, head)| Column::new(head, EXITS, Figure::Mean).of(PART, part));
    let exits: Vec<Column> = exits.collect();
    let parts = parts.map(|(name, head)| Column::new(head, "part", Figure::Mean).of("part", name));
    vec![
        Tabled::new(
            "Time until an instance is ready",
            "From the planned start, so that lateness in starting it counts.",
            READY,
        ),
        Tabled::new("Throughput", &planned.join(" "), THROUGHPUT),
        Tabled::new("What an instance costs", "", &cost(run)),
        Tabled::new("Parts of a start, mean", &read, &parts.collect::<Vec<_>>()),
        Tabled::new(
            "Exits from the guest in each part, by reason",
            READ_EXITS,
            &exits,
        ),
    ]
}

/// Returns the columns of costs, which say what they are of the targets that the run has.
fn cost(run: &Run) -> [Column; 7] {
    let is_there = |of: fn(Kernel) -> bool| cells(run).any(|cell| of(cell.plan.target.kernel()));
    let memory = match (is_there(Kernel::is_guest), is_there(|of| !of.is_guest())) {
        (true, false) => "Memory is QEMU's peak.",
        (false, _) => {
            "Memory is the peak of the measured code itself, without a container's runtime."
        }
        (true, true) => {
            "Memory is the peak of the measured code itself, without a container's runtime; for a guest, QEMU's."
        }
    };
    let own = match is_there(|of| of == Kernel::None) {
        true => {
            "That of the unikernel's own code is the time from entry to end, only where started alone and without a load."
        }
        false => "",
    };
    let [cpu, of_own, around, daemons, machine, mean, max] = COST;
    let (mean, max) = (mean.read(memory), max.read(memory));
    [cpu, of_own.read(own), around, daemons, machine, mean, max]
}

/// Returns the cells of the experiment that have figures.
fn cells(run: &Run) -> impl Iterator<Item = &Cell> {
    let cells = run.cells.iter();
    cells.filter(|cell| cell.plan.experiment == NAME)
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
            let reason = line.labels.get(REASON).map(|reason| format!(", {reason}"));
            let name = pace(case) + &reason.unwrap_or_default();
            (Some(ladder::name(ladder)), name)
        }
        None => (None, line.target()),
    }
}

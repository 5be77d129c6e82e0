//! What else ran on the measured CPUs, as far as it was watched: it stands before every guess at a
//! cause.
//!
//! A cell that failed says so with its reason.

use tare_results::model::{Cell, OtherTask, OtherWork};

use crate::format::Numbers;
use crate::group::{entry, grouped};
use crate::notices::{Notice, name_cells};
use crate::run::Run;
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// The share of the time in a cell from which on a process is named.
const TOLD: f64 = 0.001;
/// The share from which on it bears on the figures.
const MUCH: f64 = 0.01;
/// How many processes are named.
const NAMED: usize = 3;

/// CPU time that a process used on the measured CPUs, in the cells where it matters.
struct Used<'a> {
    task: &'a OtherTask,
    ns: u64,
    watched_ns: u64,
    cells: Vec<u32>,
    greatest: f64,
}

/// The watched interval: a cell, or a measurement without one.
struct Watched<'a> {
    cell: Option<u32>,
    is_loaded: bool,
    other: &'a OtherWork,
}

/// Finds other work and other runs on the measured CPUs.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let watched = |of: fn(&Cell) -> Option<&OtherWork>| -> Vec<Watched<'_>> {
        let cells = run.cells.iter();
        let watched = cells.filter_map(|cell| {
            Some(Watched {
                cell: Some(cell.plan.id),
                is_loaded: cell.load.is_some(),
                other: of(cell)?,
            })
        });
        watched.collect()
    };
    let mut notices = told_of(&watched(|cell| cell.other_work.as_ref()));
    let guests = watched(|cell| cell.guest_work.as_ref());
    notices.extend(other_tasks(&guests, "other-work-in-guest", |each| {
        format!(
            "Inside of the guest, other work ran on the measured CPU: {each}. The figures include this time, which is part of \
             what that kernel costs."
        )
    }));
    notices.extend(not_watched(run));
    notices
}

/// Says what else ran while something was measured that is no cell.
#[must_use]
pub fn other_work(other: &OtherWork) -> Vec<Notice> {
    told_of(&[Watched {
        cell: None,
        is_loaded: false,
        other,
    }])
}

fn told_of(watched: &[Watched<'_>]) -> Vec<Notice> {
    let tasks = other_tasks(watched, "other-work", |each| {
        format!(
            "Other work ran on the measured CPU: {each}. The figures include this time. End it, keep it off that CPU \
             (taskset, cpuset), or choose another one (--cpu)."
        )
    });
    let notices = [other_runs(watched), tasks];
    notices.into_iter().flatten().collect()
}

/// Says of which cells nothing can be known.
fn not_watched(run: &Run) -> Option<Notice> {
    let remote = run.cells.iter();
    let remote = remote.filter(|cell| cell.plan.target.kernel().is_remote());
    let cells: Vec<u32> = remote.map(|cell| cell.plan.id).collect();
    (!cells.is_empty()).then(|| {
        Notice::note(
            "other-work-unknown",
            format!(
                "Other work and other runs on the measured CPU of the other machine were not looked for in {}.",
                name_cells(&cells)
            ),
        )
    })
}

/// Returns whether other work on the measured CPU of a cell may explain its delays.
#[must_use]
pub fn had_other_work(cell: &Cell) -> bool {
    let told = |other: &OtherWork| {
        let mut shares = other.tasks.iter().map(|task| share(task, other));
        !other.runs.is_empty() || shares.any(|share| share >= MUCH)
    };
    both(cell).any(told)
}

/// Returns what else ran on the measured CPUs: of this machine, and of the guest.
fn both(cell: &Cell) -> impl Iterator<Item = &OtherWork> {
    cell.other_work.iter().chain(&cell.guest_work)
}

/// Returns the names of other work that bears on the figures of some cells, each with its share of
/// the time; the greatest first.
pub fn much<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<(String, f64)> {
    let (mut here, mut in_guests) = (Vec::new(), Vec::new());
    for cell in cells {
        here.extend(&cell.other_work);
        in_guests.extend(&cell.guest_work);
    }
    let shares = [here, in_guests]
        .into_iter()
        .flat_map(|all: Vec<&OtherWork>| {
            let watched_ns: u64 = all.iter().map(|other| other.watched_ns).sum();
            let tasks = all.into_iter().flat_map(|other| &other.tasks);
            let by_name = grouped(tasks.map(|task| (task.name.as_str(), task.ns)));
            by_name.into_iter().map(move |(name, ns)| {
                let ns: u64 = ns.iter().sum();
                (name.to_owned(), ns as f64 / watched_ns.max(1) as f64)
            })
        });
    let mut much: Vec<(String, f64)> = shares.filter(|(_, share)| *share >= MUCH).collect();
    much.sort_by(|a, b| b.1.total_cmp(&a.1));
    much
}

fn share(task: &OtherTask, other: &OtherWork) -> f64 {
    task.ns as f64 / other.watched_ns.max(1) as f64
}

fn other_runs(watched: &[Watched<'_>]) -> Option<Notice> {
    let shared = watched.iter().filter(|it| !it.other.runs.is_empty());
    let cells: Vec<u32> = shared.clone().filter_map(|it| it.cell).collect();
    let mut runs: Vec<String> = shared.flat_map(|it| it.other.runs.clone()).collect();
    runs.sort();
    runs.dedup();
    (!runs.is_empty()).then(|| {
        Notice::warning(
            "cpu-shared",
            format!(
                "Another run of tare measured on the same CPU{}: {}. They competed for the CPU, so neither shows what the \
                 system costs. Measure them one after the other, or on different CPUs.",
                within(&cells),
                words::list(&runs)
            ),
        )
    })
}

fn other_tasks(
    watched: &[Watched<'_>],
    id: &'static str,
    text: impl Fn(&str) -> String,
) -> Option<Notice> {
    let mut all: Vec<Used<'_>> = Vec::new();
    for Watched {
        cell,
        is_loaded,
        other,
    } in watched
    {
        // Kernel threads that work for the load belong to the load.
        let tasks = other
            .tasks
            .iter()
            .filter(|task| !(*is_loaded && task.kernel));
        for task in tasks {
            let share = share(task, other);
            if share < TOLD {
                continue;
            }
            let is_same = |known: &Used<'_>| {
                let known = known.task;
                (known.pid, known.cpu, &known.name) == (task.pid, task.cpu, &task.name)
            };
            let known = entry(&mut all, is_same, || Used {
                task,
                ns: 0,
                watched_ns: 0,
                cells: Vec::new(),
                greatest: 0.0,
            });
            known.ns += task.ns;
            known.watched_ns += other.watched_ns;
            known.cells.extend(cell);
            known.greatest = known.greatest.max(share);
        }
    }
    all.sort_by(|a, b| b.greatest.total_cmp(&a.greatest));
    let worst = all.first()?;
    let mut each: Vec<String> = all.iter().take(NAMED).map(told).collect();
    if let Some(more) = all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        each.push(words::counted(
            N,
            more as u64,
            "more process",
            "more processes",
        ));
    }
    let text = text(&each.join("; "));
    Some(match worst.greatest >= MUCH {
        true => Notice::warning(id, text),
        false => Notice::note(id, text),
    })
}

/// Says what a process used: `sh (process 4711) used CPU 1 for about 930 ms of 2.00 s in cell 3`.
fn told(of: &Used<'_>) -> String {
    format!(
        "{} (process {}) used CPU {} for about {} of {}{}",
        of.task.name,
        of.task.pid,
        of.task.cpu,
        N.ns(of.ns as f64, None),
        N.ns(of.watched_ns as f64, None),
        within(&of.cells)
    )
}

fn within(cells: &[u32]) -> String {
    match cells {
        [] => String::new(),
        cells => format!(" in {}", name_cells(cells)),
    }
}

//! What else ran on the measured CPUs, as far as it was watched: it stands before every guess at a cause.

use tare_results::model::{Cell, OtherTask, OtherWork};

use super::Run;
use super::alarm::{Alarm, name_cells};
use crate::format::Numbers;
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// The share of the time in a cell from which on a process is named.
const TOLD: f64 = 0.001;
/// The share from which on it bears on the figures.
const MUCH: f64 = 0.01;
/// How many processes are named.
const NAMED: usize = 3;

/// What a process had of the measured CPUs, in all cells in which that is worth telling.
struct Neighbour<'a> {
    task: &'a OtherTask,
    ns: u64,
    watched_ns: u64,
    cells: Vec<u32>,
    greatest: f64,
}

/// Finds other work and other runs on the measured CPUs.
pub(super) fn find(run: &Run) -> Vec<Alarm> {
    let watched = run.cells.iter();
    let watched: Vec<(&Cell, &OtherWork)> = watched
        .filter_map(|cell| Some((cell, cell.other_work.as_ref()?)))
        .collect();
    let alarms = [other_runs(&watched), other_work(&watched)];
    alarms.into_iter().flatten().collect()
}

/// Says whether so much else ran on the measured CPU of a cell that its delays may be that.
#[must_use]
pub fn had_other_work(cell: &Cell) -> bool {
    let told = |other: &OtherWork| {
        let mut shares = other.tasks.iter().map(|task| share(task, other));
        !other.runs.is_empty() || shares.any(|share| share >= MUCH)
    };
    cell.other_work.as_ref().is_some_and(told)
}

fn share(task: &OtherTask, other: &OtherWork) -> f64 {
    task.ns as f64 / other.watched_ns.max(1) as f64
}

fn other_runs(watched: &[(&Cell, &OtherWork)]) -> Option<Alarm> {
    let shared = watched.iter().filter(|(_, other)| !other.runs.is_empty());
    let cells: Vec<u32> = shared.clone().map(|(cell, _)| cell.plan.id).collect();
    let mut runs: Vec<String> = shared.flat_map(|(_, other)| other.runs.clone()).collect();
    runs.sort();
    runs.dedup();
    (!runs.is_empty()).then(|| {
        Alarm::warning(
            "cpu-shared",
            format!(
                "Another run of tare measured on the same CPU in {}: {}. The two took turns there, so neither tells what the \
                 system costs. Measure them one after the other, or on CPUs of their own.",
                name_cells(&cells),
                words::list(&runs)
            ),
        )
    })
}

fn other_work(watched: &[(&Cell, &OtherWork)]) -> Option<Alarm> {
    let mut neighbours: Vec<Neighbour<'_>> = Vec::new();
    for (cell, other) in watched {
        let is_loaded = cell.load.is_some();
        // What the kernel does for the load belongs to the load.
        let tasks = other
            .tasks
            .iter()
            .filter(|task| !(is_loaded && task.kernel));
        for task in tasks {
            let share = share(task, other);
            if share < TOLD {
                continue;
            }
            let is_same = |known: &&mut Neighbour<'_>| {
                let known = known.task;
                (known.pid, known.cpu, &known.name) == (task.pid, task.cpu, &task.name)
            };
            let known = match neighbours.iter_mut().find(is_same) {
                Some(known) => known,
                None => {
                    neighbours.push(Neighbour {
                        task,
                        ns: 0,
                        watched_ns: 0,
                        cells: Vec::new(),
                        greatest: 0.0,
                    });
                    let last = neighbours.len() - 1;
                    &mut neighbours[last]
                }
            };
            known.ns += task.ns;
            known.watched_ns += other.watched_ns;
            known.cells.push(cell.plan.id);
            known.greatest = known.greatest.max(share);
        }
    }
    neighbours.sort_by(|a, b| b.greatest.total_cmp(&a.greatest));
    let worst = neighbours.first()?;
    let mut each: Vec<String> = neighbours.iter().take(NAMED).map(told).collect();
    if let Some(more) = neighbours.len().checked_sub(NAMED).filter(|more| *more > 0) {
        each.push(words::counted(
            N,
            more as u64,
            "more process",
            "more processes",
        ));
    }
    let text = format!(
        "Other work ran on the measured CPU: {}. What it took is in the figures. End it, keep it off that CPU (taskset, \
         cpuset), or choose another one (--cpu).",
        each.join("; ")
    );
    Some(match worst.greatest >= MUCH {
        true => Alarm::warning("other-work", text),
        false => Alarm::note("other-work", text),
    })
}

/// Says what a process had: `sh (process 4711) had about 930 ms of 2.00 s on CPU 1 in cell 3`.
fn told(of: &Neighbour<'_>) -> String {
    format!(
        "{} (process {}) had about {} of {} on CPU {} in {}",
        of.task.name,
        of.task.pid,
        N.ns(of.ns as f64, None),
        N.ns(of.watched_ns as f64, None),
        of.task.cpu,
        name_cells(&of.cells)
    )
}

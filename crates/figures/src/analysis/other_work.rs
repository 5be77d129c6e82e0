//! What else ran on the measured CPUs, as far as it was watched: it stands before every guess at a
//! cause.
//!
//! A cell that failed says so with its reason.

use std::collections::BTreeSet;

use tare_host::visible_in_line;
use tare_results::model::{Cell, Labels, OtherTask, OtherWork};

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
/// By which factor the greatest share in a cell exceeds that of all time, to be shown as well.
const UNEVEN: f64 = 1.5;
/// How many names are shown.
const NAMED: usize = 3;
/// What looks at intervals cannot see.
const SHORT_LIVED: &str = "Tasks that lived for less than a second may be missing.";

/// CPU time that the processes of a name used on the measured CPUs, by whatever threads. Those of
/// the kernel are apart from programs of the same name.
#[derive(Debug, Default)]
struct Used<'a> {
    process: &'a str,
    /// The names of the tasks: the process's, with its thread's where it has another one.
    tasks: BTreeSet<&'a str>,
    pids: BTreeSet<u32>,
    /// Whether they are threads of the kernel.
    is_kernel: bool,
    /// Their time on each CPU, the greatest share first.
    on: Vec<OnCpu>,
}

/// CPU time on one CPU.
#[derive(Debug, Default)]
struct OnCpu {
    cpu: u32,
    ns: u64,
    /// Of the time in which the CPU was watched.
    share: f64,
    /// The number of cells in which it was watched.
    cells: usize,
    /// Whether that is the time without a load: kernel threads that work for one belong to it.
    is_without_load: bool,
    /// The greatest share of the time of a cell, and the cell.
    greatest: (f64, Option<u32>),
}

/// The watched interval: a cell, or a measurement without one.
struct Watched<'a> {
    cell: Option<u32>,
    /// The CPUs that were watched, as the plan numbers them.
    cpus: Vec<u32>,
    is_loaded: bool,
    /// Whether its tasks say something of the figures; other runs always do.
    is_telling: bool,
    other: &'a OtherWork,
}

/// Finds other work and other runs on the measured CPUs.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let watched = |of| {
        let cells = run.cells.iter();
        Vec::from_iter(cells.filter_map(|cell| watched(cell, of)))
    };
    let all = watched(of_machine);
    let mut notices = told_of(&all);
    let around = all.into_iter().filter(|it| !it.is_telling);
    let around = around.map(|it| Watched {
        is_telling: true,
        ..it
    });
    let around = Vec::from_iter(around);
    notices.extend(other_tasks(&around, "other-work-around", |cpus, each| {
        format!(
            "Other work ran on the measured {cpus} around cells that measured for too short a part of the time watched to tell \
             how much of it ran within them: {each}. {SHORT_LIVED} Measure longer, or choose another CPU (--cpu)."
        )
    }));
    let guests = watched(|cell| cell.guest_work.as_ref());
    notices.extend(other_tasks(&guests, "other-work-in-guest", |cpus, each| {
        format!(
            "Inside of the guest, other work ran on the measured {cpus}: {each}. The figures include this time, which is part of \
             what that kernel costs."
        )
    }));
    notices.extend(stolen_notice(run));
    notices.extend(not_watched(run));
    notices
}

/// Says what else ran while something was measured that is no cell.
#[must_use]
pub fn other_work(other: &OtherWork) -> Vec<Notice> {
    told_of(&[Watched {
        cell: None,
        cpus: Vec::new(),
        is_loaded: false,
        is_telling: other.is_telling(),
        other,
    }])
}

fn told_of(watched: &[Watched<'_>]) -> Vec<Notice> {
    let tasks = other_tasks(watched, "other-work", |cpus, each| {
        format!(
            "Other work ran on the measured {cpus}: {each}. {SHORT_LIVED} The figures \
             include the part between their first and last sample. End what can be ended, keep it off that CPU (taskset, cpuset), or choose another one (--cpu)."
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

/// Returns what else of this machine ran there; nothing if an emulator counted instructions, whose
/// figures are the same whatever else runs.
fn of_machine(cell: &Cell) -> Option<&OtherWork> {
    cell.other_work.as_ref().filter(|_| is_timed(cell))
}

/// Returns whether time passed for a cell while the machine did something else: how an instance
/// starts is seen from here, and runs on any CPU.
fn is_timed(cell: &Cell) -> bool {
    !cell.plan.counts_instructions() || cell.plan.work.cpus.is_none()
}

/// Returns the names of other work that bears on the figures of some cells, each with its share of
/// the time, the greatest share first; before them how much the hypervisor took, also from threads
/// that come before all others:
/// `stolen time (at most 1.2 % of the CPU's time)`, `sh (66 % of the CPU's time)`.
pub fn much<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<String> {
    let cells = Vec::from_iter(cells);
    let of = |of: fn(&Cell) -> Option<&OtherWork>| {
        let watched = Vec::from_iter(cells.iter().filter_map(|cell| watched(cell, of)));
        let used = by_name(&watched).into_iter();
        let much = used.filter(|used| used.greatest() >= MUCH);
        let told = much.filter_map(|used| {
            let on = used.on.first()?;
            let share = format!("{}{}", share_of(on, cells.len()), most(on, ", ", ""));
            Some((format!("{} ({share})", used.name()), on.share))
        });
        Vec::from_iter(told)
    };
    let mut much = of(of_machine);
    much.extend(of(|cell| cell.guest_work.as_ref()));
    much.sort_by(|a, b| b.1.total_cmp(&a.1));
    let stolen = stolen(&cells).map(|on| {
        let share = format!("{}{}", share_of(&on, cells.len()), most(&on, ", ", ""));
        format!("stolen time (at most {share})")
    });
    let much = much.into_iter().map(|(told, _)| told);
    stolen.into_iter().chain(much).collect()
}

/// Writes a share of a CPU's time, and of which cells that is if not of all.
fn share_of(on: &OnCpu, all: usize) -> String {
    let some = match on.cells < all {
        true => format!(" in {} of {all} cells", on.cells),
        false => String::new(),
    };
    format!("{} of the CPU's time{some}", N.percent(on.share))
}

/// Returns how much the hypervisor took from the measured CPUs, if that is much of a cell. It is
/// the most that it can be: some may have come before the first sample and after the last.
fn stolen(cells: &[&Cell]) -> Option<OnCpu> {
    let timed = cells.iter().filter(|cell| is_timed(cell));
    let each = timed.filter_map(|cell| {
        let watched = || Some(cell.other_work.as_ref()?.watched_ns as f64);
        let of = cell.measured_ns().or_else(watched)?;
        let of = Some(of).filter(|of| *of >= OtherWork::SHORTEST_NS as f64)?;
        let stolen = cell.outcome.record()?.value("stolen", &Labels::default());
        Some((stolen.unwrap_or(0.0).min(of), of, cell.plan.id))
    });
    let each: Vec<(f64, f64, u32)> = each.collect();
    let shares = each.iter().map(|(stolen, of, cell)| (stolen / of, *cell));
    let (most, cell) = shares.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let stolen: f64 = each.iter().map(|(stolen, ..)| stolen).sum();
    let all: f64 = each.iter().map(|(_, of, _)| of).sum();
    (most >= MUCH).then(|| OnCpu {
        ns: stolen as u64,
        share: stolen / all,
        cells: each.len(),
        // As much was stolen as was measured, so that the cell's share is unknown.
        greatest: (most, (most < 1.0).then_some(cell)),
        ..OnCpu::default()
    })
}

/// Warns of what the hypervisor took from the measured CPUs.
fn stolen_notice(run: &Run) -> Option<Notice> {
    let cells = Vec::from_iter(&run.cells);
    let on = stolen(&cells)?;
    let of = match on.cells < cells.len() {
        true => format!("the time measured in {} of {} cells", on.cells, cells.len()),
        false => "all measured time".to_owned(),
    };
    let text = format!(
        "The hypervisor took the measured CPU away for at most {} of {of}{} (stolen time).",
        N.percent(on.share),
        most(&on, ", at most ", "")
    );
    Some(Notice::warning("stolen-time", text))
}

fn watched(cell: &Cell, of: fn(&Cell) -> Option<&OtherWork>) -> Option<Watched<'_>> {
    let other = of(cell)?;
    Some(Watched {
        cell: Some(cell.plan.id),
        cpus: cell.plan.measured_cpus().iter().collect(),
        is_loaded: cell.load.is_some(),
        is_telling: cell.is_told_by(other),
        other,
    })
}

/// Adds up what ran by its name, the most in a cell first.
fn by_name<'a>(watched: &[Watched<'a>]) -> Vec<Used<'a>> {
    let watched = || watched.iter().filter(|it| it.is_telling);
    // In a guest, CPUs have other numbers than in the plan.
    let watched_ns = |cpu: u32, is_kernel: bool| -> (u64, usize) {
        let watched = || watched().filter(|it| !(is_kernel && it.is_loaded));
        let is_own = |it: &&Watched<'_>| it.cpus.contains(&cpu);
        let is_known = watched().any(|it| is_own(&it));
        let own = watched().filter(|it| !is_known || is_own(it));
        let cells = own.clone().filter(|it| it.cell.is_some()).count();
        (own.map(|it| it.other.watched_ns).sum(), cells)
    };
    let mut all: Vec<Used<'a>> = Vec::new();
    for Watched {
        cell,
        is_loaded,
        other,
        ..
    } in watched()
    {
        // Kernel threads that work for the load belong to the load.
        let tasks = other.tasks.iter();
        let tasks = tasks.filter(|task| task.ns > 0 && !(*is_loaded && task.kernel));
        let by_name = grouped(tasks.map(|task| ((process_of(task), task.kernel), task)));
        for ((process, is_kernel), tasks) in by_name {
            let new = || Used {
                process,
                is_kernel,
                ..Used::default()
            };
            let is_it = |used: &Used<'_>| (used.process, used.is_kernel) == (process, is_kernel);
            let used = entry(&mut all, is_it, new);
            used.tasks
                .extend(tasks.iter().map(|task| task.name.as_str()));
            used.pids.extend(tasks.iter().map(|task| task.pid));
            for (cpu, tasks) in grouped(tasks.into_iter().map(|task| (task.cpu, task))) {
                let new = || OnCpu {
                    cpu,
                    ..OnCpu::default()
                };
                let on = entry(&mut used.on, |on| on.cpu == cpu, new);
                let ns: u64 = tasks.iter().map(|task| task.ns).sum();
                on.ns += ns;
                let share = ns as f64 / other.watched_ns.max(1) as f64;
                if share > on.greatest.0 {
                    on.greatest = (share, *cell);
                }
            }
        }
    }
    let any_loaded = watched().any(|it| it.is_loaded);
    for used in &mut all {
        let is_kernel = used.is_kernel;
        for on in &mut used.on {
            let (watched_ns, cells) = watched_ns(on.cpu, is_kernel);
            on.share = on.ns as f64 / watched_ns.max(1) as f64;
            on.cells = cells;
            on.is_without_load = is_kernel && any_loaded;
        }
        used.on.sort_by(|a, b| b.share.total_cmp(&a.share));
    }
    all.sort_by(|a, b| b.greatest().total_cmp(&a.greatest()));
    all
}

/// Returns the process's part of a task's name: `java` of `java (thread GC)`. The current work of
/// the kernel's kworker is no part of it.
fn process_of(task: &OtherTask) -> &str {
    let (task, is_kernel) = (task.name.as_str(), task.kernel);
    if is_kernel && task.starts_with("kworker/") {
        return task.split(['-', '+']).next().unwrap_or(task);
    }
    let own = |what: &str| task.rfind(what).map(|at| &task[..at]);
    let own = task
        .ends_with(')')
        .then(|| own(" (thread ").or_else(|| own(" (several threads")));
    own.flatten().unwrap_or(task)
}

impl Used<'_> {
    /// Returns its greatest share of the time of a cell.
    fn greatest(&self) -> f64 {
        self.on.iter().map(|on| on.greatest.0).fold(0.0, f64::max)
    }

    /// Returns the name of the task if there is one, else that of the processes. Programs may call
    /// themselves as the kernel calls its threads.
    fn name(&self) -> String {
        let name = match self.tasks.first() {
            Some(one) if self.tasks.len() == 1 => visible_in_line(one).into_owned(),
            _ => format!("{} (several threads)", visible_in_line(self.process)),
        };
        if name.trim().is_empty() {
            return format!("'{name}'");
        }
        match !self.is_kernel && self.process.contains('/') {
            true => format!("{name} (a program, no thread of the kernel)"),
            false => name,
        }
    }
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
    text: impl Fn(&str, &str) -> String,
) -> Option<Notice> {
    let mut all = by_name(watched);
    all.retain(|used| used.greatest() >= TOLD);
    let worst = all.first()?;
    let mut each: Vec<String> = all.iter().take(NAMED).map(told).collect();
    if let Some(more) = all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        each.push(words::counted(N, more as u64, "more name", "more names"));
    }
    let cpus = all.iter().take(NAMED).flat_map(|used| &used.on);
    let cpus: BTreeSet<u32> = cpus.map(|on| on.cpu).collect();
    let cpus = if cpus.len() > 1 { "CPUs" } else { "CPU" };
    let text = text(cpus, &each.join("; "));
    Some(match worst.greatest() >= MUCH {
        true => Notice::warning(id, text),
        false => Notice::note(id, text),
    })
}

/// Says what the processes of a name used:
/// `sh (process 4711) used CPU 1 for about 930 ms, 23.2 % of the time (93 % in cell 3)`.
fn told(used: &Used<'_>) -> String {
    let one = used.pids.first().filter(|_| used.pids.len() == 1);
    let processes = match one {
        Some(pid) => format!("process {pid}"),
        None => format!("{} processes", N.count(used.pids.len() as u64)),
    };
    let on = used.on.iter().filter(|on| on.greatest.0 >= TOLD);
    let each: Vec<String> = on.map(on_cpu).collect();
    format!("{} ({processes}) used {}", used.name(), words::list(&each))
}

/// Says in which cell it was most, if that is much more than on average.
fn most(on: &OnCpu, begin: &str, end: &str) -> String {
    match on.greatest {
        (share, Some(cell)) if share > UNEVEN * on.share => {
            format!("{begin}{} in cell {cell}{end}", N.percent(share))
        }
        _ => String::new(),
    }
}

fn on_cpu(on: &OnCpu) -> String {
    let cells = match (on.cells, on.greatest.1) {
        (1, Some(cell)) => format!(" of cell {cell}"),
        (0 | 1, _) => String::new(),
        (cells, _) => format!(" of {} cells", N.count(cells as u64)),
    };
    let load = if on.is_without_load {
        " without a load"
    } else {
        ""
    };
    format!(
        "CPU {} for about {}, {} of the time{cells}{load}{}",
        on.cpu,
        N.ns(on.ns as f64, None),
        N.percent(on.share),
        most(on, " (", ")")
    )
}

fn within(cells: &[u32]) -> String {
    match cells {
        [] => String::new(),
        cells => format!(" in {}", name_cells(cells)),
    }
}

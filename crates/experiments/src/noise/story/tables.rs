//! The tables of figures, as data.

use tare_figures::Run;
use tare_figures::group::distinct;
use tare_figures::rows::{CPU, Figure};
use tare_pages::kit::sentence::MANY;
use tare_pages::tables::{Column, Line, Tabled};
use tare_wire::record::STEAL;

use super::super::of_kind;
use super::NAME;
use super::panels::{rank as rank_of, titled};
use super::takers::SMI;

/// The combination of the runs to the figures of a table.
const OVER_RUNS: &str = "Longest and shortest are of all runs, quantiles the median over the runs, means the mean of the \
                         runs' means; shares and rates are of all runs together.";

/// Returns all tables.
pub(super) fn all(run: &Run) -> Vec<Tabled> {
    use Figure as F;
    let share = |limit, head| {
        Column::new(head, "delayed", F::Share)
            .of("above", limit)
            .beside()
    };
    let (above_400, above_2000) = (
        share("400cycles", "time\n> 400").spared(2),
        share("2000cycles", "time\n> 2,000").spared(1),
    );
    let titled = |title: &str, read: &str, columns: Vec<Column>| Tabled::new(title, read, &columns);
    let mut delays: Vec<Column> = Vec::new();
    let mut gaps: Vec<Column> = Vec::new();
    for (letter, bounds) in [
        ("A", "A\n150–400"),
        ("B", "B\n400–2,000"),
        ("C", "C\n2,000–6,000"),
        ("D", "D\n> 6,000"),
    ] {
        let of = |head, measure, figure| Column::new(head, measure, figure).of("class", letter);
        let mean = of("cycles, mean", "delay", F::Mean).beside().below();
        delays.extend([
            of(bounds, "delays", F::Share).per_million(),
            of("in all", "delays", F::Total).counted().below(),
            mean,
        ]);
        gaps.extend([
            of(bounds, "gap-class", F::Total).counted().page_only(),
            of("per second", "gap-class", F::Rate).below(),
            mean,
        ]);
    }
    delays.extend([above_400, above_2000]);
    gaps.extend([above_400.page_only(), above_2000.page_only()]);
    vec![
        titled(
            "Interruptions",
            &format!(
                "{}. Longest is of all runs that have a gap, shares and rates are of all runs together.",
                does(run, true)
            ),
            vec![
                Column::new("lost", "lost", F::Share),
                Column::new("95 % interval", "lost", F::Share).interval(),
                Column::new("gaps/s", "gaps", F::Rate).spared(1),
                Column::new("counted\nfrom", "threshold", F::Max).page_only(),
                Column::new("median", "gap", F::MEDIAN).spared(2),
                Column::new("p99", "gap", F::P99).spared(3),
                Column::new("p99.9", "gap", F::P99_9).page_only(),
                Column::new("longest", "gap", F::Max),
                Column::new("in cycles", "gap", F::Max)
                    .in_cycles()
                    .spared(4)
                    .terminal_only(),
                Column::new("period,\nif any", "period", F::MEDIAN).page_only(),
                Column::new("of the gaps", "periodic", F::Share).below(),
                Column::new("gaps", "gaps", F::Total)
                    .counted()
                    .every_run_only(),
                Column::new("quiet\niteration", "quiet", F::Mean).every_run_only(),
                Column::new("mean\niteration", "iteration", F::Mean).every_run_only(),
                Column::new("sd", "iteration", F::Sd).every_run_only(),
            ],
        ),
        titled(
            "Gaps by class",
            "The classes of kot-2019, in cycles above the mean iteration: how many gaps, and how long they are. A dash: the \
             class lies below the threshold in part or as a whole, or the list was full.",
            gaps,
        ),
        titled(
            "Durations",
            &format!(
                "{}. Each repetition does the same, so what makes one longer is not the work. {OVER_RUNS}",
                does(run, false)
            ),
            vec![
                Column::new("shortest", "duration", F::Min).spared(1),
                Column::new("median", "duration", F::MEDIAN),
                Column::new("net\nmedian", "net", F::MEDIAN).page_only(),
                Column::new("mean,\ncycles", "duration", F::Mean)
                    .in_cycles()
                    .with_interval()
                    .spared(2)
                    .terminal_only(),
                Column::new("mean", "duration", F::Mean)
                    .with_interval()
                    .page_only(),
                Column::new("p99", "duration", F::P99).page_only(),
                Column::new("p99.9", "duration", F::P99_9).spared(3),
                Column::new("p99.99", "duration", F::P99_99).page_only(),
                Column::new("longest", "duration", F::Max),
                Column::new("in cycles", "duration", F::Max)
                    .in_cycles()
                    .spared(4)
                    .terminal_only(),
                Column::new("sd", "duration", F::Sd).every_run_only(),
                Column::new("net mean", "net", F::Mean).every_run_only(),
                Column::new("net, each\nstep", "step", F::Mean).page_only(),
                Column::new("between\nthem", "dead", F::Mean).page_only(),
            ],
        ),
        titled(
            "Delays per million repetitions, by cycles above the mean",
            "",
            delays,
        ),
        Tabled::interrupts(counted(run)),
        Tabled::context_switches(),
    ]
}

/// Explains what was counted: interrupts, or only time and what is below the kernel.
fn counted(run: &Run) -> &'static str {
    let counters = run
        .rows
        .0
        .iter()
        .filter_map(|row| row.labels.get("counter"));
    let mut others = counters.filter(|name| ![STEAL, SMI].contains(name));
    match others.next() {
        Some(_) => {
            "From first to last stamp. As many interrupts a second as gaps: each was seen. Fewer: something from below took the \
             CPU as well. More: some were shorter than the threshold."
        }
        None => "From first to last stamp.",
    }
}

/// Describes a run's workloads of a kind, in the order of reports.
fn does(run: &Run, only_reads_clock: bool) -> String {
    let mut all = Vec::from_iter(of_kind(only_reads_clock));
    all.retain(|one| {
        run.plan
            .cells
            .iter()
            .any(|cell| cell.work.id == one.code.id)
    });
    let all = all
        .into_iter()
        .map(|one| format!("{} {}", one.code.id, one.does));
    all.collect::<Vec<_>>().join("; ")
}

/// Names a line: `prime 22 · process`. With many targets the heading has what those of a group have
/// in common.
pub(super) fn name(run: &Run, line: &Line<'_>) -> (Option<String>, String) {
    let label = |key| line.labels.get(key);
    let workload = label("workload").unwrap_or_default();
    let title = titled(workload, &line.of.load, &line.of.plan);
    let counter = label("counter").or(label("kind"));
    let counter = counter.map_or_else(String::new, |name| format!(" · {name}"));
    let cpu = label(CPU).map_or_else(String::new, |cpu| format!(", CPU {cpu}"));
    let target = format!("{}{cpu}{counter}", line.target());
    match is_crowded(run) {
        true => (
            Some(format!(
                "{title} · {}",
                line.of.group.capabilities().heading
            )),
            target,
        ),
        false => (None, format!("{title} · {target}")),
    }
}

/// Returns whether there are many targets, of several groups.
fn is_crowded(run: &Run) -> bool {
    let cells = run.plan.cells.iter().filter(|cell| cell.experiment == NAME);
    let targets = distinct(cells.map(|cell| &cell.target));
    targets.len() > MANY && targets.iter().any(|one| one.group != targets[0].group)
}

/// Returns the place of a line: by workload, load and size, and then in the order of rows.
pub(super) fn rank(line: &Line<'_>) -> (usize, bool, String, u64, u64) {
    let label = |key| line.labels.get(key).unwrap_or_default();
    let load = &line.of.load;
    let size = label("size").parse().unwrap_or_default();
    (
        rank_of(label("workload")),
        !load.is_idle(),
        load.to_string(),
        size,
        label(CPU).parse().unwrap_or_default(),
    )
}

//! What is lost below any operating system, and what the operating system adds.
//!
//! A unikernel that does not take interrupts loses only what is taken from below it: by the
//! firmware, by a hypervisor. A process on the same core loses that too, and besides what its
//! operating system takes. The difference is the operating system's part.
//!
//! Blocks hold both, one soon after the other, so they are paired by block, and the interval is
//! that of the mean difference over blocks by Student's t. Nothing is concluded from a difference
//! whose interval holds 0 or lies below it.
//!
//! A unikernel that runs as a guest of this machine's own kernel has that kernel below it: its
//! ticks and interrupts stop the guest too, for longer than they would stop a process, since each
//! costs an exit. For a process the split then is a bound: *at most* so much is lost below any
//! operating system, and the operating system adds *at least* the difference. For a Linux guest
//! beside it the same lies below both, and the difference is what the guest's own kernel adds.

use std::collections::HashSet;

use maud::{Markup, html};
use schemars::JsonSchema;
use serde::Serialize;
use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::group::distinct;
use tare_figures::interval::Interval;
use tare_figures::notices::Notice;
use tare_figures::rows::{Figure, Row};
use tare_figures::words::{self, NONE};
use tare_pages::Titled;
use tare_pages::table::Table;
use tare_results::model::{Cell, Labels, Program, Record, Schedule};
use tare_results::target::{Group, Kernel, TargetSpec};
use tare_stats::{Level, NoInterval, differences_over_runs};

use super::super::only_reads_clock;
use super::NAME;
use super::panels::{rank, title};

const N: Numbers = Numbers::PLAIN;

/// What stands above the table of splits.
pub(super) const TITLE: &str = "What the operating system adds";

/// How the lost time divides, or why that is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Attribution {
    /// The splits, one for each load and target with an operating system.
    splits: Vec<Split>,
    /// Why there is none, where there might have been.
    refused: Vec<Refused>,
}

/// The loss of a target, divided into the part below any operating system and the part of its own.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Split {
    /// The load as it is written on the command line.
    #[schemars(with = "String")]
    load: Schedule,
    /// The workload with its size: one that only reads the clock where both targets have it.
    workload: String,
    /// The target with an operating system: `process`.
    target: String,
    /// The group that it belongs to.
    group: Group,
    /// The target without one: `unikernel,irq=off`.
    reference: String,
    /// Whether the kernel of this machine is below the reference but not below the target: then
    /// `below` is an upper bound, and `difference` a lower one.
    is_bound: bool,
    /// The blocks that hold both.
    blocks: Vec<u32>,
    /// The divided figures; the verdict is about the first.
    parts: Vec<Part>,
}

/// A figure, divided.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
struct Part {
    /// The measure, as in rows: `lost`.
    measure: &'static str,
    /// The figure of it: `share`, `rate`.
    figure: String,
    /// What else distinguishes the row: the class of delays, the limit.
    labels: Labels,
    /// Mean over the blocks on the target.
    all: f64,
    /// Mean over the blocks on the reference: what is lost below.
    below: f64,
    /// Mean over blocks of target less reference, with its interval at 95 % by itself; null with
    /// too few blocks, or if none differs. It is a finding only if `finding` says so.
    difference: Option<Interval>,
    /// The meaning of the difference.
    finding: Finding,
}

/// The meaning of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Finding {
    /// The whole interval lies above 0: the operating system adds that.
    Added,
    /// It does not: whether the operating system adds anything is not told.
    NotDistinguishable,
    /// There is no interval, since too few blocks hold both.
    TooFewBlocks,
}

/// The reason why a split was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Refused {
    /// A short name that stays the same between versions: `not-measured` if no block has figures of
    /// both, `emulated`, `other-cpu`, `thresholds`.
    id: &'static str,
    /// The load as it is written on the command line.
    load: String,
    /// The reason in words, and what to do.
    text: String,
}

/// A figure that is divided: measure, figure and label.
type Divided = (
    &'static str,
    Figure,
    &'static [(&'static str, &'static str)],
);

/// Those of a spin, and of timed work.
const OF_GAP: &[Divided] = &[
    ("lost", Figure::Share, &[]),
    ("gaps", Figure::Rate, &[]),
    ("gap-class", Figure::Rate, &[("class", "A")]),
    ("gap-class", Figure::Rate, &[("class", "B")]),
    ("gap-class", Figure::Rate, &[("class", "C")]),
    ("gap-class", Figure::Rate, &[("class", "D")]),
];
const OF_TIMED: &[Divided] = &[
    ("delayed", Figure::Share, &[("above", "400cycles")]),
    ("delayed", Figure::Share, &[("above", "2000cycles")]),
    ("delays", Figure::Share, &[("class", "A")]),
    ("delays", Figure::Share, &[("class", "B")]),
    ("delays", Figure::Share, &[("class", "C")]),
    ("delays", Figure::Share, &[("class", "D")]),
];

fn is_process(target: &TargetSpec) -> bool {
    target.capabilities().is_direct
}

/// Returns whether a target loses only what is taken from below any operating system.
pub(super) fn is_reference(target: &TargetSpec) -> bool {
    target.kernel() == Kernel::None && target.option("irq") == Some("off")
}

/// Returns whether the time that a target loses is divided. A load inside of a guest disturbs
/// something else than one alongside the reference.
fn is_divided(target: &TargetSpec, load: &Schedule) -> bool {
    is_process(target) || target.kernel() == Kernel::Guest && load.is_idle()
}

impl Attribution {
    /// Divides what was lost, for each load by the first workload that both targets have.
    pub(super) fn of(run: &Run) -> Self {
        let mut found = Self::default();
        let planned = || run.plan.cells.iter().filter(|cell| cell.experiment == NAME);
        let asked = |is: fn(&TargetSpec) -> bool| planned().any(|cell| is(&cell.target));
        // Nobody asked for it.
        if !asked(is_process) || !asked(is_reference) {
            return found;
        }
        let mut cases = Case::all(run, NAME);
        cases
            .sort_by_cached_key(|case| (rank(&case.plan.work.id), case.plan.labels.number("size")));
        let references = planned().filter(|cell| is_reference(&cell.target));
        let loads: HashSet<&Schedule> = references.map(|cell| &cell.load).collect();
        let mut divided: Vec<(&Schedule, &TargetSpec)> = planned()
            .filter(|cell| is_divided(&cell.target, &cell.load) && loads.contains(&cell.load))
            .map(|cell| (&cell.load, &cell.target))
            .collect();
        divided.sort_by_key(|(load, target)| {
            (!load.is_idle(), load.as_str(), target.group, &target.text)
        });
        divided.dedup();
        for (load, target) in divided {
            match split(target, load, &cases) {
                Ok(split) => found.splits.push(split),
                // The reason is reported for the process; the guest would only repeat it.
                Err(refused) if is_process(target) => found.refused.push(refused),
                Err(_) => {}
            }
        }
        found
    }
}

fn program(cell: &Cell) -> Option<&Program> {
    cell.outcome.record().and_then(Record::program)
}

fn accelerator(cell: &Cell) -> Option<&str> {
    program(cell)?.agent.accelerator.as_deref()
}

/// Divides what a target lost under a load.
fn split(target: &TargetSpec, load: &Schedule, cases: &[Case<'_>]) -> Result<Split, Refused> {
    let refused = |id, text: &str| Refused {
        id,
        load: load.to_string(),
        text: format!("Split{}: {text}", load.under()),
    };
    let not_measured = || {
        let text = "no block has figures of both process and unikernel,irq=off, so what the operating system adds is unknown.";
        refused("not-measured", text)
    };
    let of_load = || cases.iter().filter(|case| case.plan.load == *load);
    let mut pairs = of_load()
        .filter(|case| case.plan.target == *target)
        .filter_map(|measured| {
            // A reference that was not emulated if there is one, then the plainest.
            let references = of_load().filter(|case| {
                is_reference(&case.plan.target) && case.plan.labels == measured.plan.labels
            });
            let plainest = |case: &&Case<'_>| (case.is_emulated(), case.plan.target.text.len());
            Some((measured, references.min_by_key(plainest)?))
        });
    let (measured, reference) = pairs.next().ok_or_else(not_measured)?;
    if let Some(case) = [reference, measured]
        .into_iter()
        .find(|case| case.is_emulated())
    {
        let text = format!(
            "this run can't split what is lost below any operating system (firmware, hypervisor) from what the operating \
             system adds: QEMU's TCG executed {}, and the emulator's own delays are in its figures. Measure where KVM works.",
            case.plan.target
        );
        return Err(refused("emulated", &text));
    }
    let blocks = blocks(measured, reference);
    let (first, second) = blocks.first().ok_or_else(not_measured)?;
    let below = accelerator(second);
    let is_guest = target.kernel().is_guest();
    if is_guest && accelerator(first) != below {
        return Err(not_measured());
    }
    let expected = measured.run.plan.cpu;
    for cell in blocks.iter().flat_map(|(first, second)| [first, second]) {
        // The CPU that a guest names is its own; the one that executes it was pinned before it ran.
        let here = program(cell).filter(|program| program.agent.accelerator.is_none());
        if let Some(cpu) = here
            .map(|program| program.preparation.cpu)
            .filter(|cpu| *cpu != Some(expected))
        {
            let ran = cpu.map_or_else(
                || "was not pinned".to_owned(),
                |cpu| format!("ran on CPU {cpu}"),
            );
            let text = format!(
                "what the operating system adds is not told, since {} {ran} instead of CPU {expected}: what is lost below \
                 differs from CPU to CPU. Measure both on one CPU.",
                cell.plan.target
            );
            return Err(refused("other-cpu", &text));
        }
    }
    for (first, second) in &blocks {
        // Each converts the same duration by its own reading of the TSC's frequency.
        const SAME: f64 = 1.01;
        let of = |cell: &Cell| Some(cell.outcome.record()?.sets_of("gap").next()?.1.threshold);
        let (Some(a), Some(b)) = (of(first), of(second)) else {
            continue;
        };
        if a.max(b) as f64 > a.min(b) as f64 * SAME {
            let [low, high] = [a.min(b), a.max(b)].map(|cycles| N.count(cycles));
            let text = format!(
                "what the operating system adds is not told, since gaps count from {low} cycles on one target and from {high} \
                 on the other. Give both the same with --threshold."
            );
            return Err(refused("thresholds", &text));
        }
    }
    let figures = if only_reads_clock(&measured.plan.work.id) {
        OF_GAP
    } else {
        OF_TIMED
    };
    let parts = figures
        .iter()
        .filter_map(|figure| part((measured, reference), &blocks, figure));
    Ok(Split {
        load: load.clone(),
        workload: title(measured.plan),
        target: target.text.clone(),
        group: target.group,
        reference: reference.plan.target.text.clone(),
        is_bound: below.is_some() && !is_guest,
        blocks: blocks.iter().map(|(first, _)| first.plan.block).collect(),
        parts: parts.collect(),
    })
}

/// Returns the cells of each block that has both, one of each, in the order of blocks.
fn blocks<'a>(measured: &Case<'a>, reference: &Case<'a>) -> Vec<(&'a Cell, &'a Cell)> {
    let both = measured.cells.iter().copied().filter_map(|first| {
        let mut seconds = reference.cells.iter().copied();
        let second = seconds.find(|second| second.plan.block == first.plan.block)?;
        Some((first, second))
    });
    let mut both = Vec::from_iter(both);
    both.sort_by_key(|(first, _)| first.plan.block);
    both
}

/// Returns how much longer the mean duration is than that of a reference, over the blocks that have
/// both, with its interval if there is one. In the unit of the row.
pub(super) fn added(measured: &Case<'_>, reference: &Case<'_>) -> Option<(f64, Option<Interval>)> {
    let blocks = blocks(measured, reference);
    let mean = ("duration", Figure::Mean, &[] as &[_]);
    let part = part((measured, reference), &blocks, &mean)?;
    Some((part.all - part.below, part.difference))
}

/// Divides a figure that all blocks have on both targets.
fn part(
    (target, reference): (&Case<'_>, &Case<'_>),
    blocks: &[(&Cell, &Cell)],
    (measure, figure, labels): &Divided,
) -> Option<Part> {
    let all = target.row(measure, *figure, labels)?;
    let below = reference.row(measure, *figure, labels)?;
    let value = |row: &Row, cell: &Cell| {
        let mut each = row.each.iter();
        each.find(|run| run.cell == cell.plan.id)?.figure.value()
    };
    let both = blocks.iter();
    let both = both.map(|(first, second)| Some((value(all, first)?, value(below, second)?)));
    let both: Vec<(f64, f64)> = both.collect::<Option<_>>()?;
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / both.len() as f64;
    let differences: Vec<f64> = both.iter().map(|(all, below)| all - below).collect();
    let difference = differences_over_runs(&differences, Level::P95).ok()?;
    let labels = labels.iter();
    Some(Part {
        measure,
        figure: figure.to_string(),
        labels: labels.fold(Labels::default(), |all, (key, value)| all.with(key, value)),
        all: mean(|both| both.0),
        below: mean(|both| both.1),
        difference: Interval::of(&difference),
        finding: match difference.interval {
            Ok(interval) if interval.low > 0.0 => Finding::Added,
            Ok(_) | Err(NoInterval::Alike { .. }) => Finding::NotDistinguishable,
            Err(_) => Finding::TooFewBlocks,
        },
    })
}

impl Attribution {
    /// Returns the reasons why there is no split.
    pub(super) fn refused(&self) -> Option<Notice> {
        let texts = distinct(self.refused.iter().map(|refused| refused.text.as_str()));
        (!texts.is_empty()).then(|| Notice::warning("no-split", texts.join(" ")))
    }

    /// Returns the table of all splits.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new([
            "",
            "on the\ntarget",
            "below any\noperating system",
            "its operating system\nadds (mean)",
            "95 % interval",
        ]);
        for split in &self.splits {
            let blocks = words::counted(N, split.blocks.len() as u64, "block", "blocks");
            let (target, reference, workload) = (&split.target, &split.reference, &split.workload);
            let bound = if split.is_bound {
                ": at most lost below, at least added"
            } else {
                ""
            };
            table.heading(format!(
                "{target} against {reference}, {workload} ({blocks}){bound}"
            ));
            table
                .rows
                .extend(split.parts.iter().map(|part| part.cells().into()));
        }
        table
    }

    /// Returns the same for a terminal.
    pub(super) fn titled(&self) -> Titled {
        Titled {
            title: TITLE.to_owned(),
            read: "Means over the blocks; the interval is that of the paired differences."
                .to_owned(),
            table: self.table(),
        }
    }

    /// Renders the same for a page.
    pub(super) fn markup(&self) -> Markup {
        html! {
            p.read {
                "A unikernel that takes no interrupts loses only what is taken from below it: by the firmware, by a \
                 hypervisor. What another target loses beyond that, on the same CPU and in the same blocks, its operating \
                 system adds. Means over the blocks; the interval is that of the paired differences over blocks at 95 %, \
                 for each row by itself."
            }
            @if self.splits.iter().any(|split| split.is_bound) {
                p.read {
                    "The unikernel is a guest of this machine's kernel, which can interrupt it too. So what a process loses \
                     below is at most that, and what its operating system adds is at least that. For a Linux guest the \
                     same lies below both, so this is no bound."
                }
            }
            (self.table().render())
        }
    }
}

impl Part {
    /// Writes its row: what it is, on the target, below it, the difference, and its interval.
    fn cells(&self) -> [String; 5] {
        let label = self.labels.iter().next().map_or("", |(_, value)| value);
        let name = match self.measure {
            "lost" => "time lost".to_owned(),
            "gaps" => "gaps per second".to_owned(),
            "gap-class" => format!("gaps of class {label} per second"),
            "delayed" => format!(
                "time in delays above {}",
                label.replace("cycles", " cycles")
            ),
            _ => format!("repetitions delayed by class {label}"),
        };
        let is_share = self.figure == "share";
        let figure = |value: f64| match is_share {
            true => N.percent(value),
            false => N.short(value),
        };
        let range = match is_share {
            true => words::signed_percent_range,
            false => words::signed_range,
        };
        let interval = self.difference.map(|both| range(N, both.low, both.high));
        let interval = interval.unwrap_or_else(|| NONE.to_owned());
        let added = match (self.finding, self.difference) {
            (Finding::Added, Some(difference)) => figure(difference.estimate),
            (Finding::NotDistinguishable, _) => "not\ndistinguishable".to_owned(),
            (Finding::Added | Finding::TooFewBlocks, _) => "too few\nblocks".to_owned(),
        };
        let [all, below] = [self.all, self.below].map(figure);
        [name, all, below, added, interval]
    }
}

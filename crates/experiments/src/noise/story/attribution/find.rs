//! Finds the pairs of cells that tell what the operating system adds, and divides by them.

use tare_results::TscFrequency;
use tare_results::model::{Cell, Plan, Program};
use tare_results::target::{Group, TargetSpec};
use tare_stats::{Kind, Level, NoInterval, over_runs};

use super::{Attribution, Finding, Part, Quantity, Refusal, Refused, Split};
use crate::analysis::figures::{Interval, Observed};
use crate::analysis::summary::{CellFigures, CellSummary, Combination};
use crate::panels::{Panel, panels};

/// Is by what ratio the thresholds of two cells of `gap` may differ: each converts the same duration by its
/// own reading of the TSC's frequency.
const SAME_THRESHOLD: f64 = 1.01;

/// Holds what attribution needs of a run.
pub(in crate::analysis) struct Source<'a> {
    pub plan: &'a Plan,
    pub cells: &'a [(Cell, Option<TscFrequency>)],
    pub summaries: &'a [CellSummary],
    pub combinations: &'a [Combination],
}

/// Divides what was lost, for each load by the first workload that both targets have.
pub(in crate::analysis) fn find(source: &Source<'_>) -> Attribution {
    let mut found = Attribution::default();
    let asked = |is: fn(&TargetSpec) -> bool| source.plan.cells.iter().any(|c| is(&c.target));
    if !asked(is_process) || !asked(is_reference) {
        found.refused.push(Refused {
            load: None,
            reason: Refusal::NoPair,
        });
    }
    let panels = panels(source.combinations);
    let mut loads: Vec<&str> = Vec::new();
    for cell in &source.plan.cells {
        if !loads.contains(&cell.load.as_str()) {
            loads.push(&cell.load);
        }
    }
    loads.sort_by_key(|load| *load != "idle");
    for load in loads {
        let under: Vec<&Panel<'_>> = panels
            .iter()
            .filter(|panel| panel.first().load == load)
            .collect();
        source.divide(load, &under, &mut found);
    }
    found
}

fn is_process(target: &TargetSpec) -> bool {
    target.group == Group::Process
}

/// Says whether a target loses only what is taken from below any operating system.
fn is_reference(target: &TargetSpec) -> bool {
    target.group == Group::Unikernel && target.option("irq") == Some("off")
}

impl Source<'_> {
    /// Divides what each target lost under one load.
    fn divide(&self, load: &str, panels: &[&Panel<'_>], found: &mut Attribution) {
        let planned = |is: fn(&TargetSpec) -> bool| {
            let mut cells = self.plan.cells.iter().filter(|cell| cell.load == load);
            cells.any(|cell| is(&cell.target))
        };
        if !planned(is_reference) {
            return;
        }
        let mut targets: Vec<&TargetSpec> = Vec::new();
        for (_, member) in panels.iter().flat_map(|panel| &panel.members) {
            if !targets.contains(&&member.spec) && is_divided(&member.spec, load) {
                targets.push(&member.spec);
            }
        }
        let mut refuse = |reason| {
            let refused = Refused {
                load: Some(load.to_owned()),
                reason,
            };
            if !found.refused.contains(&refused) {
                found.refused.push(refused);
            }
        };
        let mut has_process = false;
        for target in targets {
            has_process |= is_process(target);
            let pair = panels.iter().find_map(|panel| pair_of(panel, target));
            match pair {
                Some((measured, reference)) => match self.split(measured, reference) {
                    Ok(split) => found.splits.push(split),
                    // What a guest cannot be compared with is no news beside the process.
                    Err(reason) if is_process(target) => refuse(reason),
                    Err(_) => {}
                },
                None if is_process(target) => refuse(Refusal::NotMeasured),
                None => {}
            }
        }
        if planned(is_process) && !has_process {
            refuse(Refusal::NotMeasured);
        }
    }

    fn split(&self, target: &Combination, reference: &Combination) -> Result<Split, Refusal> {
        for combination in [reference, target] {
            if combination.emulated {
                return Err(Refusal::Emulated {
                    target: combination.target.clone(),
                });
            }
        }
        let mut pairs: Vec<(u32, Pair<'_>)> = Vec::new();
        for first in self.of(target) {
            let second = self
                .of(reference)
                .find(|second| second.block == first.block);
            if let Some(second) = second {
                pairs.push((first.block, (first, second)));
            }
        }
        pairs.sort_by_key(|(block, _)| *block);
        let Some((_, (first, second))) = pairs.first() else {
            return Err(Refusal::NotMeasured);
        };
        let below = self.program(second).and_then(accelerator);
        let is_guest = target.group.is_guest();
        if is_guest && self.program(first).and_then(accelerator) != below {
            return Err(Refusal::NotMeasured);
        }
        for (_, (first, second)) in &pairs {
            self.same_cpu(first, &target.target)?;
            self.same_cpu(second, &reference.target)?;
            same_threshold(first, second)?;
        }
        let values: Vec<(Vec<Value>, Vec<Value>)> = pairs
            .iter()
            .map(|(_, (first, second))| (values(first), values(second)))
            .collect();
        Ok(Split {
            load: target.load.clone(),
            workload: target.workload.clone(),
            size: target.size,
            target: target.target.clone(),
            group: target.group,
            reference: reference.target.clone(),
            is_bound: below.is_some() && !is_guest,
            blocks: pairs.iter().map(|(block, _)| *block).collect(),
            parts: parts(&values),
        })
    }

    /// Returns the cells of a combination that have figures.
    fn of<'b>(&'b self, combination: &'b Combination) -> impl Iterator<Item = &'b CellSummary> {
        let cells = self.summaries.iter();
        cells.filter(|cell| combination.cells.contains(&cell.id))
    }

    fn program(&self, cell: &CellSummary) -> Option<&Program> {
        let found = self.cells.iter().find(|(c, _)| c.plan.id == cell.id)?;
        found.0.outcome.record()?.program()
    }

    /// Checks that a cell ran on the run's CPU. The CPU that a guest names is its own; the one that
    /// executes it was pinned before it ran.
    fn same_cpu(&self, cell: &CellSummary, target: &str) -> Result<(), Refusal> {
        let Some(program) = self.program(cell).filter(|p| accelerator(p).is_none()) else {
            return Ok(());
        };
        let (cpu, expected) = (program.preparation.cpu, self.plan.cpu);
        if cpu == Some(expected) {
            return Ok(());
        }
        Err(Refusal::OtherCpu {
            target: target.to_owned(),
            cpu,
            expected,
        })
    }
}

/// Is a cell of the target, and one of the reference.
type Pair<'a> = (&'a CellSummary, &'a CellSummary);

/// Is a quantity in one cell; `None` if it could not be seen.
type Value = (Quantity, Option<f64>, Observed);

fn accelerator(program: &Program) -> Option<&str> {
    program.agent.accelerator.as_deref()
}

/// Says whether the time that a target loses is divided. A load inside of a guest disturbs something else than
/// one beside the reference.
fn is_divided(target: &TargetSpec, load: &str) -> bool {
    is_process(target) || target.group.is_linux_guest() && load == "idle"
}

/// Finds a target in a panel, and its reference: one that was not emulated if there is one, then the plainest.
fn pair_of<'a>(
    panel: &Panel<'a>,
    target: &TargetSpec,
) -> Option<(&'a Combination, &'a Combination)> {
    let members = || panel.members.iter().map(|(_, member)| *member);
    let measured = members().find(|member| member.spec == *target)?;
    let reference = members()
        .filter(|member| is_reference(&member.spec))
        .min_by_key(|member| (member.emulated, member.target.len()))?;
    Some((measured, reference))
}

fn same_threshold(first: &CellSummary, second: &CellSummary) -> Result<(), Refusal> {
    let (Some(first), Some(second)) = (first.figures.gap(), second.figures.gap()) else {
        return Ok(());
    };
    let (a, b) = (
        first.delays.threshold_cycles,
        second.delays.threshold_cycles,
    );
    let (low_cycles, high_cycles) = (a.min(b), a.max(b));
    if high_cycles as f64 <= low_cycles as f64 * SAME_THRESHOLD {
        return Ok(());
    }
    Err(Refusal::Thresholds {
        low_cycles,
        high_cycles,
    })
}

fn values(cell: &CellSummary) -> Vec<Value> {
    match &cell.figures {
        CellFigures::Gap(gap) => {
            let seconds = gap.wall.ns.map(|ns| ns / 1e9);
            let mut values = vec![
                (Quantity::TimeLost, Some(gap.share_lost), Observed::Fully),
                (
                    Quantity::GapsPerSecond,
                    gap.gaps_per_second,
                    Observed::Fully,
                ),
            ];
            values.extend(gap.classes.iter().map(|class| {
                let quantity = Quantity::ClassPerSecond {
                    class: class.class,
                    above_cycles: class.above_cycles,
                    up_to_cycles: class.up_to_cycles,
                };
                let rate = class.count.zip(seconds).map(|(n, s)| n as f64 / s);
                (quantity, rate, class.observed)
            }));
            values
        }
        CellFigures::Timed(timed) => {
            let shares = timed.shares.iter().map(|share| {
                let above_cycles = share.above_cycles;
                let quantity = Quantity::TimeInDelays { above_cycles };
                (quantity, share.share, share.observed)
            });
            let classes = timed.classes.iter().map(|class| {
                let quantity = Quantity::ClassPerMillion {
                    class: class.class,
                    above_cycles: class.above_cycles,
                    up_to_cycles: class.up_to_cycles,
                };
                let repetitions = timed.repetitions.max(1) as f64;
                let rate = class.count.map(|n| n as f64 / repetitions * 1e6);
                (quantity, rate, class.observed)
            });
            shares.chain(classes).collect()
        }
    }
}

/// Divides each quantity that all blocks have on both targets.
fn parts(blocks: &[(Vec<Value>, Vec<Value>)]) -> Vec<Part> {
    let Some((first, _)) = blocks.first() else {
        return Vec::new();
    };
    let quantities = first.iter().map(|(quantity, ..)| *quantity);
    quantities
        .filter_map(|quantity| {
            let of = |values: &[Value]| {
                let found = values.iter().find(|(other, ..)| *other == quantity)?;
                Some((found.1?, found.2))
            };
            let both: Option<Vec<_>> = blocks
                .iter()
                .map(|(target, reference)| Some((of(target)?, of(reference)?)))
                .collect();
            let both = both?;
            let mean = |of: &dyn Fn(&Both) -> f64| {
                both.iter().map(of).sum::<f64>() / both.len().max(1) as f64
            };
            let differences: Vec<f64> = both.iter().map(|(a, b)| a.0 - b.0).collect();
            let over = over_runs(Kind::Mean, &differences, Level::P95);
            let difference = over.ok()?.interval;
            let fully = both
                .iter()
                .all(|(a, b)| a.1 == Observed::Fully && b.1 == Observed::Fully);
            Some(Part {
                quantity,
                all: mean(&|both| both.0.0),
                below: mean(&|both| both.1.0),
                difference: difference.as_ref().ok().map(Interval::of),
                finding: match &difference {
                    Ok(interval) if interval.low > 0.0 => Finding::Added,
                    Ok(_) | Err(NoInterval::Alike { .. }) => Finding::NotDistinguishable,
                    Err(NoInterval::TooFew { .. }) => Finding::TooFewBlocks,
                },
                observed: if fully {
                    Observed::Fully
                } else {
                    Observed::Partly
                },
            })
        })
        .collect()
}

/// Is a value of one block on the target and on the reference.
type Both = ((f64, Observed), (f64, Observed));

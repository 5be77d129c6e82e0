//! Finds what bears on whether the figures may be believed.

use std::collections::BTreeMap;

use tare_results::MachineRecord;
use tare_results::TscFrequency;
use tare_results::model::{Cell, Program, Record, Unit};
use tare_results::target::{Clock, Group};

use super::Batch;
use super::alarm::{Alarm, Coarse};
use super::combine::CombinedFigures;
use super::figures::Time;
use super::summary::Combination;
use crate::format::Numbers;
use crate::wakeup::is_wakeup;
use crate::words;

/// Is how many steps of the timer the shortest gap must have before its length is taken as known:
/// with ten, one step is 10 % of it.
const STEPS_OF_GAP: f64 = 10.0;

/// Is the share of the median duration from which the timer's step is said to shape the
/// distribution.
const STEP_OF_MEDIAN: f64 = 0.02;

/// Finds what bears on the figures of all cells and combinations, worst first.
pub(super) fn find(
    cells: &[(Cell, Option<TscFrequency>)],
    woken: &[(Cell, Option<TscFrequency>)],
    combinations: &[Combination],
    machine: Option<&MachineRecord>,
) -> Vec<Alarm> {
    let batches: Vec<(&Cell, Batch<'_>)> = cells
        .iter()
        .filter_map(|(cell, _)| Some((cell, Batch::of(cell.outcome.record()?)?)))
        .collect();
    let measured: Vec<Measured<'_>> = cells
        .iter()
        .chain(woken)
        .filter_map(|(cell, frequency)| {
            let record = cell.outcome.record()?;
            Some(Measured {
                cell,
                record,
                program: record.program()?,
                frequency: frequency.as_ref(),
            })
        })
        .collect();
    let mut alarms = work_differs(&batches);
    let backwards = |m: &Measured<'_>| m.record.sets.iter().map(|head| head.backwards).sum::<u64>();
    let samples = measured.iter().map(backwards).sum();
    if samples > 0 {
        alarms.push(Alarm::Backwards {
            cells: which(&measured, &|m| backwards(m) > 0),
            samples,
        });
    }
    let mut emulated: Vec<String> = measured
        .iter()
        .filter(|m| m.program.agent.emulated)
        .map(|m| &m.cell.plan)
        // What wake-ups are then is another alarm.
        .filter(|plan| !is_wakeup(plan) || plan.target.clock == Clock::Host)
        .map(|plan| plan.target.text.clone())
        .collect();
    emulated.sort();
    emulated.dedup();
    if !emulated.is_empty() {
        alarms.push(Alarm::Emulated { targets: emulated });
    }
    for gaps in [true, false] {
        let is_full =
            |batch: &Batch<'_>| batch.head.kept < batch.head.seen && batch.is_gap() == gaps;
        let full: Vec<_> = batches.iter().filter(|(_, b)| is_full(b)).collect();
        if !full.is_empty() {
            alarms.push(Alarm::ListFull {
                cells: full.iter().map(|(cell, _)| cell.plan.id).collect(),
                kept: full.iter().map(|(_, b)| b.head.kept).sum(),
                seen: full.iter().map(|(_, b)| b.head.seen).sum(),
                gaps,
            });
        }
    }
    alarms.extend(frequencies(&measured));
    alarms.extend(coarse_gaps(combinations));
    alarms.extend(coarse_spread(combinations));
    alarms.extend(page_sizes(combinations, machine));
    let not_locked = which(&measured, &|m| !m.program.preparation.locked);
    if !not_locked.is_empty() {
        alarms.push(Alarm::NotLocked { cells: not_locked });
    }
    let not_held = which(&measured, &|m| {
        // Wake-ups from idle states have an alarm of their own.
        !is_wakeup(&m.cell.plan)
            && !m.program.preparation.latency_held
            && m.program.agent.environment != "unikernel"
    });
    if !not_held.is_empty() {
        alarms.push(Alarm::LatencyNotHeld { cells: not_held });
    }
    alarms.sort_by_key(|alarm| std::cmp::Reverse(alarm.severity()));
    alarms
}

/// A cell that was measured, whatever it measured.
struct Measured<'a> {
    cell: &'a Cell,
    record: &'a Record,
    program: &'a Program,
    /// How its TSC's frequency is known; `None` if it is not.
    frequency: Option<&'a TscFrequency>,
}

fn which(measured: &[Measured<'_>], is: &dyn Fn(&Measured<'_>) -> bool) -> Vec<u32> {
    let found = measured.iter().filter(|m| is(m));
    found.map(|m| m.cell.plan.id).collect()
}

/// Compares the work of all cells of the same workload and size.
fn work_differs(batches: &[(&Cell, Batch<'_>)]) -> Vec<Alarm> {
    type Work = (u64, u64);
    let mut sizes: BTreeMap<(&str, u64), BTreeMap<Work, Vec<&str>>> = BTreeMap::new();
    for (cell, batch) in batches {
        if let Some(size) = cell.plan.size {
            let work = (batch.result, batch.work);
            let who = sizes.entry((&cell.plan.workload, size)).or_default();
            let targets = who.entry(work).or_default();
            if !targets.contains(&cell.plan.target.text.as_str()) {
                targets.push(&cell.plan.target.text);
            }
        }
    }
    let differing = sizes.into_iter().filter(|(_, done)| done.len() > 1);
    differing
        .map(|((workload, size), done)| Alarm::WorkDiffers {
            what: format!("{workload} {size}"),
            done: done
                .into_iter()
                .map(|((result, work), targets)| (targets.join(" and "), result, work))
                .collect(),
        })
        .collect()
}

fn frequencies(measured: &[Measured<'_>]) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    // What was measured in ns needs none.
    let in_cycles = |m: &Measured<'_>| m.record.sets.iter().any(|head| head.unit == Unit::Cycles);
    let unknown = which(measured, &|m| m.frequency.is_none() && in_cycles(m));
    if !unknown.is_empty() {
        alarms.push(Alarm::NoFrequency { cells: unknown });
    }
    let contradicted = which(measured, &|m| contradiction(m).is_some());
    let mut texts = measured.iter().filter_map(contradiction);
    if let Some(note) = texts.next() {
        alarms.push(Alarm::Frequency {
            cells: contradicted,
            note,
        });
    }
    alarms
}

fn contradiction(measured: &Measured<'_>) -> Option<String> {
    let frequency = measured.frequency?;
    let text = frequency.contradiction.as_ref()?;
    Some(format!("{text}; {}", frequency.note))
}

/// Finds combinations of `gap` whose shortest gaps are only some steps long.
fn coarse_gaps(combinations: &[Combination]) -> Option<Alarm> {
    let coarse: Vec<(&Combination, Time)> = combinations
        .iter()
        .filter_map(|combination| match &combination.figures {
            CombinedFigures::Gap(gap) => Some((combination, gap.threshold)),
            CombinedFigures::Timed(_) => None,
        })
        .filter(|(c, threshold)| threshold.cycles < STEPS_OF_GAP * c.timer_step.cycles)
        .collect();
    coarse_timer(&coarse, Coarse::Gaps)
}

/// Finds combinations of timed workloads whose distribution is only some steps wide.
fn coarse_spread(combinations: &[Combination]) -> Option<Alarm> {
    let coarse: Vec<(&Combination, Time)> = combinations
        .iter()
        .filter_map(|combination| match &combination.figures {
            CombinedFigures::Timed(timed) => Some((combination, timed.raw.median.figure)),
            CombinedFigures::Gap(_) => None,
        })
        .filter(|(c, median)| median.cycles * STEP_OF_MEDIAN < c.timer_step.cycles)
        // A step of one cycle is as fine as the counter.
        .filter(|(c, _)| c.timer_step.cycles > 1.0)
        .collect();
    coarse_timer(&coarse, Coarse::Spread)
}

/// Says that `copy` meets pages of different sizes: the unikernel maps its buffers with large pages.
fn page_sizes(combinations: &[Combination], machine: Option<&MachineRecord>) -> Option<Alarm> {
    let of = |is_large: bool| {
        let mut targets: Vec<String> = combinations
            .iter()
            .filter(|c| c.workload == "copy" && (c.group == Group::Unikernel) == is_large)
            .filter(|c| c.group != Group::Foreign)
            .map(|c| c.target.clone())
            .collect();
        targets.sort();
        targets.dedup();
        targets
    };
    let (large, small) = (of(true), of(false));
    if large.is_empty() || small.is_empty() {
        return None;
    }
    let setting = machine.map(|record| &record.machine.memory.transparent_hugepages);
    Some(Alarm::PageSizes {
        large,
        small,
        transparent: setting.and_then(|setting| setting.known().map(ToString::to_string)),
    })
}

fn coarse_timer(coarse: &[(&Combination, Time)], against: fn(String) -> Coarse) -> Option<Alarm> {
    // The worst is named.
    let mut coarse = coarse.to_vec();
    coarse.sort_by(|a, b| a.1.cycles.total_cmp(&b.1.cycles));
    let (worst, least) = *coarse.first()?;
    let step = worst.timer_step;
    Some(Alarm::CoarseTimer {
        labels: coarse.iter().map(|(c, _)| c.label.clone()).collect(),
        step: words::step(Numbers::PLAIN, step),
        against: against(words::time(Numbers::PLAIN, least, Some(step))),
    })
}

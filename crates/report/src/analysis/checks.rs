//! Finds what bears on whether the figures may be believed.

use std::collections::BTreeMap;

use tare_results::MachineRecord;
use tare_results::model::{Cell, Measurement, Outcome};
use tare_results::target::{Clock, Group};

use super::alarm::{Alarm, Coarse};
use super::combine::CombinedFigures;
use super::figures::Time;
use super::instance::Instance;
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
    cells: &[(Cell, Option<String>)],
    woken: &[(Cell, Option<String>)],
    combinations: &[Combination],
    machine: Option<&MachineRecord>,
) -> Vec<Alarm> {
    let measured: Vec<(&Cell, &Measurement, Option<&str>)> = cells
        .iter()
        .filter_map(|(cell, note)| match &cell.outcome {
            Outcome::Done(measured) => Some((cell, &**measured, note.as_deref())),
            Outcome::Woken(_) | Outcome::Failed { .. } => None,
        })
        .collect();
    let which = |of: &dyn Fn(&Measurement) -> bool| -> Vec<u32> {
        let found = measured.iter().filter(|(_, measured, _)| of(measured));
        found.map(|(cell, _, _)| cell.plan.id).collect()
    };
    let mut alarms = work_differs(&measured);
    let backwards = which(&|m| m.batch.backwards > 0);
    if !backwards.is_empty() {
        alarms.push(Alarm::Backwards {
            cells: backwards,
            samples: measured.iter().map(|(_, m, _)| m.batch.backwards).sum(),
        });
    }
    let instances: Vec<(&Cell, Instance<'_>)> = cells
        .iter()
        .chain(woken)
        .filter_map(|(cell, _)| Some((cell, Instance::of(cell)?)))
        .collect();
    let mut emulated: Vec<String> = instances
        .iter()
        .filter(|(_, instance)| instance.agent.emulated)
        // What wake-ups are then is another alarm.
        .filter(|(cell, _)| !is_wakeup(&cell.plan) || cell.plan.target.clock == Clock::Host)
        .map(|(cell, _)| cell.plan.target.text.clone())
        .collect();
    emulated.sort();
    emulated.dedup();
    if !emulated.is_empty() {
        alarms.push(Alarm::Emulated { targets: emulated });
    }
    for gaps in [true, false] {
        let is_full = |m: &Measurement| {
            m.batch.delays_kept < m.batch.delays_seen && m.batch.quiet_squares.is_some() == gaps
        };
        let full: Vec<_> = measured.iter().filter(|(_, m, _)| is_full(m)).collect();
        if !full.is_empty() {
            alarms.push(Alarm::ListFull {
                cells: full.iter().map(|(cell, _, _)| cell.plan.id).collect(),
                kept: full.iter().map(|(_, m, _)| m.batch.delays_kept).sum(),
                seen: full.iter().map(|(_, m, _)| m.batch.delays_seen).sum(),
                gaps,
            });
        }
    }
    alarms.extend(frequencies(&measured));
    alarms.extend(coarse_gaps(combinations));
    alarms.extend(coarse_spread(combinations));
    alarms.extend(page_sizes(combinations, machine));
    let not_locked = instances
        .iter()
        .filter(|(_, instance)| !instance.preparation.locked);
    let not_locked: Vec<u32> = not_locked.map(|(cell, _)| cell.plan.id).collect();
    if !not_locked.is_empty() {
        alarms.push(Alarm::NotLocked { cells: not_locked });
    }
    let not_held = which(&|m| !m.preparation.latency_held && m.agent.environment != "unikernel");
    if !not_held.is_empty() {
        alarms.push(Alarm::LatencyNotHeld { cells: not_held });
    }
    alarms.sort_by_key(|alarm| std::cmp::Reverse(alarm.severity()));
    alarms
}

/// Compares the work of all cells of the same workload and size.
fn work_differs(measured: &[(&Cell, &Measurement, Option<&str>)]) -> Vec<Alarm> {
    type Work = (u64, u64);
    let mut sizes: BTreeMap<(&str, u64), BTreeMap<Work, Vec<&str>>> = BTreeMap::new();
    for (cell, measured, _) in measured {
        if let Some(size) = cell.plan.size {
            let work = (measured.batch.result, measured.batch.work);
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

fn frequencies(measured: &[(&Cell, &Measurement, Option<&str>)]) -> Vec<Alarm> {
    let mut alarms = Vec::new();
    let unknown = measured.iter().filter(|(_, _, note)| note.is_none());
    let unknown: Vec<u32> = unknown.map(|(cell, _, _)| cell.plan.id).collect();
    if !unknown.is_empty() {
        alarms.push(Alarm::NoFrequency { cells: unknown });
    }
    let contradicted: Vec<(u32, &str)> = measured
        .iter()
        .filter_map(|(cell, _, note)| {
            Some((cell.plan.id, note.as_ref()?.strip_prefix("warning: ")?))
        })
        .collect();
    if let Some((_, note)) = contradicted.first() {
        alarms.push(Alarm::Frequency {
            cells: contradicted.iter().map(|(id, _)| *id).collect(),
            note: (*note).to_owned(),
        });
    }
    alarms
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
            CombinedFigures::Timed(timed) => Some((combination, timed.raw.median.median)),
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

//! Checks whether the figures of primitives may be believed, and which have none.

use std::collections::BTreeSet;

use tare_figures::Run;
use tare_figures::analysis::empty;
use tare_figures::group::{distinct, entry};
use tare_figures::notices::{Notice, Severity, name_cells};
use tare_figures::rows::{CellData, Figure, Row};
use tare_figures::words::counted;
use tare_measured::primitives::linux;
use tare_measured::primitives::{ABSENT, BARE, FAILED};
use tare_pages::kit::checks::about;
use tare_results::model::{CellPlan, Labels};
use tare_results::target::{Kernel, TargetSpec};

use super::super::{NAME, is_there};
use super::N;
use super::measures::{id_of, times, too_fast};
use super::tables::named;

/// By how much the core's clock may change within a primitive.
const STEADY: f64 = 0.05;
/// How many times as long as a single one, in the median, a primitive takes of which all rounds were
/// disturbed.
const DEAR: f64 = 1.5;

/// Observations of samples that rows don't hold.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// Primitives during which the core's clock changed, with the factor.
    unsteady: Vec<(String, f64)>,
    /// What cost nothing.
    nothing: Vec<String>,
    /// What cost more in a row, at the least, than one by one.
    dear: Vec<String>,
    /// Bandwidths of memory above those of the caches.
    too_fast: Vec<String>,
}

impl Flags {
    /// Looks at the samples of a cell.
    pub(super) fn look_at(&mut self, data: &CellData<'_>) -> Result<(), String> {
        let is_emulated = data.program().is_some_and(|program| program.agent.emulated);
        let (target, under) = (&data.plan().target, data.plan().load.under());
        let emulated = if is_emulated { " (emulated)" } else { "" };
        let on = |name: &str| format!("{name} on {target}{emulated}{under}");
        let here = |name: &str| format!("{} in cell {}", on(name), data.plan().id);
        let values = || data.record.values.iter();
        let nothing = values().filter(|value| value.measure == "cost" && value.value <= 0.0);
        add(
            &mut self.nothing,
            nothing.map(|value| here(&named(&value.labels))),
        );
        let singles = data.sampled("time")?;
        let dear = times(data, "cost").filter(|(labels, ns)| {
            let single = singles.iter().find(|(own, _)| own == *labels);
            // Too few have no median.
            let usual = single.and_then(|(_, own)| {
                let of = |figure| own.figure(figure)?.value();
                of(Figure::MEDIAN).or_else(|| of(Figure::Mean))
            });
            usual.is_some_and(|usual| *ns > DEAR * usual)
        });
        add(&mut self.dear, dear.map(|(labels, _)| here(&named(labels))));
        let too_fast = too_fast(&data.bandwidths("pass")?);
        add(
            &mut self.too_fast,
            too_fast.iter().map(|labels| here(&named(labels))),
        );
        // An emulator has no clock of a core.
        for value in values().filter(|value| value.measure == "clock" && !is_emulated) {
            let own = value.labels.clone().without("at");
            let clock = |at: &str| data.record.value("clock", &own.clone().with("at", at));
            let Some((begin, end)) = clock("begin").zip(clock("end")) else {
                continue;
            };
            let (name, factor) = (on(id_of(&own)), begin / end);
            let is_known = self.unsteady.iter().any(|(known, _)| *known == name);
            if !is_known && (factor - 1.0).abs() > STEADY {
                self.unsteady.push((name, factor));
            }
        }
        Ok(())
    }

    /// Returns what has no figure since it is impossible, each with the reason.
    pub(super) fn dropped(&self) -> impl Iterator<Item = Vec<String>> {
        let why = [
            (&self.nothing, "it cost nothing"),
            (&self.too_fast, "it was faster than the caches"),
        ];
        why.into_iter().flat_map(|(names, why)| {
            let names = names.iter().cloned();
            names.map(move |name| vec![name, format!("dropped: {why}, which is impossible")])
        })
    }
}

/// Rejects a cell all of whose primitives failed.
pub(super) fn failed(data: &CellData<'_>) -> Result<(), String> {
    let facts = data
        .program()
        .into_iter()
        .flat_map(|program| &program.facts);
    let has_failed = facts.into_iter().any(|fact| fact.name == FAILED);
    match empty(data.record).filter(|_| has_failed) {
        Some(reason) => Err(reason),
        None => Ok(()),
    }
}

/// Adds the names that are not known yet.
fn add(known: &mut Vec<String>, names: impl Iterator<Item = String>) {
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
}

/// Returns the notices about the figures.
pub(super) fn find(flags: &Flags, run: &Run) -> Vec<Notice> {
    let failing = facts(run, FAILED);
    let number = distinct(failing.iter().map(|of| of.id.as_str())).len() as u64;
    let failed: Vec<String> = failing
        .iter()
        .map(|of| format!("{}: {}", of.name, of.why))
        .collect();
    let mut unsteady = Vec::from_iter(&flags.unsteady);
    unsteady.sort_by(|a, b| b.1.ln().abs().total_cmp(&a.1.ln().abs()));
    let unsteady: Vec<String> = unsteady
        .into_iter()
        .map(|(name, factor)| format!("{name} (by {})", N.percent(factor - 1.0)))
        .collect();
    let notices = [
        about((Severity::Warning, "primitives-failed"), &failed, |names| {
            let failed = counted(N, number, "primitive", "primitives");
            format!("{failed} failed: {names}.")
        }),
        about(
            (Severity::Error, "cost-of-nothing"),
            &flags.nothing,
            |names| {
                format!(
                    "{names} cost nothing, which is impossible: a disturbance of the rounds, or the timer's step, exceeded their \
                 difference. The figure is dropped. Raise --budget, or measure on a quieter machine."
                )
            },
        ),
        about(
            (Severity::Warning, "cost-of-others"),
            &flags.dear,
            |names| {
                format!(
                    "{names} cost more than {DEAR} times as much as a single one takes: all rounds were disturbed, so this is not \
                     the intrinsic cost. Raise --budget, or measure on a quieter machine."
                )
            },
        ),
        about(
            (Severity::Error, "bandwidth-implausible"),
            &flags.too_fast,
            |names| {
                format!(
                    "{names} is faster than the caches, which is impossible: something disturbed the small arrays. None of its sizes \
                 has a figure there. Measure again."
                )
            },
        ),
        about((Severity::Warning, "clock-unsteady"), &unsteady, |names| {
            format!(
                "The core's clock changed while these were measured, so their times belong to no single frequency: {names}. Fix the \
                 frequency (governor performance, no turbo), or measure where no other guest shares the core."
            )
        }),
    ];
    notices.into_iter().flatten().collect()
}

/// Returns the targets without an operating system, each with the number of the run's primitives that
/// need one, and so were not planned there.
pub(super) fn needing_a_system(run: &Run) -> Vec<(&TargetSpec, u64)> {
    let own = run.plan.cells.iter().filter(|plan| plan.experiment == NAME);
    let bare = distinct(own.map(|plan| &plan.target)).into_iter();
    let bare = bare.filter(|target| target.kernel() == Kernel::None);
    let measured = || run.rows.0.iter().filter(|row| row.experiment == NAME);
    let all = bare.map(|target| {
        let needing = measured().filter_map(|row| linux::find(id_of(&row.labels)));
        let needing = needing.filter(|primitive| !is_there(target, primitive));
        (
            target,
            distinct(needing.map(|primitive| primitive.id)).len() as u64,
        )
    });
    all.filter(|(_, number)| *number > 0).collect()
}

/// Returns what of a primitive its counterpart on the unikernel lacks: that on another CPU.
pub(super) fn lacking_a_cpu(run: &Run) -> Vec<String> {
    let all = run.rows.0.iter();
    let all = all.filter(|row| row.experiment == NAME && BARE.contains(&id_of(&row.labels)));
    let all = Vec::from_iter(all);
    let is_bare = |row: &&&Row| row.group.capabilities().kernel == Kernel::None;
    let bare = distinct(
        all.iter()
            .filter(is_bare)
            .map(|row| (&row.target, id_of(&row.labels))),
    );
    let lacking = bare.into_iter().flat_map(|(target, id)| {
        let of_id = all.iter().filter(move |row| id_of(&row.labels) == id);
        let has = |row: &&&Row| row.target == *target;
        let own = Vec::from_iter(of_id.clone().filter(has).map(|row| row.labels.get("cpu")));
        let lacks = of_id.filter(move |row| !own.contains(&row.labels.get("cpu")));
        lacks.map(move |row| format!("{} on {target}", named(&row.labels)))
    });
    distinct(lacking)
}

/// A primitive that was not measured on a target or in some of its cells, or not to the end, and why.
pub(super) struct Absent {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) why: String,
}

/// Returns what has no figures: what can't be measured, and what failed.
pub(super) fn absent(run: &Run) -> Vec<Absent> {
    let mut all = facts(run, ABSENT);
    let failed = facts(run, FAILED).into_iter();
    all.extend(failed.map(|of| Absent {
        why: format!("failed: {}", of.why),
        ..of
    }));
    all
}

/// Returns the facts of a name that programs reported of primitives, each once, with all reasons.
fn facts(run: &Run, name: &str) -> Vec<Absent> {
    let recorded = run.cells.iter();
    let recorded = recorded.filter_map(|cell| Some((cell, cell.outcome.record()?)));
    let mut all: Vec<(Labels, &CellPlan, BTreeSet<&str>, Vec<u32>)> = Vec::new();
    for (cell, record) in recorded.clone() {
        let facts = record.programs.iter().flat_map(|program| &program.facts);
        for fact in facts.filter(|fact| fact.name == name) {
            let plan = &cell.plan;
            let new = || (fact.labels.clone(), plan, BTreeSet::new(), Vec::new());
            let is_same = |known: &(Labels, &CellPlan, BTreeSet<&str>, Vec<u32>)| {
                known.0 == fact.labels && known.1.target == plan.target && known.1.load == plan.load
            };
            let (_, _, reasons, cells) = entry(&mut all, is_same, new);
            reasons.insert(&fact.value);
            cells.push(cell.plan.id);
        }
    }
    let told = all.into_iter().map(|(labels, first, reasons, cells)| {
        // Each area has its own cells.
        let is_like = |of: &CellPlan| {
            of.target == first.target
                && of.load == first.load
                && of.labels.get("area") == first.labels.get("area")
        };
        let of_target = recorded.clone().filter(|(cell, _)| is_like(&cell.plan));
        let (target, under) = (&first.target, first.load.under());
        let is_everywhere = of_target.count() == cells.len();
        let place = match is_everywhere {
            true => String::new(),
            false => format!(" in {}", name_cells(&cells)),
        };
        Absent {
            name: format!("{} on {target}{under}{place}", named(&labels)),
            id: id_of(&labels).to_owned(),
            why: Vec::from_iter(reasons).join("; or: "),
        }
    });
    told.collect()
}

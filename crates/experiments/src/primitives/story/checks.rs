//! Checks whether the figures of primitives may be believed, and which have none.

use tare_figures::Run;
use tare_figures::notices::{Notice, Severity};
use tare_figures::rows::{CellData, counts};
use tare_figures::words::counted;
use tare_measured::primitives::{ABSENT, FAILED};
use tare_pages::kit::checks::about;
use tare_stats::{Counts, Quantile};

use super::N;
use super::measures::{every_bandwidth, id_of, too_fast};
use super::tables::named;

/// By how much the core's clock may change within a primitive.
const STEADY: f64 = 0.05;
/// The least part of all samples that a second mode has.
const MODE: f64 = 0.15;
/// By how much the median of the second mode is above that of the first.
const APART: f64 = 1.6;
/// By how much 95 % of the second mode are above 95 % of the first.
const VALLEY: f64 = 1.4;

/// What was seen in samples, which rows don't hold.
#[derive(Debug, Default)]
pub(super) struct Flags {
    /// Series with two modes, each with the medians of both in ns.
    bimodal: Vec<(String, f64, f64)>,
    /// Primitives during which the core's clock changed, with the factor.
    unsteady: Vec<(String, f64)>,
    /// What cost nothing.
    nothing: Vec<String>,
    /// Bandwidths of memory above those of the first cache.
    too_fast: Vec<String>,
}

impl Flags {
    /// Looks at the samples of a cell.
    pub(super) fn look_at(&mut self, data: &CellData<'_>) -> Result<(), String> {
        let target = &data.plan().target.text;
        let on = |name: &str| format!("{name} on {target}");
        for (head, set) in data.sets("time") {
            let name = on(&named(&head.labels));
            let is_known = self.bimodal.iter().any(|(known, ..)| *known == name);
            let modes = modes(&counts(set)?).filter(|_| !is_known);
            if let (Some((low, high)), Some(ns)) = (modes, data.ns(head)) {
                self.bimodal.push((name, low as f64 * ns, high as f64 * ns));
            }
        }
        let values = || data.record.values.iter();
        let nothing = values().filter(|value| value.measure == "cost" && value.value <= 0.0);
        add(
            &mut self.nothing,
            nothing.map(|value| on(&named(&value.labels))),
        );
        let too_fast = too_fast(&every_bandwidth(data)?);
        add(
            &mut self.too_fast,
            too_fast.iter().map(|labels| on(&named(labels))),
        );
        for value in values().filter(|value| value.measure == "clock") {
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
}

/// Adds the names that are not known yet.
fn add(known: &mut Vec<String>, names: impl Iterator<Item = String>) {
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
}

/// Returns the medians of two modes, if samples fall into two groups with hardly anything between
/// them: the border is where the variance between the groups is greatest (Otsu, 1979), on a
/// logarithmic scale.
fn modes(counts: &Counts) -> Option<(u64, u64)> {
    /// The least number of samples in which modes are looked for.
    const LEAST: u64 = 100;
    let all = counts.total();
    let log = |value: u64| (value.max(1) as f64).ln();
    let sum: f64 = counts
        .iter()
        .map(|(value, count)| log(value) * count as f64)
        .sum();
    let (mut below, mut sum_below, mut best) = (0_u64, 0.0, (0.0, 0));
    for (value, count) in counts.iter() {
        below += count;
        sum_below += log(value) * count as f64;
        let above = all - below;
        if above == 0 {
            break;
        }
        let apart = sum_below / below as f64 - (sum - sum_below) / above as f64;
        let between = below as f64 * above as f64 * apart * apart;
        if between > best.0 {
            best = (between, value);
        }
    }
    let part = |from: u64, to: u64| {
        let pairs = counts
            .iter()
            .filter(|(value, _)| (from..=to).contains(value));
        Counts::from_pairs(pairs).ok().filter(|own| !own.is_empty())
    };
    let (low, high) = (part(0, best.1)?, part(best.1 + 1, u64::MAX)?);
    let share = low.total().min(high.total()) as f64 / all as f64;
    // Between the modes there is next to nothing: 95 % of each are on their side, far from the
    // other.
    let (top, bottom) = (low.quantile(Quantile::P95)?, high.quantile(Quantile::P5)?);
    let (low, high) = (low.median()?, high.median()?);
    let is_apart = log(high) - log(low) > APART.ln() && log(bottom) - log(top) > VALLEY.ln();
    (all >= LEAST && share >= MODE && is_apart).then_some((low, high))
}

/// Returns the notices about the figures.
pub(super) fn find(flags: &Flags, run: &Run) -> Vec<Notice> {
    let failed: Vec<String> = facts(run, FAILED)
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    let unsteady: Vec<String> = flags
        .unsteady
        .iter()
        .map(|(name, factor)| format!("{name} (by {})", N.percent(factor - 1.0)))
        .collect();
    let bimodal: Vec<String> = flags
        .bimodal
        .iter()
        .map(|(name, low, high)| format!("{name} ({} and {})", N.ns(*low, None), N.ns(*high, None)))
        .collect();
    let notices = [
        about((Severity::Warning, "primitives-failed"), &failed, |names| {
            let failed = counted(N, failed.len() as u64, "primitive", "primitives");
            format!("{failed} failed: {names}.")
        }),
        about(
            (Severity::Error, "cost-of-nothing"),
            &flags.nothing,
            |names| {
                format!(
                    "{names} cost nothing, which cannot be: the difference is below what the timer can resolve. It is no figure. \
                 Raise --budget."
                )
            },
        ),
        about(
            (Severity::Error, "bandwidth-implausible"),
            &flags.too_fast,
            |names| {
                format!(
                    "{names} is faster than the first cache, which cannot be: something disturbed the small arrays. It is no \
                 figure. Measure again."
                )
            },
        ),
        about((Severity::Warning, "clock-unsteady"), &unsteady, |names| {
            format!(
                "The core's clock changed while these were measured, so their times are of no one clock: {names}. Fix the \
                 frequency (governor performance, no turbo), or measure where no other guest shares the core."
            )
        }),
        about((Severity::Note, "bimodal"), &bimodal, |_| {
            format!(
                "Single times fall into two groups, so that a median stands for one of them only: {}.",
                bimodal.join(", ")
            )
        }),
    ];
    notices.into_iter().flatten().collect()
}

/// Returns the primitives without figures, each with its reason: those that can't be measured, and
/// those that failed.
pub(super) fn absent(run: &Run) -> Vec<(String, String)> {
    let mut all = facts(run, ABSENT);
    let failed = facts(run, FAILED).into_iter();
    all.extend(failed.map(|(name, why)| (name, format!("failed: {why}"))));
    all
}

/// Returns the facts of a name that programs reported of primitives, each once.
fn facts(run: &Run, name: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for cell in &run.cells {
        let programs = cell.outcome.record().into_iter();
        let programs = programs.flat_map(|record| &record.programs);
        for fact in programs
            .flat_map(|program| &program.facts)
            .filter(|fact| fact.name == name)
        {
            let of = format!("{} on {}", named(&fact.labels), cell.plan.target);
            if !all.iter().any(|(known, _)| *known == of) {
                all.push((of, fact.value.clone()));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_groups_far_apart_are_two_modes() {
        let around = |middle: u64, count: u64| (0..20).map(move |step| (middle + step, count));
        let of = |pairs: Vec<(u64, u64)>| modes(&Counts::from_pairs(pairs).unwrap());
        let one: Vec<(u64, u64)> = around(100, 50).collect();
        assert_eq!(of(one.clone()), None);
        let two: Vec<(u64, u64)> = around(100, 50).chain(around(300, 30)).collect();
        assert_eq!(of(two), Some((109, 309)));
        let tail: Vec<(u64, u64)> = around(100, 50).chain(around(900, 2)).collect();
        assert_eq!(of(tail), None);
        let few: Vec<(u64, u64)> = vec![(100, 10), (300, 10)];
        assert_eq!(of(few), None);
        let wide: Vec<(u64, u64)> = (1..200).map(|value| (value, 10)).collect();
        assert_eq!(of(wide), None);
    }
}

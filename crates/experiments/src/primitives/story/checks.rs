//! What bears on whether figures of primitives may be believed, and which have none.

use tare_figures::Run;
use tare_figures::notices::{Notice, name_some};
use tare_figures::rows::{CellData, counts};
use tare_measured::primitives::{ABSENT, FAILED};
use tare_results::model::Labels;
use tare_stats::{Counts, Quantile};

use super::N;
use super::measures::{every_bandwidth, id_of, too_fast as too_fast_of};
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
        for (head, set) in data.sets("time") {
            let name = format!("{} on {target}", named(&head.labels));
            let is_known = self.bimodal.iter().any(|(known, ..)| *known == name);
            let modes = modes(&counts(set)?).filter(|_| !is_known);
            if let (Some((low, high)), Some(ns)) = (modes, data.ns(head)) {
                self.bimodal.push((name, low as f64 * ns, high as f64 * ns));
            }
        }
        let named = |labels: &Labels| format!("{} on {target}", named(labels));
        let values = data.record.values.iter();
        let nothing = values.filter(|value| value.measure == "cost" && value.value <= 0.0);
        for name in nothing.map(|value| named(&value.labels)) {
            if !self.nothing.contains(&name) {
                self.nothing.push(name);
            }
        }
        for name in too_fast_of(&every_bandwidth(data)?).iter().map(named) {
            if !self.too_fast.contains(&name) {
                self.too_fast.push(name);
            }
        }
        let clock = |labels: &Labels, at: &str| {
            let labels = labels.clone().with("at", at);
            data.record.value("clock", &labels)
        };
        for value in data
            .record
            .values
            .iter()
            .filter(|value| value.measure == "clock")
        {
            let own = value.labels.clone().without("at");
            let both = clock(&own, "begin").zip(clock(&own, "end"));
            let Some(factor) = both.map(|(begin, end)| begin / end) else {
                continue;
            };
            let name = format!("{} on {target}", id_of(&own));
            let is_known = self.unsteady.iter().any(|(known, _)| *known == name);
            if !is_known && (factor - 1.0).abs() > STEADY {
                self.unsteady.push((name, factor));
            }
        }
        Ok(())
    }
}

/// Returns the medians of two modes, if samples fall into two groups with hardly anything between them: the border is where the
/// variance between the groups is greatest (Otsu, 1979), on a logarithmic scale.
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
    // Between the modes there is next to nothing: 95 % of each are on their side, far from the other.
    let (top, bottom) = (low.quantile(Quantile::P95)?, high.quantile(Quantile::P5)?);
    let (low, high) = (low.median()?, high.median()?);
    let is_apart = log(high) - log(low) > APART.ln() && log(bottom) - log(top) > VALLEY.ln();
    (all >= LEAST && share >= MODE && is_apart).then_some((low, high))
}

/// Finds what bears on the figures.
pub(super) fn find(flags: &Flags, run: &Run) -> Vec<Notice> {
    let notices = [
        failed(run),
        nothing(flags),
        too_fast(flags),
        unsteady(flags),
        bimodal(flags),
    ];
    notices.into_iter().flatten().collect()
}

/// Returns the primitives without figures, each with its reason: those that can't be measured, and those that failed.
pub(super) fn absent(run: &Run) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = facts(run, ABSENT);
    all.extend(
        facts(run, FAILED)
            .into_iter()
            .map(|(name, why)| (name, format!("failed: {why}"))),
    );
    all
}

/// Returns what programs told of primitives, each but once.
fn facts(run: &Run, name: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for cell in &run.cells {
        let programs = cell
            .outcome
            .record()
            .map(|record| record.programs.as_slice());
        let facts = programs
            .unwrap_or_default()
            .iter()
            .flat_map(|program| &program.facts);
        for fact in facts.filter(|fact| fact.name == name) {
            let of = format!("{} on {}", named(&fact.labels), cell.plan.target);
            if !all.iter().any(|(known, _)| *known == of) {
                all.push((of, fact.value.clone()));
            }
        }
    }
    all
}

fn failed(run: &Run) -> Option<Notice> {
    let failed = facts(run, FAILED);
    let each: Vec<String> = failed
        .iter()
        .map(|(name, why)| format!("{name}: {why}"))
        .collect();
    (!failed.is_empty()).then(|| {
        Notice::warning(
            "primitives-failed",
            format!(
                "{} failed: {}.",
                tare_figures::words::counted(N, failed.len() as u64, "primitive", "primitives"),
                name_some(&each)
            ),
        )
    })
}

/// Finds costs of nothing: what took no time was not done, or is below what can be told.
fn nothing(flags: &Flags) -> Option<Notice> {
    (!flags.nothing.is_empty()).then(|| {
        Notice::error(
            "cost-of-nothing",
            format!(
                "{} cost nothing, which can't be: the difference is below what the timer can tell. It is no figure. Raise --budget.",
                name_some(&flags.nothing)
            ),
        )
    })
}

/// Finds bandwidths of memory above those of the first cache.
fn too_fast(flags: &Flags) -> Option<Notice> {
    (!flags.too_fast.is_empty()).then(|| {
        Notice::error(
            "bandwidth-implausible",
            format!(
                "{} is faster than the first cache, which can't be: something disturbed the small arrays. It is no figure. Measure again.",
                name_some(&flags.too_fast)
            ),
        )
    })
}

fn unsteady(flags: &Flags) -> Option<Notice> {
    let names: Vec<String> = flags
        .unsteady
        .iter()
        .map(|(name, factor)| format!("{name} (by {})", N.percent(factor - 1.0)))
        .collect();
    (!names.is_empty()).then(|| {
        Notice::warning(
            "clock-unsteady",
            format!(
                "The core's clock changed while these were measured, so that their times are of no one clock: {}. Fix the frequency \
                 (governor performance, no turbo), or measure where no other guest shares the core.",
                name_some(&names)
            ),
        )
    })
}

fn bimodal(flags: &Flags) -> Option<Notice> {
    let each = flags.bimodal.iter();
    let each: Vec<String> = each
        .map(|(name, low, high)| format!("{name} ({} and {})", N.ns(*low, None), N.ns(*high, None)))
        .collect();
    (!each.is_empty()).then(|| {
        Notice::note(
            "bimodal",
            format!(
                "Single times fall into two groups, so that a median stands for one of them only: {}.",
                each.join(", ")
            ),
        )
    })
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

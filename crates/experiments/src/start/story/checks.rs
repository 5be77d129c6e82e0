//! Checks of whether figures of starts may be believed.

use std::collections::BTreeMap;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::notices::{Notice, name_some};
use tare_figures::rows::Figure;
use tare_pages::kit::series::Series;
use tare_results::model::{CellPlan, Instance};

use super::ladder::{self, N, arrived, interval, not_open_loop, rate, saturated};

/// How many reasons of failures are shown.
const REASONS: usize = 3;

/// Finds what bears on the figures of starts.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let all = ladder::all(run);
    let why = all
        .iter()
        .flat_map(|one| &one.cases)
        .find_map(not_open_loop);
    let notices = [
        some(&all, |case| not_open_loop(case).is_some()).map(|names| {
            Notice::warning(
                "not-open-loop",
                format!(
                    "{} was not driven open-loop ({}): the actual rate differed from the planned one, so these latencies do not \
                     characterise the target. Such points are marked, and do not count as sustained rates.",
                    name_some(&names),
                    why.unwrap_or_default()
                ),
            )
        }),
        some(&all, |case| failures(case).next().is_some()).map(|names| failed(&all, &names)),
        some(&all, |case| saturated(case).is_some()).map(|names| {
            Notice::note(
                "saturated",
                format!(
                    "Saturated, so that latencies grow with the measurement time: {}. Shorter intervals were skipped in the same \
                     block.",
                    names.join(", ")
                ),
            )
        }),
        some(&all, |case| case.value("ready", Figure::Max).is_none()).map(|names| {
            Notice::warning(
                "none-ready",
                format!(
                    "No instance of {} became ready and ended as it should: there is no latency. If instances take longer than the \
                     measurement, raise --measure.",
                    name_some(&names)
                ),
            )
        }),
    ];
    notices.into_iter().flatten().collect()
}

/// Names the cases of which something holds; `None` if there are none.
fn some(all: &[Series<'_>], is: impl Fn(&Case<'_>) -> bool) -> Option<Vec<String>> {
    let cases = all
        .iter()
        .flat_map(|one| one.cases.iter().map(move |case| (one, case)));
    let names = cases
        .filter(|(_, case)| is(case))
        .map(|(one, case)| match rate(case) {
            Some(rate) => format!("{} at {}", one.name(), N.rate(rate)),
            None => format!("{}, {}", one.name(), interval(case)),
        });
    Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty())
}

/// Returns the reasons for which instances failed, each with their number.
fn failures<'a>(case: &Case<'a>) -> impl Iterator<Item = (&'a str, u64)> + use<'a> {
    let all = arrived(case).flat_map(|arrived| &arrived.failures);
    let all = all.map(|failure| (failure.reason.as_str(), failure.count));
    all.filter(|(_, count)| *count > 0)
}

fn failed(all: &[Series<'_>], names: &[String]) -> Notice {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in all.iter().flat_map(|one| &one.cases).flat_map(failures) {
        let known = reasons.entry(reason).or_default();
        *known = known.saturating_add(count);
    }
    let failed = reasons
        .values()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    let mut reasons = Vec::from_iter(reasons);
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let each = reasons.iter().take(REASONS);
    let each = each.map(|(reason, count)| format!("{} × {reason}", N.count(*count)));
    let more = match reasons.len().saturating_sub(REASONS) {
        0 => String::new(),
        more => format!("; {more} further reasons"),
    };
    Notice::warning(
        "instances-failed",
        format!(
            "{} instances of {} failed: {}{more}. They are in no latency.",
            N.count(failed),
            name_some(names),
            each.collect::<Vec<_>>().join("; ")
        ),
    )
}

/// Rejects a cell whose instances contradict themselves.
pub(super) fn contradiction(plan: &CellPlan, instances: &[Instance]) -> Result<(), String> {
    let is_backwards = |one: &Instance| one.ready_ns > 0 && one.started_ns > one.ready_ns;
    match instances.iter().position(is_backwards) {
        Some(place) => Err(format!(
            "instance {} of '{}' was ready before it was started; measure it again",
            place + 1,
            plan.label()
        )),
        None => Ok(()),
    }
}

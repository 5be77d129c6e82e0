//! What bears on whether figures of starts may be believed.

use tare_figures::Run;
use tare_figures::notices::{Notice, name_some};
use tare_results::model::{CellPlan, Instance};

use super::series::{self, N, Point, Series};

/// How many reasons of failures are told.
const REASONS: usize = 3;

/// Finds what bears on the figures of starts.
pub(super) fn find(run: &Run) -> Vec<Notice> {
    let all = series::all(run);
    let notices = [
        not_open_loop(&all),
        failed(&all),
        saturated(&all),
        refused_all(&all),
    ];
    notices.into_iter().flatten().collect()
}

/// Names the points of which something holds.
fn names(all: &[Series<'_>], is: impl Fn(&Point<'_>) -> bool) -> Vec<String> {
    let points = all
        .iter()
        .flat_map(|one| one.points.iter().map(move |point| (one, point)));
    let found = points.filter(|(_, point)| is(point));
    found
        .map(|(one, point)| match point.rate() {
            Some(rate) => format!("{} at {}", one.name(), N.rate(rate)),
            None => format!("{}, {}", one.name(), point.interval()),
        })
        .collect()
}

fn not_open_loop(all: &[Series<'_>]) -> Option<Notice> {
    let mut points = all.iter().flat_map(|one| &one.points);
    let why = points.find_map(Point::not_open_loop)?;
    let names = names(all, |point| point.not_open_loop().is_some());
    Some(Notice::warning(
        "not-open-loop",
        format!(
            "Instances of {} did not arrive as planned ({why}): the real rate was another one, and latencies there say little of \
             the target. Such points are marked, and count as no rate that was kept up.",
            name_some(&names)
        ),
    ))
}

fn failed(all: &[Series<'_>]) -> Option<Notice> {
    let mut reasons: Vec<(&str, u64)> = Vec::new();
    for (reason, count) in all
        .iter()
        .flat_map(|one| &one.points)
        .flat_map(Point::failures)
    {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, all)) => *all = all.saturating_add(count),
            None => reasons.push((reason, count)),
        }
    }
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let failed = reasons
        .iter()
        .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let each = reasons.iter().take(REASONS);
    let each: Vec<String> = each
        .map(|(reason, count)| format!("{} × {reason}", N.count(*count)))
        .collect();
    let more = match reasons.len().saturating_sub(REASONS) {
        0 => String::new(),
        more => format!("; {more} further reasons"),
    };
    let names = names(all, |point| !point.failures().is_empty());
    (failed > 0).then(|| {
        Notice::warning(
            "instances-failed",
            format!(
                "{} instances failed, of {}: {}{more}. They are in no latency.",
                N.count(failed),
                name_some(&names),
                each.join("; ")
            ),
        )
    })
}

fn saturated(all: &[Series<'_>]) -> Option<Notice> {
    let names = names(all, |point| point.saturated().is_some());
    (!names.is_empty()).then(|| {
        Notice::note(
            "saturated",
            format!(
                "These no longer kept up, so that latencies there grow with the time measured: {}. Shorter intervals were left out \
                 in the same block.",
                names.join(", ")
            ),
        )
    })
}

/// Finds points without a single instance that ended as it should.
fn refused_all(all: &[Series<'_>]) -> Option<Notice> {
    let none = |point: &Point<'_>| {
        point
            .value("ready", tare_figures::rows::Figure::Max)
            .is_none()
    };
    let names = names(all, none);
    (!names.is_empty()).then(|| {
        Notice::warning(
            "none-ready",
            format!(
                "No instance became ready and ended as it should of {}: there is no latency. If it takes longer than the window, \
                 raise --measure.",
                name_some(&names)
            ),
        )
    })
}

/// Refuses a cell whose instances contradict themselves.
pub(super) fn contradiction(plan: &CellPlan, instances: &[Instance]) -> Result<(), String> {
    let is_backwards = |one: &Instance| {
        let moments = [one.started_ns, one.ready_ns];
        one.started_ns > 0 && one.ready_ns > 0 && !moments.is_sorted()
    };
    match instances.iter().position(is_backwards) {
        Some(place) => Err(format!(
            "instance {} of '{}' was ready before it was started; measure it again",
            place + 1,
            plan.label()
        )),
        None => Ok(()),
    }
}

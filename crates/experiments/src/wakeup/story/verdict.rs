//! The verdict on wake-ups, in a few plain sentences.

use std::cmp::Reverse;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::Figure;
use tare_figures::verdict::Verdict;
use tare_pages::kit::sentence::{MANY, alongside_in, aside, few_or_ends};
use tare_pages::kit::series::native_first;

use super::Woken;
use super::words::{
    Phase, cases, in_common, is_periodic, is_telling, name, time, undisturbed, until_stopped,
};

/// The longest wait of a target under a load: in which case and phase, and how long.
type Worst<'a> = (&'a Case<'a>, Phase<'a>, f64);

/// The targets under each load, with their longest waits.
type Loads<'a> = Vec<(String, Vec<Worst<'a>>)>;

/// The number of loads up to which a verdict has a figure of each; of more, of the one under which the
/// latest wake-up came.
const LOADS: usize = 3;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(story: &Woken, run: &Run) -> Option<Verdict> {
    let all = cases(run);
    let (native, _) = native_first(undisturbed(all.clone()), Case::is_emulated);
    let measured = once(native);
    let under = under(&all);
    let loads = worst_under_loads(&measured, &under);
    loads.first()?;
    let details = blame(
        story,
        &native_first(all.clone(), Case::is_emulated).0,
        &under,
    );
    Some(Verdict {
        headline: headline(few(&loads), until_stopped(&measured)),
        details: Vec::from_iter(details),
        ..Verdict::default()
    })
}

/// Returns the writer of the load of a phase: also of none, where others were measured under one.
fn under(all: &[Case<'_>]) -> impl Fn(Phase<'_>) -> String {
    let phases = all.iter().flat_map(|case| Phase::all(case.plan));
    let has_loads = phases.map(Phase::under).any(|under| !under.is_empty());
    move |phase| match phase.under() {
        none if none.is_empty() && has_loads => " without a load".to_owned(),
        under => under,
    }
}

/// Leaves out cases whose rows another one has: those that differ in how long they measured alone.
fn once(cases: Vec<Case<'_>>) -> Vec<Case<'_>> {
    let mut once: Vec<Case<'_>> = Vec::new();
    for case in cases {
        let is_known =
            |known: &Case<'_>| is_same(known, &case) && known.plan.load == case.plan.load;
        if !once.iter().any(is_known) {
            once.push(case);
        }
    }
    once
}

/// Returns the culprit of the worst wake-up around which the kernel's events were recorded, and its
/// share.
fn blame(
    story: &Woken,
    cases: &[Case<'_>],
    under: &impl Fn(Phase<'_>) -> String,
) -> Option<String> {
    let each = cases
        .iter()
        .flat_map(|case| story.worst(case).iter().map(move |worst| (case, worst)));
    let known = each.filter_map(|(case, worst)| Some((case, worst, worst.blame.as_ref()?)));
    // Of equal ones the first.
    let (case, worst, blame) = known.min_by_key(|(_, worst, _)| Reverse(worst.latency_ns))?;
    let phase = Phase::all(case.plan).nth(worst.phase as usize);
    let under = phase.map_or_else(String::new, under);
    let (latency, on) = (time(worst.latency_ns as f64), name(case));
    let told = blame.told(|ns| time(ns as f64));
    Some(format!(
        "The worst traced wake-up came {latency} late on {on}{under}: {told}."
    ))
}

/// Returns the longest wait of each target under each load, first of the load with the latest wake-up.
fn worst_under_loads<'a>(cases: &'a [Case<'a>], under: &impl Fn(Phase<'_>) -> String) -> Loads<'a> {
    let mut loads: Loads<'a> = Vec::new();
    for case in cases {
        for phase in Phase::all(case.plan) {
            let row = phase.row(case, "latency", Figure::Max);
            let Some(over) = row.and_then(|row| row.over.as_ref().ok()) else {
                continue;
            };
            let (worst, load) = ((case, phase, over.estimate), under(phase));
            let at = loads.iter().position(|(known, _)| *known == load);
            let at = at.unwrap_or_else(|| {
                loads.push((load, Vec::new()));
                loads.len() - 1
            });
            let targets = &mut loads[at].1;
            match targets.iter_mut().find(|known| is_same(known.0, case)) {
                Some(known) if known.2 < worst.2 => *known = worst,
                Some(_) => {}
                None => targets.push(worst),
            }
        }
    }
    let latest = |(_, targets): &(String, Vec<Worst<'_>>)| {
        targets.iter().map(|(.., ns)| *ns).fold(0.0, f64::max)
    };
    // The latest first; of equal ones as they are.
    loads.sort_by(|a, b| latest(b).total_cmp(&latest(a)));
    loads
}

/// Returns the loads that a verdict has figures of.
fn few<'a, 'b>(loads: &'b [(String, Vec<Worst<'a>>)]) -> &'b [(String, Vec<Worst<'a>>)] {
    if loads.len() > LOADS {
        &loads[..1]
    } else {
        loads
    }
}

/// Writes what there is of each load, like with like: `Latest wake-ups without a load: …; under dd: ….`
fn under_each(what: &str, loads: &[(&str, String)]) -> String {
    let each = loads.iter().enumerate().map(|(place, (load, text))| {
        let load = if place == 0 { load } else { load.trim_start() };
        format!("{load}: {text}")
    });
    format!("{what}{}.", each.collect::<Vec<_>>().join("; "))
}

/// Returns whether two cases are of one target by one schedule.
fn is_same(a: &Case<'_>, b: &Case<'_>) -> bool {
    a.plan.target == b.plan.target && a.plan.labels == b.plan.labels
}

fn headline(loads: &[(String, Vec<Worst<'_>>)], until: &str) -> String {
    let all = loads
        .iter()
        .map(|(_, targets)| targets.len())
        .max()
        .unwrap_or(0);
    let mut ranked = 0;
    let each = loads.iter().filter_map(|(load, targets)| {
        // Latencies of an emulator rank nothing.
        let is_ranked = |(case, ..): &&Worst<'_>| all <= MANY || is_telling(case);
        let each = targets.iter().filter(is_ranked).map(|(case, phase, ns)| {
            let row = phase.row(case, "latency", Figure::Max);
            let each = row.into_iter().flat_map(|row| &row.each);
            let mut worst = each.filter(|run| run.figure.value() == Some(*ns));
            let cell = worst.next().map(|run| run.cell);
            let mut work = alongside_in(case, |id| Some(id) == cell);
            if targets.len() > 1 {
                work = aside([work.trim_start().to_owned()]);
            }
            (*ns, format!("{} on {}{work}", time(*ns), name(case)))
        });
        let each: Vec<(f64, String)> = each.collect();
        ranked += each.len();
        (!each.is_empty()).then(|| (load.as_str(), few_or_ends(&each)))
    });
    let each: Vec<(&str, String)> = each.collect();
    let mut targets = loads.iter().flat_map(|(_, targets)| targets);
    let common = targets.clone().next().map(|(case, ..)| in_common(case));
    let until = common.unwrap_or_default() + until;
    match ranked {
        0 => format!(
            "An emulator executed all {all} targets, so none is ranked; the table has their figures."
        ),
        _ if !targets.any(|(case, ..)| is_periodic(case.plan)) => {
            under_each(&format!("Longest{until}"), &each)
        }
        1 => under_each(&format!("Latest wake-up{until}"), &each),
        _ => under_each(&format!("Latest wake-ups{until}"), &each),
    }
}

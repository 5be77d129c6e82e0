//! The verdict on wake-ups, in a few plain sentences.

use std::cmp::Reverse;

use tare_results::model::Labels;
use tare_results::target::Clock;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::{Figure, Row};
use tare_figures::verdict::Verdict;
use tare_pages::kit::sentence::{MANY, alongside, certainty, few_or_ends};
use tare_pages::kit::series::native_first;

use super::Woken;
use super::words::{N, Phase, cases, is_of_wakeups, is_telling, name, time, undisturbed};

/// By how much two quantiles must differ to be told apart in words.
const DIFFERENT: f64 = 1.05;

/// The longest wait of a target: in which case and phase, and how long.
type Worst<'a> = (&'a Case<'a>, Phase<'a>, f64);

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(story: &Woken, run: &Run) -> Option<Verdict> {
    let all = cases(run);
    let measured = once(native_first(undisturbed(all.clone()), Case::is_emulated).0);
    let worst = worst_of_targets(&measured);
    worst.first()?;
    let under = under(&all);
    let is_woken = measured.iter().any(is_of_wakeups);
    let details = [
        blame(
            story,
            &native_first(all.clone(), Case::is_emulated).0,
            &under,
        ),
        cyclictest(&measured, &under).filter(|_| is_woken),
        is_woken.then(|| missed(&measured, &worst, &under)),
    ];
    Some(Verdict {
        headline: headline(&worst, &under),
        details: details.into_iter().flatten().collect(),
        certainty: certainty(longest(&worst, &under)),
        ..Verdict::default()
    })
}

/// Returns the writer of the load of a phase: also of none, where others were measured under one.
fn under(all: &[Case<'_>]) -> impl Fn(Phase<'_>) -> String {
    let phases = all.iter().flat_map(|case| Phase::all(case.plan));
    let has_loads = phases.map(Phase::under).any(|under| !under.is_empty());
    move |phase| match phase.under() {
        none if none.is_empty() && has_loads => " when idle".to_owned(),
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
    let seen = format!("The worst traced wake-up came {latency} late on {on}{under}: {told}.");
    let cell = case.cells.iter().find(|cell| cell.plan.id == worst.cell);
    let record = cell.and_then(|cell| cell.outcome.record());
    let stolen = record.and_then(|record| record.value("stolen", &Labels::default()));
    Some(match stolen.filter(|_| !blame.is_explained()) {
        Some(ns) => format!(
            "{seen} The hypervisor took {} from the measured CPU during that run (stolen time): it may be the reason.",
            time(ns)
        ),
        None => seen,
    })
}

/// Returns the longest wait of each target, in the order of the report.
fn worst_of_targets<'a>(cases: &'a [Case<'a>]) -> Vec<Worst<'a>> {
    let mut targets: Vec<Worst<'a>> = Vec::new();
    for case in cases {
        let phases = Phase::all(case.plan).filter_map(|phase| {
            let row = phase.row(case, "latency", Figure::Max)?;
            Some((case, phase, row.over.as_ref().ok()?.highest))
        });
        let Some(worst) = phases.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            continue;
        };
        let mut known = targets.iter_mut();
        match known.find(|known| is_same(known.0, case)) {
            Some(known) if known.2 < worst.2 => *known = worst,
            Some(_) => {}
            None => targets.push(worst),
        }
    }
    targets
}

/// Returns whether two cases are of one target by one schedule.
fn is_same(a: &Case<'_>, b: &Case<'_>) -> bool {
    a.plan.target == b.plan.target && a.plan.labels == b.plan.labels
}

fn headline(worst: &[Worst<'_>], under: &impl Fn(Phase<'_>) -> String) -> String {
    // Latencies of an emulator rank nothing.
    let is_ranked = |(case, ..): &&Worst<'_>| worst.len() <= MANY || is_telling(case);
    let each = worst.iter().filter(is_ranked).map(|(case, phase, ns)| {
        let (on, under) = (name(case), under(*phase));
        let beside = alongside(case);
        (*ns, format!("{} on {on}{under}{beside}", time(*ns)))
    });
    let each: Vec<(f64, String)> = each.collect();
    match (each.len(), worst.len()) {
        (0, all) => format!(
            "An emulator executed all {all} targets, so none is ranked; the table has their figures."
        ),
        _ if !worst.iter().any(|(case, ..)| is_of_wakeups(case)) => {
            format!("Longest: {}.", few_or_ends(&each))
        }
        (1, _) => format!("Latest wake-up: {}.", few_or_ends(&each)),
        _ => format!("Latest wake-ups: {}.", few_or_ends(&each)),
    }
}

/// Returns how many activations were missed under the load where each target missed the greatest
/// share, as the table counts them; none on targets that missed none.
fn missed(all: &[Case<'_>], worst: &[Worst<'_>], under: &impl Fn(Phase<'_>) -> String) -> String {
    let each = worst.iter().filter_map(|(target, ..)| {
        let own = all.iter().filter(|case| is_same(case, target));
        let phases = own.flat_map(|case| Phase::all(case.plan).map(move |phase| (case, phase)));
        let shares = phases.filter_map(|(case, phase)| {
            let row = phase.row(case, "missed", Figure::Share)?;
            Some((row.estimate().or(row.at_least())?, phase, row))
        });
        let shares: Vec<_> = shares.collect();
        let (most, phase, row) = shares.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let sums = |rows: &[(f64, Phase<'_>, &Row)]| {
            let sums = rows.iter().map(|(.., row)| row.sums());
            sums.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
        };
        let told = |(missed, of): (f64, f64)| {
            let (missed, of) = (N.count(missed as u64), N.count(of as u64));
            format!("{missed} of {of} ({})", N.percent(*most))
        };
        let (told, under) = match row.at_least() {
            _ if *most == 0.0 => (told(sums(&shares)), String::new()),
            Some(least) => (format!("at least {}", N.percent(least)), under(*phase)),
            None => (told(row.sums()), under(*phase)),
        };
        Some((*most, format!("{told} on {}{under}", name(target))))
    });
    format!(
        "Missed activations: {}.",
        few_or_ends(&each.collect::<Vec<_>>())
    )
}

/// Compares with a tool that counts one latency for each wake-up, where that makes the greatest
/// difference.
fn cyclictest(cases: &[Case<'_>], under: &impl Fn(Phase<'_>) -> String) -> Option<String> {
    const QUANTILES: [Figure; 3] = [Figure::P99, Figure::P99_9, Figure::P99_99];
    let telling = cases.iter().filter(|case| is_telling(case));
    let pairs = telling.flat_map(|case| {
        let phases = Phase::all(case.plan);
        phases.flat_map(move |phase| QUANTILES.map(|quantile| (case, phase, quantile)))
    });
    let ratios = pairs.filter_map(|(case, phase, quantile)| {
        let of = |measure| phase.row(case, measure, quantile)?.estimate();
        let (service, response) = (of("latency")?, of("response")?);
        let ratio = response / service.max(1.0);
        (ratio >= DIFFERENT).then_some((ratio, case, phase, quantile, service, response))
    });
    // Of equal ones the first.
    let (_, case, phase, quantile, service, response) =
        ratios.reduce(|known, next| if next.0 > known.0 { next } else { known })?;
    let (on, under) = (name(case), under(phase));
    let (service, response) = (time(service), time(response));
    Some(format!(
        "One latency for each wake-up, as cyclictest counts, makes {quantile} {service} on {on}{under}; with the missed \
         activations it is {response}."
    ))
}

/// Returns the rows of the longest waits, each with its name.
fn longest<'a>(
    worst: &'a [Worst<'a>],
    under: &impl Fn(Phase<'_>) -> String,
) -> impl Iterator<Item = (String, &'a Row)> {
    worst.iter().filter_map(|(case, phase, _)| {
        let row = phase.row(case, "response", Figure::Max)?;
        let has_interval = row.over.as_ref().is_ok_and(|over| over.interval.is_ok());
        // An emulator that counts instructions gives the same again.
        let is_worth_it = has_interval || case.plan.target.clock != Clock::Instructions;
        let what = format!("Longest of a run on {}{}", name(case), under(*phase));
        is_worth_it.then_some((what, row))
    })
}

//! What a run says of wake-ups, in a few plain sentences.

use std::collections::BTreeSet;

use tare_results::model::Labels;
use tare_results::target::Clock;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::rows::Figure;
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::series::{further, native_first};
use tare_pages::plain::{MANY, sure};

use super::words::{N, Phase, cases, is_telling, name_among, time, undisturbed};
use super::{Woken, sums};

/// By how much two quantiles must differ to be told apart in words.
const DIFFERENT: f64 = 1.05;

/// Labels that say how much was measured and kept, not what.
const LENGTHS: [&str; 5] = ["traced", "duration", "loops", "raw", "capacity"];

/// The longest wait of a target: in which case and phase, and how long.
type Worst<'a> = (&'a Case<'a>, Phase<'a>, f64);

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(story: &Woken, run: &Run) -> Option<Verdict> {
    let all = cases(run);
    let measured = once(native_first(undisturbed(all.clone())).0);
    let targets = worst_of_targets(&measured);
    targets.first()?;
    let mut details = Vec::new();
    details.extend(blame(story, &native_first(all).0));
    details.extend(cyclictest(&measured));
    if targets.len() > 1 {
        details.push(missed_by_target(&measured, &targets));
    }
    Some(Verdict {
        headline: headline(&targets, &measured, run.plan.cpu),
        details,
        certainty: certainty(&targets, &measured),
        ..Verdict::default()
    })
}

/// Returns of experiments of one study that differ but in how long they measure the one that measured most.
fn once(cases: Vec<Case<'_>>) -> Vec<Case<'_>> {
    let what = |case: &Case<'_>| {
        let plan = case.plan;
        (
            plan.target.clone(),
            plan.load.clone(),
            further(&plan.labels, &LENGTHS),
        )
    };
    let mut taken: Vec<Case<'_>> = Vec::new();
    for case in cases {
        match taken.iter_mut().find(|known| what(known) == what(&case)) {
            Some(known) if sums(known, "skipped").1 < sums(&case, "skipped").1 => *known = case,
            Some(_) => {}
            None => taken.push(case),
        }
    }
    taken
}

/// Says of the worst wake-up around which the kernel's events were recorded who was to blame, and for how much of it.
fn blame(story: &Woken, cases: &[Case<'_>]) -> Option<String> {
    let traced = cases.iter().filter(|case| case.plan.is_traced());
    let each = traced.flat_map(|case| story.worst(case).iter().map(move |worst| (case, worst)));
    let known = each.filter_map(|(case, worst)| Some((case, worst, worst.blame.as_ref()?)));
    let (case, worst, blame) = known.reduce(|known, next| {
        // Of equal ones the first.
        if next.1.latency_ns > known.1.latency_ns {
            next
        } else {
            known
        }
    })?;
    let phase = Phase::all(case.plan).nth(worst.phase as usize);
    let under = phase.map_or_else(String::new, Phase::under_if_several);
    let latency = time(worst.latency_ns as f64);
    let on = name_among(case, cases);
    let told = blame.told(|ns| time(ns as f64));
    let seen = format!("The worst traced wake-up came {latency} late on {on}{under}: {told}");
    let cell = case.cells.iter().find(|cell| cell.plan.id == worst.cell);
    let record = cell.and_then(|cell| cell.outcome.record());
    let stolen = record.and_then(|record| record.value("stolen", &Labels::default()));
    Some(match stolen.filter(|_| !blame.is_explained()) {
        Some(ns) => format!(
            "{seen}. The hypervisor took {} from the measured CPU during that run (stolen time): it may be the reason.",
            time(ns)
        ),
        None => format!("{seen}."),
    })
}

/// Returns of each target the longest wait, in the order of the report.
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

/// Says whether two cases are of one target by one schedule: two experiments of a study may measure one target.
fn is_same(a: &Case<'_>, b: &Case<'_>) -> bool {
    a.plan.target == b.plan.target && a.plan.labels == b.plan.labels
}

/// Returns how many activations were missed on a target, and how many there were.
fn missed(cases: &[Case<'_>], target: &Case<'_>) -> (f64, f64) {
    let own = cases.iter().filter(|case| is_same(case, target));
    let each = own.map(|case| sums(case, "skipped"));
    each.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1))
}

fn headline(targets: &[Worst<'_>], all: &[Case<'_>], cpu: u32) -> String {
    let what = |(case, phase, ns): &Worst<'_>| {
        let under = phase.under_if_several();
        format!("{} on {}{under}", time(*ns), name_among(case, all))
    };
    match targets {
        [(case, phase, ns)] => {
            let is_direct = case.plan.target.capabilities().is_direct;
            let on = match is_direct && !case.is_emulated() {
                true => format!("CPU {cpu}"),
                false => name_among(case, all),
            };
            let (missed, activations) = missed(all, case);
            let count = |number: f64| N.count(number as u64);
            let missed = match missed {
                0.0 => format!("none of {} activations was missed", count(activations)),
                missed => format!(
                    "{} of {} activations were missed ({})",
                    count(missed),
                    count(activations),
                    N.percent(missed / activations)
                ),
            };
            let under = phase.under_if_several();
            format!(
                "Woken at worst {} late on {on}{under}; {missed}.",
                time(*ns)
            )
        }
        few if few.len() <= MANY + 1 => {
            let each: Vec<String> = few.iter().map(what).collect();
            format!("The latest wake-ups: {}.", words::list(&each))
        }
        many => {
            let telling = || many.iter().filter(|(case, ..)| is_telling(case));
            let texts = many.iter().map(|(case, ..)| &case.plan.target.text);
            let number = texts.collect::<BTreeSet<_>>().len();
            let by_length = |a: &&Worst<'_>, b: &&Worst<'_>| a.2.total_cmp(&b.2);
            match (telling().min_by(by_length), telling().max_by(by_length)) {
                (Some(least), Some(most)) => format!(
                    "Of {number} targets, the latest wake-up of the best was {}, of the worst {}.",
                    what(least),
                    what(most)
                ),
                _ => format!(
                    "An emulator executed all {number} targets, so none is ranked; the table has their figures."
                ),
            }
        }
    }
}

fn missed_by_target(all: &[Case<'_>], targets: &[Worst<'_>]) -> String {
    let figures = targets.iter().map(|(case, ..)| (case, missed(all, case)));
    let figures: Vec<_> = figures.collect();
    if figures.iter().all(|(_, (missed, _))| *missed == 0.0) {
        return "No activation was missed anywhere.".to_owned();
    }
    let each = figures.iter().map(|(case, (missed, activations))| {
        let share = missed / activations.max(1.0);
        format!("{} on {}", N.percent(share), name_among(case, all))
    });
    format!(
        "Missed activations: {}.",
        each.collect::<Vec<_>>().join(", ")
    )
}

/// Says what a tool would have said that counts one latency for each wake-up.
fn cyclictest(cases: &[Case<'_>]) -> Option<String> {
    const QUANTILES: [Figure; 3] = [Figure::P99, Figure::P99_9, Figure::P99_99];
    let telling = || cases.iter().filter(|case| is_telling(case));
    let pairs = telling().flat_map(|case| {
        let phases = Phase::all(case.plan);
        phases.flat_map(move |phase| QUANTILES.map(|quantile| (case, phase, quantile)))
    });
    let ratios = pairs.filter_map(|(case, phase, quantile)| {
        let of = |measure| {
            let row = phase.row(case, measure, quantile)?;
            Some(row.over.as_ref().ok()?.estimate)
        };
        let (service, response) = (of("latency")?, of("response")?);
        let ratio = response / service.max(1.0);
        (ratio >= DIFFERENT).then_some((ratio, case, phase, quantile, service, response))
    });
    // Of equal ones the first.
    let greatest = ratios.reduce(|known, next| if next.0 > known.0 { next } else { known });
    if let Some((_, case, phase, quantile, service, response)) = greatest {
        let on = match cases.len() {
            1 => String::new(),
            _ => format!(" on {}", name_among(case, cases)),
        };
        return Some(format!(
            "One latency for each wake-up, as cyclictest counts, makes {quantile}{}{on} {}; with the missed activations it is \
             {}.",
            phase.under_if_several(),
            time(service),
            time(response)
        ));
    }
    let none_missed = telling().all(|case| sums(case, "skipped").0 == 0.0);
    (cases.len() == 1 && telling().count() == 1 && none_missed).then(|| {
        "Since none was missed, cyclictest, which leaves missed activations out, would have said the same.".to_owned()
    })
}

/// Says how sure the worst is.
fn certainty(targets: &[Worst<'_>], all: &[Case<'_>]) -> Vec<String> {
    let each = targets
        .iter()
        .take(MANY + 1)
        .filter_map(|(case, phase, _)| {
            let row = phase.row(case, "response", Figure::Max)?;
            let has_interval = row.over.as_ref().is_ok_and(|over| over.interval.is_ok());
            // An emulator that counts instructions gives the same again.
            let is_worth_it = has_interval || case.plan.target.clock != Clock::Instructions;
            let (under, on) = (phase.under_if_several(), name_among(case, all));
            is_worth_it.then(|| sure(&format!("Longest of a run{under} on {on}"), row))
        });
    each.collect()
}

//! What a run says of wake-ups, in a few plain sentences.

use tare_results::target::Clock;

use super::combine::{WakeupCombination, WakeupPhase};
use super::latency::LatencyQuantileSpread;
use super::words::{name_among, time, under};
use crate::analysis::Spread;
use crate::format::Numbers;
use crate::panels::MANY;
use crate::verdict::Verdict;
use crate::words;

const N: Numbers = Numbers::PLAIN;

/// Is by how much two quantiles must differ to be told apart in words.
const DIFFERENT: f64 = 1.05;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(crate) fn of(combinations: &[WakeupCombination], cpu: u32) -> Option<Verdict> {
    let measured: Vec<&WakeupCombination> = combinations.iter().filter(|c| !c.traced).collect();
    // A run may have nothing but traced cells: then they are all there is.
    let measured = if measured.is_empty() {
        combinations.iter().collect()
    } else {
        measured
    };
    let places = worst_of_places(&measured);
    let (first, _) = places.first()?;
    let mut details = Vec::new();
    details.extend(cyclictest(&measured));
    if places.len() > 1 {
        details.push(missed_by_place(&measured, &places));
    }
    Some(Verdict {
        headline: headline(&places, first, &measured, cpu),
        details,
        certainty: certainty(&places, &measured),
        ..Verdict::default()
    })
}

type Worst<'a> = (&'a WakeupCombination, (&'a WakeupPhase, f64));

/// Returns of each place the combination with its longest wait, in the order of the report.
fn worst_of_places<'a>(combinations: &[&'a WakeupCombination]) -> Vec<Worst<'a>> {
    let mut places: Vec<Worst<'a>> = Vec::new();
    for combination in combinations {
        let Some(worst) = combination.worst_phase() else {
            continue;
        };
        let is_same = |known: &&mut Worst<'_>| known.0.target == combination.target;
        match places.iter_mut().find(is_same) {
            Some(known) if known.1.1 < worst.1 => *known = (combination, worst),
            Some(_) => {}
            None => places.push((combination, worst)),
        }
    }
    places
}

fn headline(
    places: &[Worst<'_>],
    first: &WakeupCombination,
    all: &[&WakeupCombination],
    cpu: u32,
) -> String {
    let what = |(combination, (phase, ns)): &Worst<'_>| {
        format!(
            "{} on {}{}",
            time(N, *ns),
            name_among(combination, all),
            under_if_several(combination, phase)
        )
    };
    match places {
        [(combination, (phase, ns))] => {
            let of_place = all.iter().filter(|c| c.target == first.target);
            let (missed, activations) = of_place.fold((0, 0), |(missed, activations), c| {
                (missed + c.missed, activations + c.activations())
            });
            let on = match combination.target.as_str() {
                "process" if !combination.emulated => format!("CPU {cpu}"),
                _ => name_among(combination, all),
            };
            format!(
                "Woken at worst {} late on {on}{}; {}.",
                time(N, *ns),
                under_if_several(combination, phase),
                missed_of(missed, activations)
            )
        }
        few if few.len() <= MANY + 1 => {
            let each: Vec<String> = few.iter().map(what).collect();
            format!("The latest wake-ups: {}.", words::list(&each))
        }
        many => {
            let telling = || many.iter().filter(|(c, _)| c.is_telling());
            let by_length = |a: &&Worst<'_>, b: &&Worst<'_>| a.1.1.total_cmp(&b.1.1);
            match (telling().min_by(by_length), telling().max_by(by_length)) {
                (Some(least), Some(most)) => format!(
                    "Of {} places, the latest wake-up of the best was {}, of the worst {}.",
                    many.len(),
                    what(least),
                    what(most)
                ),
                _ => format!(
                    "An emulator executed all {} places, so none is ranked; the table has their figures.",
                    many.len()
                ),
            }
        }
    }
}

/// Names the load if there was more than one, or one that disturbs.
fn under_if_several(combination: &WakeupCombination, phase: &WakeupPhase) -> String {
    if combination.phases.len() == 1 && phase.load == "idle" {
        return String::new();
    }
    under(&phase.load)
}

fn missed_of(missed: u64, activations: u64) -> String {
    if missed == 0 {
        return format!("none of {} activations was missed", N.count(activations));
    }
    format!(
        "{} of {} activations were missed ({})",
        N.count(missed),
        N.count(activations),
        N.percent(missed as f64 / activations.max(1) as f64)
    )
}

fn missed_by_place(all: &[&WakeupCombination], places: &[Worst<'_>]) -> String {
    let of = |target: &str| {
        let own = all.iter().filter(|c| c.target == target);
        own.fold((0, 0), |(missed, activations), c| {
            (missed + c.missed, activations + c.activations())
        })
    };
    let figures: Vec<(&WakeupCombination, u64, u64)> = places
        .iter()
        .map(|(c, _)| {
            let (missed, activations) = of(&c.target);
            (*c, missed, activations)
        })
        .collect();
    if figures.iter().all(|(_, missed, _)| *missed == 0) {
        return "No activation was missed anywhere.".to_owned();
    }
    let each: Vec<String> = figures
        .iter()
        .map(|(c, missed, activations)| {
            let share = *missed as f64 / (*activations).max(1) as f64;
            format!("{} on {}", N.percent(share), name_among(c, all))
        })
        .collect();
    format!("Missed activations: {}.", each.join(", "))
}

/// Says what a tool would have said that counts one latency for each wake-up.
fn cyclictest(combinations: &[&WakeupCombination]) -> Option<String> {
    type Of = fn(&super::LatencySpread) -> LatencyQuantileSpread;
    const QUANTILES: [(&str, Of); 3] = [
        ("p99", |l| l.p99),
        ("p99.9", |l| l.p99_9),
        ("p99.99", |l| l.p99_99),
    ];
    let mut greatest: Option<(f64, String)> = None;
    let mut missed = 0;
    for combination in combinations.iter().filter(|c| c.is_telling()) {
        missed += combination.missed;
        for phase in &combination.phases {
            for (name, of) in QUANTILES {
                let median = |latencies: Option<super::LatencySpread>| -> Option<Spread<f64>> {
                    of(&latencies?).ns
                };
                let (Some(service), Some(response)) =
                    (median(phase.service), median(phase.response))
                else {
                    continue;
                };
                let ratio = response.figure / service.figure.max(1.0);
                if ratio < DIFFERENT || greatest.as_ref().is_some_and(|(known, _)| *known >= ratio)
                {
                    continue;
                }
                let on = if combinations.len() > 1 {
                    format!(" on {}", name_among(combination, combinations))
                } else {
                    String::new()
                };
                greatest = Some((
                    ratio,
                    format!(
                        "One latency for each wake-up, as cyclictest counts, makes {name}{}{on} {}; with the missed \
                         activations it is {}.",
                        under_if_several(combination, phase),
                        time(N, service.figure),
                        time(N, response.figure)
                    ),
                ));
            }
        }
    }
    match greatest {
        Some((_, text)) => Some(text),
        None if missed == 0 && combinations.iter().any(|c| c.is_telling()) => {
            let said = "cyclictest, which leaves missed activations out, would have said the same";
            (combinations.len() == 1).then(|| format!("Since none was missed, {said}."))
        }
        None => None,
    }
}

/// Says how sure the worst is.
fn certainty(places: &[Worst<'_>], all: &[&WakeupCombination]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !said.contains(&text) {
            said.push(text);
        }
    };
    for (combination, (phase, _)) in places.iter().take(MANY + 1) {
        let Some(max) = phase.response.map(|response| response.max) else {
            continue;
        };
        match (max.interval, &combination.intervals_refused) {
            (Some(interval), _) => add(format!(
                "How sure: the longest of a run{} on {} lies between {} and {} in the median, at 95 % confidence over {}.",
                under_if_several(combination, phase),
                name_among(combination, all),
                time(N, interval.low),
                time(N, interval.high),
                words::over(&interval)
            )),
            // An emulator that counts instructions gives the same again.
            (None, _) if combination.clock == Clock::Instructions => {}
            (None, Some(refused)) => add(format!("How sure: {refused} (--runs).")),
            (None, None) => {}
        }
    }
    said
}

//! What a run says of starts, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::plain::{MANY, sure};

use super::super::BESIDE;
use super::parts;
use super::series::{self, N, Series, rate_kept, time};

/// The change of a median from which on it is worth a sentence.
const DIFFERENT: f64 = 1.05;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let all = series::all(run);
    all.first()?;
    let (real, emulated) = series::by_execution(&all);
    let (told, apart) = match real.is_empty() {
        true => (emulated, Vec::new()),
        false => (real, emulated),
    };
    let mut details = Vec::new();
    details.extend(largest_part(&told));
    details.extend(ends(&told));
    details.extend(beside(&told, &all));
    if !apart.is_empty() {
        details.push(format!(
            "Executed by an emulator: {}",
            sentence(&apart, false)
        ));
    }
    Some(Verdict {
        headline: sentence(&told, true),
        details,
        certainty: certainty(&told),
        ..Verdict::default()
    })
}

/// Says how long series took to start, and which rates they kept up, in one sentence.
fn sentence(all: &[&Series<'_>], is_first: bool) -> String {
    // What the engine's presence costs is a sentence of its own.
    let plain: Vec<&Series<'_>> = all.iter().copied().filter(|one| !one.is_beside()).collect();
    let all = if plain.is_empty() { all } else { &plain };
    let mut begin = if is_first { "Ready" } else { "ready" }.to_owned();
    let figure = figure(all);
    if figure == Figure::Mean {
        begin.push_str(" on average");
    }
    let known = all
        .iter()
        .filter_map(|one| Some((*one, one.calm().value("ready", figure)?)));
    let known: Vec<(&Series<'_>, f64)> = known.collect();
    let each = |(one, ns): &(&Series<'_>, f64)| format!("{} on {}", time(*ns), one.name());
    let by_time = |a: &&(&Series<'_>, f64), b: &&(&Series<'_>, f64)| a.1.total_cmp(&b.1);
    let ready = match known.len() {
        0 => return none_ready(all, is_first),
        1..=MANY => known.iter().map(each).collect::<Vec<_>>().join(", "),
        many => {
            let ends = known
                .iter()
                .min_by(by_time)
                .zip(known.iter().max_by(by_time));
            let ends = ends.map(|(low, high)| format!("{} to {}", each(low), each(high)));
            format!("{}, {many} in all", ends.unwrap_or_default())
        }
    };
    let told: Vec<&Series<'_>> = known.iter().map(|(one, _)| *one).collect();
    match kept(&told) {
        Some(kept) => format!("{begin} after {ready}; kept up to {kept}."),
        None => format!("{begin} after {ready}."),
    }
}

/// Returns the figure that all series have: the median, or the mean if one of them has too few instances.
pub(super) fn figure(all: &[&Series<'_>]) -> Figure {
    let has = |one: &&Series<'_>| {
        let point = one.calm();
        point.value("ready", Figure::MEDIAN).is_some()
            || point.value("ready", Figure::Mean).is_none()
    };
    match all.iter().all(has) {
        true => Figure::MEDIAN,
        false => Figure::Mean,
    }
}

fn none_ready(all: &[&Series<'_>], is_first: bool) -> String {
    let names: Vec<String> = all.iter().take(MANY).map(|one| one.name()).collect();
    let no = if is_first { "No" } else { "no" };
    format!("{no} instance became ready ({}).", words::list(&names))
}

/// Writes the rates that series kept up, in their order; of many the lowest and the highest. None if none had an interval.
fn kept(all: &[&Series<'_>]) -> Option<String> {
    let known = all.iter().filter_map(|one| Some((*one, one.kept()?)));
    let known: Vec<_> = known.collect();
    match known.len() {
        0 => None,
        // Without intervals of each, the order does not tell which rate is whose.
        few if few <= MANY && few == all.len() => {
            let each: Vec<String> = known.iter().map(|(_, kept)| rate_kept(kept)).collect();
            Some(words::list(&each))
        }
        _ => {
            let rate = |kept: &series::Kept<'_>| kept.rate.unwrap_or(0.0);
            let by_rate = |a: &&(&Series<'_>, series::Kept<'_>),
                           b: &&(&Series<'_>, series::Kept<'_>)| {
                rate(&a.1).total_cmp(&rate(&b.1))
            };
            let each = |(one, kept): &(&Series<'_>, series::Kept<'_>)| {
                format!("{} on {}", rate_kept(kept), one.name())
            };
            let (low, high) = (known.iter().min_by(by_rate)?, known.iter().max_by(by_rate)?);
            Some(match known.len() {
                1 => each(low),
                _ => format!("{} to {}", each(low), each(high)),
            })
        }
    }
}

/// Says what the slowest start is mostly made of.
fn largest_part(all: &[&Series<'_>]) -> Option<String> {
    let slowest = all
        .iter()
        .filter_map(|one| Some((one, one.calm().value("ready", Figure::Mean)?)));
    let (slowest, _) = slowest.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let point = slowest.calm();
    let parts = parts::NAMES.into_iter().filter_map(|name| {
        let mean = point.case.over("part", Figure::Mean, &[("part", name)])?;
        Some((name, mean.estimate))
    });
    let parts: Vec<(&str, f64)> = parts.collect();
    let whole: f64 = parts.iter().map(|(_, ns)| ns).sum();
    let (name, ns) = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = ns / whole;
    (parts.len() > 1 && share.is_finite()).then(|| {
        format!(
            "Most of the start on {} is {}: {} of the mean, {}.",
            slowest.name(),
            described(name),
            N.percent(share),
            time(*ns)
        )
    })
}

/// Describes a part in a sentence.
fn described(part: &str) -> String {
    match part {
        "launch" => "the time from the start call to main".to_owned(),
        "vmm" => "the virtual machine monitor's".to_owned(),
        "main" => "the code of the instance itself".to_owned(),
        "firmware" | "kernel" => format!("the {part}'s"),
        several => format!("that of {}", several.replace('+', " and ")),
    }
}

/// Says why series kept up no more, each with the rate at which they did not.
fn ends(all: &[&Series<'_>]) -> Option<String> {
    let each = all.iter().filter_map(|one| {
        let (rate, why) = one.kept()?.end?;
        Some(format!("{} at {}: {why}", one.name(), N.rate(rate)))
    });
    let each: Vec<String> = each.take(MANY).collect();
    (!each.is_empty()).then(|| format!("Where it ended: {}.", each.join("; ")))
}

/// Says what the mere presence of Docker's engine changed.
fn beside(told: &[&Series<'_>], all: &[Series<'_>]) -> Option<String> {
    let each = told.iter().filter(|one| one.is_beside()).filter_map(|one| {
        let plain = all.iter().find(|other| {
            let (own, plan) = (one.plan(), other.plan());
            let is_same = own.target == plan.target && own.load == plan.load;
            is_same && one.work() == other.work() && !plan.beside_engine
        })?;
        // An engine of somebody else ran beside both.
        let mut cells = plain.calm().case.cells.iter();
        if cells.any(|cell| cell.daemons.iter().any(|it| it == BESIDE.1)) {
            return None;
        }
        let of = |one: &Series<'_>| one.calm().value("ready", Figure::Mean);
        let (with, without) = (of(one)?, of(plain)?);
        let ratio = with / without.max(1.0);
        let how = match (ratio.max(1.0 / ratio)) < DIFFERENT {
            true => "about the same",
            false if ratio > 1.0 => "longer",
            false => "shorter",
        };
        Some(format!(
            "{} instead of {} on {} ({how})",
            time(with),
            time(without),
            plain.name()
        ))
    });
    let each: Vec<String> = each.take(MANY).collect();
    (!each.is_empty()).then(|| {
        format!("Beside Docker's engine, which they do not need, instances were ready on average after {}.", each.join(", "))
    })
}

fn certainty(all: &[&Series<'_>]) -> Vec<String> {
    let figure = figure(all);
    let what = match figure {
        Figure::Mean => "Mean time until ready",
        _ => "Median time until ready",
    };
    let each = all.iter().take(MANY).filter_map(|one| {
        let row = one.calm().row("ready", figure)?;
        Some(sure(&format!("{what} on {}", one.name()), row))
    });
    each.collect()
}

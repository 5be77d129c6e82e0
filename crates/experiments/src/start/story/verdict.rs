//! The verdict on starts, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::Figure;
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::{certainty, ends, few_or_ends, joined};
use tare_pages::kit::series::{Series, native_first};
use tare_pages::plain::MANY;

use super::super::BESIDE;
use super::ladder::{self, N, sustained, time};
use super::parts;

/// The change of a mean from which on it is worth a sentence.
const DIFFERENT: f64 = 1.05;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let all = ladder::all(run);
    all.first()?;
    let (told, emulated) = native_first(all.iter().collect());
    let figure = figure(&told);
    let what = match figure {
        Figure::Mean => "Mean time until ready",
        _ => "Median time until ready",
    };
    let rows = told.iter().filter_map(|one| {
        let row = one.first().row("ready", figure, &[])?;
        Some((format!("{what} on {}", one.name()), row))
    });
    let apart =
        (!emulated.is_empty()).then(|| format!("Executed by an emulator: {}", sentence(&emulated)));
    let details = [largest_part(&told), end(&told), beside(&told, &all), apart];
    Some(Verdict {
        headline: words::capital(&sentence(&told)),
        details: details.into_iter().flatten().collect(),
        certainty: certainty(rows),
        ..Verdict::default()
    })
}

/// Says how long instances took until they were ready, and which rates were sustained.
fn sentence(all: &[&Series<'_>]) -> String {
    // What the engine's presence costs has its own sentence.
    let mut plain = all.to_vec();
    plain.retain(|one| !one.plan().beside_engine);
    let all = if plain.is_empty() { all } else { &plain };
    let figure = figure(all);
    let known = all.iter().copied();
    let known = known.filter_map(|one| Some((one, one.first().value("ready", figure)?)));
    let known: Vec<(&Series<'_>, f64)> = known.collect();
    if known.is_empty() {
        let names: Vec<String> = all.iter().take(MANY).map(|one| one.name()).collect();
        return format!("no instance became ready ({}).", words::list(&names));
    }
    let each = known
        .iter()
        .map(|(one, ns)| (*ns, format!("{} on {}", time(*ns), one.name())));
    let ready = few_or_ends(&each.collect::<Vec<_>>());
    let mean = if figure == Figure::Mean {
        " on average"
    } else {
        ""
    };
    let told: Vec<&Series<'_>> = known.iter().map(|(one, _)| *one).collect();
    let rates = rates(&told).map_or_else(String::new, |rates| format!("; sustained {rates}"));
    format!("ready{mean} after {ready}{rates}.")
}

/// Returns the figure that all have: the median, or the mean if one of them has too few instances.
pub(super) fn figure(all: &[&Series<'_>]) -> Figure {
    let has = |one: &&Series<'_>| {
        let of = |figure| one.first().value("ready", figure);
        of(Figure::MEDIAN).is_some() || of(Figure::Mean).is_none()
    };
    match all.iter().all(has) {
        true => Figure::MEDIAN,
        false => Figure::Mean,
    }
}

/// Writes the sustained rates, in the order of the ladders; of many the lowest and the highest.
fn rates(all: &[&Series<'_>]) -> Option<String> {
    let known = all.iter().filter_map(|one| Some((*one, sustained(one)?)));
    let known: Vec<_> = known.collect();
    // Without a rate of each, the order does not show which rate is whose.
    if known.len() <= MANY && known.len() == all.len() {
        let each: Vec<String> = known.iter().map(|(_, own)| own.written()).collect();
        return Some(words::list(&each));
    }
    let each = known.iter().map(|(one, own)| {
        let text = format!("{} on {}", own.written(), one.name());
        (own.rate.unwrap_or(0.0), text)
    });
    let each: Vec<(f64, String)> = each.collect();
    let (low, high) = ends(&each)?;
    Some(match each.len() {
        1 => low.to_owned(),
        _ => format!("{low} to {high}"),
    })
}

/// Says what the slowest start is mostly made of.
fn largest_part(all: &[&Series<'_>]) -> Option<String> {
    let each = all.iter();
    let each = each.filter_map(|one| Some((one, one.first().value("ready", Figure::Mean)?)));
    let (slowest, _) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let parts = parts::BEFORE_READY.iter().filter_map(|(name, _)| {
        let mean = slowest
            .first()
            .over("part", Figure::Mean, &[("part", name)])?;
        Some((*name, mean.estimate))
    });
    let parts: Vec<(&str, f64)> = parts.collect();
    let whole: f64 = parts.iter().map(|(_, ns)| ns).sum();
    let (name, ns) = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let described = match *name {
        "launch" => "the time from the start call to main".to_owned(),
        "vmm" => "the virtual machine monitor's".to_owned(),
        "main" => "the code of the instance itself".to_owned(),
        "firmware" | "kernel" => format!("the {name}'s"),
        several => format!("that of {}", several.replace('+', " and ")),
    };
    (parts.len() > 1 && whole > 0.0).then(|| {
        format!(
            "Most of the start on {} is {described}: {} of the mean, {}.",
            slowest.name(),
            N.percent(ns / whole),
            time(*ns)
        )
    })
}

/// Says why ladders ended, each with the rate at which it did.
fn end(all: &[&Series<'_>]) -> Option<String> {
    let each = all.iter().filter_map(|one| {
        let (rate, why) = sustained(one)?.end?;
        Some(format!("{} at {}: {why}", one.name(), N.rate(rate)))
    });
    joined("Where it ended: ", each, "; ", ".")
}

/// Says what the mere presence of Docker's engine changed.
fn beside(told: &[&Series<'_>], all: &[Series<'_>]) -> Option<String> {
    let each = told
        .iter()
        .filter(|one| one.plan().beside_engine)
        .filter_map(|one| {
            let own = one.plan();
            let plain = all.iter().find(|other| {
                let plan = other.plan();
                let is_same = own.target == plan.target && own.load == plan.load;
                is_same && super::work(own) == super::work(plan) && !plan.beside_engine
            })?;
            // Somebody else's engine ran beside both.
            let mut cells = plain.first().cells.iter();
            if cells.any(|cell| cell.daemons.iter().any(|it| it == BESIDE.1)) {
                return None;
            }
            let of = |one: &Series<'_>| one.first().value("ready", Figure::Mean);
            let (with, without) = (of(one)?, of(plain)?);
            let ratio = with / without.max(1.0);
            let how = match ratio.max(1.0 / ratio) < DIFFERENT {
                true => "about the same",
                false if ratio > 1.0 => "longer",
                false => "shorter",
            };
            let (with, without) = (time(with), time(without));
            Some(format!(
                "{with} instead of {without} on {} ({how})",
                plain.name()
            ))
        });
    let begin =
        "Beside Docker's engine, which they do not need, instances were ready on average after ";
    joined(begin, each, ", ", ".")
}

//! The verdict on starts, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{Figure, Row, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::{
    MANY, certainty_of_ends, few_or_ends, figure_or_modes, joined, name_before,
};
use tare_pages::kit::series::{Series, native_first};

use super::super::BESIDE;
use super::ladder::{self, N, rate, sustained, time};
use super::parts;

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let all = ladder::all(run);
    all.first()?;
    let (told, emulated) = native_first(all.iter().collect(), |one| one.is_emulated());
    let figure = figure(&told);
    // Sentences of one verdict name a figure alike.
    let has_modes = [&told, &emulated].into_iter().any(|all| has_modes(all));
    let rows = told.iter().filter_map(|one| {
        let row = one.first().row("ready", figure, &[])?;
        let how = alone(&told);
        let comma = if how.is_empty() { "" } else { "," };
        Some((
            format!("Time until ready ({figure}) on {}{comma}{how}", at(one)),
            row,
        ))
    });
    let apart = (!emulated.is_empty()).then(|| {
        format!(
            "Executed by an emulator: {}",
            sentence(&emulated, has_modes)
        )
    });
    let details = [
        largest_part(&told),
        memory(&told),
        end(&told),
        beside(&told, &all),
        apart,
    ];
    Some(Verdict {
        headline: words::capital(&sentence(&told, has_modes)),
        details: details.into_iter().flatten().collect(),
        certainty: certainty_of_ends(rows),
        ..Verdict::default()
    })
}

/// Returns how long instances took until they were ready, each ladder with the rate that it
/// sustained; where one has two modes, each names its figure.
fn sentence(all: &[&Series<'_>], has_modes: bool) -> String {
    let all = &plain(all);
    let figure = figure(all);
    // Where one has two times, or none at a rate, the sentence says of each which it is.
    let is_followed = |one: &Series<'_>| {
        ladder::interval_ns(one.first()).is_none() && ladder::open(one).next().is_some()
    };
    let is_alike = |one: &Series<'_>| {
        let alone = one.first().value("ready", figure);
        let other = at_lowest_rate(one, figure).and_then(|(_, row)| row.estimate());
        let both = alone.zip(other);
        both.is_some_and(|(alone, other)| !differ(alone, other))
    };
    let are_alike = all.iter().all(|one| !is_followed(one) || is_alike(one));
    let each = all.iter().filter_map(|one| {
        let row = one.first().row("ready", figure, &[])?;
        let ns = row.estimate()?;
        let rate = sustained(one).map(|own| format!(" ({} sustained)", own.written()));
        let rate = rate.unwrap_or_default();
        let took = figure_or_modes(row, time(ns), has_modes);
        let lowest_rate =
            at_lowest_rate(one, figure).and_then(|(rate, row)| Some((rate, row, row.estimate()?)));
        let took = match &lowest_rate {
            Some((rate, row, other)) if differ(ns, *other) => {
                let other = figure_or_modes(row, time(*other), has_modes);
                format!("{took} one after the other and {other} at {rate}")
            }
            _ if is_followed(one) && !are_alike => format!("{took} one after the other"),
            _ => match ladder::interval_ns(one.first()).and(ladder::rate(one.first())) {
                Some(rate) => format!("{took} at {}", N.rate(rate)),
                None => took,
            },
        };
        Some((ns, format!("{took} on {}{rate}", one.name())))
    });
    let each: Vec<(f64, String)> = each.collect();
    if each.is_empty() {
        let names: Vec<String> = all.iter().take(MANY).map(|one| one.name()).collect();
        return format!("no instance became ready ({}).", words::list(&names));
    }
    let of = name_before(figure, has_modes);
    format!("ready after {of}{}.", few_or_ends(&each))
}

/// Leaves out the ladders next to an engine, unless there are no others: the cost of its presence has
/// its own sentence.
fn plain<'s, 'a>(all: &[&'s Series<'a>]) -> Vec<&'s Series<'a>> {
    let mut plain = all.to_vec();
    plain.retain(|one| !one.plan().beside_engine);
    if plain.is_empty() {
        all.to_vec()
    } else {
        plain
    }
}

/// Returns whether the time until ready on one of the ladders may be in either of two modes.
fn has_modes(all: &[&Series<'_>]) -> bool {
    let all = plain(all);
    let figure = figure(&all);
    let mut rows = all.iter().flat_map(|one| {
        let first = one.first().row("ready", figure, &[]);
        first
            .into_iter()
            .chain(at_lowest_rate(one, figure).map(|(_, row)| row))
    });
    rows.any(Row::is_between_modes)
}

/// Says that a figure is of starts one after the other, where there are others as well.
fn alone(all: &[&Series<'_>]) -> &'static str {
    let is_alone = |one: &&Series<'_>| ladder::interval_ns(one.first()).is_none();
    let has_rates = all.iter().any(|one| ladder::open(one).next().is_some());
    match has_rates && all.iter().all(is_alone) {
        true => " started one after the other",
        false => "",
    }
}

/// Names a ladder with the rate of its first step: `process at 1/s`.
fn at(one: &Series<'_>) -> String {
    let rate = ladder::interval_ns(one.first()).and(rate(one.first()));
    match rate {
        Some(rate) => format!("{} at {}", one.name(), N.rate(rate)),
        None => one.name(),
    }
}

/// Returns the lowest rate of a ladder that begins with starts one after the other, of those that
/// have the figure, and the time until ready there: what waited for longer may have left caches, or
/// powered down.
fn at_lowest_rate<'a>(ladder: &Series<'a>, figure: Figure) -> Option<(String, &'a Row)> {
    let is_first = ladder::interval_ns(ladder.first()).is_some();
    let sustained = ladder::open(ladder).take_while(|case| ladder::doubt(case).is_none());
    let mut known = sustained.filter_map(|case| {
        let row = case.row("ready", figure, &[])?;
        row.estimate()?;
        Some((N.rate(ladder::rate(case)?), row))
    });
    known.next().filter(|_| !is_first)
}

/// Returns whether two times are so different that both are worth saying.
fn differ(one: f64, other: f64) -> bool {
    const FACTOR: f64 = 1.2;
    one.max(other) > FACTOR * one.min(other)
}

/// Returns the figure that all have: the median, or the mean if one of them has too few instances.
pub(super) fn figure(all: &[&Series<'_>]) -> Figure {
    let first = |one: &Series<'_>, figure| one.first().value("ready", figure).is_some();
    let later = |one: &Series<'_>, figure| at_lowest_rate(one, figure).is_some();
    let mut all = all.iter();
    let lacks_median = |one: &Series<'_>| {
        first(one, Figure::Mean) && !first(one, Figure::MEDIAN)
            || later(one, Figure::Mean) && !later(one, Figure::MEDIAN)
    };
    match all.any(|one| lacks_median(one)) {
        true => Figure::Mean,
        false => Figure::MEDIAN,
    }
}

/// Names the largest part of the slowest start.
fn largest_part(all: &[&Series<'_>]) -> Option<String> {
    let each = all.iter();
    let each = each.filter_map(|one| Some((one, one.first().value("start", Figure::Mean)?)));
    let (slowest, _) = each.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let parts = parts::BEFORE_READY.iter().filter_map(|(name, _)| {
        let row = slowest
            .first()
            .row("part", Figure::Mean, &[("part", name)])?;
        Some((*name, row.estimate()?))
    });
    let parts: Vec<(&str, f64)> = parts.collect();
    let whole: f64 = parts.iter().map(|(_, ns)| ns).sum();
    let (name, ns) = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (share, ns, target) = (N.percent(ns / whole), time(*ns), at(slowest));
    let how = alone(all);
    // Parts of means add up, those of medians do not.
    (parts.len() > 1 && whole > 0.0).then(|| {
        let whole = time(whole);
        let takes = match all.len() {
            1 => format!("takes a mean of {whole} on {target}"),
            _ => format!("takes longest on {target}, a mean of {whole}"),
        };
        format!(
            "From the start call until it is ready, an instance{how} {takes}, the largest part of which is {name}: {ns} ({share})."
        )
    })
}

/// Returns the peak memory of an instance, where it is known.
fn memory(all: &[&Series<'_>]) -> Option<String> {
    // The engine's presence costs an instance no memory.
    let plain = all.iter().filter(|one| !one.plan().beside_engine);
    let each = plain.filter_map(|one| {
        let row = one.first().row("memory", Figure::Mean, &[])?;
        let bytes = row.estimate()?;
        Some((
            bytes,
            format!("{} on {}", written(bytes, row.unit), at(one)),
        ))
    });
    let each: Vec<(f64, String)> = each.collect();
    let how = alone(all);
    (!each.is_empty()).then(|| {
        format!(
            "Mean peak memory of an instance{how}: {}.",
            few_or_ends(&each)
        )
    })
}

/// Returns why ladders ended, each with the rate at which it did in the first run that shows it.
fn end(all: &[&Series<'_>]) -> Option<String> {
    let each = all.iter().filter_map(|one| {
        let (rate, why) = sustained(one)?.end?;
        // Each run that ended there has its own numbers.
        let runs = if one.first().planned > 1 {
            ", in a run"
        } else {
            ""
        };
        Some(format!("{} at {}{runs}: {why}", one.name(), N.rate(rate)))
    });
    joined("Where it ended: ", each, "; ", ".")
}

/// Compares starts while Docker's engine ran with those without it.
fn beside(told: &[&Series<'_>], all: &[Series<'_>]) -> Option<String> {
    let each = told.iter().filter(|one| one.plan().beside_engine);
    let each = each.filter_map(|one| {
        let own = one.plan();
        let plain = all.iter().find(|other| {
            let plan = other.plan();
            let is_same = own.target == plan.target && own.load == plan.load;
            is_same && super::work(own) == super::work(plan) && !plan.beside_engine
        })?;
        // Somebody else's engine ran beside both.
        let mut daemons = plain.first().cells.iter().flat_map(|cell| &cell.daemons);
        if daemons.any(|daemon| daemon == BESIDE.1) {
            return None;
        }
        let [with, without] = [one, plain].map(|one| one.first().value("ready", Figure::Mean));
        let (with, without) = (time(with?), time(without?));
        Some(format!("{with} and {without} on {}", plain.name()))
    });
    let begin = "Mean time until ready with Docker's engine running and without it (whether they differ is not judged): ";
    joined(begin, each, ", ", ".")
}

//! The verdict on starts, in a few plain sentences.

use tare_figures::Run;
use tare_figures::rows::{Figure, Row, written};
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::{MANY, few_or_ends, figure_or_modes, joined, name_before};
use tare_pages::kit::series::{Series, native_first};

use super::ladder::{self, N, sustained, time};

/// Writes the verdict; `None` if nothing was measured. Cautions are the whole run's.
pub(super) fn of(run: &Run) -> Option<Verdict> {
    let all = ladder::all(run);
    all.first()?;
    let (told, _) = native_first(all.iter().collect(), |one| one.is_emulated());
    Some(Verdict {
        headline: words::capital(&sentence(&told)),
        details: memory(&told).into_iter().chain(end(&told)).collect(),
        ..Verdict::default()
    })
}

/// Returns how long instances took until they were ready, each ladder with the rate that it
/// sustained; where one has two modes, each names its figure.
fn sentence(all: &[&Series<'_>]) -> String {
    let has_modes = has_modes(all);
    let all = &plain(all);
    let figure = figure(all);
    let is_each = all.len() <= MANY;
    let each = all.iter().filter_map(|one| {
        let row = one.first().row("ready", figure, &[])?;
        let ns = row.estimate()?;
        // Where nothing ended within the window, nothing shows that its rate was sustained.
        let is_shown = |rate| {
            let mut own = ladder::open(one).filter(|case| ladder::rate(case) == Some(rate));
            own.any(|case| case.value("rate", Figure::Rate) > Some(0.0))
        };
        let rate = sustained(one).filter(|own| own.rate.is_none_or(is_shown));
        let rate = rate.map(|own| format!(" ({} sustained)", own.written()));
        let rate = rate.unwrap_or_default();
        let took = figure_or_modes(row, time(ns), has_modes);
        let lowest_rate =
            at_lowest_rate(one, figure).and_then(|(rate, row)| Some((rate, row, row.estimate()?)));
        let took = match &lowest_rate {
            // A range has one figure at each end.
            Some((rate, row, other)) if is_each => {
                let other = figure_or_modes(row, time(*other), has_modes);
                format!("{took} one after the other and {other} at {rate}")
            }
            _ => took + &first_pace(one),
        };
        Some((ns, format!("{took} on {}{rate}", ladder::name(one))))
    });
    let each: Vec<(f64, String)> = each.collect();
    if each.is_empty() {
        let names: Vec<String> = all.iter().take(MANY).map(|one| ladder::name(one)).collect();
        return format!("no instance became ready ({}).", words::list(&names));
    }
    let of = name_before(figure, has_modes);
    format!("ready after {of}{}.", few_or_ends(&each))
}

/// Names the first pace of a ladder; instances that are all started one after the other have none.
fn first_pace(one: &Series<'_>) -> String {
    let first = one.first();
    match ladder::interval_ns(first).and(ladder::rate(first)) {
        Some(rate) => format!(" at {}", N.rate(rate)),
        None if ladder::open(one).next().is_some() => " one after the other".to_owned(),
        None => String::new(),
    }
}

/// Returns the memory that instances take at the first pace of each ladder; a pace that all have in
/// common comes once.
fn memory(all: &[&Series<'_>]) -> Option<String> {
    let all = plain(all);
    let known = all.iter().filter_map(|one| {
        let row = one.first().row("memory", Figure::Mean, &[])?;
        Some((row.estimate()?, row.unit, first_pace(one), one))
    });
    let known = Vec::from_iter(known);
    let common = &known.first()?.2;
    let is_common = known.iter().all(|(_, _, pace, _)| pace == common);
    let each = known.iter().map(|(bytes, unit, pace, one)| {
        let of = match one.plan().target.kernel().is_guest() {
            true => " (QEMU's)",
            false => "",
        };
        let pace = if is_common { "" } else { pace };
        let (memory, name) = (written(*bytes, unit), ladder::name(one));
        (*bytes, format!("{memory}{of}{pace} on {name}"))
    });
    let each = few_or_ends(&Vec::from_iter(each));
    let started = match is_common && !common.is_empty() {
        true => format!(", started{common}"),
        false => String::new(),
    };
    Some(format!(
        "Peak memory of an instance is a mean of {each}{started}."
    ))
}

/// Leaves out the ladders next to an engine, unless there are no others: the cost of its presence has
/// its own sentence.
pub(super) fn plain<'s, 'a>(all: &[&'s Series<'a>]) -> Vec<&'s Series<'a>> {
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

/// Returns the lowest rate of a ladder that begins with starts one after the other, of those that
/// have the figure, and the time until ready there: what waited for longer may have left caches, or
/// powered down.
fn at_lowest_rate<'a>(ladder: &Series<'a>, figure: Figure) -> Option<(String, &'a Row)> {
    let is_first = ladder::interval_ns(ladder.first()).is_some();
    let sustained = ladder::open(ladder).take_while(|case| case.doubt().is_none());
    let mut known = sustained.filter_map(|case| {
        let row = case.row("ready", figure, &[])?;
        row.estimate()?;
        Some((N.rate(ladder::rate(case)?), row))
    });
    known.next().filter(|_| !is_first)
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
        Some(format!(
            "{} at {}{runs}: {why}",
            ladder::name(one),
            N.rate(rate)
        ))
    });
    joined("Where it ended: ", each, "; ", ".")
}

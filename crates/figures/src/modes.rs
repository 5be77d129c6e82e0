//! Distributions with two modes, in words: where they are, and the share of the slow one.

use crate::format::Numbers;
use crate::rows::derive::TwoModes;
use crate::rows::{Better, Figure, Row, Rows, written};
use crate::words;

/// The number of distributions up to which a verdict describes each.
const MANY: usize = 4;

/// Returns the distributions with two modes: of measures and parts of the same samples the first, and
/// of threads the one of all together.
fn found(rows: &Rows) -> Vec<(&Row, TwoModes)> {
    let mut found: Vec<(&Row, TwoModes)> = Vec::new();
    for row in &rows.0 {
        let is_judged = row.figure == Figure::Slow && row.measure.better != Better::Neither;
        let Some(modes) = row.modes.filter(|_| is_judged) else {
            continue;
        };
        let place = |row: &Row| row.labels.clone().without("thread").without("part");
        let is_known = |(known, _): &(&Row, TwoModes)| {
            known.experiment == row.experiment
                && known.target == row.target
                && known.load == row.load
                && place(known) == place(row)
        };
        if !found.iter().any(is_known) {
            found.push((row, modes));
        }
    }
    found
}

/// Describes each distribution with two modes before what else a verdict says; of many, only how many,
/// behind it. Emulated targets, and runs that were traced, are left out next to others, as in the other
/// sentences.
pub(crate) fn tell(rows: &Rows, details: &mut Vec<String>) {
    let mut found = found(rows);
    for is_apart in [
        |row: &Row| row.emulated,
        |row: &Row| row.labels.get("traced").is_some(),
    ] {
        if rows.0.iter().any(|row| !is_apart(row)) {
            found.retain(|(row, _)| !is_apart(row));
        }
    }
    if found.len() > MANY {
        let text = "Many distributions of samples have two modes; figures.csv has the share of the slow one (figure slow).";
        details.push(text.to_owned());
        return;
    }
    let each = found.iter();
    let runs = |slow: &Row| {
        let medians = rows.0.iter().filter(|row| row.figure == Figure::MEDIAN);
        let mut own = medians.filter(|row| row.is_sibling(slow));
        Some(own.next()?.over.as_ref().ok()?.runs)
    };
    details.splice(
        ..0,
        each.map(|(row, modes)| sentence(row, *modes, runs(row))),
    );
}

/// Describes the modes of a row whose median is of as many runs, if it has one.
fn sentence(row: &Row, modes: TwoModes, median_of: Option<u64>) -> String {
    let percent = |low, high| words::percent_range(Numbers::PLAIN, low, high);
    let sure = row.over.as_ref().ok().and_then(|over| match over.interval {
        Ok(interval) => Some(format!(
            " ({}, 95 % CI)",
            percent(interval.low, interval.high)
        )),
        Err(_) if over.lowest < over.highest => Some(format!(
            " ({} in {} runs)",
            percent(over.lowest, over.highest),
            over.runs
        )),
        Err(_) => None,
    });
    let is_slow = row.estimate().is_some_and(|share| share > 0.5);
    let ends = row.over.as_ref().map(|over| (over.lowest, over.highest));
    // Of a run whose samples are not known one by one, lost requests for example, there is no share.
    let own = row.over.as_ref().map_or(0, |over| over.runs);
    let some_of = median_of.filter(|all| (1..*all).contains(&own));
    let among = some_of.map(|all| format!(", in {own} of {all} runs"));
    let which = match (modes.split_median, is_slow) {
        _ if median_of.is_none() || some_of.is_some() => "",
        (true, _) => match ends {
            Ok((least, _)) if least > 0.5 => {
                ": the median of each run is in the slow one, near its edge; that of another may be in either"
            }
            Ok((_, most)) if most < 0.5 => {
                ": the median of each run is in the fast one, near its edge; that of another may be in either"
            }
            Ok((least, most)) if least < 0.5 && most > 0.5 => {
                ": the median is in the fast one in some runs, and in the slow one in others"
            }
            _ => ": the median may be in either",
        },
        (false, true) => ": the median of each run is in the slow one",
        (false, false) => ": the median of each run is in the fast one",
    };
    // Not all of it is beyond where most of it is: lost requests, and late answers.
    let from = modes.is_least.then(|| {
        let border = written(modes.border, unit(row));
        format!(", all above {border},")
    });
    format!(
        "{} on {}{}: {}; the slow one{} has {} of a run's samples{}{which}.",
        has_two(row),
        row.place(),
        among.unwrap_or_default(),
        both(row, modes),
        from.unwrap_or_default(),
        row.estimate()
            .map_or_else(String::new, |share| written(share, row.unit)),
        sure.unwrap_or_default(),
    )
}

/// Says that the samples of a measure have two modes: `Wake-up latency has two modes`.
pub(crate) fn has_two(row: &Row) -> String {
    let title = words::capital(row.measure.title);
    let comma = if title.contains(',') { "," } else { "" };
    format!("{title}{comma} has two modes")
}

/// Writes where both modes are.
pub fn both(row: &Row, modes: TwoModes) -> String {
    let beyond = if modes.is_least { "mostly beyond " } else { "" };
    format!(
        "about {} and {beyond}{}",
        written(modes.low, unit(row)),
        written(modes.high, unit(row))
    )
}

/// Returns the unit of a row's samples.
fn unit(row: &Row) -> &'static str {
    match row.in_cycles {
        true => "cycles",
        false => row.measure.unit,
    }
}

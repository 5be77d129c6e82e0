//! How long gaps and repetitions are, and how gaps follow each other.

use maud::Markup;
use tare_figures::rows::Figure;
use tare_figures::words::NONE;
use tare_pages::html::distributions::{self, Distributions, Series, Unit};
use tare_pages::html::parts::{N, Table};
use tare_stats::{Counts, Quantile};

use super::super::panels::{Member, Panel};
use super::super::verdict::Clock;

/// Renders how often gaps are longer than a length, and the times from gap to gap.
pub(super) fn of_gaps(panel: &Panel<'_>, coarse: usize) -> Vec<Markup> {
    let lengths = panel.members.iter().map(|member| &member.pictures.counts);
    let mut read = "Find a length that would hurt below, go up to the line, and read at the left how often per second an \
                    interruption is at least that long. The line ends at the longest one that was seen; it does not say that \
                    longer ones don't happen."
        .to_owned();
    let is_full = |member: &Member<'_>| {
        let heads = member
            .case
            .records()
            .filter_map(|record| record.sets.first());
        heads.map(|head| head.seen - head.kept).sum::<u64>() > 0
    };
    if panel.members.iter().any(is_full) {
        read.push_str(" The list of delays was full, so these figures are lower bounds.");
    }
    let seconds = |member: &Member<'_>| Some(member.wall() / member.case.hz()?);
    let exceedance = drawn(
        panel,
        lengths.collect(),
        "gaps",
        "length of the gap",
        coarse,
        seconds,
    );
    // Without seconds there is no rate.
    let exceedance = exceedance
        .filter(|_| panel.hz().is_some())
        .and_then(|drawn| {
            drawn.exceedance(
                "How often, and how long",
                &read,
                "gaps per second of at least this length",
                Some(rates(panel)),
            )
        });
    let between = panel.members.iter().map(|member| &member.pictures.between);
    let across = "from the start of one gap to the start of the next";
    let between = drawn(panel, between.collect(), "gaps", across, coarse, |_| None);
    let clocks = panel.members.iter().filter_map(|member| {
        let clock = Clock::of(&member.case)?;
        let target = member.case.target();
        Some(format!(
            " The strongest clock on {target}: every {}.",
            clock.every
        ))
    });
    let read = "A narrow peak means a clock: so many gaps follow the one before at that distance. A broad hill means that they \
                come at random."
        .to_owned()
        + &clocks.collect::<String>();
    let between = between.and_then(|drawn| drawn.histogram("From gap to gap", &read, None));
    exceedance.into_iter().chain(between).collect()
}

/// Renders the histograms of durations: the whole range, and the common durations if they are a small part of it.
pub(super) fn histograms(panel: &Panel<'_>, coarse: usize) -> Vec<Markup> {
    let all: Vec<&Counts> = panel
        .members
        .iter()
        .map(|member| &member.pictures.counts)
        .collect();
    let title = panel.title();
    let draw = |of: Vec<&Counts>, name: &str, read: &str| {
        let drawn = drawn(panel, of, "durations", "duration", coarse, |_| None)?;
        drawn.histogram(&format!("{title}, {name}"), read, None)
    };
    let whole = draw(
        all.clone(),
        "how long repetitions take",
        "The higher a bar, the more repetitions took that long; the scale is logarithmic, so that a single one among millions \
         can be seen. Bars are not narrower than the timer's step.",
    );
    let low = all
        .iter()
        .filter_map(|counts| counts.min())
        .min()
        .unwrap_or(0);
    let high = all
        .iter()
        .filter_map(|counts| counts.max())
        .max()
        .unwrap_or(0);
    let body = all
        .iter()
        .filter_map(|counts| counts.quantile(Quantile::P99))
        .max()
        .unwrap_or(0);
    let is_long = body - low < (high - low) / 4;
    let step = panel.members.iter().map(Member::step).max().unwrap_or(1);
    let end = body.saturating_add(((body - low) / 4).max(step * 4));
    let common = all.iter().map(|counts| {
        let below = counts.iter().filter(|(value, _)| *value <= end);
        Counts::from_pairs(below).unwrap_or_default()
    });
    let common: Vec<Counts> = common.collect();
    let common = is_long.then(|| {
        let read =
            "The same, for the 99 % of the repetitions that are shortest, and somewhat more.";
        draw(common.iter().collect(), "the common durations", read)
    });
    whole.into_iter().chain(common.flatten()).collect()
}

/// Puts the distributions of all targets of a panel together; `None` if all are empty.
fn drawn<'a>(
    panel: &Panel<'_>,
    counts: Vec<&'a Counts>,
    of: &'a str,
    across: &'a str,
    coarse: usize,
    seconds: impl Fn(&Member<'_>) -> Option<f64>,
) -> Option<Distributions<'a>> {
    let is_empty = counts.iter().all(|counts| counts.is_empty());
    let members = panel.members.iter().zip(counts).enumerate();
    let series = members.map(|(place, (member, counts))| Series {
        place,
        tail: counts,
        second: None,
        seconds: seconds(member),
    });
    let series = series.filter(|series| series.tail.total() > 0).collect();
    (!is_empty).then(|| Distributions {
        of,
        across,
        unit: Unit::Cycles(panel.hz()),
        step: panel.members.iter().map(Member::step).max().unwrap_or(1),
        coarse,
        runs: panel
            .members
            .iter()
            .map(|member| member.case.cells.len())
            .max()
            .unwrap_or(0),
        names: panel.names(),
        panels: vec![distributions::Panel {
            name: String::new(),
            series,
        }],
    })
}

/// Makes the table of how often gaps are at least as long as some lengths.
fn rates(panel: &Panel<'_>) -> Table {
    let mut table = Table::new(["at least"]);
    table.head.extend(panel.names());
    for ns in [500.0, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7] {
        let mut some = false;
        let rates = panel.members.iter().map(|member| {
            let hz = member.case.hz().unwrap_or_default();
            let bound = (ns * hz / 1e9).ceil();
            let least = member.known("threshold", Figure::Max, &[]);
            if least.is_none_or(|(row, over)| bound < row.time(over.highest).cycles) {
                return NONE.to_owned();
            }
            let count = member
                .pictures
                .counts
                .count_above((bound as u64).saturating_sub(1));
            some |= count > 0;
            N.rate(count as f64 / (member.wall() / hz))
        });
        let mut row = vec![N.ns_tick(ns)];
        row.extend(rates.collect::<Vec<_>>());
        if some {
            table.rows.push(row);
        }
    }
    table
}

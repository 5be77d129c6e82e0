//! How long gaps and repetitions are, and how gaps follow each other.

use maud::Markup;
use tare_pages::html::distributions::{self, Distributions, Series, Unit};
use tare_stats::{Counts, Quantile};

use super::super::panels::{Member, Panel};
use super::super::split::is_reference;

/// Renders how often gaps are longer than a length, and the times from gap to gap.
pub(super) fn of_gaps(panel: &Panel<'_>, coarse: usize) -> Vec<Markup> {
    let pictures = || panel.members.iter().map(|member| member.pictures);
    let mut read = "Find a length that would hurt below, go up to the line, and read at the left how often per second an \
                    interruption is at least that long. The line ends at the longest one that was seen; it does not say that \
                    longer ones don't happen."
        .to_owned();
    let mut runs = pictures().flat_map(|pictures| &pictures.runs);
    if runs.any(|run| run.full_from.is_some()) {
        read.push_str(" The list of delays was full, so these figures are lower bounds.");
    }
    let lengths = pictures().map(|pictures| &pictures.counts);
    let mut lengths = drawn(panel, ("gaps", "length of the gap"), lengths, coarse);
    for series in lengths
        .panels
        .iter_mut()
        .flat_map(|panel| &mut panel.series)
    {
        series.seconds = panel.members[series.place].seconds();
    }
    let under = panel.plan().load.under();
    // Without seconds there is no rate.
    let exceedance = panel.hz().and_then(|_| {
        lengths.exceedance(
            &format!("How often, and how long{under}"),
            &read,
            "gaps per second of at least this length",
            None,
        )
    });
    let read = "A narrow peak means a clock: many gaps follow the one before at the same distance. A broad hill means that they \
                come at random.";
    let between = pictures().map(|pictures| &pictures.between);
    let across = "from the start of one gap to the start of the next";
    let between = drawn(panel, ("gaps", across), between, coarse);
    let between = between.histogram(&format!("From gap to gap{under}"), read, None);
    exceedance.into_iter().chain(between).collect()
}

/// Renders the histograms of durations: the whole range, and the common durations if they are a
/// small part of it.
pub(super) fn histograms(panel: &Panel<'_>, coarse: usize) -> Vec<Markup> {
    let all: Vec<&Counts> = panel
        .members
        .iter()
        .map(|member| &member.pictures.counts)
        .collect();
    // Drawn alone, a target has its own scale.
    let alone = match &*panel.members {
        [member] if is_reference(&member.case.plan.target) => format!(", {} alone", member.name()),
        _ => String::new(),
    };
    let draw = |of: Vec<&Counts>, name: &str, read: &str| {
        let drawn = drawn(panel, ("durations", "duration"), of, coarse);
        drawn.histogram(&format!("{}{alone}, {name}", panel.title()), read, None)
    };
    let whole = draw(
        all.clone(),
        "how long repetitions take",
        "The higher a bar, the more repetitions took that long; the scale is logarithmic, so that a single one among millions \
         can be seen. Bars are not narrower than the timer's step.",
    );
    let each = |of: fn(&Counts) -> Option<u64>| all.iter().filter_map(move |counts| of(counts));
    let low = each(Counts::min).min().unwrap_or(0);
    let high = each(Counts::max).max().unwrap_or(0);
    let body = each(|counts| counts.quantile(Quantile::P99))
        .max()
        .unwrap_or(0);
    let end = body.saturating_add(((body - low) / 4).max(panel.step() * 4));
    let common = all.iter().map(|counts| {
        let below = counts.iter().filter(|(value, _)| *value <= end);
        Counts::from_pairs(below).unwrap_or_default()
    });
    let common: Vec<Counts> = common.collect();
    let is_long = body - low < (high - low) / 4;
    let common = is_long.then(|| {
        let read =
            "The same, for the 99 % of the repetitions that are shortest, and somewhat more.";
        draw(common.iter().collect(), "the common durations", read)
    });
    whole.into_iter().chain(common.flatten()).collect()
}

/// Puts the distributions of all targets of a panel together.
fn drawn<'a>(
    panel: &Panel<'_>,
    (of, across): (&'a str, &'a str),
    counts: impl IntoIterator<Item = &'a Counts>,
    coarse: usize,
) -> Distributions<'a> {
    let series = counts.into_iter().enumerate().map(|(place, tail)| Series {
        place,
        tail,
        second: None,
        seconds: None,
    });
    Distributions {
        of,
        across,
        unit: Unit::Cycles(panel.hz()),
        step: panel.step(),
        is_cut_off: false,
        coarse,
        runs: panel.members.iter().map(Member::runs).max().unwrap_or(0),
        names: panel.names(),
        panels: vec![distributions::Panel {
            name: String::new(),
            series: series.filter(|series| series.tail.total() > 0).collect(),
        }],
        limits: Vec::new(),
    }
}

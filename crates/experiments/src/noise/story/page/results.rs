//! The results in tables: one row per combination.

use maud::{Markup, html};

use crate::analysis::{
    ClassFigure, Combination, CombinedFigures, CombinedGap, CombinedShare, CombinedTimed,
    CounterFigure, Observed, Spread, Time,
};
use crate::panels::Panel;
use crate::table_rows::{Entry, Row, first, rows};
use crate::words;

use super::parts::{N, Table, none, time};
use super::places::counters;
use super::sweep::plus_minus;

/// Is the number of rows from which the table of classes is folded away.
const FOLDED: usize = 8;

/// Renders the tables of all combinations.
pub(super) fn results(panels: &[Panel<'_>]) -> Markup {
    let gaps = rows(panels, CombinedFigures::gap);
    let timed = rows(panels, CombinedFigures::timed);
    html! {
        p.read {
            "Means, shares and rates are those of all runs together, quantiles the median over the runs; shortest and \
             longest are those of all runs. Below each duration stands the same in cycles of the TSC. Intervals are at \
             95 % confidence, over runs or, with a single run, over 20 blocks of it. A dash means that there is no figure, not that it is 0."
        }
        @if !gaps.is_empty() { h3 { "Interruptions" } (gap_table(&gaps).render()) }
        @if !timed.is_empty() {
            h3 { "Durations" }
            (timed_table(&timed).render())
        }
        h3 { "Delays by class" }
        p.read {
            "The classes of kot-2019, in cycles: how many delays, how many of a million repetitions, and \
             their mean; then the share of the time in delays. A delay is what a repetition took beyond the mean of its run. The classes were \
             set for a TSC of 2.2 GHz; on another one the same number of cycles is another time."
        }
        @let classes = class_table(panels);
        @if classes.rows.len() > FOLDED {
            details { summary { "Figures" } (classes.render()) }
        } @else {
            (classes.render())
        }
        @if let Some(counters) = counters(counted(panels)) { (counters) }
    }
}

/// Returns what was counted while the members of panels were measured.
fn counted<'a>(
    panels: &'a [Panel<'_>],
) -> impl Iterator<Item = (String, &'a [CounterFigure], [&'a str; 2])> {
    let members = panels.iter().flat_map(|panel| &panel.members);
    members.map(|(_, combination)| {
        let delays = match combination.figures {
            CombinedFigures::Gap(_) => ["gap", "gaps"],
            CombinedFigures::Timed(_) => ["delay", "delays"],
        };
        let counters = combination.counters.as_slice();
        (words::name(combination), counters, delays)
    })
}

fn gap_table(rows: &[Row<'_, CombinedGap>]) -> Table {
    let mut table = Table::new([
        "workload · target",
        "runs",
        "time lost\nmean, 95 %",
        "gaps per s",
        "counted from",
        "median",
        "p99",
        "p99.9",
        "longest",
        "every",
    ]);
    fill(&mut table, rows, |entry| {
        let (combination, gap) = (entry.combination, entry.figures);
        let median = |spread: Option<Spread<Time>>| lines(spread.map(|s| s.figure), combination);
        let period = gap.period.map_or_else(none, |period| {
            let share = N.fixed(period.figure.share_of_gaps * 100.0, 0);
            let every = words::time(N, period.figure.period, None);
            format!("{every}\n{} of them", N.with_unit(&share, "%"))
        });
        vec![
            entry.name.clone(),
            runs(combination),
            format!(
                "{}\n{}",
                N.percent(gap.share_lost.figure),
                gap.share_lost
                    .interval
                    .map_or_else(none, |i| words::share_range(N, &i))
            ),
            gap.gaps_per_second
                .map_or_else(none, |rate| N.short(rate.figure)),
            lines(Some(gap.threshold), combination),
            median(gap.median),
            median(gap.p99),
            median(gap.p99_9),
            lines(gap.longest.map(|longest| longest.highest), combination),
            period,
        ]
    });
    table
}

fn timed_table(rows: &[Row<'_, CombinedTimed>]) -> Table {
    let mut table = Table::new([
        "workload · target",
        "runs",
        "shortest",
        "median",
        "net median",
        "mean\nat 95 %",
        "p99",
        "p99.9",
        "p99.99",
        "longest",
    ]);
    fill(&mut table, rows, |entry| {
        let (combination, timed) = (entry.combination, entry.figures);
        let raw = &timed.raw;
        let median = |spread: Option<Spread<Time>>| lines(spread.map(|s| s.figure), combination);
        vec![
            entry.name.clone(),
            runs(combination),
            lines(Some(raw.min.lowest), combination),
            median(Some(raw.median)),
            median(Some(timed.net.median)),
            format!(
                "{}\n{}",
                time(Some(raw.mean.figure), combination),
                plus_minus(raw.mean.figure.cycles, raw.mean.interval)
            ),
            median(raw.p99),
            median(raw.p99_9),
            median(raw.p99_99),
            lines(Some(raw.max.highest), combination),
        ]
    });
    table
}

fn class_table(panels: &[Panel<'_>]) -> Table {
    let mut table = Table::new(["workload · target"]);
    let rows = rows(panels, Some);
    if let Some(first) = first(&rows) {
        table.head.extend(classes(first.figures).iter().map(bounds));
        table.head.extend(
            shares(first.figures)
                .iter()
                .map(|share| format!("share\nabove {}", N.count(share.above_cycles))),
        );
    }
    fill(&mut table, &rows, |entry| {
        let repetitions = entry.figures.timed().map(|timed| timed.repetitions);
        let mut row = vec![entry.name.clone()];
        for class in classes(entry.figures) {
            row.push(count(class, repetitions, entry.combination));
        }
        row.extend(
            shares(entry.figures)
                .iter()
                .map(|share| match (share.share, share.observed) {
                    (Some(share), Observed::Fully) => N.percent(share.figure),
                    (Some(share), _) => format!("≥ {}", N.percent(share.figure)),
                    (None, _) => "below the\nthreshold".to_owned(),
                }),
        );
        row
    });
    table
}

/// Adds the rows, of which `cells` makes those of combinations.
fn fill<T>(table: &mut Table, rows: &[Row<'_, T>], cells: impl Fn(&Entry<'_, T>) -> Vec<String>) {
    for row in rows {
        table.rows.push(match row {
            Row::Heading(heading) => vec![heading.clone()],
            Row::Of(entry) => cells(entry),
        });
    }
}

fn classes(figures: &CombinedFigures) -> &[ClassFigure] {
    match figures {
        CombinedFigures::Gap(gap) => &gap.classes,
        CombinedFigures::Timed(timed) => &timed.classes,
    }
}

fn shares(figures: &CombinedFigures) -> &[CombinedShare] {
    match figures {
        CombinedFigures::Timed(timed) => &timed.shares,
        CombinedFigures::Gap(gap) => &gap.shares,
    }
}

/// Writes how many delays a class has and how long they are in the mean; a lower bound says so, and
/// what could not be seen is not 0.
fn count(class: &ClassFigure, repetitions: Option<u64>, combination: &Combination) -> String {
    let Some(count) = class.count else {
        return "below the threshold,\nnot listed".to_owned();
    };
    let mut text = N.count(count);
    if class.observed == Observed::Partly {
        text = format!("≥ {text}");
    }
    if let Some(repetitions) = repetitions.filter(|_| count > 0) {
        let rate = count as f64 / repetitions.max(1) as f64 * 1e6;
        text.push_str(&format!("\n{} of a million", N.short(rate)));
    }
    if let Some(mean) = class.mean {
        let cycles = words::cycles_figure(N, mean.cycles.round());
        text.push_str(&format!("\nmean {cycles}"));
        if mean.ns.is_some() {
            text.push_str(&format!(" ({})", time(Some(mean), combination)));
        }
    }
    text
}

fn bounds(class: &ClassFigure) -> String {
    let above = N.count(class.above_cycles);
    match class.up_to_cycles {
        Some(up_to) => format!("class {}\n{above} to {}", class.class, N.count(up_to)),
        None => format!("class {}\nabove {above}", class.class),
    }
}

/// Writes a duration in time and below it in cycles.
fn lines(figure: Option<Time>, combination: &Combination) -> String {
    match figure {
        Some(figure) if figure.ns.is_some() => {
            let cycles = words::cycles_figure(N, figure.cycles);
            format!("{}\n{cycles}", time(Some(figure), combination))
        }
        Some(figure) => words::cycles(N, figure),
        None => none(),
    }
}

fn runs(combination: &Combination) -> String {
    if combination.runs == combination.planned_runs {
        return N.count(combination.runs);
    }
    format!("{} of {}", combination.runs, combination.planned_runs)
}

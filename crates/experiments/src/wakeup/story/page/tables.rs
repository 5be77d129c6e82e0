//! The tables of wake-ups.

use maud::{Markup, html};
use tare_stats::STUDENT_RUNS;

use crate::analysis::{Interval, Spread};
use crate::wakeup::table::{self, COLUMNS, Line};
use crate::wakeup::words::{place, us};
use crate::wakeup::{LatencySpread, WakeupCombination};
use crate::words;

use super::super::parts::{N, NONE, Table, none};

/// Renders the table per phase, and behind it the intervals.
pub(super) fn phases(combinations: &[&WakeupCombination]) -> Markup {
    let mut shown = Table::new(["µs"]);
    shown
        .head
        .extend(COLUMNS.iter().map(|column| column.name.to_owned()));
    for line in table::phases(N, combinations, &COLUMNS) {
        shown.rows.push(match line {
            Line::Heading(heading) => vec![heading],
            Line::Row(name, cells) => std::iter::once(name).chain(cells).collect(),
        });
    }
    let costs = costs(combinations);
    let is_first = combinations.iter().all(|c| !c.traced);
    html! {
        @if is_first { p.read {
            "Latencies of the wake-ups that happened, as cyclictest counts them; maximum, mean and standard deviation are \
             landolfi-2018's columns. Columns marked resp. count all activations, each missed one with what it waited; \
             the longest is the same for both. Maxima, minima and missed activations are those of all runs, means the mean \
             of the runs'; all else, the average of a run's maxima, too, is the median over the runs. A dash means that there \
             is no figure, not that it is 0."
        } }
        (shown.render())
        @if let Some(refused) = table::refused(N, combinations) { p.note { (refused) } }
        @for refused in refusals(combinations) { p.note { (refused) } }
        (intervals(combinations))
        p.note { (costs) }
    }
}

/// Says once for each reason why there are no intervals.
fn refusals(combinations: &[&WakeupCombination]) -> Vec<String> {
    let mut said: Vec<String> = Vec::new();
    for refused in combinations
        .iter()
        .filter_map(|c| c.intervals_refused.as_ref())
    {
        let mut text = refused.clone();
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        text.push('.');
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

/// Says what recording costs.
fn costs(combinations: &[&WakeupCombination]) -> String {
    let mut combinations: Vec<&&WakeupCombination> = combinations.iter().collect();
    combinations.sort_by(|a, b| b.recording_share.total_cmp(&a.recording_share));
    combinations.first().map_or_else(String::new, |worst| {
        format!(
            "Recording a wake-up takes {} at most, {} of the interval, after the clock was read: nothing of it is in a \
             latency.",
            N.ns(worst.recording_ns as f64, None),
            N.percent(worst.recording_share)
        )
    })
}

/// Renders the intervals over the runs, with the columns of the table per phase. They are open to the eye as soon as
/// there are enough runs for all of them.
fn intervals(combinations: &[&WakeupCombination]) -> Markup {
    type Of = fn(&LatencySpread) -> Option<Spread<f64>>;
    const SERVICE: [(&str, Of); 7] = [
        ("max", |s| Some(s.max)),
        ("mean", |s| Some(s.mean)),
        ("sd", |s| Some(s.sd)),
        ("p50", |s| Some(s.median)),
        ("p99", |s| s.p99.ns),
        ("p99.9", |s| s.p99_9.ns),
        ("p99.99", |s| s.p99_99.ns),
    ];
    const RESPONSE: [(&str, Of); 4] = [
        ("resp.\nmean", |s| Some(s.mean)),
        ("resp.\np99", |s| s.p99.ns),
        ("resp.\np99.9", |s| s.p99_9.ns),
        ("resp.\np99.99", |s| s.p99_99.ns),
    ];
    if combinations.iter().all(|c| c.runs < STUDENT_RUNS) {
        return html! {};
    }
    let mut table = Table::new(["µs, at 95 %"]);
    let names = SERVICE.iter().chain(&RESPONSE).map(|(name, _)| *name);
    let names = names.chain(["missed\nshare"]);
    table.head.extend(names.map(str::to_owned));
    for combination in combinations {
        table.heading(&format!(
            "{}, {} runs",
            place(combination),
            combination.runs
        ));
        for phase in &combination.phases {
            let of = |latencies: Option<LatencySpread>, of: Of| {
                range(latencies.and_then(|latencies| of(&latencies)))
            };
            let mut row = vec![table::phase_name(combination, phase)];
            row.extend(SERVICE.iter().map(|(_, spread)| of(phase.service, *spread)));
            row.extend(
                RESPONSE
                    .iter()
                    .map(|(_, spread)| of(phase.response, *spread)),
            );
            let missed = phase.missed_share.and_then(|share| share.interval);
            row.push(missed.map_or_else(none, |interval| words::share_range(N, &interval)));
            table.rows.push(row);
        }
    }
    let is_complete = combinations.iter().all(|c| c.intervals_refused.is_none());
    html! {
        details open[is_complete] {
            summary { "Intervals over runs" }
            p.note {
                "Of means: by Student's t, from three runs on. Of shares: likewise, on the logit scale. Of standard \
                 deviations, quantiles and maxima: of the median over runs, by order statistics, from six runs on. The unit \
                 of replication is the run, never the single wake-up."
            }
            (table.render())
        }
    }
}

/// Writes the ends of an interval below each other, so that many of them fit beside each other.
fn range(spread: Option<Spread<f64>>) -> String {
    let interval: Option<Interval> = spread.and_then(|spread| spread.interval);
    interval.map_or_else(none, |interval| {
        format!(
            "{} to\n{}",
            us(N, interval.low.max(0.0)),
            us(N, interval.high)
        )
    })
}

/// Renders the worst wake-ups of each place.
pub(super) fn worst(combinations: &[&WakeupCombination]) -> Markup {
    if combinations.iter().all(|c| c.worst.is_empty()) {
        return html! {};
    }
    let traced = combinations
        .iter()
        .any(|c| c.worst.iter().any(|w| w.blame.is_some()));
    let columns = if traced { table::WORST.len() } else { 4 };
    let head = table::WORST[..columns].iter();
    let mut shown = Table {
        head: head.map(|name| (*name).to_owned()).collect(),
        ends_in_prose: traced,
        ..Table::default()
    };
    for combination in combinations.iter().filter(|c| !c.worst.is_empty()) {
        let load = match (combination.phases.len(), combination.load.as_str()) {
            (1, "idle") | (2.., _) => String::new(),
            (_, load) => format!(" under {load}"),
        };
        shown.heading(&format!("{}{load}", place(combination)));
        for figure in &combination.worst {
            let mut cells = table::worst(N, combination, figure);
            cells.truncate(columns);
            shown.rows.push(cells);
        }
    }
    html! {
        @let content = html! {
            p.read {
                "The ten worst of each place: when after the start, how late, how many activations that missed."
                @if traced {
                    " L1 is the time until the timer's interrupt, L2 interrupts, softirqs and sections that cannot be preempted, L3 \
                     threads of higher or the same rank; the rest is the thread's own way to reading the clock, and what was not recorded any more. The culprit is whose share \
                     is the greatest. What its kernel's events cannot explain is outside this kernel."
                }
            }
            (shown.render())
        };
        @if traced {
            h3 { "The worst wake-ups, and who is to blame" }
            (content)
        } @else {
            details { summary { "The worst wake-ups, one by one" } (content) }
        }
    }
}

/// Renders every run.
pub(super) fn runs(combinations: &[&WakeupCombination]) -> Markup {
    let mut table = Table::new([
        "cell",
        "run",
        "phase",
        "wake-ups",
        "missed",
        "max",
        "mean",
        "sd",
        "p99",
        "resp. p99",
        "average\nmax",
    ]);
    for combination in combinations {
        table.heading(&combination.label);
        for run in &combination.each {
            for phase in &run.phases {
                let first = phase.number == 0;
                let ns = |ns: Option<f64>| ns.map_or_else(none, |ns| us(N, ns));
                let service = phase.service.as_ref();
                let p99 =
                    |l: Option<&crate::wakeup::Latencies>| l.and_then(|l| Some(l.p99.ns? as f64));
                let average = run.average_max_ns.filter(|_| first);
                table.row([
                    run.id.to_string(),
                    run.block.to_string(),
                    phase.load.clone(),
                    N.count(phase.woken),
                    N.count(phase.missed),
                    ns(service.map(|s| s.max_ns as f64)),
                    ns(service.map(|s| s.mean_ns)),
                    ns(service.map(|s| s.sd_ns)),
                    ns(p99(service)),
                    ns(p99(phase.response.as_ref())),
                    average.map_or_else(
                        || {
                            if first {
                                NONE.to_owned()
                            } else {
                                String::new()
                            }
                        },
                        |v| us(N, v),
                    ),
                ]);
            }
        }
    }
    let rows = table.rows.len();
    html! {
        details {
            summary { (N.count(rows as u64)) " rows: every run, in µs" }
            (table.render())
        }
    }
}

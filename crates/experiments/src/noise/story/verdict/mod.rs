//! The verdict: what the run says, in a few plain sentences.
//!
//! It says what was seen and how sure that is, and never a cause that was not observed: that gaps
//! come as often as the kernel's tick is an observation, that they are the tick is not.

mod attribution;
mod cautions;
mod comparison;
mod many;

use schemars::JsonSchema;
use serde::Serialize;
use tare_results::MachineRecord;
use tare_stats::STUDENT_RUNS;

use crate::analysis::{
    Alarm, Attribution, Combination, CombinedFigures, CombinedGap, CombinedPeriod, CombinedShare,
    CombinedTimed, Interval, NotMeasured, Over, Spread, Time,
};
use crate::format::Numbers;
use crate::panels::{MANY, Panel, panels, series, target_name, under};
use crate::wakeup::{self, WakeupCombination};
use crate::words;
use attribution::attribution;
use cautions::cautions;
use comparison::comparison;
use many::{about_many, by_group};

/// Is what a verdict is based on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub cpu: u32,
    pub planned: usize,
    pub combinations: &'a [Combination],
    pub wakeups: &'a [WakeupCombination],
    pub alarms: &'a [Alarm],
    pub attribution: &'a Attribution,
    pub not_measured: &'a [NotMeasured],
    pub machine: Option<&'a MachineRecord>,
}

const N: Numbers = Numbers::PLAIN;

/// Writes the verdict.
pub(crate) fn of(evidence: &Evidence<'_>) -> Verdict {
    let panels = panels(evidence.combinations);
    let woken = wakeup::verdict::of(evidence.wakeups, evidence.cpu);
    let Some(main) = panels.first() else {
        return match woken {
            Some(woken) => Verdict {
                cautions: cautions(evidence),
                ..woken
            },
            None => nothing(evidence),
        };
    };
    let all = series(&panels);
    let mut details = Vec::new();
    for (place, sizes) in all.iter().enumerate() {
        if place > 0 {
            details.push(about(sizes, evidence));
        }
        match sizes {
            // Its ends are in the sentence before.
            [panel] if panel.members.len() > MANY => {
                if place == 0 {
                    details.extend(by_group(panel));
                }
            }
            _ => details.extend(comparison(sizes)),
        }
    }
    let mut certainty = certainty(main);
    if let Some(woken) = woken {
        details.push(woken.headline);
        details.extend(woken.details);
        certainty.extend(woken.certainty);
    }
    Verdict {
        headline: all
            .first()
            .map_or_else(String::new, |sizes| about(sizes, evidence)),
        details,
        certainty,
        attribution: attribution(evidence.attribution),
        cautions: cautions(evidence),
    }
}

fn nothing(evidence: &Evidence<'_>) -> Verdict {
    let reason = evidence.not_measured.first().map_or_else(
        || "the plan has no cells".to_owned(),
        |cell| format!("cell {} ({}): {}", cell.id, cell.label, cell.reason),
    );
    Verdict {
        headline: format!("Nothing was measured: {reason}"),
        ..Verdict::default()
    }
}

/// Says what one workload says, over all its sizes and targets.
fn about(sizes: &[Panel<'_>], evidence: &Evidence<'_>) -> String {
    let members = || {
        sizes
            .iter()
            .flat_map(|panel| panel.members.iter().map(|m| m.1))
    };
    let timed = || members().filter_map(|c| Some((c, c.figures.timed()?)));
    let gaps: Vec<_> = members()
        .filter_map(|c| Some((c, c.figures.gap()?)))
        .collect();
    if let [panel] = sizes
        && panel.members.len() > MANY
    {
        return about_many(panel, evidence.cpu);
    }
    match (gaps.as_slice(), sizes) {
        ([(combination, gap)], _) => about_gap(combination, gap, evidence),
        ([], [panel]) if panel.members.len() == 1 => about_one(panel, &timed().collect::<Vec<_>>()),
        ([], [panel]) => {
            let each: Vec<String> = timed()
                .map(|(c, figures)| about_timed(c, figures))
                .collect();
            format!("{}: {}.", panel.title(), each.join("; "))
        }
        ([], _) => about_sweep(sizes, &timed().collect::<Vec<_>>()),
        (gaps, _) => {
            let explained = gaps.iter().position(|(_, gap)| gap.longest.is_some());
            let each: Vec<String> = gaps
                .iter()
                .enumerate()
                .map(|(place, (combination, gap))| {
                    let is_explained = explained == Some(place);
                    about_gap_in_short(combination, gap, place == 0, is_explained)
                })
                .collect();
            let under = sizes.first().map_or_else(String::new, |p| under(p.first()));
            format!("CPU {} lost {}{under}.", evidence.cpu, words::list(&each))
        }
    }
}

fn about_gap(combination: &Combination, gap: &CombinedGap, evidence: &Evidence<'_>) -> String {
    let cpu = evidence.cpu;
    let place = place_of(combination, true);
    let step = Some(combination.timer_step);
    let Some(longest) = gap.longest.filter(|_| gap.gaps > 0) else {
        return format!(
            "CPU {cpu} was not interrupted for {} or longer in {} of spinning{place}.",
            words::time(N, gap.threshold, step),
            words::time(N, gap.wall, None),
        );
    };
    let interruptions = match gap.gaps_per_second {
        Some(rate) => format!("{} interruptions per second", N.short(rate.figure)),
        None => words::counted(N, gap.gaps, "interruption", "interruptions"),
    };
    let mut text = format!(
        "CPU {cpu} lost {} of its time to {interruptions}{place}; the longest took {}.",
        N.percent(gap.share_lost.figure),
        words::time(N, longest.highest, step),
    );
    if let Some(period) = gap.period {
        text.push(' ');
        text.push_str(&about_period(&period, combination, evidence.machine));
    }
    text
}

/// Says what one of several targets says. What is the same for all is said once.
fn about_gap_in_short(
    combination: &Combination,
    gap: &CombinedGap,
    is_first: bool,
    is_explained: bool,
) -> String {
    let lost = N.percent(gap.share_lost.figure);
    let target = target_name(combination);
    let of = if is_first { " of its time" } else { "" };
    let what = if is_explained {
        "longest interruption "
    } else {
        ""
    };
    let longest = gap.longest.map_or_else(String::new, |longest| {
        let longest = words::time(N, longest.highest, Some(combination.timer_step));
        format!(" ({what}{longest})")
    });
    format!("{lost}{of} on {target}{longest}")
}

/// Says what the only target of a panel says.
fn about_one(panel: &Panel<'_>, timed: &[(&Combination, &CombinedTimed)]) -> String {
    let Some((combination, timed)) = timed.first() else {
        return String::new();
    };
    let step = Some(combination.timer_step);
    let place = place_of(combination, false);
    let mut text = format!(
        "{} takes {} in the median and {} at worst{place}",
        panel.title(),
        words::both(N, timed.raw.median.figure, step),
        words::time(N, timed.raw.max.highest, step),
    );
    if let Some((limit, share)) = first_share(timed) {
        text.push_str(&format!(
            "; {} of the time went into delays above {} cycles",
            N.percent(share.figure),
            N.count(limit)
        ));
    }
    text.push('.');
    text
}

fn about_timed(combination: &Combination, timed: &CombinedTimed) -> String {
    let step = Some(combination.timer_step);
    let raw = &timed.raw;
    let mut text = format!(
        "on {} {} in the median, {} at worst",
        target_name(combination),
        words::both(N, raw.median.figure, step),
        words::time(N, raw.max.highest, step),
    );
    if let Some((limit, share)) = first_share(timed) {
        let limit = words::cycles(N, Time::new(limit as f64, None));
        let share = N.percent(share.figure);
        text.push_str(&format!(", {share} of the time in delays above {limit}"));
    }
    text
}

fn about_sweep(sizes: &[Panel<'_>], timed: &[(&Combination, &CombinedTimed)]) -> String {
    // Callers pass at least one size.
    let first = sizes[0].first();
    let range = match (first.size, sizes.last().and_then(|last| last.first().size)) {
        (Some(from), Some(to)) => format!(" from {} to {}", N.count(from), N.count(to)),
        _ => String::new(),
    };
    let sizes = sizes.len() as u64;
    let mut text = format!(
        "{}, {}{range}{}: ",
        first.workload,
        words::counted(N, sizes, "size", "sizes"),
        under(first)
    );
    // What an emulator took is not ranked among what a machine took.
    let is_native = |(c, _): &&(&Combination, &CombinedTimed)| !c.emulated;
    let native: Vec<_> = timed.iter().filter(is_native).copied().collect();
    let timed = if native.is_empty() { timed } else { &native };
    let mut shares: Vec<(&Combination, u64, f64)> = timed
        .iter()
        .filter_map(|(c, figures)| first_share(figures).map(|(t, share)| (*c, t, share.figure)))
        .collect();
    shares.sort_by(|a, b| a.2.total_cmp(&b.2));
    if let (Some(least), Some(most)) = (shares.first(), shares.last()) {
        text.push_str(&format!(
            "{} ({}) to {} ({}) of the time went into delays above {} cycles",
            N.percent(least.2),
            name_in_sweep(least.0),
            N.percent(most.2),
            name_in_sweep(most.0),
            N.count(least.1),
        ));
    }
    let longest = timed.iter().max_by(|a, b| {
        a.1.raw
            .max
            .highest
            .cycles
            .total_cmp(&b.1.raw.max.highest.cycles)
    });
    if let Some((combination, figures)) = longest {
        let step = Some(combination.timer_step);
        text.push_str(&format!(
            "; the longest repetition took {} ({})",
            words::time(N, figures.raw.max.highest, step),
            name_in_sweep(combination)
        ));
    }
    text.push('.');
    text
}

fn about_period(
    period: &CombinedPeriod,
    combination: &Combination,
    machine: Option<&MachineRecord>,
) -> String {
    let figure = &period.figure;
    let runs = combination.runs;
    let mut text = format!(
        "{} % of them come every {}",
        N.fixed(figure.share_of_gaps * 100.0, 0),
        words::time(N, figure.period, None)
    );
    if period.runs < runs {
        text.push_str(&format!(" (in {} of {} runs)", period.runs, runs));
    }
    // Of another kernel than this machine's nothing is known.
    let kernel = machine.filter(|_| combination.group.is_here());
    let tick_hz = kernel.and_then(|record| record.machine.kernel.tick_hz.known().copied());
    let hypervisor = kernel.and_then(|record| {
        let known = record.machine.virtualisation.hypervisor.known();
        known.map(Option::is_some)
    });
    let ns = figure.period.ns;
    if let Some(tick) = ns.and_then(|ns| as_often_as(ns, tick_hz, hypervisor)) {
        text.push_str(&format!(", as often as {tick}"));
    }
    text.push('.');
    text
}

/// Names a tick of the same frequency. If it is not that of the kernel beneath, says what that means.
fn as_often_as(period_ns: f64, tick_hz: Option<u32>, hypervisor: Option<bool>) -> Option<String> {
    let is = |hz: &u32| (period_ns * f64::from(*hz) / 1e9 - 1.0).abs() < 0.005;
    if let Some(hz) = tick_hz.filter(is) {
        return Some(format!("the tick of this machine's kernel ({hz} Hz)"));
    }
    // What Linux can be built with.
    let hz = [100, 250, 300, 1000].into_iter().find(is)?;
    let Some(own) = tick_hz else {
        return Some(format!("a {hz} Hz tick"));
    };
    let who = match hypervisor {
        Some(true) => {
            "what comes so often is not that tick, but may be that of the hypervisor's host or of another guest"
        }
        _ => "what comes so often is not that tick, but a timer of something else",
    };
    Some(format!(
        "a {hz} Hz tick, though this machine's kernel ticks at {own} Hz: {who}"
    ))
}

/// Says how sure the main figure of each target is.
fn certainty(panel: &Panel<'_>) -> Vec<String> {
    let told = many::told(panel);
    let each = told.iter().filter_map(|combination| {
        let share = share_of(combination)?;
        let what = match &combination.figures {
            CombinedFigures::Gap(_) => "time lost".to_owned(),
            CombinedFigures::Timed(timed) => {
                let limit = first_share(timed)?.0;
                format!("time in delays above {} cycles", N.count(limit))
            }
        };
        let place = if panel.members.len() > 1 {
            format!(" on {}", target_name(combination))
        } else {
            String::new()
        };
        Some(match share.interval {
            Some(interval) => how_sure(&what, &place, &interval),
            None => no_interval(&what, &place, &share, combination.runs),
        })
    });
    each.collect()
}

fn how_sure(what: &str, place: &str, interval: &Interval) -> String {
    let over = words::over(interval);
    let range = words::share_range(N, interval);
    let mut text =
        format!("How sure: {what}{place} is {range} in the mean, at 95 % confidence over {over}");
    if interval.over == Over::Blocks {
        text.push_str("; what differs from run to run is not in that (--runs)");
    }
    text.push('.');
    text
}

/// Says what is known of a share that has no interval.
fn no_interval(what: &str, place: &str, share: &Spread<f64>, runs: u64) -> String {
    let runs = match runs {
        1 => {
            return format!(
                "How sure: the {what}{place} is that of one run without an interval; measure several with --runs."
            );
        }
        runs => N.count(runs),
    };
    let (low, high) = (N.percent(share.lowest), N.percent(share.highest));
    if low == high {
        return format!("How sure: {what}{place} was {low} in each of {runs} runs.");
    }
    format!(
        "How sure: {what}{place} was {low} to {high} in {runs} runs; an interval needs {STUDENT_RUNS} (--runs)."
    )
}

/// Names target and load unless they are the usual ones.
fn place_of(combination: &Combination, with_load: bool) -> String {
    let mut place = String::new();
    if combination.target != "process" || combination.emulated {
        place.push_str(&format!(" on {}", target_name(combination)));
    }
    if with_load {
        place.push_str(&under(combination));
    }
    place
}

fn name_in_sweep(combination: &Combination) -> String {
    let size = combination
        .size
        .map_or_else(String::new, |size| N.count(size));
    format!("{} {size}", target_name(combination))
}

/// Returns the share of time lost that stands for a combination.
fn share_of(combination: &Combination) -> Option<Spread<f64>> {
    match &combination.figures {
        CombinedFigures::Gap(gap) => Some(gap.share_lost),
        CombinedFigures::Timed(timed) => first_share(timed).map(|(_, share)| share),
    }
}

fn first_share(timed: &CombinedTimed) -> Option<(u64, Spread<f64>)> {
    let first: &CombinedShare = timed.shares.first()?;
    Some((first.above_cycles, first.share?))
}

#[cfg(test)]
mod tests {
    use super::as_often_as;

    #[test]
    fn a_tick_that_is_not_this_kernel_s_is_told_from_its_own() {
        let said = |ns, own, hypervisor| as_often_as(ns, own, hypervisor).unwrap_or_default();
        assert_eq!(
            said(4e6, Some(250), Some(true)),
            "the tick of this machine's kernel (250 Hz)"
        );
        assert_eq!(said(1e6, None, None), "a 1000 Hz tick");
        assert_eq!(
            said(1e6, Some(250), Some(true)),
            "a 1000 Hz tick, though this machine's kernel ticks at 250 Hz: what comes so often is not that tick, but \
             may be that of the hypervisor's host or of another guest"
        );
        assert!(said(1e6, Some(250), Some(false)).ends_with("a timer of something else"));
        assert_eq!(said(3e6, Some(250), Some(true)), "");
    }
}

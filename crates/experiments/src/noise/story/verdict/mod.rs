//! The verdict: what the run says, in a few plain sentences.
//!
//! It says what was seen, and never a cause that was not observed.

mod comparison;
mod many;

use tare_figures::Run;
use tare_figures::format::Numbers;
use tare_figures::interval::Time;
use tare_figures::rows::Figure;
use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::{MANY, aside, figure_or_modes};

use super::ABOVE_WORDS;
use super::panels::{Member, Panel, PerCpu, of_verdict, series, several};
use super::takers::{self, Takers};
use comparison::comparisons;
use many::{about_cpus, about_range};

const N: Numbers = Numbers::PLAIN;

/// Writes the verdict; `None` if nothing was measured. It is of one workload under all loads, and
/// names the greatest share of the others.
pub(super) fn of(run: &Run, panels: &[Panel<'_>], who: &PerCpu<Takers>) -> Option<Verdict> {
    let panels = of_verdict(panels);
    let main = panels.first()?.plan();
    let own = series(&panels).into_iter();
    let own = own.filter(|sizes| sizes[0].plan().work.id == main.work.id);
    let mut sentences: Vec<String> = own.map(|sizes| about(sizes, run)).collect();
    let others = panels.iter();
    let others = others.filter(|panel| panel.plan().work.id != main.work.id);
    let others = Vec::from_iter(others.flat_map(shares));
    let mut headline = sentences.remove(0);
    if !others.is_empty() && panels[0].only_reads_clock() {
        headline = format!("{}: {headline}", main.work.id);
    }
    let own = panels
        .iter()
        .filter(|panel| panel.plan().work.id == main.work.id);
    sentences.extend(culprits(own, who));
    sentences.extend(most(&others));
    sentences.extend(comparisons(run, &panels));
    Some(Verdict {
        headline,
        details: sentences,
        ..Verdict::default()
    })
}

/// Says of each of the first panels who took the time in delays.
pub(super) fn culprits<'p>(
    panels: impl Iterator<Item = &'p Panel<'p>>,
    who: &PerCpu<Takers>,
) -> Vec<String> {
    let each = panels.filter_map(|panel| culprits_of(panel, who));
    each.take(MANY).collect()
}

/// Says who took the time in delays on each target of a panel.
fn culprits_of(panel: &Panel<'_>, who: &PerCpu<Takers>) -> Option<String> {
    let each = panel.members.iter().filter_map(|member| {
        let told = member.of(who)?.told()?;
        Some(match panel.members.len() {
            1 => told,
            _ => format!("on {}: {told}", member.name()),
        })
    });
    let each = Vec::from_iter(each);
    let least = takers::least(who)?;
    (!each.is_empty()).then(|| {
        format!(
            "{}, time in delays of {least} or more: {}.",
            panel.title(),
            each.join("; ")
        )
    })
}

/// Returns the share of time in delays on each of the targets of a panel that a machine executed, with
/// its place.
fn shares(panel: &Panel<'_>) -> Vec<(f64, String)> {
    let each = panel.native().filter_map(|member| {
        let (_, share) = member.share()?;
        Some((
            share.estimate,
            format!("{} on {}", panel.title(), member.name()),
        ))
    });
    each.collect()
}

/// Says which of several shares of time in delays is the greatest; `None` of none.
fn most(shares: &[(f64, String)]) -> Option<String> {
    let (share, place) = shares.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let share = N.percent(*share);
    Some(match shares.len() {
        1 => format!("{place} spent {share} of the time in {ABOVE_WORDS}."),
        _ => format!(
            "Of the other workloads, {place} spent the most time in {ABOVE_WORDS}: {share}."
        ),
    })
}

/// Says what one workload says, over all its sizes and targets.
fn about(sizes: &[Panel<'_>], run: &Run) -> String {
    // Series have at least one panel, and panels at least one member.
    let panel = &sizes[0];
    let cpus = Vec::from_iter(several(panel).filter_map(about_cpus));
    match panel.members.as_slice() {
        _ if !cpus.is_empty() => cpus.join(" "),
        members if sizes.len() > 1 || members.len() > MANY => about_range(sizes, run.plan.cpu),
        [only] if only.only_reads_clock() => about_gap(only, run),
        members if panel.only_reads_clock() => {
            let mut explained = false;
            let each = members.iter().enumerate();
            let each: Vec<String> = each
                .map(|(place, member)| about_gap_in_short(member, place == 0, &mut explained))
                .collect();
            let under = panel.plan().load.under();
            format!("CPU {} lost{under} {}.", run.plan.cpu, words::list(&each))
        }
        members => {
            let each = members.iter().map(|member| match members.len() {
                1 => format!(
                    "{}{}{}",
                    about_timed(member),
                    place_of(member),
                    member.alongside()
                ),
                _ => format!(
                    "on {} {}{}",
                    member.name(),
                    about_timed(member),
                    member.alongside()
                ),
            });
            let each: Vec<String> = each.collect();
            format!("{}: {}.", panel.title(), each.join("; "))
        }
    }
}

fn about_gap(member: &Member<'_>, run: &Run) -> String {
    let cpu = run.plan.cpu;
    let under = member.case.plan.load.under();
    let place = format!("{}{under}{}", place_of(member), member.alongside());
    let lost = member.share().map_or(0.0, |(_, share)| share.estimate);
    let Some((row, longest)) = member.longest() else {
        let least = member.known("threshold", Figure::Max, &[]);
        let least = least.map_or_else(String::new, |(row, over)| row.in_time(N, over.estimate));
        let wall = words::time(N, Time::new(member.wall(), member.case.hz()), None);
        return format!(
            "CPU {cpu} was not interrupted for {least} or longer in {wall} of spinning{place}."
        );
    };
    let interruptions = match member.known("gaps", Figure::Rate, &[]) {
        Some((_, rate)) => format!("{} interruptions per second", N.short(rate.estimate)),
        None => {
            let gaps = member.row("gaps", Figure::Total, &[]);
            let each = gaps.into_iter().flat_map(|row| &row.each);
            let all: f64 = each.filter_map(|run| run.figure.value()).sum();
            words::counted(N, all as u64, "interruption", "interruptions")
        }
    };
    format!(
        "CPU {cpu} lost {} of its time to {interruptions}{place}; the longest took {}.",
        N.percent(lost),
        row.in_time(N, longest.estimate),
    )
}

/// Says what one of several targets shows; words that are the same for all come once.
fn about_gap_in_short(member: &Member<'_>, is_first: bool, explained: &mut bool) -> String {
    let lost = member.share().map_or(0.0, |(_, share)| share.estimate);
    let of = if is_first { " of its time" } else { "" };
    let longest = member.longest().map(|(row, over)| {
        let what = match std::mem::replace(explained, true) {
            true => "",
            false => "longest interruption ",
        };
        format!("{what}{}", row.in_time(N, over.estimate))
    });
    let work = member.alongside().trim_start().to_owned();
    let aside = aside(longest.into_iter().chain([work]));
    let target = member.name();
    format!("{}{of} on {target}{aside}", N.percent(lost))
}

fn about_timed(member: &Member<'_>) -> String {
    let mut parts = Vec::new();
    if let Some((row, median)) = member.known("duration", Figure::MEDIAN, &[]) {
        let median = figure_or_modes(row, row.both(N, median.estimate), false);
        parts.push(format!("{median} in the median"));
    }
    if let Some((row, longest)) = member.longest() {
        parts.push(format!("{} at worst", row.in_time(N, longest.estimate)));
    }
    if let Some((_, share)) = member.share() {
        let share = N.percent(share.estimate);
        parts.push(format!("{share} of the time in {ABOVE_WORDS}"));
    }
    parts.join(", ")
}

/// Names the target unless it is the usual one, and no other is in the plan.
fn place_of(member: &Member<'_>) -> String {
    let case = &member.case;
    let mut cells = case.run.plan.cells.iter();
    let is_usual = member.group().capabilities().is_direct && !case.is_emulated();
    match is_usual && cells.all(|cell| cell.target == case.plan.target) {
        true => String::new(),
        false => format!(" on {}", member.name()),
    }
}

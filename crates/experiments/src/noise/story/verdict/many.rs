//! What a dozen targets say: the ends of the range, and the range of each group.
//!
//! With so many, a sentence that names each is read by nobody; the tables do. What an emulator executed is
//! counted, and never ranked.

use crate::analysis::{Combination, CombinedFigures, Spread};
use crate::panels::{MANY, Panel, target_name, under};
use crate::words;

use super::comparison::Sure;
use super::{N, first_share, share_of};

/// Says between which ends the targets of a panel lie.
pub(super) fn about_many(panel: &Panel<'_>, cpu: u32) -> String {
    let ranked = ranked(panel);
    let emulated = panel.members.iter().filter(|(_, c)| c.emulated).count() as u64;
    let mut text = match ranked.as_slice() {
        [] if emulated == panel.members.len() as u64 => {
            return format!(
                "{}: an emulator executed all {} targets, so none is ranked; the tables have their \
                 figures.",
                panel.title(),
                N.count(emulated)
            );
        }
        [] => format!(
            "{}: no target has figures that can be ranked.",
            panel.title()
        ),
        [(only, share)] => format!(
            "{} {}{} on {}.",
            subject(panel, cpu),
            N.percent(share.figure),
            of_what(panel),
            target_name(only)
        ),
        [(least, low), .., (most, high)] => format!(
            "{} from {}{} on {} to {} on {}, of {} targets; {}.",
            subject(panel, cpu),
            N.percent(low.figure),
            of_what(panel),
            target_name(least),
            N.percent(high.figure),
            target_name(most),
            N.count(ranked.len() as u64),
            Sure::of((least, low), (most, high)).text("the two ends'")
        ),
    };
    if let Some((combination, longest)) = longest(panel) {
        let what = if panel.is_gap() {
            "interruption"
        } else {
            "repetition"
        };
        text.push_str(&format!(
            " The longest {what} took {longest} ({}).",
            target_name(combination)
        ));
    }
    text
}

/// Says what each group of a panel with many targets loses, as a range; `None` if nothing is
/// ranked.
pub(super) fn by_group(panel: &Panel<'_>) -> Option<String> {
    let groups = panel.groups();
    let ranked = ranked(panel);
    let each: Vec<String> = groups
        .into_iter()
        .filter_map(|group| {
            let of_group = || ranked.iter().filter(|(c, _)| c.group == group);
            let (low, high) = (
                of_group().next()?.1.figure,
                of_group().next_back()?.1.figure,
            );
            let count = of_group().count() as u64;
            let name = group.in_a_sentence();
            Some(if count == 1 {
                format!("{name} {}", N.percent(low))
            } else {
                format!("{name} {} to {} ({count})", N.percent(low), N.percent(high))
            })
        })
        .collect();
    if each.is_empty() {
        return None;
    }
    let emulated = panel.members.iter().filter(|(_, c)| c.emulated).count() as u64;
    let ranked = match emulated {
        0 => String::new(),
        1 => " One emulated target is not ranked.".to_owned(),
        many => format!(" {} emulated targets are not ranked.", N.count(many)),
    };
    Some(format!("By group: {}.{ranked}", each.join("; ")))
}

/// Returns the combinations of a panel whose certainty is told: all of a few, of many the ends of the
/// range.
pub(super) fn told<'a>(panel: &Panel<'a>) -> Vec<&'a Combination> {
    if panel.members.len() <= MANY {
        return panel.members.iter().map(|(_, c)| *c).collect();
    }
    match ranked(panel).as_slice() {
        [] => Vec::new(),
        [(only, _)] => vec![only],
        [(least, _), .., (most, _)] => vec![least, most],
    }
}

/// Returns what a machine executed with the share of time lost, the least first.
fn ranked<'a>(panel: &Panel<'a>) -> Vec<(&'a Combination, Spread<f64>)> {
    let native = panel
        .members
        .iter()
        .map(|(_, c)| *c)
        .filter(|c| !c.emulated);
    let mut ranked: Vec<(&Combination, Spread<f64>)> =
        native.filter_map(|c| Some((c, share_of(c)?))).collect();
    ranked.sort_by(|a, b| a.1.figure.total_cmp(&b.1.figure));
    ranked
}

fn subject(panel: &Panel<'_>, cpu: u32) -> String {
    if panel.is_gap() {
        format!("CPU {cpu} lost{}", under(panel.first()))
    } else {
        format!("{} spent", panel.title())
    }
}

fn of_what(panel: &Panel<'_>) -> String {
    match &panel.first().figures {
        CombinedFigures::Gap(_) => " of its time".to_owned(),
        CombinedFigures::Timed(timed) => first_share(timed)
            .map_or_else(String::new, |(limit, _)| {
                format!(" of the time in delays above {} cycles", N.count(limit))
            }),
    }
}

/// Finds the longest that a machine took, and writes how long it was.
fn longest<'a>(panel: &Panel<'a>) -> Option<(&'a Combination, String)> {
    let native = panel
        .members
        .iter()
        .map(|(_, c)| *c)
        .filter(|c| !c.emulated);
    let longest = native.filter_map(|c| {
        let longest = match &c.figures {
            CombinedFigures::Gap(gap) => gap.longest?.highest,
            CombinedFigures::Timed(timed) => timed.raw.max.highest,
        };
        Some((c, longest))
    });
    let (combination, longest) = longest.max_by(|a, b| a.1.cycles.total_cmp(&b.1.cycles))?;
    Some((
        combination,
        words::time(N, longest, Some(combination.timer_step)),
    ))
}

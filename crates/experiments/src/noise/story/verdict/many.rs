//! What a dozen targets say: the ends of the range, and the range of each group.
//!
//! With so many, a sentence that names each is read by nobody; the tables do. What an emulator executed is counted, and
//! never ranked.

use tare_report::plain::MANY;
use tare_stats::OverRuns;

use super::super::ABOVE_WORDS;
use super::super::panels::{Member, Panel, under};
use super::N;
use super::comparison::Sure;

/// Says between which ends the targets of a panel lie.
pub(super) fn about_many(panel: &Panel<'_>, cpu: u32) -> String {
    let (subject, of_what, longest) = match panel.is_gap() {
        true => (
            format!("CPU {cpu} lost{}", under(&panel.plan().load)),
            " of its time".to_owned(),
            "interruption",
        ),
        false => (
            format!("{} spent", panel.title()),
            format!(" of the time in {ABOVE_WORDS}"),
            "repetition",
        ),
    };
    let ranked = ranked(panel);
    let emulated = panel.members.len() - panel.native().count();
    let mut text = match ranked.as_slice() {
        [] if emulated == panel.members.len() => {
            return format!(
                "{}: an emulator executed all {emulated} targets, so none is ranked; the tables have their figures.",
                panel.title(),
            );
        }
        [] => format!(
            "{}: no target has figures that can be ranked.",
            panel.title()
        ),
        [(only, share)] => {
            let share = N.percent(share.estimate);
            format!("{subject} {share}{of_what} on {}.", only.case.target())
        }
        [(least, low), .., (most, high)] => format!(
            "{subject} from {}{of_what} on {} to {} on {}, of {} targets; {}.",
            N.percent(low.estimate),
            least.case.target(),
            N.percent(high.estimate),
            most.case.target(),
            ranked.len(),
            Sure::of(low, high).text("the two ends'")
        ),
    };
    let all = panel
        .native()
        .filter_map(|member| Some((member, member.longest()?)));
    let last = all.max_by(|a, b| a.1.1.highest.total_cmp(&b.1.1.highest));
    if let Some((member, (row, over))) = last {
        let (took, target) = (row.in_time(N, over.highest), member.case.target());
        text.push_str(&format!(" The longest {longest} took {took} ({target})."));
    }
    text
}

/// Says what each group of a panel with many targets loses, as a range; `None` if nothing is ranked.
pub(super) fn by_group(panel: &Panel<'_>) -> Option<String> {
    let ranked = ranked(panel);
    let each = panel.groups().into_iter().filter_map(|group| {
        let of_group = ranked.iter().filter(|(member, _)| member.group() == group);
        let shares: Vec<f64> = of_group.map(|(_, share)| share.estimate).collect();
        let name = group.in_a_sentence();
        match shares.as_slice() {
            [] => None,
            [only] => Some(format!("{name} {}", N.percent(*only))),
            [low, .., high] => {
                let (low, high) = (N.percent(*low), N.percent(*high));
                Some(format!("{name} {low} to {high} ({})", shares.len()))
            }
        }
    });
    let each: Vec<String> = each.collect();
    let emulated = match panel.members.len() - panel.native().count() {
        0 => String::new(),
        1 => " One emulated target is not ranked.".to_owned(),
        many => format!(" {many} emulated targets are not ranked."),
    };
    (!each.is_empty()).then(|| format!("By group: {}.{emulated}", each.join("; ")))
}

/// Returns the members of a panel whose certainty is told: all of a few, of many the ends of the range.
pub(super) fn told<'p, 'a>(panel: &'p Panel<'a>) -> Vec<&'p Member<'a>> {
    if panel.members.len() <= MANY {
        return panel.members.iter().collect();
    }
    match ranked(panel).as_slice() {
        [] => Vec::new(),
        [(only, _)] => vec![only],
        [(least, _), .., (most, _)] => vec![least, most],
    }
}

/// Returns what a machine executed with the share of time lost, the least first.
pub(super) fn ranked<'p, 'a>(panel: &'p Panel<'a>) -> Vec<(&'p Member<'a>, &'a OverRuns)> {
    let native = panel.native();
    let mut ranked: Vec<_> = native
        .filter_map(|member| Some((member, member.share()?.1)))
        .collect();
    ranked.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    ranked
}

//! What a dozen targets say: the ends of the range.
//!
//! Nobody reads a sentence that names a dozen targets; the tables name them. Emulated targets are
//! counted, and never ranked.

use tare_figures::words;
use tare_pages::kit::sentence::aside;
use tare_stats::OverRuns;

use super::super::ABOVE_WORDS;
use super::super::panels::{Member, Panel};
use super::N;

/// Says between which ends the shares of many targets lie, or those of several sizes.
pub(super) fn about_range(sizes: &[Panel<'_>], cpu: u32) -> String {
    let (panel, plan) = (&sizes[0], sizes[0].plan());
    let count = words::counted(N, sizes.len() as u64, "size", "sizes");
    let (title, name): (_, fn(&Member<'_>) -> String) =
        match (plan.labels.number("size"), sizes.last()) {
            (Some(from), Some(last)) if sizes.len() > 1 => {
                let to = last.plan().labels.number("size").unwrap_or(from);
                let under = plan.load.under();
                let range = format!(
                    "{}, {count} from {} to {}{under},",
                    plan.work.id,
                    N.count(from),
                    N.count(to)
                );
                (range, |member| {
                    let size = member.case.plan.labels.number("size").unwrap_or_default();
                    format!("{} {}", member.name(), N.count(size))
                })
            }
            _ => (panel.title(), |member| member.name()),
        };
    let (subject, of_what, longest) = match panel.only_reads_clock() {
        true => (
            format!("CPU {cpu} lost{}", plan.load.under()),
            " of its time".to_owned(),
            "interruption",
        ),
        false => (
            format!("{title} spent"),
            format!(" of the time in {ABOVE_WORDS}"),
            "repetition",
        ),
    };
    let ranked = ranked(sizes.iter().flat_map(Panel::native));
    let mut text = match ranked.as_slice() {
        [] => {
            let title = title.trim_end_matches(',');
            return format!(
                "{title}: an emulator executed all of it, so nothing is ranked; the tables have the figures."
            );
        }
        [(only, share)] => {
            format!(
                "{subject} {}{of_what} on {}",
                N.percent(share.estimate),
                name(only)
            )
        }
        [(least, low), .., (most, high)] => format!(
            "{subject} from {}{of_what} on {} to {} on {}",
            N.percent(low.estimate),
            name(least),
            N.percent(high.estimate),
            name(most),
        ),
    };
    if let ([panel], [_, .., _]) = (sizes, ranked.as_slice()) {
        text.push_str(&format!(", of {} targets", panel.native().count()));
    }
    text + &about_longest(sizes.iter().flat_map(Panel::native), longest, name)
}

/// Ends the sentence, and says on which member the longest of something took how long.
fn about_longest<'p, 'a: 'p>(
    members: impl Iterator<Item = &'p Member<'a>>,
    what: &str,
    name: fn(&Member<'_>) -> String,
) -> String {
    let all = members.filter_map(|member| Some((member, member.longest()?)));
    let last = all.max_by(|a, b| a.1.1.estimate.total_cmp(&b.1.1.estimate));
    let last = last.map_or_else(String::new, |(member, (row, over))| {
        let (took, name) = (row.in_time(N, over.estimate), name(member));
        format!(" The longest {what} took {took} ({name}).")
    });
    format!(".{last}")
}

/// Says which CPUs of a case lost the most and the least, and with how many their intervals overlap.
pub(super) fn about_cpus(members: &[Member<'_>]) -> Option<String> {
    let ranked = ranked(members.iter());
    let share = |(member, over): &(&Member<'_>, &OverRuns)| {
        let own = over.interval.as_ref().ok();
        let range = own.map(|own| format!("{} to {}", N.percent(own.low), N.percent(own.high)));
        let alike = ranked.iter().filter(|(_, other)| {
            let both = own.zip(other.interval.as_ref().ok());
            both.is_some_and(|(own, other)| other.low <= own.high && own.low <= other.high)
        });
        // It is like itself.
        let alike = (alike.count() as u64).saturating_sub(1);
        let others = words::counted(N, alike, "other", "others");
        let alike = (alike > 0).then(|| format!("its interval overlaps that of {others}"));
        let aside = aside(range.into_iter().chain(alike));
        format!("{} with {}{aside}", member.cpu(), N.percent(over.estimate))
    };
    let case = &members[0].case;
    Some(format!(
        "Of {} measured at once on {}{}, the largest share of time was lost by {}, the smallest by {}{}",
        words::counted(N, ranked.len() as u64, "CPU", "CPUs"),
        case.target(),
        case.plan.load.under(),
        share(ranked.last()?),
        share(ranked.first()?),
        about_longest(members.iter(), "interruption", |member| member.cpu())
    ))
}

/// Returns members with the share of time lost, the least first.
fn ranked<'p, 'a>(
    members: impl Iterator<Item = &'p Member<'a>>,
) -> Vec<(&'p Member<'a>, &'a OverRuns)> {
    let mut ranked: Vec<_> = members
        .filter_map(|member| Some((member, member.share()?.1)))
        .collect();
    ranked.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    ranked
}

//! What a dozen targets say: the ends of the range.
//!
//! Nobody reads a sentence that names a dozen targets; the tables name them. Emulated targets are
//! counted, and never ranked.

use tare_figures::words;
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
    let mut ranked: Vec<_> = sizes.iter().flat_map(ranked).collect();
    ranked.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
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
    let all = sizes.iter().flat_map(Panel::native);
    let all = all.filter_map(|member| Some((member, member.longest()?)));
    let last = all.max_by(|a, b| a.1.1.estimate.total_cmp(&b.1.1.estimate));
    if let Some((member, (row, over))) = last {
        let took = row.in_time(N, over.estimate);
        text.push_str(&format!(
            ". The longest {longest} took {took} ({})",
            name(member)
        ));
    }
    text + "."
}

/// Returns what a machine executed with the share of time lost, the least first.
fn ranked<'p, 'a>(panel: &'p Panel<'a>) -> Vec<(&'p Member<'a>, &'a OverRuns)> {
    let native = panel.native();
    let mut ranked: Vec<_> = native
        .filter_map(|member| Some((member, member.share()?.1)))
        .collect();
    ranked.sort_by(|a, b| a.1.estimate.total_cmp(&b.1.estimate));
    ranked
}

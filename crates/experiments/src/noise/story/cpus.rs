//! Several CPUs at once: which of them lost the most, and which the least.

use tare_figures::verdict::Verdict;
use tare_figures::words;
use tare_pages::kit::sentence::aside;
use tare_stats::OverRuns;

use super::panels::{Member, Panel, PerCpu};
use super::takers::Takers;
use super::verdict::{N, culprits};

/// Returns the CPUs of each case that measured several at once.
pub(super) fn several<'p, 'a>(panel: &'p Panel<'a>) -> impl Iterator<Item = &'p [Member<'a>]> {
    let members = &panel.members;
    let cases = members.chunk_by(|a, b| a.case.target() == b.case.target());
    cases.filter(|cpus| cpus[0].cpu.is_some())
}

/// Writes the verdict on CPUs that were measured at once; `None` if it was one at a time.
pub(super) fn verdict(panels: &[Panel<'_>], who: &PerCpu<Takers>) -> Option<Verdict> {
    let mut sentences = panels.iter().flat_map(several).filter_map(about);
    let headline = sentences.next()?;
    let mut details = Vec::from_iter(sentences);
    details.extend(panels.iter().filter_map(|panel| culprits(panel, who)));
    Some(Verdict {
        headline,
        details,
        ..Verdict::default()
    })
}

/// Says which CPUs of a case lost the most and the least, and how many are not told apart from these.
fn about(members: &[Member<'_>]) -> Option<String> {
    let known = members.iter();
    let known = known.filter_map(|member| Some((member, member.share()?.1)));
    let mut ranked: Vec<(&Member<'_>, &OverRuns)> = known.collect();
    ranked.sort_by(|a, b| b.1.estimate.total_cmp(&a.1.estimate));
    let intervals = || {
        ranked
            .iter()
            .filter_map(|(_, over)| over.interval.as_ref().ok())
    };
    let share = |(member, over): &(&Member<'_>, &OverRuns)| {
        let own = over.interval.as_ref().ok();
        let range = own.map(|own| format!("{} to {}", N.percent(own.low), N.percent(own.high)));
        let alike = own.map_or(0, |own| {
            let alike = intervals().filter(|other| other.low <= own.high && own.low <= other.high);
            // It is like itself.
            alike.count() as u64 - 1
        });
        let alike = (alike > 0).then(|| {
            let others = words::counted(N, alike, "other", "others");
            format!("not told apart from {others}")
        });
        let cpu = member.cpu.unwrap_or_default();
        let aside = aside(range.into_iter().chain(alike));
        format!("CPU {cpu} with {}{aside}", N.percent(over.estimate))
    };
    let longest = members.iter();
    let longest = longest.filter_map(|member| Some((member, member.longest()?)));
    let longest = longest.max_by(|a, b| a.1.1.estimate.total_cmp(&b.1.1.estimate));
    let longest = longest.map_or_else(String::new, |(member, (row, over))| {
        let took = row.in_time(N, over.estimate);
        let cpu = member.cpu.unwrap_or_default();
        format!(" The longest interruption took {took} (CPU {cpu}).")
    });
    let case = &members[0].case;
    Some(format!(
        "Of {} measured at once on {}{}, the largest share of time was lost by {}, the smallest by {}.{longest}",
        words::counted(N, ranked.len() as u64, "CPU", "CPUs"),
        case.target(),
        case.plan.load.under(),
        share(ranked.first()?),
        share(ranked.last()?)
    ))
}

//! Which target loses less time, and whether the run can tell.

use tare_stats::{OverRuns, STUDENT_RUNS};

use super::super::panels::Panel;
use super::N;
use super::many::ranked;

/// Compares the targets of a workload by the share of time lost, at each of its sizes.
///
/// Emulated targets are not compared: their figures say nothing of a machine's speed.
pub(super) fn comparison(sizes: &[Panel<'_>]) -> Option<String> {
    let mut compared: Vec<(&Panel<'_>, [String; 2], [f64; 2], Overlap)> = Vec::new();
    for panel in sizes {
        let ranked = ranked(panel);
        let [(least, low), .., (most, high)] = ranked.as_slice() else {
            continue;
        };
        if high.estimate > 0.0 {
            let targets = [least.case.target(), most.case.target()];
            compared.push((
                panel,
                targets,
                [low.estimate, high.estimate],
                Overlap::of(low, high),
            ));
        }
    }
    let (panel, [least, most], ends, sure) = compared.first()?;
    let plan = panel.plan();
    let under = plan.load.under();
    if compared.len() == 1 {
        let what = match panel.only_reads_clock() {
            true => format!("time is lost{under}"),
            false => format!("time of {} goes into delays", panel.title()),
        };
        let differ = match *ends {
            [0.0, _] => format!("{what} on {most}, and none on {least}"),
            [low, high] => {
                let factor = N.short(high / low);
                format!("on {most} {factor} times as much {what} as on {least}")
            }
        };
        return Some(format!("Compared: {differ}; {}.", sure.text("their")));
    }
    if compared
        .iter()
        .any(|(_, targets, ..)| *targets != compared[0].1)
    {
        return Some("Compared: which target loses the least time depends on the size.".to_owned());
    }
    let apart = compared
        .iter()
        .filter(|(.., sure)| *sure == Overlap::Apart)
        .count();
    let (all, workload) = (compared.len(), &plan.work.id);
    Some(format!(
        "Compared: on {most} more time of {workload}{under} goes into delays than on {least} at all {all} sizes; the 95 % \
         intervals do not overlap at {apart} of them."
    ))
}

/// The relation of the intervals of two shares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    Apart,
    Overlapping,
    Unknown,
}

impl Overlap {
    /// Compares the intervals of two shares. One that is the same in all of enough runs is its own.
    pub(super) fn of(a: &OverRuns, b: &OverRuns) -> Self {
        let ends = |share: &OverRuns| match share.interval {
            Ok(interval) => Some((interval.low, interval.high)),
            Err(_) if share.lowest == share.highest && share.runs >= STUDENT_RUNS => {
                Some((share.lowest, share.highest))
            }
            Err(_) => None,
        };
        match (ends(a), ends(b)) {
            (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1 => Self::Overlapping,
            (Some(_), Some(_)) => Self::Apart,
            _ => Self::Unknown,
        }
    }

    /// Says it of the two whose intervals were compared: `their`.
    pub(super) fn text(self, whose: &str) -> String {
        match self {
            Self::Apart => {
                format!("{whose} 95 % intervals do not overlap in this invocation")
            }
            Self::Overlapping => {
                format!(
                    "{whose} 95 % intervals overlap, which does not show whether they differ: `tare compare RUN --by target` does"
                )
            }
            Self::Unknown => {
                "without an interval for both this may be chance; measure more runs".to_owned()
            }
        }
    }
}

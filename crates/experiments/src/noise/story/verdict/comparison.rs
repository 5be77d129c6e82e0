//! Which target loses less time, and whether the run can tell.

use tare_stats::{OverRuns, STUDENT_RUNS};

use super::super::panels::{Member, Panel, under};
use super::N;

/// Compares the targets of a workload by the share of time lost, at each of its sizes.
///
/// Emulated targets are not compared: their figures say nothing of a machine's speed.
pub(super) fn comparison(sizes: &[Panel<'_>]) -> Option<String> {
    let compared: Vec<Compared<'_, '_>> = sizes.iter().filter_map(Compared::of).collect();
    let first = compared.first()?;
    let (least, most) = (first.least.case.target(), first.most.case.target());
    let plan = first.panel.plan();
    if let [only] = compared.as_slice() {
        let what = match first.panel.is_gap() {
            true => format!("time is lost{}", under(&plan.load)),
            false => format!("time of {} goes into delays", first.panel.title()),
        };
        let differ = match only.factor {
            Some(factor) => {
                let factor = N.short(factor);
                format!("on {most} {factor} times as much {what} as on {least}")
            }
            None => format!("{what} on {most}, and none on {least}"),
        };
        return Some(format!("Compared: {differ}; {}.", only.sure.text("their")));
    }
    let same =
        |c: &&Compared<'_, '_>| c.least.case.target() == least && c.most.case.target() == most;
    if compared.iter().filter(same).count() < compared.len() {
        return Some("Compared: which target loses the least time depends on the size.".to_owned());
    }
    let apart = compared.iter().filter(|c| c.sure == Sure::Apart).count();
    let all = compared.len();
    let workload = format!("{}{}", plan.workload, under(&plan.load));
    Some(format!(
        "Compared: on {most} more time of {workload} goes into delays than on {least} at all {all} sizes; the 95 % \
         intervals do not overlap at {apart} of them."
    ))
}

/// The targets of one panel that differ most.
struct Compared<'p, 'a> {
    panel: &'p Panel<'a>,
    least: &'p Member<'a>,
    most: &'p Member<'a>,
    /// How many times as much time the second one loses; `None` if the first one loses none.
    factor: Option<f64>,
    sure: Sure,
}

/// What the intervals of two shares tell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    Apart,
    Overlapping,
    Unknown,
}

impl Sure {
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
            Self::Apart => format!("{whose} 95 % intervals do not overlap"),
            Self::Overlapping => {
                format!("{whose} 95 % intervals overlap, so take this as no difference shown")
            }
            Self::Unknown => {
                "without an interval for both this may be chance; measure more runs".to_owned()
            }
        }
    }
}

impl<'p, 'a> Compared<'p, 'a> {
    fn of(panel: &'p Panel<'a>) -> Option<Self> {
        let ranked = super::many::ranked(panel);
        let [(least, low), .., (most, high)] = ranked.as_slice() else {
            return None;
        };
        (high.estimate > 0.0).then(|| Self {
            panel,
            least,
            most,
            factor: (low.estimate > 0.0).then(|| high.estimate / low.estimate),
            sure: Sure::of(low, high),
        })
    }
}

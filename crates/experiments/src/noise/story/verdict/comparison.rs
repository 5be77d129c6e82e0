//! Which target loses less time, and whether the run can tell.

use tare_stats::STUDENT_RUNS;

use crate::analysis::{Combination, Spread};
use crate::panels::{Panel, target_name, under};

use super::{N, share_of};

/// Compares the targets of a workload by the share of time lost, at each of its sizes.
///
/// Emulated targets are not compared: their figures say nothing of a machine's speed.
pub(super) fn comparison(sizes: &[Panel<'_>]) -> Option<String> {
    let compared: Vec<Comparison<'_>> = sizes.iter().filter_map(Comparison::of).collect();
    let first = compared.first()?;
    let (least, most) = (target_name(first.least), target_name(first.most));
    if let [only] = compared.as_slice() {
        let what = match sizes.first()?.is_gap() {
            true => format!("time is lost{}", under(first.least)),
            false => format!("time of {} goes into delays", first.title),
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
    let same = |c: &&Comparison<'_>| {
        c.least.target == first.least.target && c.most.target == first.most.target
    };
    let agreeing: Vec<&Comparison<'_>> = compared.iter().filter(same).collect();
    if agreeing.len() < compared.len() {
        return Some("Compared: which target loses the least time depends on the size.".to_owned());
    }
    let apart = agreeing.iter().filter(|c| c.sure == Sure::Apart).count();
    let all = compared.len();
    let workload = format!("{}{}", first.least.workload, under(first.least));
    Some(format!(
        "Compared: on {most} more time of {workload} goes into delays than on {least} at all {all} \
         sizes; the 95 % intervals do not overlap at {apart} of them."
    ))
}

/// Holds the targets of one panel that differ most.
struct Comparison<'a> {
    title: String,
    least: &'a Combination,
    most: &'a Combination,
    /// How many times as much time the second one loses; `None` if the first one loses none.
    factor: Option<f64>,
    sure: Sure,
}

/// Says what the intervals of two shares tell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sure {
    Apart,
    Overlapping,
    Unknown,
}

impl Sure {
    /// Compares the intervals of two shares. One that is the same in all of enough runs is its own.
    pub(super) fn of(
        (first, a): (&Combination, &Spread<f64>),
        (second, b): (&Combination, &Spread<f64>),
    ) -> Self {
        let ends = |combination: &Combination, share: &Spread<f64>| match share.interval {
            Some(interval) => Some((interval.low, interval.high)),
            None if share.lowest == share.highest && combination.runs >= STUDENT_RUNS => {
                Some((share.lowest, share.highest))
            }
            None => None,
        };
        match (ends(first, a), ends(second, b)) {
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

impl<'a> Comparison<'a> {
    fn of(panel: &Panel<'a>) -> Option<Self> {
        let mut shares: Vec<(&'a Combination, Spread<f64>)> = panel
            .members
            .iter()
            .filter(|(_, combination)| !combination.emulated)
            .filter_map(|(_, combination)| Some((*combination, share_of(combination)?)))
            .collect();
        if shares.len() < 2 {
            return None;
        }
        shares.sort_by(|a, b| a.1.figure.total_cmp(&b.1.figure));
        let (least, most) = (shares.first()?, shares.last()?);
        if most.1.figure == 0.0 {
            return None;
        }
        let sure = Sure::of((least.0, &least.1), (most.0, &most.1));
        Some(Self {
            title: panel.title(),
            least: least.0,
            most: most.0,
            factor: (least.1.figure > 0.0).then(|| most.1.figure / least.1.figure),
            sure,
        })
    }
}

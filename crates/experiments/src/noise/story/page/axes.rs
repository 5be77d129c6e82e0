//! Axes of durations: cycles on one side, time on the other.
//!
//! Both are the same scale; they only have their marks at round figures of different units.

use crate::analysis::Combination;
use crate::panels::Panel;
use crate::svg::{Axis, Plot, Scale, Side};

use super::parts::N;

/// Are about how many marks an axis has.
const UPRIGHT: usize = 9;
const FLAT: usize = 12;

/// Is how far the TSC frequencies of targets may differ for one time axis to be right for all.
const SAME_FREQUENCY: f64 = 1e-3;

/// Adds the vertical axes of a plot of durations: cycles left, time right.
pub(super) fn upright(plot: &mut Plot, scale: Scale, hz: Option<f64>) {
    upright_with(plot, scale, hz, UPRIGHT);
}

/// Does the same with at most about `marks` marks.
pub(super) fn upright_with(plot: &mut Plot, scale: Scale, hz: Option<f64>, marks: usize) {
    let marks = marks.min(UPRIGHT);
    let ticks = scale.ticks(marks);
    plot.axis(Axis::new(Side::Left, scale, "cycles", ticks, |v| N.tick(v)));
    if let Some(hz) = hz {
        let unit = hz / 1e9;
        let ticks = scale.ticks_in(unit, marks);
        plot.axis(Axis::new(Side::Right, scale, "time", ticks, |cycles| {
            N.ns_tick(cycles / unit)
        }));
    }
}

/// Adds the horizontal axes of a plot of durations: cycles at the bottom, time at the top.
pub(super) fn flat(plot: &mut Plot, scale: Scale, title: &str, hz: Option<f64>) {
    let ticks = scale.ticks(FLAT);
    plot.axis(Axis::new(
        Side::Bottom,
        scale,
        format!("{title}, cycles"),
        ticks,
        |v| N.tick(v),
    ));
    if let Some(hz) = hz {
        let unit = hz / 1e9;
        let ticks = scale.ticks_in(unit, FLAT);
        plot.axis(Axis::new(Side::Top, scale, "time", ticks, |cycles| {
            N.ns_tick(cycles / unit)
        }));
    }
}

/// Returns the TSC frequency of all targets of a panel; `None` if it is not known, or they differ so much
/// that one time axis would be wrong for some.
pub(super) fn common_hz(panel: &Panel<'_>) -> Option<f64> {
    common_hz_of(panel.members.iter().map(|(_, combination)| *combination))
}

/// Does the same for any combinations.
pub(super) fn common_hz_of<'a>(combinations: impl Iterator<Item = &'a Combination>) -> Option<f64> {
    let all: Option<Vec<f64>> = combinations.map(|combination| combination.tsc_hz).collect();
    let all = all?;
    let first = *all.first()?;
    let same = |hz: &f64| (hz / first - 1.0).abs() <= SAME_FREQUENCY;
    all.iter().all(same).then_some(first)
}

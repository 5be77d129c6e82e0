//! Wake-ups: over time with the phases, how often how late, and the tables behind it.

mod curves;
mod tables;
mod time;

use maud::{Markup, html};

use super::places::counters;
use crate::analysis::Analysis;
use crate::wakeup::{WakeupCombination, WakeupPictures};

/// Holds what the pictures show: what was not traced, unless all was.
pub(super) struct Shown<'a> {
    members: Vec<(&'a WakeupCombination, &'a WakeupPictures)>,
    /// All targets in the order of the report; a target has its colour by its place.
    targets: Vec<&'a str>,
    /// By how much pictures are coarser than they could be: 1 for not at all.
    coarse: usize,
}

impl<'a> Shown<'a> {
    /// Takes what a run has of wake-ups; `None` if it has none.
    pub(super) fn of(analysis: &'a Analysis, coarse: usize) -> Option<Self> {
        let all = || {
            analysis
                .summary()
                .wakeups
                .iter()
                .zip(analysis.wakeup_pictures())
        };
        let mut members: Vec<_> = all().filter(|(c, _)| !c.traced).collect();
        if members.is_empty() {
            members = all().collect();
        }
        let mut targets: Vec<&str> = Vec::new();
        for (combination, _) in &members {
            if !targets.contains(&combination.target.as_str()) {
                targets.push(&combination.target);
            }
        }
        (!members.is_empty()).then_some(Self {
            members,
            targets,
            coarse: coarse.max(1),
        })
    }

    /// Returns the place of a target, which gives it its colour.
    fn series(&self, combination: &WakeupCombination) -> usize {
        let mut targets = self.targets.iter();
        targets
            .position(|target| *target == combination.target)
            .unwrap_or(0)
    }

    /// Renders the picture that goes with the verdict.
    pub(super) fn first(&self) -> Option<Markup> {
        time::over_time(self)
    }

    /// Renders everything about wake-ups.
    pub(super) fn section(&self, analysis: &Analysis, with_time: bool) -> Markup {
        let all: Vec<&WakeupCombination> = analysis.summary().wakeups.iter().collect();
        let (traced, plain): (Vec<&WakeupCombination>, Vec<_>) = all.iter().partition(|c| c.traced);
        html! {
            @if !plain.is_empty() { (tables::phases(&plain)) }
            @if with_time { @if let Some(picture) = time::over_time(self) { (picture) } }
            (curves::exceedance(self))
            (curves::histograms(self))
            (curves::table(self))
            (tables::worst(&plain))
            @if !traced.is_empty() {
                h3 { "With the kernel's events recorded" }
                p.read {
                    "A further run of each place recorded what its kernel did. That costs time, so its latencies are in no \
                     figure above; it is there to tell what long ones are made of."
                }
                (tables::worst(&traced))
                @if plain.is_empty() {
                    (tables::phases(&traced))
                } @else {
                    details {
                        summary { "Figures of the runs with the kernel's events recorded" }
                        (tables::phases(&traced))
                    }
                }
            }
            @let wakeups = ["late wake-up", "late wake-ups"];
            @if let Some(counters) = counters(all.iter().map(|c| (c.label.clone(), c.counters.as_slice(), wakeups))) {
                (counters)
            }
            (tables::runs(&all))
        }
    }
}

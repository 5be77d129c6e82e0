//! Series: the cells of one target under one load that differ in their interval alone, and which rate they kept up.

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::rows::{Figure, Row};
use tare_results::model::{Arrived, Labels};
use tare_stats::OverRuns;

use super::super::{BOOT, is_foreign};
use super::NAME;

pub(super) const N: Numbers = Numbers::PLAIN;

/// The label that distinguishes the points of a series.
pub(super) const INTERVAL: &str = "interval";

/// A target under a load, with all its intervals.
#[derive(Clone, Debug)]
pub(super) struct Series<'a> {
    /// Its points: instances one by one first, then from the longest interval to the shortest.
    pub points: Vec<Point<'a>>,
}

/// An interval of a series.
#[derive(Clone, Debug)]
pub(super) struct Point<'a> {
    /// Its cells.
    pub case: Case<'a>,
}

/// Up to which rate a series kept up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept<'a> {
    /// The highest rate per second that was kept up, with those below it; None if not even the lowest was.
    pub rate: Option<f64>,
    /// Whether nothing showed that it would not have kept up with more.
    pub at_least: bool,
    /// What ended it: the rate at which it no longer kept up, or at which arrivals did not come as planned, and why.
    pub end: Option<(f64, &'a str)>,
}

/// Returns the series of a run, in the order of its rows.
pub(super) fn all(run: &Run) -> Vec<Series<'_>> {
    let mut all: Vec<Series<'_>> = Vec::new();
    for case in Case::all(run, NAME) {
        let point = Point { case };
        match all.iter_mut().find(|series| series.has(&point)) {
            Some(series) => series.points.push(point),
            None => all.push(Series {
                points: vec![point],
            }),
        }
    }
    for series in &mut all {
        let place = |point: &Point<'_>| point.interval_ns().unwrap_or(u64::MAX);
        series
            .points
            .sort_by_key(|point| std::cmp::Reverse(place(point)));
    }
    all
}

/// Returns those that a machine executed, and those that an emulator did.
pub(super) fn by_execution<'s, 'a>(
    all: &'s [Series<'a>],
) -> (Vec<&'s Series<'a>>, Vec<&'s Series<'a>>) {
    all.iter().partition(|series| !series.is_emulated())
}

impl<'a> Series<'a> {
    /// Returns its first point, which gives it its name.
    fn first(&self) -> &Point<'a> {
        &self.points[0]
    }

    fn has(&self, point: &Point<'_>) -> bool {
        let (own, other) = (self.first().case.plan, point.case.plan);
        own.target == other.target
            && own.load == other.load
            && further(&own.labels) == further(&other.labels)
    }

    /// Returns its target's kind: `docker`.
    pub(super) fn kind(&self) -> &'a str {
        &self.first().case.plan.target.kind
    }

    /// Returns the plan of its first cell.
    pub(super) fn plan(&self) -> &'a tare_results::model::CellPlan {
        self.first().case.plan
    }

    /// Says whether an emulator executed the instances.
    pub(super) fn is_emulated(&self) -> bool {
        self.points.iter().any(|point| point.case.is_emulated())
    }

    /// Says whether Docker's engine ran beside it without need.
    pub(super) fn is_beside(&self) -> bool {
        self.plan().beside_engine
    }

    /// Names it: `process under dd, work=prime:1000`.
    pub(super) fn name(&self) -> String {
        let plan = self.plan();
        let mut name = self.first().case.target();
        if plan.load != "idle" {
            name.push_str(&format!(" under {}", plan.load));
        }
        for (key, value) in further(&plan.labels) {
            match key {
                "beside" => name.push_str(&format!(" beside {value}")),
                key => name.push_str(&format!(", {key}={value}")),
            }
        }
        name
    }

    /// Names what its instances do: `hello`, `prime:1000`, `boot`.
    pub(super) fn work(&self) -> &'a str {
        let plan = self.plan();
        let label = plan.labels.get("work");
        label.unwrap_or(if is_foreign(&plan.target) {
            BOOT
        } else {
            "hello"
        })
    }

    /// Returns the point without contention: instances one by one, else those of the longest interval.
    pub(super) fn calm(&self) -> &Point<'a> {
        self.first()
    }

    /// Returns the points with an interval.
    pub(super) fn open(&self) -> impl Iterator<Item = &Point<'a>> {
        self.points
            .iter()
            .filter(|point| point.interval_ns().is_some())
    }

    /// Says up to which rate it kept up; None if it has no interval.
    pub(super) fn kept(&self) -> Option<Kept<'a>> {
        self.open().next()?;
        let mut kept = Kept {
            rate: None,
            at_least: true,
            end: None,
        };
        for point in self.open() {
            let rate = point.rate().unwrap_or_default();
            let end = point.saturated().or_else(|| point.not_open_loop());
            if let Some(why) = end {
                kept.at_least = point.saturated().is_none() && kept.rate.is_some();
                kept.end = Some((rate, why));
                break;
            }
            kept.rate = Some(rate);
        }
        Some(kept)
    }
}

impl<'a> Point<'a> {
    /// Returns its interval in ns; None if each instance was started when the one before had ended.
    pub(super) fn interval_ns(&self) -> Option<u64> {
        self.case.plan.arrivals.as_ref()?.interval_ns
    }

    /// Returns its interval as it was typed: `1/64s`.
    pub(super) fn interval(&self) -> &'a str {
        self.case.plan.labels.get(INTERVAL).unwrap_or("?")
    }

    /// Returns how many instances were planned per second; None without an interval.
    pub(super) fn rate(&self) -> Option<f64> {
        let interval_ns = self.interval_ns().filter(|ns| *ns > 0)?;
        Some(1e9 / interval_ns as f64)
    }

    /// Names it: `1/64s`, `alone`; with what keeps its figures from being those of its rate.
    pub(super) fn name(&self) -> String {
        let name = self.interval().to_owned();
        match (self.saturated(), self.not_open_loop()) {
            (None, None) => name,
            (Some(_), None) => format!("{name}, saturated"),
            (_, Some(_)) => format!("{name}, not open-loop"),
        }
    }

    fn arrived(&self) -> impl Iterator<Item = &'a Arrived> {
        self.case
            .records()
            .filter_map(|record| record.arrived.as_ref())
    }

    /// Says why its target no longer kept up in one of its runs, if it did not.
    pub(super) fn saturated(&self) -> Option<&'a str> {
        self.interval_ns()?;
        self.arrived()
            .find_map(|arrived| arrived.saturated.as_deref())
    }

    /// Says why arrivals did not come as planned in one of its runs, if they did not.
    pub(super) fn not_open_loop(&self) -> Option<&'a str> {
        self.interval_ns()?;
        self.arrived()
            .find_map(|arrived| arrived.not_open_loop.as_deref())
    }

    /// Says why instances failed, and how many, the most frequent reason first.
    pub(super) fn failures(&self) -> Vec<(&'a str, u64)> {
        let mut all: Vec<(&str, u64)> = Vec::new();
        for failure in self.arrived().flat_map(|arrived| &arrived.failures) {
            match all.iter_mut().find(|(reason, _)| *reason == failure.reason) {
                Some((_, count)) => *count = count.saturating_add(failure.count),
                None => all.push((&failure.reason, failure.count)),
            }
        }
        all.retain(|(_, count)| *count > 0);
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }

    /// Returns the row of a figure that has no labels but the plan's.
    pub(super) fn row(&self, measure: &str, figure: Figure) -> Option<&'a Row> {
        self.case.row(measure, figure, &[])
    }

    /// Returns a figure over its runs.
    pub(super) fn over(&self, measure: &str, figure: Figure) -> Option<&'a OverRuns> {
        self.case.over(measure, figure, &[])
    }

    /// Returns its value over the runs.
    pub(super) fn value(&self, measure: &str, figure: Figure) -> Option<f64> {
        Some(self.over(measure, figure)?.estimate)
    }
}

/// Returns the labels that tell a series from others.
fn further(labels: &Labels) -> Vec<(&str, &str)> {
    labels.iter().filter(|(key, _)| *key != INTERVAL).collect()
}

/// Writes a rate that was kept up: `64/s`, `at least 1,024/s`, `no rate`.
pub(super) fn rate_kept(kept: &Kept<'_>) -> String {
    match (kept.rate, kept.at_least) {
        (Some(rate), true) => format!("at least {}", N.rate(rate)),
        (Some(rate), false) => N.rate(rate),
        (None, _) => "no rate".to_owned(),
    }
}

/// Writes a duration with its unit: `183 µs`.
pub(super) fn time(ns: f64) -> String {
    N.ns(ns, Some(1.0))
}

//! Ladders: the intervals of a target under a load, and the highest rate that it sustained.

use std::cmp::Reverse;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::rows::behind;
use tare_pages::kit::series::Series;
use tare_results::model::{Arrived, CellPlan};

use super::{NAME, is_foreign, work};

pub(super) const N: Numbers = Numbers::PLAIN;

/// The highest rate that a target sustained.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sustained<'a> {
    /// The rate per second, sustained like those below it; `None` if not even the lowest was.
    pub rate: Option<f64>,
    /// Whether nothing showed that it could not have sustained more.
    pub at_least: bool,
    /// The rate at which it was saturated, or at which arrivals did not come as planned, and why.
    pub end: Option<(f64, &'a str)>,
}

/// Returns the ladders of a run: instances one by one first, then from the longest interval to the
/// shortest.
pub(super) fn all(run: &Run) -> Vec<Series<'_>> {
    Series::along(Case::all(run, NAME), "interval", place)
}

/// Names a ladder: `process under dd, work=prime:1000`.
pub(super) fn name(ladder: &Series<'_>) -> String {
    ladder.name() + &default_work(ladder)
}

/// Names a ladder without its load.
pub(super) fn name_without_load(ladder: &Series<'_>) -> String {
    let labels = behind(&ladder.plan().labels, &[ladder.label]);
    ladder.first().target() + &labels + &default_work(ladder)
}

/// Names the default work, which is in no label, where another one was planned, too.
fn default_work(ladder: &Series<'_>) -> String {
    let has_work = |plan: &CellPlan| plan.labels.get("work").is_some();
    let (plan, mut cells) = (ladder.plan(), ladder.first().run.plan.cells.iter());
    let is_default = !has_work(plan) && !is_foreign(&plan.target);
    match is_default && cells.any(|cell| cell.experiment == NAME && has_work(cell)) {
        true => format!(", work={}", work(plan)),
        false => String::new(),
    }
}

/// Returns the place of an interval among others.
pub(super) fn place(case: &Case<'_>) -> Reverse<u64> {
    Reverse(interval_ns(case).unwrap_or(u64::MAX))
}

/// Returns the interval in ns; `None` if each instance was started when the one before had ended.
pub(super) fn interval_ns(case: &Case<'_>) -> Option<u64> {
    case.plan.arrivals.as_ref()?.interval_ns
}

/// Returns the interval as its label has it: `1/64s`, `alone`.
pub(super) fn interval<'a>(case: &Case<'a>) -> &'a str {
    case.plan.labels.get("interval").unwrap_or("?")
}

/// Names how often instances were started: `64/s`, `0.5/s`, `alone`.
pub(super) fn pace(case: &Case<'_>) -> String {
    rate(case).map_or_else(|| interval(case).to_owned(), |rate| N.rate(rate))
}

/// Returns how many instances were planned per second; `None` without an interval.
pub(super) fn rate(case: &Case<'_>) -> Option<f64> {
    let interval_ns = interval_ns(case).filter(|ns| *ns > 0)?;
    Some(1e9 / interval_ns as f64)
}

/// Returns what happened to the arrivals of each run.
pub(super) fn arrived<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Arrived> + use<'a> {
    let cells = case.cells.clone().into_iter();
    cells.filter_map(|cell| cell.outcome.record()?.arrived.as_ref())
}

/// Returns why the target was saturated in one of the runs; `None` if it was not.
pub(super) fn saturated<'a>(case: &Case<'a>) -> Option<&'a str> {
    interval_ns(case)?;
    arrived(case).find_map(|arrived| arrived.saturated.as_deref())
}

/// Returns why arrivals did not come as planned in one of the runs; `None` if they did.
pub(super) fn not_open_loop<'a>(case: &Case<'a>) -> Option<&'a str> {
    interval_ns(case)?;
    arrived(case).find_map(|arrived| arrived.not_open_loop.as_deref())
}

/// Returns the cases of a ladder that have an interval.
pub(super) fn open<'s, 'a>(ladder: &'s Series<'a>) -> impl Iterator<Item = &'s Case<'a>> {
    let cases = ladder.cases.iter();
    cases.filter(|case| interval_ns(case).is_some())
}

/// Returns the highest rate that a target sustained; `None` if its ladder has no interval.
pub(super) fn sustained<'a>(ladder: &Series<'a>) -> Option<Sustained<'a>> {
    open(ladder).next()?;
    let why = |case| saturated(case).or_else(|| not_open_loop(case));
    let below = open(ladder).take_while(|case| why(case).is_none());
    let rate = below.last().and_then(rate);
    let end = open(ladder).find_map(|case| Some((case, why(case)?)));
    Some(Sustained {
        rate,
        at_least: end.is_none_or(|(case, _)| saturated(case).is_none() && rate.is_some()),
        end: end.map(|(case, why)| (self::rate(case).unwrap_or_default(), why)),
    })
}

impl Sustained<'_> {
    /// Writes the rate: `64/s`, `at least 1,024/s`, `no rate`.
    pub(super) fn written(&self) -> String {
        match (self.rate, self.at_least) {
            (Some(rate), true) => format!("at least {}", N.rate(rate)),
            (Some(rate), false) => N.rate(rate),
            (None, _) => "no rate".to_owned(),
        }
    }
}

/// Writes a duration with its unit: `183 µs`.
pub(super) fn time(ns: f64) -> String {
    N.ns(ns, Some(1.0))
}

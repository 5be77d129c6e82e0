//! How cases of wake-ups, their phases and loads are named.

use std::collections::BTreeMap;

use tare_results::model::{Cell, CellPlan, Labels, STOPPED, Schedule};
use tare_results::target::Clock;

use tare_figures::Run;
use tare_figures::cases::Case;
use tare_figures::format::Numbers;
use tare_figures::rows::{Figure, Row, behind};
use tare_figures::words;
use tare_pages::kit::sentence::aside;

use super::NAME;

pub(super) const N: Numbers = Numbers::PLAIN;

/// One of the loads that run one after the other, or the only load of a case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase<'a> {
    /// Its number, from 0.
    pub number: usize,
    /// Its load.
    pub load: &'a Schedule,
    plan: &'a CellPlan,
}

impl<'a> Phase<'a> {
    /// Returns the phases of a plan.
    pub fn all(plan: &'a CellPlan) -> impl Iterator<Item = Self> {
        let one = plan.phases.is_empty().then_some(&plan.load);
        let loads = plan.phases.iter().chain(one).enumerate();
        loads.map(move |(number, load)| Self { number, load, plan })
    }

    /// Returns a row of it with the figures of all threads together.
    pub fn row<'r>(self, case: &Case<'r>, measure: &str, figure: Figure) -> Option<&'r Row> {
        let number = self.number.to_string();
        match self.plan.phases.len() {
            0 | 1 => case.row(measure, figure, &[]),
            _ => case.row(measure, figure, &[("phase", &number)]),
        }
    }

    /// Returns a figure of one run.
    pub fn value(self, case: &Case<'_>, cell: &Cell, measure: &str, figure: Figure) -> Option<f64> {
        self.row(case, measure, figure)?.of_cell(cell.plan.id)
    }

    /// Names it; several with one load are distinguished by how often it came before.
    pub fn name(self) -> String {
        let before = self.plan.phases.iter().take(self.number);
        match before.filter(|load| *load == self.load).count() {
            0 => self.load.to_string(),
            before => format!("{} ({})", self.load, before + 1),
        }
    }

    /// Names the load as the end of a sentence: ` under dd`; nothing for `idle` alone.
    pub fn under(self) -> String {
        match self.plan.phases.len() {
            0 | 1 => self.load.under(),
            _ => words::under(self.load),
        }
    }
}

/// Returns the cases, traced ones last, kernels in the order of landolfi-2018: from none to full
/// real-time preemption.
pub(super) fn cases(run: &Run) -> Vec<Case<'_>> {
    const ORDER: [&str; 5] = ["none", "voluntary", "lazy", "full", "rt"];
    let mut cases = Case::all(run, NAME);
    let rank = |case: &Case<'_>| ORDER.iter().position(|known| Some(*known) == model(case));
    cases.sort_by_cached_key(|case| {
        let plan = case.plan;
        let place = rank(case).unwrap_or(ORDER.len());
        let load = (!plan.load.is_idle(), plan.load.to_string());
        let target = (plan.target.group, place, plan.target.text.clone());
        (plan.is_traced(), load, target)
    });
    cases
}

/// Returns those that ran undisturbed; if all were traced, all of them.
pub(super) fn undisturbed<'a>(mut cases: Vec<Case<'a>>) -> Vec<Case<'a>> {
    if cases.iter().any(|case| !case.plan.is_traced()) {
        cases.retain(|case| !case.plan.is_traced());
    }
    cases
}

/// Returns the preemption model of the kernel, if it is known.
pub(super) fn model<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.fact("preemption model")
}

/// Returns whether a plan is of wake-ups that are due at an interval. Some tools, whose files are
/// imported, count how long other things took, and nothing is due there.
pub(super) fn is_periodic(plan: &CellPlan) -> bool {
    !matches!(plan.target.text.as_str(), "oslat" | "rtla-osnoise")
}

/// Names the time that the figures are of if a tool stopped at its threshold; empty if none did.
pub(super) fn until_stopped(cases: &[Case<'_>]) -> &'static str {
    match cases.iter().any(|case| case.fact(STOPPED).is_some()) {
        true => " until the tool stopped at its threshold",
        false => "",
    }
}

/// Returns whether latencies are those of a machine, or exactly repeatable, and not an accident of
/// an emulator.
pub(super) fn is_telling(case: &Case<'_>) -> bool {
    !case.is_emulated() || case.plan.target.clock == Clock::Instructions
}

/// The labels that [`schedule`] describes, and that of tracing.
pub(super) const SCHEDULED: [&str; 5] = ["traced", "interval", "policy", "priority", "threads"];

/// Names a case among others: its target, and labels that not all of them have.
pub(super) fn name(case: &Case<'_>) -> String {
    let common = case.common();
    let told = common.iter().map(|(key, _)| key).chain(["traced"]);
    case.target() + &behind(&case.plan.labels, &Vec::from_iter(told))
}

/// Names what all cases of a sentence have in common: ` (interval=1ms)`.
pub(super) fn in_common(case: &Case<'_>) -> String {
    let common = behind(&case.common(), &["traced"]);
    aside([common.trim_start_matches(", ").to_owned()])
}

/// Names a case with its load, unless loads ran one after the other.
pub(super) fn name_under(case: &Case<'_>) -> String {
    match case.plan.phases.len() {
        0 | 1 => format!("{}{}", name(case), case.plan.load.under()),
        _ => name(case),
    }
}

/// Returns the intervals of the threads of a case.
pub(super) fn intervals(case: &Case<'_>) -> Vec<u64> {
    let heads = case.records().take(1).flat_map(|record| &record.sets);
    let threads = heads.map(|head| (head.labels.number("thread"), head.period));
    threads.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// Returns a fact that a thread of a case reported.
pub(super) fn fact_of<'a>(case: &Case<'a>, name: &str, thread: u64) -> Option<&'a str> {
    let labels = Labels::default().with("thread", thread);
    case.program()?.fact_of(name, &labels)
}

/// Says how its threads are woken: `SCHED_FIFO 95 every 100 µs`; without an interval where nothing
/// is due at one.
pub(super) fn schedule(case: &Case<'_>) -> String {
    let priority = fact_of(case, "priority", 0).unwrap_or_default();
    let policy = match fact_of(case, "scheduling policy", 0).unwrap_or_default() {
        "fifo" => format!("SCHED_FIFO {priority}"),
        "rr" => format!("SCHED_RR {priority}"),
        "deadline" => "SCHED_DEADLINE".to_owned(),
        "other" => "SCHED_OTHER".to_owned(),
        "interrupt" => "a timer interrupt".to_owned(),
        // Of another tool's threads.
        "unknown" => String::new(),
        other => other.to_owned(),
    };
    let intervals = intervals(case);
    let mut each: Vec<String> = intervals.iter().map(|ns| N.ns_tick(*ns as f64)).collect();
    each.dedup();
    let every = match each.as_slice() {
        [first, .., last] => format!("{first} to {last}"),
        _ => each.concat(),
    };
    let every = match is_periodic(case.plan) {
        true => format!("every {every}"),
        false => String::new(),
    };
    // A run that was imported has no policy.
    let woken = format!("{policy} {every}").trim().to_owned();
    let threads = match intervals.len() {
        0 | 1 => String::new(),
        threads => format!("{threads} threads"),
    };
    let parts = [threads, woken].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Writes a duration with its unit: `183 µs`.
pub(super) fn time(ns: f64) -> String {
    N.ns(ns, Some(1.0))
}

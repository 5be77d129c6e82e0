//! What figures may be, and how many there may be: one table, for what an instance reports, for
//! what is written, and for what a file says.
//!
//! Whoever reads a figure may calculate with it, so what no measurement can have is refused before.

use std::fmt::Display;
use std::ops::RangeInclusive;

use tare_wire::phases::MAX_DURATION_NS;

use crate::model::{Cell, CellPlan, Labels, Load, Program, Record, SetHead, Trace, Unit};

/// Values, times and numbers of samples; half of 64 bits, so that differences have a sign.
pub(crate) const AMOUNT: RangeInclusive<u64> = 0..=i64::MAX as u64;
/// Ticks of a TSC in a second.
pub(crate) const HZ: RangeInclusive<f64> = 1e6..=1e12;
/// Uncertainty of that, in parts per million.
const PPM: RangeInclusive<f64> = 0.0..=1e6;
/// Costs of single instructions and loops, in cycles.
const COST: RangeInclusive<f64> = 0.0..=1e12;
/// Length of one of several phases, in seconds.
const PHASE_SECONDS: RangeInclusive<f64> = 1e-9..=MAX_DURATION_NS as f64 / 1e9;
/// Counters of one program, and values and sets that one sends.
pub(crate) const MOST_COUNTERS: usize = 1_000;
pub(crate) const MOST_VALUES: usize = 2_000;
pub(crate) const MOST_SENT_SETS: usize = 1 << 13;
/// Sets of a cell: those that were sent, in each phase of a load, or of each thread of a file.
pub(crate) const MOST_SETS: usize = 1 << 16;
/// Values above the limit that are kept one by one; there may have been more.
pub(crate) const MOST_EXCEEDED: usize = 10_000;
/// Programs of one cell, its greatest samples with the kernel's events, and what was expected of it.
pub(crate) const MOST_PROGRAMS: usize = 1_000;
pub(crate) const MOST_TRACES: usize = 10_000;
pub(crate) const MOST_EXPECTED: usize = 10_000;
/// A text that rows of figures repeat, in bytes.
const MOST_TEXT_BYTES: usize = 16 << 10;
/// Cells of a run; words of a command line, settings of the kernel, and options of a target.
pub(crate) const MOST_CELLS: usize = 1 << 17;
pub(crate) const MOST_WORDS: usize = 1 << 20;
pub(crate) const MOST_SETTINGS: usize = 10_000;
pub(crate) const MOST_OPTIONS: usize = 10_000;
/// Facts of one program; values and notices of a cell; daemons, and other runs of tare.
pub(crate) const MOST_FACTS: usize = 1 << 14;
pub(crate) const MOST_CELL_VALUES: usize = 1 << 16;
pub(crate) const MOST_NOTICES: usize = 10_000;
pub(crate) const MOST_NAMES: usize = 1_000;
/// Labels of one figure.
pub(crate) const MOST_LABELS: usize = 100;
/// Time that a cell is expected, or allowed, to take, in seconds.
const CELL_SECONDS: RangeInclusive<f64> = 0.0..=1e11;

fn within<T: PartialOrd + Display>(
    what: &str,
    value: T,
    bounds: &RangeInclusive<T>,
) -> Result<(), String> {
    match bounds.contains(&value) {
        true => Ok(()),
        false => Err(format!(
            "{what} of {value} is not between {} and {}",
            bounds.start(),
            bounds.end()
        )),
    }
}

fn at_most(what: &str, number: usize, most: usize) -> Result<(), String> {
    match number <= most {
        true => Ok(()),
        false => Err(format!("{number} {what}, at most {most} can be")),
    }
}

fn check_text(of: &str, texts: &[&str]) -> Result<(), String> {
    check_labelled(of, texts, &Labels::default())
}

/// Checks that what names something is no longer than a row of figures can repeat.
fn check_labelled(of: &str, texts: &[&str], labels: &Labels) -> Result<(), String> {
    let labels = labels.iter().map(|(key, value)| key.len() + value.len());
    let bytes = texts.iter().map(|text| text.len()).chain(labels).sum();
    at_most(
        &format!("bytes of text that name a {of}"),
        bytes,
        MOST_TEXT_BYTES,
    )
}

/// Checks the figures of a plan; says which one is out of bounds.
pub(crate) fn check_plan(plan: &CellPlan) -> Result<(), String> {
    let of_cell = |problem| format!("cell {}: {problem}", plan.id);
    let phase = plan.phase_seconds;
    check_text("target", &[&plan.target.text])
        .and_then(|()| check_text("load", &[&plan.load.to_string()]))
        .and_then(|()| {
            let texts = [
                &plan.name,
                &plan.experiment,
                &plan.work.id,
                &plan.work.words,
            ];
            check_labelled("cell", &texts.map(String::as_str), &plan.labels)
        })
        .and_then(|()| at_most("figures expected", plan.expected.len(), MOST_EXPECTED))
        .and_then(|()| {
            let mut all = plan.expected.iter();
            all.try_for_each(|of| {
                check_labelled("expectation", &[&of.measure, &of.why], &of.labels)
            })
        })
        .and_then(|()| {
            phase.map_or(Ok(()), |seconds| {
                within("a phase in seconds", seconds, &PHASE_SECONDS)
            })
        })
        .and_then(|()| {
            within(
                "an estimate in seconds",
                plan.estimate_seconds,
                &CELL_SECONDS,
            )
        })
        .and_then(|()| within("a limit in seconds", plan.limit_seconds, &CELL_SECONDS))
        .map_err(of_cell)
}

/// Checks the figures of a cell; says which one is out of bounds.
pub(crate) fn check_cell(cell: &Cell) -> Result<(), String> {
    check_plan(&cell.plan)?;
    cell.load.as_ref().map_or(Ok(()), check_load)?;
    cell.outcome.record().map_or(Ok(()), check_record)
}

/// Checks the figures of a record; says which one is out of bounds.
fn check_record(record: &Record) -> Result<(), String> {
    at_most("sets", record.sets.len(), MOST_SETS)?;
    at_most("programs", record.programs.len(), MOST_PROGRAMS)?;
    at_most(
        "values above the limit",
        record.exceeded.len(),
        MOST_EXCEEDED,
    )?;
    at_most("traced samples", record.traces.len(), MOST_TRACES)?;
    let exceeded = record.exceeded.iter().map(|it| it.set);
    let mut named = exceeded.chain(record.traces.iter().map(|it| it.set));
    if let Some(set) = named.find(|set| *set as usize >= record.sets.len()) {
        return Err(format!("there is no set {set}"));
    }
    record.programs.iter().try_for_each(check_program)?;
    record.sets.iter().try_for_each(check_set)?;
    check_rest(record)
}

/// Checks the parts of a record other than programs and sets.
pub(crate) fn check_rest(record: &Record) -> Result<(), String> {
    for value in &record.values {
        check_labelled("value", &[&value.measure, &value.unit], &value.labels)?;
        if !value.value.is_finite() {
            let problem = format!("a {} of {} is not a number", value.measure, value.value);
            return Err(problem);
        }
    }
    let exceeded = record.exceeded.iter().map(|it| it.value);
    check_values(exceeded.chain(record.traces.iter().map(|it| it.value)))?;
    record.traces.iter().try_for_each(check_trace)
}

/// Checks values of samples.
pub(crate) fn check_values(mut values: impl Iterator<Item = u64>) -> Result<(), String> {
    values.try_for_each(|value| within("a value", value, &AMOUNT))
}

/// Checks what a program told; says which figure is out of bounds.
pub(crate) fn check_program(program: &Program) -> Result<(), String> {
    at_most("counters", program.counters.len(), MOST_COUNTERS)?;
    let mut counters = program.counters.iter();
    counters.try_for_each(|counter| check_text("counter", &[&counter.name]))?;
    for claim in &program.frequencies {
        within("a frequency in Hz", claim.hz, &HZ)?;
        let ppm = claim.uncertainty_ppm;
        ppm.map_or(Ok(()), |ppm| within("an uncertainty in ppm", ppm, &PPM))?;
    }
    let costs = &program.calibration;
    for cost in [
        costs.fenced_cost_cycles,
        costs.published_cost_cycles,
        costs.bare_read_cycles,
        costs.loop_cycles,
        costs.fenced_region_cycles as f64,
        costs.published_region_cycles as f64,
        costs.step_cycles as f64,
    ] {
        within("a cost in cycles", cost, &COST)?;
    }
    Ok(())
}

/// Checks the head of a set; says which figure is out of bounds.
pub(crate) fn check_set(head: &SetHead) -> Result<(), String> {
    check_labelled("set", &[&head.measure], &head.labels)?;
    // Cycles count from any number on, and may pass the greatest one.
    let (first, last) = match head.unit {
        Unit::Ns => (head.first, head.last),
        Unit::Cycles => (0, head.length()),
    };
    let least = if head.n > 0 { head.min } else { 0 };
    for (what, amount) in [
        ("a number of samples", head.n),
        ("a number of samples", head.uncounted),
        ("a least value", least),
        ("a greatest value", head.max),
        ("a greatest value", head.unkept_max),
        ("a least value", head.uncounted_min),
        ("a greatest value", head.uncounted_max),
        ("a period", head.period),
        ("a bin", head.bin),
        ("a time", first),
        ("a time", last),
    ] {
        within(what, amount, &AMOUNT).map_err(|problem| format!("{}: {problem}", head.measure))?;
    }
    match head.n == 0 || first <= last {
        true => Ok(()),
        false => Err(format!(
            "{}: the last sample ends before the first",
            head.measure
        )),
    }
}

fn check_trace(trace: &Trace) -> Result<(), String> {
    match trace.events.is_sorted_by_key(|event| event.at_ns) {
        true => Ok(()),
        false => Err(format!(
            "the kernel's events around sample {} are out of order",
            trace.index
        )),
    }
}

fn check_load(load: &Load) -> Result<(), String> {
    for phase in &load.phases {
        for ns in [
            phase.due_ns,
            phase.started_ns,
            phase.stopping_ns,
            phase.stopped_ns,
        ] {
            within("a time of the load in ns", ns, &AMOUNT)?;
        }
    }
    let phases = load.phases.iter().flat_map(|phase| &phase.achieved);
    let achieved = load.achieved.iter().chain(phases);
    achieved
        .map(|achieved| achieved.ns)
        .try_for_each(|ns| within("a time of the load in ns", ns, &AMOUNT))
}

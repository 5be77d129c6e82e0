//! Whether samples match the heads of their sets.
//!
//! Heads and samples come by different records, and often by different passes over what was
//! measured. Where they must agree and do not, one of them is wrong, and it is unknown which.

use std::fmt;

use super::FILES;
use crate::bounds;
use crate::model::{
    Bin, Count, Event, Instance, InstanceOutcome, MOST_INSTANCES, Record, Samples, SetHead,
    SetSamples,
};

const INSTANCES: &str = FILES[0];
const COUNTS: &str = FILES[1];
const EVENTS: &str = FILES[2];
const ENVELOPE: &str = FILES[3];
const RAW: &str = FILES[4];

/// Says what of the samples contradicts the record, or itself: the file and the reason.
pub(crate) fn check(record: &Record, samples: &Samples) -> Result<(), (&'static str, String)> {
    if samples.sets.len() != record.sets.len() {
        let (sets, heads) = (samples.sets.len(), record.sets.len());
        let reason = format!("does not match cell.json: it has {sets} sets of {heads}");
        return Err((COUNTS, reason));
    }
    check_instances(record, &samples.instances).map_err(|reason| (INSTANCES, reason))?;
    let mut balances: Vec<(&str, Sum, Sum)> = Vec::new();
    for (head, set) in record.sets.iter().zip(&samples.sets) {
        bounds::check_values(set.values())
            .map_err(|problem| format!("is damaged: {problem}"))
            .map_err(named(COUNTS, head))?;
        let counted = check_counts(head, &set.counts).map_err(named(COUNTS, head))?;
        check_list(head, head.listed(), &set.events)
            .and_then(|()| check_threshold(head, set))
            .map_err(named(EVENTS, head))?;
        check_list(head, head.raw, &set.raw).map_err(named(RAW, head))?;
        let enveloped = check_envelope(&set.envelope).map_err(named(ENVELOPE, head))?;
        if head.bin == 0 && set.envelope.is_empty() {
            continue;
        }
        let whole = counted.plus(head.uncounted, head.uncounted_sum);
        match balances.iter_mut().find(|(of, ..)| *of == head.measure) {
            Some((_, due, found)) => {
                *due = due.plus(whole.n, whole.sum);
                *found = found.plus(enveloped.n, enveloped.sum);
            }
            None => balances.push((&head.measure, whole, enveloped)),
        }
    }
    // A bin may reach from one part of a measurement in time into the next: they are compared
    // together.
    match balances.into_iter().find(|(_, due, found)| due != found) {
        Some((measure, due, found)) => Err((
            ENVELOPE,
            format!(
                "does not match counts.parquet: it holds {} samples of {measure} of {} in all, there are {} of {}",
                found.n, found.sum, due.n, due.sum
            ),
        )),
        None => Ok(()),
    }
}

/// Every instance is of a program, and one that failed has a reason, where the record has any.
fn check_instances(record: &Record, instances: &[Instance]) -> Result<(), String> {
    let rows = instances.len();
    if rows as u64 > MOST_INSTANCES {
        return Err(format!(
            "is too large: {rows} rows, at most {MOST_INSTANCES}"
        ));
    }
    let Some(arrived) = &record.arrived else {
        return Ok(());
    };
    let mut failed = vec![0; arrived.failures.len()];
    for instance in instances {
        match InstanceOutcome::of(instance.fate) {
            None => {
                let fate = instance.fate;
                return Err(format!(
                    "is damaged: there is no fate {fate} of an instance"
                ));
            }
            Some(InstanceOutcome::Failed) => match failed.get_mut(instance.failure as usize) {
                Some(count) => *count += 1,
                None => {
                    let failure = instance.failure;
                    return Err(misfit(format_args!("there is no failure {failure}")));
                }
            },
            Some(
                InstanceOutcome::Done | InstanceOutcome::Rejected | InstanceOutcome::Unfinished,
            ) => {}
        }
    }
    let told = arrived.failures.iter().map(|failure| failure.count);
    match told.eq(failed) {
        true => Ok(()),
        false => Err(misfit(format_args!("it has other numbers of failures"))),
    }
}

/// Adds the set to a reason where it has labels.
fn named(file: &'static str, head: &SetHead) -> impl Fn(String) -> (&'static str, String) {
    move |reason| match head.labels.is_empty() {
        true => (file, reason),
        false => (
            file,
            format!("{reason} (set {} {})", head.measure, head.labels),
        ),
    }
}

/// Number and sum of some samples.
#[derive(Clone, Copy, Default, PartialEq)]
struct Sum {
    n: u128,
    sum: u128,
}

impl Sum {
    fn plus(self, n: impl Into<u128>, sum: impl Into<u128>) -> Self {
        Self {
            n: self.n + n.into(),
            sum: self.sum.saturating_add(sum.into()),
        }
    }
}

fn misfit(what: fmt::Arguments<'_>) -> String {
    format!("does not match cell.json: {what}")
}

/// Every sample is counted, unless there was no room for its value or only the listed ones are.
fn check_counts(head: &SetHead, counts: &[Count]) -> Result<Sum, String> {
    let falls = |pair: &&[Count]| pair[0].value >= pair[1].value;
    if let Some(pair) = counts.windows(2).find(falls) {
        let value = pair[1].value;
        return Err(format!(
            "is damaged: the value {value} does not rise above the one before"
        ));
    }
    if let Some(Count { value, .. }) = counts.iter().find(|row| row.count == 0) {
        return Err(format!("is damaged: the value {value} has a count of 0"));
    }
    let counted = counts.iter().fold(Sum::default(), |sum, row| {
        sum.plus(row.count, u128::from(row.value) * u128::from(row.count))
    });
    if head.squares_below.is_some() {
        return check_listed_only(head, counted);
    }
    let all = counted.plus(head.uncounted, head.uncounted_sum);
    if all.n != u128::from(head.n) {
        return Err(misfit(format_args!(
            "it counts {} samples, with {} that found no room, of {}",
            counted.n, head.uncounted, head.n
        )));
    }
    if all.sum != u128::from(head.sum) {
        return Err(misfit(format_args!(
            "its samples make {} in all, with {} that found no room, not {}",
            counted.sum, head.uncounted_sum, head.sum
        )));
    }
    Ok(counted)
}

/// Only the listed samples are counted; the rest lies between them.
fn check_listed_only(head: &SetHead, counted: Sum) -> Result<Sum, String> {
    let (n, sum) = (counted.n, counted.sum);
    if n != u128::from(head.kept) {
        let listed = head.kept;
        return Err(misfit(format_args!(
            "it counts {n} samples of {listed} listed"
        )));
    }
    if counted.plus(0_u64, head.unkept_sum).sum > u128::from(head.sum) {
        return Err(misfit(format_args!(
            "the listed samples make {sum} and those not listed {}, all of them only {}",
            head.unkept_sum, head.sum
        )));
    }
    Ok(counted)
}

/// Samples come in their order, as many as were kept, from the time that was measured.
fn check_list(head: &SetHead, due: u64, list: &[Event]) -> Result<(), String> {
    let listed = list.len() as u64;
    if listed != due {
        return Err(misfit(format_args!("it lists {listed} samples, not {due}")));
    }
    if !list.is_sorted_by(|a, b| a.index < b.index) {
        return Err("is damaged: the numbers of its samples do not rise".to_owned());
    }
    let is_outside = |event: &&Event| event.at.wrapping_sub(head.first) > head.length();
    match list.iter().find(is_outside) {
        Some(Event { index, .. }) => Err(misfit(format_args!(
            "sample {index} is from before or after the measurement"
        ))),
        None => Ok(()),
    }
}

/// Checks that listed samples reach the threshold, and that they were seen.
fn check_threshold(head: &SetHead, set: &SetSamples) -> Result<(), String> {
    let (kept, seen, threshold) = (head.kept, head.seen, head.threshold);
    if kept > seen {
        return Err(misfit(format_args!(
            "it lists {kept} samples of {seen} seen"
        )));
    }
    match set.events.iter().find(|event| event.value < threshold) {
        Some(Event { index, value, .. }) => Err(misfit(format_args!(
            "sample {index} of {value} is below the threshold of {threshold}"
        ))),
        None => Ok(()),
    }
}

fn check_envelope(envelope: &[Bin]) -> Result<Sum, String> {
    if let Some(pair) = envelope.windows(2).find(|pair| pair[0].bin >= pair[1].bin) {
        let bin = pair[1].bin;
        return Err(format!(
            "is damaged: bin {bin} does not rise above the one before"
        ));
    }
    let is_wrong = |row: &&Bin| {
        let times = |value: u64| u128::from(value) * u128::from(row.n);
        let sum = u128::from(row.sum);
        row.n == 0 || sum < times(row.min) || sum > times(row.max)
    };
    if let Some(Bin { bin, .. }) = envelope.iter().find(is_wrong) {
        return Err(format!(
            "is damaged: number, sum, minimum and maximum of bin {bin} contradict each other"
        ));
    }
    let rows = envelope.iter();
    Ok(rows.fold(Sum::default(), |sum, row| sum.plus(row.n, row.sum)))
}
